"""Every function that torch shares, with drawn calls: layouts, shapes, dtypes, numbers in the place of tensors, and bad arguments.

Values, dtypes, shapes, two derivatives and what is refused are torch's, or the intended answer of the table. The test command takes one changed call
of each function, the sweep twelve; `HYPOTHESIS_PROFILE=thorough` draws other calls in each run, and more.
"""

import os
from random import Random

import pytest
import torch
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from .compare import Different
from .database import shared
from .on_purpose import compared
from .test_every_name import _on_one_thread, spread  # noqa: F401
from .vary import DTYPES, given_tensors, vary
from .written import NOT_DRAWN, calls

NAMES = [name for name in shared() if name not in NOT_DRAWN]


def _has_elements(call):
    """Without elements torch ends the process in the derivative."""
    return all(t.numel() for t in given_tensors(call))


def _has_pivots(call):
    """Other pivots than one for each row make torch read and write memory that is not its own."""
    data, pivots, *_ = (*call.args, None)
    return all(isinstance(x, torch.Tensor) for x in (data, pivots)) and data.ndim > 1 and pivots.dtype == torch.int32 and (
        tuple(pivots.shape) == (*data.shape[:-2], min(data.shape[-2:]))) and bool(((pivots >= 1) & (pivots <= data.shape[-2])).all())


def _has_channels(call):
    """Parameters of another size than that of the channels make torch read memory that is not its own."""
    data = call.args[0]
    return isinstance(data, torch.Tensor) and data.ndim > 1 and data.numel() > 0 and all(t.numel() == data.shape[1] for t in given_tensors(call)[1:])


def _has_segments(call):
    """Lengths or offsets of other segments than those of the data make torch write memory that is not its own."""
    data, lengths, offsets = call.args[0], call.kwargs.get("lengths"), call.kwargs.get("offsets")
    if not isinstance(data, torch.Tensor) or not data.numel() or isinstance(lengths, torch.Tensor) == isinstance(offsets, torch.Tensor):
        return False
    given, axis = lengths if offsets is None else offsets, call.kwargs.get("axis", 0)
    if type(axis) is not int or not 0 <= axis < data.ndim or given is None or given.dtype != torch.int64 or given.shape[:-1] != data.shape[:axis]:
        return False
    lengths = given if offsets is None else given.diff()
    return given.ndim == axis + 1 and bool((lengths >= 0).all() and (lengths.sum(-1) == data.shape[axis]).all()) and (
        offsets is None or not given[..., 0].any())


def _has_features(call):
    """Weights of other sizes than those of the data and of the states make torch read memory that is not its own."""
    data, states, weights = call.args[:3]
    every = [data, *states, *weights] if isinstance(states, (list, tuple)) and isinstance(weights, (list, tuple)) else [None]
    if not all(isinstance(t, torch.Tensor) and t.ndim > 1 for t in every):
        return False
    features, (hidden, *others) = data.shape[-1], [t.shape[-1] for t in states]
    return [tuple(w.shape) for w in weights] == [(4 * hidden, features), (4 * hidden, hidden)] and others == [hidden]


def _has_modes(call):
    """Other modes make torch read memory that is not its own."""
    return all(mode in (0, 1, 2) for mode in call.args[2:4])


SURVIVED = {"pdist": _has_elements, "nn.functional.pdist": _has_elements, "lu_unpack": _has_pivots,
            "segment_reduce": _has_segments, "native_batch_norm": _has_channels, "lstm": _has_features,
            **dict.fromkeys(("grid_sampler", "grid_sampler_2d", "grid_sampler_3d"), _has_modes)}  # the calls that torch's process survives
THOROUGH = os.environ.get("HYPOTHESIS_PROFILE") == "thorough"


def drawn(random, name, most):
    """A changed call of a function, and its changes; None if torch does not survive it."""
    grad, common = random.random() < 0.9, random.random() < 0.8
    first = random.sample(DTYPES[:5] if common else DTYPES, 5)
    made = next(filter(None, (calls(name, dtype, grad, most) for dtype in (*first, *DTYPES))))
    call, words = vary(random, name, random.choice(made))
    return (call if SURVIVED.get(name, bool)(call) else None), words


def one(name, call):
    """The comparison of a call; two derivatives, or one in dtypes of few digits."""
    few = any(t.dtype in (torch.float16, torch.bfloat16) for t in given_tensors(call))
    return compared(name, call, drawn=True, orders=1 if few else 2, forward=False)


def search(name, examples, most):
    """Compare so many drawn calls of a function."""
    @settings(max_examples=examples, deadline=None, derandomize=not THOROUGH, database=None, suppress_health_check=list(HealthCheck),
              phases=[Phase.generate])  # a call has three changes at most
    @given(st.lists(st.booleans(), min_size=20, max_size=20))  # a seed in bits: numbers would be drawn among those that stand in the sources
    def check(bits):
        call, words = drawn(Random(f"{name} {bits}"), name, most)
        if call is not None:
            try:
                one(name, call)
            except Different as difference:
                pytest.fail(f"{name}{call} {words}: {difference}", pytrace=False)

    check()


def test_a_drawn_call_of_every_name():
    for name in NAMES:
        search(name, 2, 8)


@pytest.mark.sweep
@pytest.mark.parametrize("name", NAMES)
def test_every_name(name):
    search(name, 200 if THOROUGH else 12, 40)


def test_the_search_finds_what_differs(monkeypatch):
    """A function that is wrong for what is not contiguous, in the dtype, or without dimensions is found."""
    from . import on_purpose
    theirs, mine = on_purpose.pair("sin")
    for wrong in (lambda x: mine(x) if x.is_contiguous() else mine(x) + 1, lambda x: mine(x.double()), lambda x: mine(x) if x.ndim else mine(x) + 1):
        monkeypatch.setattr(on_purpose, "pair", lambda name, wrong=wrong: (theirs, wrong))
        with pytest.raises((pytest.fail.Exception, AssertionError)):
            search("sin", 200, 8)
