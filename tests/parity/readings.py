"""The intended answer where ours takes an argument that torch refuses: torch's own answer for what the argument stands for."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch

import symgrad

from .compare import RELATIVE, Different, attempt, coarsest, compare, numbers, same, structure, tensors
from .database import RANDOM, UNSET, Call
from .intended import REFUSED, Functions, cast_all, gradients_of_both, in_double, unlimited, value_of, without_grad
from .vary import given, put, tensor

MOST = 120  # readings of one call


def is_random(functions: Functions) -> bool:
    """Whether the function draws numbers or sets none, so that only the structure of its result is determined."""
    return functions[1].__name__.removesuffix("_") in {name.rpartition(".")[2].removesuffix("_") for name in RANDOM | UNSET}


def readings(value: Any, among: list[torch.Tensor]) -> Iterator[Any]:
    """What else an argument stands for: a tensor of it, with the dtype of the other tensors or its own, its number, or its truth."""
    if isinstance(value, torch.Tensor):
        if not value.ndim:
            number = value.detach().item()
            yield number
            yield from (kind(number) for kind in (int, bool) if not isinstance(number, complex) and math.isfinite(number))
            yield value.detach().reshape(1)
        yield value.detach().reshape(-1).tolist()
    elif isinstance(value, (bool, int, float, complex)):
        made = torch.tensor(value)
        yield from (made, made if isinstance(value, complex) else made.double())
        for dtype in {functools.reduce(torch.promote_types, [t.dtype for t in among], made.dtype), *(torch.result_type(t, value) for t in among)}:
            yield torch.tensor(value, dtype=dtype)
        if not isinstance(value, complex) and math.isfinite(value):
            yield from (kind(value) for kind in (int, float, bool) if type(value) is not kind)
    elif isinstance(value, (list, tuple)):
        found = attempt(lambda: torch.tensor(value))
        if isinstance(found, torch.Tensor):
            yield found
            yield type(value)(torch.tensor(v) for v in value)
            yield from (found.to(t.dtype) for t in among)
            yield from (found.double(), found.cfloat())
            if len(value) == 1:
                yield value[0]
    if isinstance(value, (str, list, tuple, torch.dtype)) or value is None:
        yield bool(value)


def places(value: Any, at: tuple = ()) -> Iterator[tuple[tuple, Any]]:
    """Arguments and lists of arguments, with their places."""
    if isinstance(value, (list, tuple)) and len(at) > 1:
        yield at, value
    if isinstance(value, (list, tuple)) and not isinstance(value, torch.Size):
        for i, v in enumerate(value):
            yield from places(v, (*at, i))
    elif isinstance(value, dict):
        for k, v in value.items():
            yield from places(v, (*at, k))
    else:
        yield at, value


def answers(call: Call, function: Callable[..., Any]) -> Iterator[Any]:
    """torch's answers for the readings of one argument, and of two."""
    call = without_grad(call)
    among = [t for _, t in given(call, tensor)]
    each = [[(at, r) for r in readings(v, among)] for at, v in places([call.args, call.kwargs])]
    one = [(choice,) for choices in each for choice in choices]
    two = (pair for a, b in itertools.combinations(each, 2) for pair in itertools.product(a, b))
    for choices in itertools.islice(itertools.chain(one, two), MOST):
        read = changed_at(call, choices)
        found = attempt(lambda read=read: value_of(function, read, torch))
        if not isinstance(found, BaseException):
            yield found


def changed_at(call: Call, choices: tuple) -> Call:
    """The call with other arguments at some places."""
    args, kwargs = put([call.args, call.kwargs], dict(choices))
    return call._replace(args=args, kwargs=kwargs)


def agree(theirs: Any, mine: Any, call: Call) -> bool:
    """Whether two results are equal, up to the digits of the coarsest dtype."""
    try:
        same("value", theirs, mine, coarsest([call.args, call.kwargs]))
    except Different:
        return False
    return True


def in_value(theirs: Any, mine: Any) -> bool:
    """Whether two results are equal as numbers, of other dtypes."""
    pairs = list(zip(tensors(theirs), tensors(mine)))
    return bool(pairs) and all(a.shape == b.shape and np.allclose(numbers(a), numbers(b), equal_nan=True) for a, b in pairs)


def as_read(call: Call, functions: Functions) -> None:
    """An argument of another type stands for what torch takes in its place, or is refused with a message."""
    found = attempt(lambda: value_of(functions[1], without_grad(call), symgrad))
    if isinstance(found, BaseException):
        assert isinstance(found, REFUSED) and str(found), repr(found)
        return
    expected, loose = list(answers(call, functions[0])), False
    if not expected:  # the dtypes are mixed, too
        dtype, loose = functools.reduce(torch.promote_types, [t.dtype for _, t in given(call, tensor)], torch.float64), True
        expected = [e for masks in (True, False) for e in answers(cast_all(call, dtype, masks), functions[0])]
    if not expected:  # torch has no kernel: a number is what a tensor of it is
        expected = list(mine_of_tensors(call, functions[1]))
    if functions[1].__name__ in ("kthvalue", "mode", "topk"):  # torch does not say which of equal elements it picks
        expected, found = [e[0] for e in expected], found[0]
    if is_random(functions):
        assert any(structure(e)[1:] == structure(found)[1:] for e in expected), found
    else:
        loose = loose or any(isinstance(v, bool) for _, v in places([call.args, call.kwargs]))  # of which torch computes as of integers
        assert any(agree(e, found, call) or loose and in_value(e, found) for e in expected), (found, expected[:3])


def mine_of_tensors(call: Call, function: Callable[..., Any]) -> Iterator[Any]:
    """Our own answers with tensors in the place of numbers."""
    call = without_grad(call)
    for at, v in places([call.args, call.kwargs]):
        if isinstance(v, (int, float, complex, list, tuple)):
            made = attempt(lambda v=v: torch.tensor(v))
            found = attempt(lambda at=at, made=made: value_of(function, changed_at(call, ((at, made),)), symgrad))
            if isinstance(made, torch.Tensor) and not isinstance(found, BaseException):
                yield found


def in_int64(call: Call, functions: Functions) -> None:
    """The value is that of int64, in the dtype of the call."""
    theirs = value_of(functions[0], without_grad(cast_all(call, torch.int64, masks=False)), torch)
    same("value", theirs.to(call.args[0].dtype), value_of(functions[1], without_grad(call), symgrad))


def sign_of_nan(call: Call, functions: Functions) -> None:
    """The sign of NaN is NaN; any other number is taken for a tensor."""
    if call.args[0] == call.args[0]:
        as_read(call, functions)
    else:
        assert np.isnan(numbers(value_of(functions[1], call, symgrad))).all()


def as_read_without_threshold(call: Call, functions: Functions) -> None:
    """An argument of another type stands for what torch takes in its place, without the threshold above which torch takes the input itself."""
    as_read(call, unlimited(functions))


def in_double_without_threshold(call: Call, functions: Functions) -> None:
    """The value is that of double precision without the threshold, rounded to the dtype of the result."""
    in_double(call, unlimited(functions))


def with_no_sizes(call: Call, functions: Functions) -> None:
    """No sizes are an empty tuple of sizes."""
    found = value_of(functions[1], without_grad(call), symgrad)
    expected = attempt(lambda: value_of(functions[0], without_grad(call)._replace(args=(*call.args, ())), torch))
    assert not isinstance(expected, BaseException) and agree(expected, found, call), (expected, found)


def in_double_structure(call: Call, functions: Functions) -> None:
    """The result has the shape of torch's in double precision, and its own dtype."""
    found = value_of(functions[1], without_grad(call), symgrad)
    expected = attempt(lambda: value_of(functions[0], without_grad(cast_all(call, torch.float64)), torch))
    if isinstance(expected, BaseException):
        expected = value_of(functions[0], without_grad(cast_all(call, torch.float64, masks=False)), torch)
    assert [tuple(t.shape) for t in tensors(found)] == [tuple(t.shape) for t in tensors(expected)]


def named_by_its_class(call: Call, functions: Functions) -> None:
    """A name is that of the module and the class."""
    (x,) = call.args
    found = functions[1](x if not isinstance(x, torch.Tensor) else symgrad.tensor(0.0))
    assert found.rpartition(".")[2] in (type(x).__name__, "Tensor", "DoubleTensor") and not found.startswith("torch."), found


def with_a_column(call: Call, functions: Functions) -> None:
    """A sum of no products is 0, and the input broadcasts as with any other sum."""
    input, mat, vec = without_grad(call).args
    assert not mat.numel()
    beta = call.kwargs.get("beta", 1)
    expected = (input * (beta if input.is_floating_point() or input.is_complex() else int(beta))).to(input.dtype).expand(mat.shape[0]).clone()
    same("value", expected, value_of(functions[1], without_grad(call), symgrad))


def one_at_zero(call: Call, functions: Functions) -> None:
    """0 to the power 0 is 1; all other values are torch's."""
    theirs, mine = (value_of(f, without_grad(call), m) for f, m in zip(functions, (torch, symgrad)))
    base, exponent = (torch.as_tensor(x) for x in call.args[:2])
    special = numbers(torch.broadcast_to((base == 0) & (exponent == 0), theirs.shape))
    a, b = numbers(theirs), numbers(mine)
    assert special.any() and np.all(b[special] == 1)
    np.testing.assert_allclose(np.where(special, 1, b), np.where(special, 1, a), rtol=1e-3)


def without_truth(call: Call, functions: Functions) -> None:
    """True in the place of a dimension is `unbiased`."""
    call = without_grad(call)
    flag = next((v for v in call.args[1:] if isinstance(v, bool)), call.kwargs.get("unbiased"))
    if flag is None:
        as_read(call, functions)
    else:
        expected = functions[0](torch.as_tensor(call.args[0]), dim=None, unbiased=flag, **{k: v for k, v in call.kwargs.items() if k != "unbiased"})
        same("value", expected, value_of(functions[1], call, symgrad))


def does_not_require_grad(call: Call, functions: Functions) -> None:
    """A new tensor is torch's, and a constant."""
    found = value_of(functions[1], call, symgrad)
    assert not found.requires_grad
    same("value", value_of(functions[0], without_grad(call), torch), found)


def inside_of_domain(call: Call, functions: Functions) -> None:
    """Where the order is 0 or less or the argument negative, the derivative is NaN; elsewhere it is torch's."""
    bad = functools.reduce(torch.logical_or, [t.detach() <= 0 for t in tensors(call.args)])
    for a, b in zip(*gradients_of_both(call, functions, ones=True)):
        outside = bad.double().sum_to_size(a.shape).bool().numpy()  # a gradient of an operand that broadcasts is a sum
        assert np.all(np.isclose(a, b, rtol=1e-3, atol=1e-5) | outside), (a, b)


def by_python(call: Call, functions: Functions) -> None:
    """A function of symbolic numbers is that of Python of other objects, or refuses them."""
    plain = {"sym_float": float, "sym_int": int, "sym_max": max, "sym_min": min, "sym_not": lambda a: not a, "sym_sqrt": math.sqrt,
             "sym_sum": sum, "sym_ite": lambda a, b, c: b if a else c}
    call = without_grad(call)
    found = attempt(lambda: value_of(functions[1], call, symgrad))
    if isinstance(found, BaseException):
        assert isinstance(found, REFUSED) and str(found), repr(found)
        return
    args = [v.item() if isinstance(v, torch.Tensor) and not v.ndim else v for v in call.args]
    expected = plain[functions[1].__name__](*args)
    found = found.item() if isinstance(found, symgrad.Tensor) and not found.ndim else found
    assert found == expected or found != found and expected != expected, (found, expected)


def solves(call: Call, functions: Functions) -> None:
    """A refusal, or eigenvectors with their eigenvalues: A x = λ x for the symmetric matrix A."""
    found = attempt(lambda: value_of(functions[1], without_grad(call), symgrad))
    if isinstance(found, BaseException):
        assert isinstance(found, REFUSED) and str(found), repr(found)
        return
    a, (values, vectors) = numbers(call.args[0]), map(numbers, found[:2])
    symmetric = (a + np.conj(np.swapaxes(a, -1, -2))) / 2
    np.testing.assert_allclose(symmetric @ vectors, vectors * values[..., None, :], atol=1e-3 * max(1, np.abs(a).max(initial=0)))


def promoted_as_a_sum(call: Call, functions: Functions) -> None:
    """The common dtype is that of torch's own sum."""
    args = [a.detach() if isinstance(a, torch.Tensor) else a for a in call.args]
    expected = str((torch.as_tensor(args[0]) if not isinstance(args[0], torch.Tensor) else args[0]).add(args[1]).dtype)
    assert str(value_of(functions[1], without_grad(call), symgrad)) == expected, expected


def in_another_order(call: Call, functions: Functions) -> None:
    """The eigenvalues are torch's in another order, and with it vectors and derivatives are torch's."""
    theirs, mine = (numbers(value_of(f, without_grad(call), m)[0]) for f, m in zip(functions, (torch, symgrad)))
    order = np.abs(theirs[..., :, None] - mine[..., None, :]).argmin(-1)
    assert all(sorted(row) == list(range(len(row))) for row in order.reshape(-1, order.shape[-1]))

    def permuted(*args: Any, **kwargs: Any) -> Any:
        values, vectors = functions[1](*args, **kwargs)
        at = symgrad.from_numpy(order)
        return values.take_along_dim(at, -1), vectors.take_along_dim(at.unsqueeze(-2), -1)

    compare(call, (functions[0], permuted), forward=False)


def without_a_factor(call: Call, functions: Functions) -> None:
    """The number of the minor is torch's; where it is not 0 there is no factor but NaN, and elsewhere the factor is torch's."""
    theirs, mine = (value_of(f, without_grad(call), m) for f, m in zip(functions, (torch, symgrad)))
    same("value", theirs[1], mine[1])
    failed = numbers(theirs[1]) != 0
    assert failed.any() and np.isnan(numbers(mine[0])[failed]).all()
    np.testing.assert_allclose(numbers(mine[0])[~failed], numbers(theirs[0])[~failed], rtol=RELATIVE[coarsest(mine[0])])


def solves_nothing(call: Call, functions: Functions) -> None:
    """The batches broadcast to an empty one, and so the solution has no elements."""
    (a, b), found = without_grad(call).args[:2], value_of(functions[1], without_grad(call), symgrad)
    batch = torch.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    assert tuple(found[0].shape) == (*batch, a.shape[-1], b.shape[-1]) and 0 in batch


def unshuffled(call: Call, functions: Functions) -> None:
    """Of nothing the result is nothing, of the shape that the formula has: r² as many channels of sides that are r times shorter."""
    found = value_of(functions[1], without_grad(call), symgrad)
    *batch, channels, height, width = call.args[0].shape
    factor = call.args[1] if len(call.args) > 1 else call.kwargs["downscale_factor"]
    assert 0 in call.args[0].shape and tuple(found.shape) == (*batch, channels * factor**2, height // factor, width // factor)
