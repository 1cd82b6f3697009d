"""Every function that torch shares, with the arguments of torch's own database of ops: values, dtypes, shapes, derivatives and what is refused.

The calls come from `torch.testing`, as functions, methods, in place and into `out`. The test command takes a sample of names, the sweep all.
"""

from __future__ import annotations

import itertools
import warnings
from typing import Any

import pytest
import torch

import symgrad

from .compare import Different, attempt, compare, refused, same, tensors
from .database import RANDOM, UNSET, Call, fresh, ours, pair, refusals, samples, shared
from .on_purpose import TABLE, compared, intended


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


NAMES = shared()
DTYPES = (torch.float64, torch.complex128, torch.float32, torch.int64)


@pytest.fixture(autouse=True)
def _on_one_thread(double_precision):
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
    torch.set_num_threads(threads)


def spread(found, count):
    """At most `count` of a list, evenly spread."""
    found = list(found)
    return found if len(found) <= count else [found[len(found) * k // count] for k in range(count)]


def check(name, count):
    """Values and derivatives of so many calls of each dtype, and all refusals."""
    for dtype in DTYPES:
        for call in spread(samples(name, dtype, dtype is not torch.int64), count if dtype is not torch.float32 else 2):
            compared(name, call, orders=2 if dtype is not torch.float32 else 1, forward=dtype is not torch.float32)
    for call in refusals(name):
        compared(name, call)


@pytest.mark.sampled(110)
@pytest.mark.parametrize("name", NAMES)
def test_every_name(name):
    check(name, 8)


def forms(name, count):
    """The calls as methods, in place and into `out`."""
    for dtype, form in itertools.product((torch.float64, torch.int64), (as_method, in_place, with_out)):
        for call in spread(samples(name, dtype, dtype is torch.float64 and form is not with_out), count):
            try:
                form(name, call)
            except Different as difference:
                try:
                    intended(name, difference, call, pair(name))
                except Different as difference:
                    pytest.fail(f"{form.__name__} {name}{call}: {difference}", pytrace=False)


@pytest.mark.sampled(75)
@pytest.mark.parametrize("name", [n for n in NAMES if n not in RANDOM | UNSET])
def test_other_forms(name):
    forms(name, 2)


def test_a_comparison_finds_what_differs():
    """A wrong value, dtype, gradient and second gradient, and a call that is not refused, are found."""
    (call, *_) = samples("sin", torch.float64, True)
    theirs, mine = pair("sin")
    mistakes = {"value": lambda x: mine(x) * 1.0001, "value structure": lambda x: mine(x).float(), "refused": lambda x: mine(x, x),
                "gradient": lambda x: mine(x.detach()) + x - x.detach(),
                "second gradient": lambda x: mine(x.detach()) + x.detach().cos() * (x - x.detach())}
    for what, wrong in mistakes.items():
        with pytest.raises(Different) as found:
            compare(call, (theirs, wrong), forward=False)
        assert found.value.what == what
    with pytest.raises(Different, match="accepted"):
        compare(call._replace(args=("a",)), (theirs, lambda x: 1))


def test_the_table_gives_a_reason_and_an_answer_for_each_row():
    assert len(TABLE) == len({(row.names, row.what) for row in TABLE})
    assert all(row.reason and row.intended.__doc__ for row in TABLE)
