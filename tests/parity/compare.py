"""One call in both libraries: values, dtypes, shapes, derivatives in both modes, and what is refused."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

import symgrad

from .database import Call, array, fresh, ours, tensors

REFUSALS = (RuntimeError, TypeError, ValueError, IndexError, NotImplementedError, ArithmeticError, AttributeError, AssertionError)


class Different(AssertionError):
    """A difference: in what, and how."""

    def __init__(self, what: str, how: str):
        super().__init__(f"{what}: {how}")
        self.what = what


def numbers(t: Any) -> np.ndarray:
    found = array(t) if isinstance(t, torch.Tensor) else np.asarray(t.detach().resolve_conj().numpy())
    return found.astype(np.float32) if found.dtype.name == "bfloat16" else found


def attempt(call: Callable[[], Any]) -> Any:
    """The result, or the exception if it is a refusal."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return call()
        except Different:
            raise
        except REFUSALS as error:
            return error.with_traceback(error.__traceback__)


def structure(value: Any) -> Any:
    """What must be equal by itself: dtypes and shapes, and results that are no tensors."""
    if isinstance(value, (torch.Tensor, symgrad.Tensor)):
        return str(value.dtype).partition(".")[2], tuple(value.shape)
    if isinstance(value, (list, tuple)):
        return tuple(map(structure, value))
    if isinstance(value, (torch.dtype, symgrad.dtype)):
        return str(value).partition(".")[2]
    return value if isinstance(value, (int, float, complex, bool, str, type(None))) else type(value).__name__


RELATIVE = {"float16": 8e-3, "bfloat16": 6e-2, "float32": 1e-4, "complex64": 1e-4, "float64": 1e-8, "complex128": 1e-8}
ABSOLUTE = {"float16": 4e-3, "bfloat16": 3e-2, "float32": 1e-5, "complex64": 1e-5, "float64": 1e-12, "complex128": 1e-12}  # of the largest, or of 1


def coarsest(value: Any) -> str:
    """The dtype with the fewest digits of nested arguments."""
    return max((str(t.dtype).partition(".")[2] for t in tensors(value)), key=lambda name: RELATIVE.get(name, 0.0), default="")


def same(what: str, theirs: Any, mine: Any, computed: str = "") -> None:
    """Structure and numbers are equal, up to the digits of their dtypes and of that they are computed in; NaN is equal to NaN of its place only."""
    if structure(theirs) != structure(mine):
        if not (isinstance(theirs, (int, float)) and theirs != theirs and mine != mine):
            raise Different(what + " structure", f"torch's is {structure(theirs)}, ours is {structure(mine)}")
    for which, (a, b) in enumerate(zip(tensors(theirs), tensors(mine))):
        relative, absolute = (max(bounds.get(name, 0.0) for name in (str(a.dtype).partition(".")[2], computed)) for bounds in (RELATIVE, ABSOLUTE))
        a, b = numbers(a), numbers(b)
        finite = np.abs(a[np.isfinite(a)]) if a.dtype.kind in "fc" else np.zeros(0)
        scale = max(1.0, float(finite.max())) if finite.size else 1.0
        good = np.isclose(b, a, rtol=relative, atol=absolute * scale, equal_nan=True) if a.dtype.kind in "fc" else a == b
        if not np.all(good):
            at = tuple(int(i) for i in np.argwhere(~good)[0])
            raise Different(what, f"number {which}: {int((~good).sum())} of {good.size} differ: at {at} torch has {a[at]}, ours is {b[at]}")


def cotangents(results: list[Any], seed: int) -> tuple[list[Any], list[Any]]:
    """The same random numbers for both libraries, of the shapes and dtypes of the results."""
    rng = np.random.default_rng(seed)
    theirs, mine = [], []
    for r in results:
        v = rng.uniform(-1, 1, tuple(r.shape))
        if r.dtype.is_complex:
            v = v + 1j * rng.uniform(-1, 1, tuple(r.shape))
        theirs.append(torch.from_numpy(np.asarray(v)).to(getattr(torch, str(r.dtype).partition(".")[2])))
        mine.append(ours(theirs[-1]))
    return theirs, mine


def weights(ts: list[Any], vs: list[Any]) -> Any:
    """The sum of the real parts of products."""
    total: Any = 0
    for t, v in zip(ts, vs):
        p = t * v.conj() if t.is_complex() else t * v
        total = total + (p.real.sum() if t.is_complex() else p.sum())
    return total


def grads(m: Any, outputs: list[Any], inputs: list[Any], vs: list[Any], again: bool) -> list[Any]:
    return list(m.autograd.grad(outputs, inputs, vs, create_graph=again, materialize_grads=True, allow_unused=True))


def differentiable(value: Any) -> list[Any]:
    return [t for t in tensors(value) if t.requires_grad]


def compare(call: Call, functions: tuple[Callable[..., Any], Callable[..., Any]], orders: int = 2, forward: bool = True, value: bool = True) -> str:
    """Compare one call in both libraries; returns what happened: `refused`, `value`, `first` or `second`."""
    (args, kwargs), (oargs, okwargs) = (fresh(call.args), fresh(call.kwargs)), (ours(call.args), ours(call.kwargs))

    def evaluated(function: Callable[..., Any], args: tuple, kwargs: dict[str, Any]) -> Any:
        return attempt(lambda: call.chosen(call.wrapped(function, *args, **kwargs) if call.wrapped else function(*args, **kwargs)))

    before = [numbers(t).copy() for t in tensors([oargs, okwargs])]
    theirs, mine = evaluated(functions[0], args, kwargs), evaluated(functions[1], oargs, okwargs)
    if isinstance(theirs, BaseException) or isinstance(mine, BaseException):
        refused(theirs, mine)
        for a, t in zip(before, tensors([oargs, okwargs])):
            if a.tobytes() != numbers(t).tobytes():
                raise Different("written", "an argument was written before the call was refused")
        return "refused"
    if not value:
        same("value", structure(theirs), structure(mine))
        return "value"
    computed = coarsest([args, kwargs, theirs])
    same("value", theirs, mine, computed)
    given, mine_given = ([t for t in tensors([a, k]) if t.requires_grad and t.is_leaf] for a, k in ((args, kwargs), (oargs, okwargs)))
    both = [(a, b) for a, b in zip(tensors(theirs), tensors(mine)) if a.requires_grad]
    results, mine_results = [a for a, _ in both], [b for _, b in both]
    if not results or not given:
        return "value"
    constant = [a for a, b in zip(results, mine_results) if not b.requires_grad]
    if constant:  # ours may be constant where torch's gradient is 0
        g, _ = cotangents(constant, 1)
        zero = attempt(lambda: grads(torch, constant, given, g, False))
        if isinstance(zero, list) and not all(bool((t == 0).all()) for t in zero):
            raise Different("requires_grad", "torch's result requires grad, ours does not")
        kept = [(a, b) for a, b in zip(results, mine_results) if b.requires_grad]
        results, mine_results = [a for a, _ in kept], [b for _, b in kept]
        if not results:
            return "value"
    done = compare_gradients(given, mine_given, results, mine_results, orders, computed)
    if forward:
        compare_forward(call, functions)
    return done


def compare_gradients(given: list[Any], mine_given: list[Any], results: list[Any], mine_results: list[Any], orders: int,
                      computed: str) -> str:
    """The first gradients for random cotangents, and the gradients of their products with random numbers; returns the last order of torch's."""
    if orders < 1:
        return "value"
    g, mine_g = cotangents(results, 1)
    for v in (*g, *mine_g):
        v.requires_grad_(orders > 1)
    first = attempt(lambda: grads(torch, results, given, g, orders > 1))
    if isinstance(first, BaseException):
        return "value"
    mine_first = attempt(lambda: grads(symgrad, mine_results, mine_given, mine_g, orders > 1))
    if isinstance(mine_first, BaseException):
        raise Different("gradient refused", repr(mine_first)[:300])
    same("gradient", [t.detach() for t in first], [t.detach() for t in mine_first], computed)
    if orders < 2:
        return "first"
    v, mine_v = cotangents(first, 2)
    total = weights(first, v)
    second = attempt(lambda: grads(torch, [total], given + g, [torch.ones_like(total)], False)) if total.requires_grad else None
    if isinstance(second, BaseException):
        return "first"
    mine_total = weights(mine_first, mine_v)
    mine_second = None
    if mine_total.requires_grad:
        mine_second = attempt(lambda: grads(symgrad, [mine_total], mine_given + mine_g, [symgrad.ones_like(mine_total)], False))
    if isinstance(mine_second, BaseException):
        raise Different("second gradient refused", repr(mine_second)[:300])
    if mine_second is None and second is None:
        return "second"
    zeros = [torch.zeros_like(t) for t in given + g]
    if mine_second is None:
        mine_second = [symgrad.zeros_like(t) for t in mine_given + mine_g]
    same("second gradient", [t.detach() for t in second] if second is not None else zeros, [t.detach() for t in mine_second],
         computed)
    return "second"


def compare_forward(call: Call, functions: tuple[Callable[..., Any], Callable[..., Any]]) -> None:
    """The tangents of the results for random tangents of the arguments, where torch has forward mode."""
    found = []
    for m, function, (args, kwargs) in ((torch, functions[0], (fresh(call.args), fresh(call.kwargs))),
                                        (symgrad, functions[1], (ours(call.args), ours(call.kwargs)))):
        leaves = [t for t in tensors([args, kwargs]) if t.requires_grad and t.is_leaf]
        seeds = cotangents(leaves, 3)[m is symgrad]
        forward = m.autograd.forward_ad

        def dual(value: Any, forward: Any = forward, leaves: list[Any] = leaves, seeds: list[Any] = seeds) -> Any:
            if isinstance(value, (torch.Tensor, symgrad.Tensor)):
                at = next((i for i, t in enumerate(leaves) if t is value), None)
                return value if at is None else forward.make_dual(value.detach(), seeds[at])
            if isinstance(value, (list, tuple)) and not isinstance(value, (torch.Size, symgrad.Size)):
                return type(value)(*map(dual, value)) if hasattr(value, "_fields") else type(value)(map(dual, value))
            return {k: dual(v) for k, v in value.items()} if isinstance(value, dict) else value

        def tangents(function: Any = function, args: Any = args, kwargs: Any = kwargs, forward: Any = forward, dual: Any = dual,
                     m: Any = m) -> list[Any]:
            with forward.dual_level():
                a, k = dual(args), dual(kwargs)
                y = call.chosen(call.wrapped(function, *a, **k) if call.wrapped else function(*a, **k))
                unpacked = [(t, forward.unpack_dual(t).tangent) for t in tensors(y) if t.is_floating_point() or t.is_complex()]
                return [m.zeros_like(t).detach() if tangent is None else tangent.detach() for t, tangent in unpacked]
        found.append(attempt(tangents))
    theirs, mine = found
    if isinstance(theirs, BaseException):
        return
    if isinstance(mine, BaseException):
        raise Different("forward refused", repr(mine)[:300])
    same("forward", theirs, mine)


def refused(theirs: Any, mine: Any) -> None:
    """Both refuse, with compatible exceptions."""
    if not isinstance(mine, BaseException):
        raise Different("accepted", f"torch raises {theirs!r:.200}")
    if not isinstance(theirs, BaseException):
        raise Different("refused", f"ours raises {mine!r:.300}")
    if not isinstance(mine, type(theirs)):
        raise Different("error", f"torch raises {theirs!r:.200}, ours {mine!r:.200}")
