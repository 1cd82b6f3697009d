"""Between code and formulas: ops from formulas, functions as formulas and back, and matrix calculus."""
