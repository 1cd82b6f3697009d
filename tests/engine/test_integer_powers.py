"""Powers of integers with negative exponents: a number is refused, as in torch, and a tensor gives 1 / a**|b| rounded towards zero."""

import pytest

import symgrad
from symgrad import func

DTYPES = ("uint8", "int8", "int16", "int32", "int64", "bool")
ROUTES = {
    "operator": lambda x, k: x**k, "pow": symgrad.pow, "method": lambda x, k: x.pow(k), "pow_": lambda x, k: x.clone().pow_(k),
    "operator in place": lambda x, k: x.clone().__ipow__(k), "out": lambda x, k: symgrad.pow(x, k, out=symgrad.empty_like(x)),
    "no dimensions": lambda x, k: x[0] ** k, "no elements": lambda x, k: x[:0] ** k, "vmap": lambda x, k: func.vmap(lambda y: y**k)(x),
    "compiled": lambda x, k: symgrad.compile(lambda y: y**k)(x), "compiled, with the exponent": lambda x, k: symgrad.compile(lambda y, k: y**k)(x, k),
    "beside floats": lambda x, k: func.grad(lambda t: (t * x**k).sum())(symgrad.tensor(0.7)),
}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("route", ROUTES)
def test_a_negative_number_as_exponent_is_refused(route, dtype):
    x = symgrad.tensor([1, 0, 3], dtype=getattr(symgrad, dtype))
    for exponent in (-1, -3, -253):  # the last is 3 modulo 256
        with pytest.raises(RuntimeError, match="integers have no power -"):
            ROUTES[route](x, exponent)


@pytest.mark.parametrize("dtype", DTYPES)
def test_exponents_that_are_floats_or_tensors(dtype):
    """A float exponent makes floats; a tensor of integers keeps them, and what has no whole reciprocal is 0."""
    x = symgrad.tensor([1, 1, 1] if dtype == "bool" else [1, 2, 3], dtype=getattr(symgrad, dtype))
    expected = [1.0 / n.item() for n in x.double()]
    assert (x**-1.0).tolist() == symgrad.float_power(x, -1).tolist() == (x.double() ** -1).tolist() == expected
    assert (x ** symgrad.tensor([-1, 2, -3])).tolist() == [1, x[1].item() ** 2, int(dtype == "bool")]
