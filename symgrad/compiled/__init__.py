"""Compiled functions: a function recorded as a program for each set of shapes, and run without Python's and the graph's overhead."""
