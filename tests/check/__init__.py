"""Tests of `check`, `prove`, `identical` of rules, functions of other frameworks, and the command line."""
