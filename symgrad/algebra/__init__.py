"""Expressions by themselves: whether two are the same function, and the forms of one that keep its digits."""
