"""Mutation testing of the rule tables: ops made wrong on purpose, which the checks of `symgrad.testing` must all refuse."""
