"""The answers that are intended where they differ from torch's: each function checks one for a call."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.special
import torch

import symgrad

from .compare import ABSOLUTE, RELATIVE, Different, attempt, coarsest, compare, cotangents, differentiable, numbers, same, tensors, weights
from .database import Call, each, fresh, ours
from .vary import changed, given, leaf, tensor

Functions = tuple[Callable[..., Any], Callable[..., Any]]


def value_of(function: Callable[..., Any], call: Call, m: Any) -> Any:
    args, kwargs = (fresh if m is torch else ours)(call.args), (fresh if m is torch else ours)(call.kwargs)
    return applied(call, function, args, kwargs)


def applied(call: Call, function: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    return call.chosen(call.wrapped(function, *args, **kwargs) if call.wrapped else function(*args, **kwargs))


def cast_all(call: Call, dtype: torch.dtype, masks: bool = True) -> Call:
    """The call with all tensors in one dtype, but for `masks`, which are those of booleans."""
    return changed(call, {at: leaf(t.to(dtype), t) for at, t in given(call, tensor) if t.dtype != torch.bool or not masks})


def of_tensors(value: Any, change: Callable[[torch.Tensor], torch.Tensor]) -> Any:
    """Nested arguments or results with all tensors changed."""
    return each(value, lambda v: change(v) if isinstance(v, torch.Tensor) else v)


def without_grad(call: Call) -> Call:
    return call._replace(args=of_tensors(call.args, torch.Tensor.detach), kwargs=of_tensors(call.kwargs, torch.Tensor.detach))


def gradients_of_both(call: Call, functions: Functions, ones: bool = False) -> list[list[np.ndarray]]:
    """torch's gradients and ours of the results with respect to the differentiable arguments, for random cotangents or for ones."""
    found = []
    for m, args, kwargs in ((torch, fresh(call.args), fresh(call.kwargs)), (symgrad, ours(call.args), ours(call.kwargs))):
        y, inputs = differentiable(applied(call, functions[m is symgrad], args, kwargs)), differentiable([args, kwargs])
        seeds = [m.ones_like(t) for t in y] if ones else cotangents(y, 1)[m is symgrad]
        found.append([numbers(t) for t in m.autograd.grad(y, inputs, seeds, materialize_grads=True, allow_unused=True)])
    return found


def by_scipy(call: Call, functions: Functions) -> None:
    """The value is SciPy's, to twelve digits; torch's has eight."""
    exact = {"j0": scipy.special.j0, "j1": scipy.special.j1, "y0": scipy.special.y0, "y1": scipy.special.y1,
             "ai": lambda x: scipy.special.airy(x)[0]}[functions[1].__name__[-2:]]
    found, x = numbers(value_of(functions[1], call, symgrad)), call.args[0]
    eps = np.finfo(found.dtype).eps
    given = np.asarray(numbers(x) if isinstance(x, torch.Tensor) else x, found.dtype)
    np.testing.assert_allclose(found, exact(given), rtol=max(1e-12, 32 * eps), atol=max(1e-14, 4 * eps))


WIDE = {torch.float16: torch.float64, torch.bfloat16: torch.float64, torch.float32: torch.float64, torch.complex64: torch.complex128}


def wide(value: Any) -> Any:
    """Arguments in double precision."""
    return of_tensors(value, lambda t: t.detach().to(WIDE[t.dtype]).requires_grad_(t.requires_grad) if t.dtype in WIDE else t)


def by_differences(call: Call, functions: Functions) -> None:
    """The derivative in a direction, in both modes, is that of central differences of torch's own values."""
    args, kwargs = wide(fresh(call.args)), wide(fresh(call.kwargs))
    leaves = differentiable([args, kwargs])
    directions = cotangents(leaves, 5)[0]

    def moved(step: float) -> list[Any]:
        with torch.no_grad():
            for t, d in zip(leaves, directions):
                t.add_(d, alpha=step)
            out = [t.detach().clone() for t in tensors(applied(call, functions[0], args, kwargs)) if t.is_floating_point() or t.is_complex()]
            for t, d in zip(leaves, directions):
                t.add_(d, alpha=-step)
        return out

    if isinstance(attempt(lambda: moved(0.0)), BaseException):
        return  # torch has not even a value
    slopes = [(a - b) / 2e-6 for a, b in zip(moved(1e-6), moved(-1e-6))]
    mine = [ours(t.detach()).requires_grad_() for t in leaves]
    found = iter(mine)

    def with_leaves(value: Any) -> Any:
        return each(value, lambda v: next(found) if isinstance(v, torch.Tensor) and v.requires_grad else ours(v))

    y = [t for t in tensors(applied(call, functions[1], with_leaves(args), with_leaves(kwargs))) if t.is_floating_point() or t.is_complex()]
    g = cotangents(y, 6)[1]
    tracked = [(t, v) for t, v in zip(y, g) if t.requires_grad]
    gradients = symgrad.autograd.grad([t for t, _ in tracked], mine, [v for _, v in tracked], materialize_grads=True, allow_unused=True)
    along = float(weights([ours(d) for d in directions], list(gradients)))
    expected = float(weights(slopes, [torch.from_numpy(numbers(v)) for v in g]))
    assert abs(along - expected) <= 1e-6 * max(1.0, abs(expected)) or along != along and expected != expected, (along, expected)


def limited(call: Call, functions: Functions) -> None:
    """The derivatives are torch's own in double precision, or those of differences of its values if they are in double precision already."""
    (in_wide if any(t.dtype in WIDE for t in tensors([call.args, call.kwargs])) else by_differences)(call, functions)


def in_wide(call: Call, functions: Functions) -> None:
    """Value and derivatives are torch's own in double precision, rounded."""
    dtypes = [getattr(torch, str(t.dtype).partition(".")[2]) for t in tensors(value_of(functions[1], without_grad(call), symgrad))]

    def theirs(*args: Any, **kwargs: Any) -> Any:
        args, kwargs = (of_tensors(given, lambda t: t.to(WIDE.get(t.dtype, t.dtype))) for given in (args, kwargs))
        found = iter(dtypes)
        return of_tensors(functions[0](*args, **kwargs), lambda t: t.to(next(found)))

    few = any(t.dtype in (torch.float16, torch.bfloat16) for t in tensors([call.args, call.kwargs]))
    compare(call, (theirs, functions[1]), orders=1 if few else 2, forward=False)


def consistent(call: Call, functions: Functions) -> None:
    """The second derivative in a direction is that of central differences of our own first one, which is torch's."""
    args, kwargs = ours(wide(fresh(call.args))), ours(wide(fresh(call.kwargs)))
    leaves = differentiable([args, kwargs])
    directions = cotangents(leaves, 5)[1]

    def slope(create_graph: bool) -> Any:
        y = differentiable(applied(call, functions[1], args, kwargs))
        first = symgrad.autograd.grad(y, leaves, [symgrad.ones_like(t) for t in y], create_graph=create_graph, materialize_grads=True)
        return weights(list(first), directions)

    def moved(step: float) -> float:
        with symgrad.no_grad():
            for t, d in zip(leaves, directions):
                t.add_(d, alpha=step)
        found = float(slope(False))
        with symgrad.no_grad():
            for t, d in zip(leaves, directions):
                t.add_(d, alpha=-step)
        return found

    second = symgrad.autograd.grad(slope(True), leaves, materialize_grads=True)
    along = float(weights(list(second), directions))
    expected = (moved(1e-5) - moved(-1e-5)) / 2e-5
    assert abs(along - expected) <= 1e-5 * max(1.0, abs(expected)), (along, expected)


def well_enough(call: Call, functions: Functions) -> None:
    """The gradients differ by roundings times the condition of the matrix."""
    found = [first for first, *_ in gradients_of_both(call, functions)]
    value = numbers(value_of(functions[1], without_grad(call), symgrad))
    roundings = 64 * np.finfo(found[0].dtype).eps * np.linalg.cond(value).max()
    assert np.abs(found[0] - found[1]).max() <= min(roundings, 0.5) * np.abs(found[0]).max(), roundings


def with_double_weights(call: Call, functions: Functions) -> None:
    """torch's own value, if it gets the weights in double precision."""
    kwargs = {k: v.double() if isinstance(v, torch.Tensor) and k == "aweights" else v for k, v in call.kwargs.items()}
    compare(call._replace(kwargs=kwargs), functions)


def unlimited(functions: Functions) -> Functions:
    """The functions with a threshold above which the input itself, which torch's takes there, has all digits of the value."""
    return lambda *args, **kwargs: functions[0](*args, **{**kwargs, "threshold": 40.0}), functions[1]


def without_threshold(call: Call, functions: Functions) -> None:
    """torch's own value and derivatives without the threshold above which it takes the input itself."""
    compare(call, unlimited(functions))


def picks(call: Call, functions: Functions) -> None:
    """The values are equal, and the input has them at our indices, too."""
    theirs, mine = value_of(functions[0], without_grad(call), torch), value_of(functions[1], without_grad(call), symgrad)
    same("value", theirs[0], mine[0])
    keepdim = theirs[0].ndim == call.args[0].ndim
    first = 2 if functions[1].__name__ in ("kthvalue", "topk") else 1
    dim = next((a for a in call.args[first:] if type(a) is int), call.kwargs.get("dim", -1))
    index = torch.from_numpy(numbers(mine[1]))
    picked = call.args[0].detach().take_along_dim(index if keepdim else index.unsqueeze(dim), dim)
    same("value", theirs[0], ours(picked if keepdim else picked.squeeze(dim)))


def picks_of_integers(call: Call, functions: Functions) -> None:
    """Booleans are picked as the integers 0 and 1 are."""
    theirs = value_of(functions[0], without_grad(cast_all(call, torch.int64, masks=False)), torch)
    mine = value_of(functions[1], without_grad(call), symgrad)
    assert np.array_equal(numbers(theirs[0]), numbers(mine[0]))


REFUSED = (TypeError, RuntimeError, IndexError, ValueError)


def in_double(call: Call, functions: Functions) -> None:
    """The value is that of double precision, rounded to the dtype of the result."""
    found = attempt(lambda: value_of(functions[1], without_grad(call), symgrad))
    if isinstance(found, BaseException):
        assert isinstance(found, REFUSED) and str(found), repr(found)
        return
    is_complex = any(t.dtype.is_complex for t in tensors([call.args, call.kwargs]))
    dtype = torch.complex128 if is_complex else torch.float64
    expected = attempt(lambda: value_of(functions[0], without_grad(cast_all(call, dtype)), torch))
    if isinstance(expected, BaseException):
        expected = attempt(lambda: value_of(functions[0], without_grad(cast_all(call, dtype, masks=False)), torch))
    if not isinstance(expected, BaseException):
        for a, b in zip(tensors(expected), tensors(found)):
            x, y = numbers(a), numbers(b)
            x = x != 0 if y.dtype == bool else x
            dtype, scale = coarsest([b, *call.args]), max(1.0, float(np.abs(x[np.isfinite(x)]).max(initial=0)))
            np.testing.assert_allclose(y, x, rtol=RELATIVE.get(dtype, 1e-12), atol=ABSOLUTE.get(dtype, 1e-12) * scale)


def in_common_dtype(call: Call, functions: Functions) -> None:
    """The operands are converted to their common dtype, as by all other functions."""
    dtype = functools.reduce(torch.promote_types, [t.dtype for t in tensors([call.args, call.kwargs])])
    try:
        compare(cast_all(call, dtype), functions, forward=False)
    except Different:
        compare(cast_all(call, dtype, masks=False), functions, forward=False)


def has_no_elements(call: Call, functions: Functions) -> None:
    """The result is empty, or a transform of no numbers: 0."""
    assert all(not numbers(t).any() for t in tensors(value_of(functions[1], without_grad(call), symgrad)))


def finite(call: Call, functions: Functions) -> None:
    """All of the second derivatives are numbers: 0 at a kink."""
    args, kwargs = ours(call.args), ours(call.kwargs)
    y, leaves = differentiable(applied(call, functions[1], args, kwargs)), differentiable([args, kwargs])
    first = symgrad.autograd.grad(y, leaves, [symgrad.ones_like(t) for t in y], create_graph=True, materialize_grads=True, allow_unused=True)
    total = weights([t for t in first], [symgrad.ones_like(t) for t in first])
    second = symgrad.autograd.grad(total, leaves, materialize_grads=True, allow_unused=True) if total.requires_grad else ()
    assert all(np.isfinite(numbers(t)).all() for t in (*first, *second))


def at_zero(call: Call, functions: Functions) -> None:
    """The input is 0, and so is its gradient."""
    x = ours(call.args[0])
    assert not numbers(x).any()
    (g,) = symgrad.autograd.grad(functions[1](x, *ours(call.args[1:]), **ours(call.kwargs)).sum(), x)
    assert not numbers(g).any()


def up_to_turns(call: Call, functions: Functions) -> None:
    """The exponentials are equal: imaginary parts differ by whole turns."""
    theirs, mine = value_of(functions[0], without_grad(call), torch), value_of(functions[1], without_grad(call), symgrad)
    np.testing.assert_allclose(np.exp(numbers(mine)), np.exp(numbers(theirs)), rtol=RELATIVE[coarsest([mine])])


def is_refused(call: Call, functions: Functions) -> None:
    """Ours is refused too, with another type of exception and a message."""
    found = attempt(lambda: value_of(functions[1], without_grad(call), symgrad))
    assert isinstance(found, REFUSED) and str(found), repr(found)


def is_converted(call: Call, functions: Functions) -> None:
    """The result is converted to the dtype of `out`."""
    out = ours(call.kwargs["out"])
    kwargs = {k: v for k, v in call.kwargs.items() if k != "out"}
    found = functions[1](*ours(call.args), **ours(kwargs), out=out)
    if functions[1].__name__ != "multinomial":
        for a, b in zip(tensors(functions[1](*ours(call.args), **ours(kwargs))), tensors(found)):
            assert np.array_equal(numbers(a).astype(numbers(b).dtype), numbers(b))


def keeps_its_shape(call: Call, functions: Functions) -> None:
    """A result of another shape than the tensor is not written into it."""
    args = ours(without_grad(call).args)
    before = numbers(args[0]).copy()
    found = attempt(lambda: getattr(args[0], f"{functions[1].__name__}_")(*args[1:], **ours(call.kwargs)))
    assert isinstance(found, RuntimeError) and np.array_equal(before, numbers(args[0]))


def takes_no_out(call: Call, functions: Functions) -> None:
    """Without `out` the call is torch's."""
    compare(without_grad(call), functions)


def is_right_into_out(call: Call, functions: Functions) -> None:
    """The result in `out` is that of the call without it."""
    plain = value_of(functions[1], without_grad(call), symgrad)
    out = functions[1](*ours(without_grad(call).args), **ours(call.kwargs), out=symgrad.empty(0, dtype=plain.dtype))
    assert np.array_equal(numbers(plain), numbers(out))


def both_routes(call: Call, functions: Functions) -> None:
    """Two routes of ours agree to twelve digits: the gradient of a product with the gradient, and the pushforward of the gradient."""
    args = ours(wide(without_grad(call).args))
    like = functions[1](*args)
    g = symgrad.ones_like(like)

    def gradient(*xs: Any) -> Any:
        return symgrad.func.vjp(functions[1], *xs)[1](g)

    v = tuple(map(symgrad.ones_like, args))
    forward = symgrad.func.jvp(gradient, args, v)[1]
    backward = symgrad.func.vjp(gradient, *args)[1](v)
    assert all(np.isfinite(numbers(t)).all() for t in (*forward, *backward))
    total = [float(weights(list(side), list(v)).real) for side in (forward, backward)]
    assert abs(total[0] - total[1]) <= 1e-10 * abs(total[0]), total


def ties_share(call: Call, functions: Functions) -> None:
    """Where the gradients differ, ours is half of torch's, or torch's half of ours: the arguments are equal there."""
    for a, b in zip(*gradients_of_both(call, functions)):
        shares = [np.isclose(b, factor * a, rtol=0.02, atol=1e-3) for factor in (0, 0.5, 1, 2)]
        assert np.all(np.any(shares, 0) | (a == 0)), (a, b)


def at_a_pole(call: Call, functions: Functions) -> None:
    """A complex pole has no direction: ours is NaN where torch's gradient is infinite, and torch's everywhere else."""
    for a, b in zip(*gradients_of_both(call, functions, ones=True)):
        rtol = RELATIVE.get(str(a.dtype), 1e-4)
        assert np.all(np.isclose(b, a, rtol=rtol, atol=rtol) | ~np.isfinite(a)), (a, b)


def least_subgradient(call: Call, functions: Functions) -> None:
    """The matrix has less than full rank, and of its subgradients ours is not longer than torch's."""
    x = numbers(call.args[0])
    assert np.linalg.matrix_rank(x, tol=1e-5 * max(1.0, np.abs(x).max())).min() < min(x.shape[-2:])
    found = [np.linalg.norm(first) for first, *_ in gradients_of_both(call, functions, ones=True)]
    assert found[1] <= found[0] * (1 + 1e-3), found


def overflows(call: Call, functions: Functions) -> None:
    """No value is NaN: beyond the range of the dtype it is infinite, and it is torch's where that is finite."""
    a, b = (numbers(value_of(f, without_grad(call), m)) for f, m in zip(functions, (torch, symgrad)))
    assert not np.isnan(b).any() and np.allclose(b[np.isfinite(a)], a[np.isfinite(a)], rtol=1e-3)


def as_a_constant(call: Call, functions: Functions) -> None:
    """The result is of integers, which have no derivative: torch's for constants."""
    compare(without_grad(call), functions)


def of_contiguous(call: Call, functions: Functions) -> None:
    """Value and derivatives are those of contiguous tensors."""
    def theirs(*args: Any, **kwargs: Any) -> Any:
        return functions[0](*of_tensors(args, torch.Tensor.contiguous), **of_tensors(kwargs, torch.Tensor.contiguous))

    if not isinstance(attempt(lambda: value_of(theirs, without_grad(call), torch)), BaseException):
        compare(call, (theirs, functions[1]), forward=False)


def is_refused_empty(call: Call, functions: Functions) -> None:
    """A tensor is empty, and the call is refused as it is with elements."""
    is_of_nothing(call, functions)
    is_refused(call, functions)


def is_of_nothing(call: Call, functions: Functions) -> None:
    """A tensor is empty."""
    assert not all(t.numel() for t in tensors([call.args, call.kwargs]))


def is_refused_or_wider(call: Call, functions: Functions) -> None:
    """The result is complex64, or refused."""
    found = attempt(lambda: value_of(functions[1], without_grad(call), symgrad))
    assert isinstance(found, RuntimeError) or found.dtype == symgrad.complex64
