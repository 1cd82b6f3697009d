"""The other forms of a call: as a method, in place, and into `out`."""

from __future__ import annotations

from typing import Any

import torch

import symgrad

from .compare import Different, attempt, compare, refused, same, tensors
from .database import Call, fresh, ours, pair


def as_method(name: str, call: Call) -> str:
    """The call as a method of its first argument, with gradients."""
    last = name.rpartition(".")[2]
    if name.startswith(("fft.", "linalg.", "special.", "nn.")) or not hasattr(torch.Tensor, last) or not isinstance(call.args[0], torch.Tensor):
        return "none"
    if not hasattr(symgrad.Tensor, last):
        return "none"
    return compare(call, (getattr(torch.Tensor, last), getattr(symgrad.Tensor, last)), orders=1, forward=False)


def in_place(name: str, call: Call) -> str:
    """The method that writes its result into a copy of the first argument, with gradients."""
    last = name.rpartition(".")[2] + "_"
    if not isinstance(call.args[0], torch.Tensor) or not hasattr(torch.Tensor, last) or not hasattr(symgrad.Tensor, last):
        return "none"

    def written(method: Any) -> Any:
        return lambda first, *rest, **kwargs: method(first.clone(), *rest, **kwargs)

    return compare(call, (written(getattr(torch.Tensor, last)), written(getattr(symgrad.Tensor, last))), orders=1, forward=False)


def with_out(name: str, call: Call) -> str:
    """The call into tensors without elements, and into tensors of integers, which torch refuses for most results."""
    theirs, mine = pair(name)
    if "out" in call.kwargs:
        return "none"
    if call.wrapped.__name__ == "gradcheck_wrapper_hermitian_input" and "upper" not in call.kwargs:
        call = call._replace(args=(call.args[0] + call.args[0].mH, *call.args[1:]))
    expected = attempt(lambda: theirs(*fresh(call.args), **fresh(call.kwargs)))
    if isinstance(expected, BaseException) or not list(tensors(expected)) or isinstance(expected, list):
        return "none"
    several = not isinstance(expected, torch.Tensor)
    done = "none"
    for dtype in (None, torch.int32):
        def into(function: Any, args: tuple, kwargs: dict[str, Any], m: Any, dtype: Any = dtype) -> Any:
            outs = [m.empty(0, dtype=ours_dtype(m, t.dtype if dtype is None else dtype)) for t in tensors(expected)]
            found = function(*args, **kwargs, out=tuple(outs) if several else outs[0])
            if found is None:  # torch returns nothing if it gets a list
                return tuple(outs)
            if [id(t) for t in tensors(found)] != [id(t) for t in outs]:
                raise Different("out", "the result is not the tensor given as out")
            return found
        first = attempt(lambda: into(theirs, fresh(call.args), fresh(call.kwargs), torch))
        if isinstance(first, TypeError) and dtype is None:
            return "none"  # no function with `out`
        second = attempt(lambda: into(mine, ours(call.args), ours(call.kwargs), symgrad))
        if dtype is not None:
            if not any(t.dtype.is_floating_point or t.dtype.is_complex for t in tensors(expected)):
                return done
            if isinstance(first, BaseException) and not isinstance(second, (RuntimeError, TypeError)):
                raise Different("out accepted", f"torch raises {first!r:.200}")
        elif isinstance(first, BaseException) or isinstance(second, BaseException):
            refused(first, second)
        else:
            same("value", call.chosen(first), call.chosen(second))
            done = "value"
    return done


def ours_dtype(m: Any, dtype: torch.dtype) -> Any:
    return dtype if m is torch else ours(dtype)
