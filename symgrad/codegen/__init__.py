"""Functions and expressions written as source code and LaTeX."""
