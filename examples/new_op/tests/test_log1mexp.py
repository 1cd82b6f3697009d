"""new_op.log1mexp under attack: pytest runs every check of symgrad.testing on it, each as a test of its own.

Written by `symgrad ghostwrite new_op:log1mexp`. Correct what is claimed here, and keep the file. To run it, with a thousand
examples for each check where it says so (it needs pip install 'symgrad[testing]'):

    pytest tests/test_log1mexp.py
    pytest tests/test_log1mexp.py --symgrad-profile thorough
"""

import symgrad.testing

import new_op

log1mexp = symgrad.testing.op(
    formula="log(1 - exp(-x))",  # what it should be
    domain={"x": "positive"},  # where: such as "positive", "nonzero", "-1..1" or "(0, 1]"
    # special=[(1.0,)],  # points with an edge or a kink, as (x,)
)(new_op.log1mexp)
