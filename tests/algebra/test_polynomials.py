"""Factors of polynomials: by FLINT and without it, and within bounds of size and work."""

import pytest

from symgrad.algebra import polynomials
from symgrad.algebra.effort import Effort, TooLarge
from symgrad.algebra.field_extension import Frac
from symgrad.algebra.normal import Normal
from symgrad.algebra.polynomials import factor_list, key


@pytest.mark.parametrize("terms", [
    {((0, 2),): 2, (): -2}, {((0, 4),): 1, ((0, 2), (1, 2)): -5, ((1, 4),): 4}, {((0, 3),): 6, ((0, 2),): -12, ((0, 1),): 6}, {((0, 6),): 1, (): -1},
    {((0, 1), (1, 1), (2, 1)): 3, ((1, 1), (2, 1)): 3, ((0, 1), (2, 1)): -6, ((2, 1),): -6},
    {((0, 2),): 1, ((0, 1), (1, 1)): 2, ((1, 2),): 1, (): 1}],
    ids=str)
def test_the_factors_are_the_same_without_flint(terms, monkeypatch):
    with_flint = factor_list(key(terms))
    factor_list.cache_clear()
    monkeypatch.setattr(polynomials, "_flint", lambda: None)
    assert factor_list(key(terms)) == with_flint
    factor_list.cache_clear()


def test_a_polynomial_that_is_too_large_is_not_factored():
    with pytest.raises(TooLarge):
        factor_list(key({((0, k), (1, 399 - k)): k + 1 for k in range(200)} | {(): 1}))
    with pytest.raises(TooLarge):
        Normal(Effort(20), {}, False).pieces(Frac({((0, k),): 1 for k in range(1, 9)} | {(): 1}))
