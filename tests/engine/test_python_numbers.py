"""A Python number as an operand equals a tensor of it, also where a rule divides by it; whole powers with negative exponents are refused."""

import warnings

import numpy as np
import pytest

import symgrad
from symgrad import func, tensor
from symgrad.autograd import grad
from symgrad.graph.op import REGISTRY

BINARY = [op for op in REGISTRY.values()
          if op.kind == "elementwise" and op.arity == 2 and op.surface.public and op.differentiable and not op.parameters]
NUMBERS = [0.0, -0.0, 0, 1e308, 5e-324, float("inf"), float("nan")]
VALUES = [-2.0, 0.0, 0.5, 3.0]


def readings(f, create):
    """The value, the gradient, the derivative of the gradient by both routes, and the pushforward."""
    out = []
    for route in ("value", "backward", "create_graph", "jvp", "hessian"):
        x = create()
        try:
            if route == "value":
                found = f(x)
            elif route == "backward":
                f(x).sum().backward()
                found = x.grad
            elif route == "create_graph":
                (first,) = grad(f(x).sum(), x, create_graph=True)
                (found,) = grad(first.sum(), x)
            elif route == "jvp":
                found = symgrad.func.jvp(f, (x.detach(),), (symgrad.ones_like(x),))[1]
            else:
                found = symgrad.func.hessian(lambda x: f(x).sum())(x.detach())
        except (RuntimeError, TypeError) as error:
            found = tensor(float("nan")) if "integers have no power" in str(error) else f"{type(error).__name__}"
        out.append((route, found if isinstance(found, str) else found.detach().numpy()))
    return out


@pytest.mark.sampled(4)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("op", BINARY, ids=lambda op: op.name)
def test_a_python_number_equals_a_tensor_of_it(op, dtype):
    call, dtype = getattr(symgrad, op.name), getattr(symgrad, dtype)

    def create():
        return tensor(VALUES, dtype=dtype, requires_grad=True)

    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        for number in NUMBERS:
            if dtype is symgrad.float32 and abs(number) in (1e308, 5e-324, float("inf")):
                continue
            for plain, wrapped in ((lambda x, n=number: call(x, n), lambda x, n=number: call(x, tensor(float(n), dtype=dtype))),
                                   (lambda x, n=number: call(n, x), lambda x, n=number: call(tensor(float(n), dtype=dtype), x))):
                for (route, a), (_, b) in zip(readings(plain, create), readings(wrapped, create)):
                    assert not isinstance(a, str) or a == b, (number, route, a, b)
                    if not isinstance(a, str) and not isinstance(b, str):
                        assert a.dtype == b.dtype, (number, route)
                        np.testing.assert_allclose(a, b, rtol=1e-6 if dtype is symgrad.float32 else 1e-13, err_msg=f"{number} {route}")


DTYPES = ("uint8", "int8", "int16", "int32", "int64", "bool")
ROUTES = {
    "operator": lambda x, k: x**k, "pow": symgrad.pow, "method": lambda x, k: x.pow(k), "pow_": lambda x, k: x.clone().pow_(k),
    "operator in place": lambda x, k: x.clone().__ipow__(k), "out": lambda x, k: symgrad.pow(x, k, out=symgrad.empty_like(x)),
    "no dimensions": lambda x, k: x[0] ** k, "no elements": lambda x, k: x[:0] ** k, "vmap": lambda x, k: func.vmap(lambda y: y**k)(x),
    "compiled": lambda x, k: symgrad.compile(lambda y: y**k)(x), "compiled, with the exponent": lambda x, k: symgrad.compile(lambda y, k: y**k)(x, k),
    "beside floats": lambda x, k: func.grad(lambda t: (t * x**k).sum())(symgrad.tensor(0.7)),
}


@pytest.mark.sampled(24)
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
