"""Calls of every function that torch shares with arguments that make no sense: answered, or refused by an error for a user."""

from __future__ import annotations

import importlib
import itertools
import re
from collections import Counter
from collections.abc import Callable, Iterator
from random import Random
from typing import Any

import numpy as np
import pytest
import torch

import symgrad
from tests.parity.test_modules import names

from .database import Call, ours, pair, shared
from .vary import changed, given, leaves, tensor
from .written import NOT_DRAWN, calls

KINDS: list[Any] = [
    None, "", "mean", "\ud800", b"a", [], (), {}, set(), [[]], [None], ["a"], [[1, 2], [3]], object(), ..., slice(None), len, float, iter([]),
    float("nan"), float("inf"), 1j, True, 0.5, -1.5, 10**15, -10**15, 2**63, -2**63 - 1, 10**40, 64, -64, 7, -1, 0, (0, 0), (1, -1), (10**15,),
    (-5,), (float("nan"),), [1.5], (True,), (None, 0), range(3), np.array("a"), np.array([None]), np.zeros(3), np.float64(0.5), np.int8(-3),
    torch.float32, torch.int64, torch.bool, torch.complex64, torch.strided, torch.device("cpu")]
SLOW = re.compile(r"multigammaln|mvlgamma|.*polynomial|polygamma|matrix_power|.*combinations|meshgrid|.*diff")  # time or memory grows with an order
Change = Callable[[Random, Call], Call | None]


def another_kind(random: Random, call: Call) -> Call | None:
    found = [at for at, _ in leaves([call.args, call.kwargs])]
    return changed(call, {random.choice(found): random.choice(KINDS)}) if found else None


def another_whole(random: Random, call: Call) -> Call | None:
    """Another value for a whole argument, be it a sequence."""
    i = random.randrange(len(call.args) + len(call.kwargs))
    value = random.choice(KINDS)
    if i < len(call.args):
        return call._replace(args=(*call.args[:i], value, *call.args[i + 1:]))
    return call._replace(kwargs={**call.kwargs, list(call.kwargs)[i - len(call.args)]: value})


def another_tensor(random: Random, call: Call) -> Call | None:
    """A tensor of another rank, size or dtype."""
    found = given(call, tensor)
    if not found:
        return None
    at, t = random.choice(found)
    t = t.detach()
    made = random.choice([lambda: t[None], lambda: t[None, None, None], lambda: t.reshape(-1), lambda: t.reshape(-1)[:1].sum(),
                          lambda: t.new_zeros(0), lambda: t.new_zeros(0, 3), lambda: t.new_zeros((7,) * min(t.ndim, 3)),
                          lambda: t.new_zeros((1,) * 9),
                          lambda: t.bool(), lambda: t.to(torch.complex64), lambda: t.to(torch.int8), lambda: t.to(torch.bfloat16),
                          lambda: t * float("nan"),
                          lambda: t.new_full(t.shape, -1), lambda: t.new_full(t.shape, 100), lambda: torch.arange(t.numel()).reshape(t.shape)])()
    return changed(call, {at: made})


def more(random: Random, call: Call) -> Call | None:
    """An argument that the function may not have."""
    if random.random() < 0.5:
        return call._replace(args=(*call.args, random.choice(KINDS)))
    name = random.choice(["dim", "keepdim", "dtype", "out", "n", "size", "device", "nothing", "input", "self", "generator", "requires_grad"])
    return call._replace(kwargs={**call.kwargs, name: random.choice(KINDS)})


def fewer(random: Random, call: Call) -> Call | None:
    return call._replace(args=call.args[:random.randrange(len(call.args))]) if call.args else None


CHANGES: list[Change] = [another_kind, another_kind, another_whole, another_tensor, another_tensor, more, fewer]
ALLOWED = (TypeError, ValueError, IndexError, RuntimeError, OverflowError, MemoryError, AssertionError)  # the last one with words, as in torch
INTERNAL = re.compile(r"object has no attribute|local variable|<lambda>|_UFuncNoLoopError|list index out of|Expecting")
OF_PYTHON = re.compile(r"ufunc|safely coerced|not subscriptable|cannot unpack|NoneType' object|unsupported operand|not supported between|"
                       r"is not (iterable|callable)|has no len|unhashable|__index__|can't multiply sequence|scalar arrays can|cannot be interpreted")


def drawn(seed: int, name: str) -> Iterator[Call]:
    """One bad call of a function after the other."""
    random = Random(f"{seed} {name}")
    while True:
        dtype = random.choice([torch.float64, torch.float64, torch.int64, torch.complex128, torch.bool])
        made = next(filter(None, (calls(name, d, False, 6) for d in (dtype, torch.float64, torch.int64, torch.complex128, torch.float32))), None)
        if not made:
            return
        call = random.choice(made)
        for _ in range(random.choice([1, 1, 1, 2])):
            if call.args or call.kwargs:
                call = random.choice(CHANGES)(random, call) or call
        if not SLOW.match(name.rpartition(".")[2]) or all(type(v) is not int or abs(v) < 100 for _, v in leaves([call.args, call.kwargs])):
            yield call


def internal(name: str, error: BaseException) -> str | None:
    """What an error tells of the inside of the library; None if it is an error for a user. Python's own words stand behind the name of a function."""
    if isinstance(error, MemoryError):
        return None
    if not isinstance(error, ALLOWED) or isinstance(error, RecursionError) or type(error).__module__.startswith("numpy"):
        return type(error).__name__
    text = str(error)
    if "<locals>.<lambda>() missing" in text:  # of the tests
        return None
    found = INTERNAL.search(text) or not re.match(r"\w+(\(\))?[: ]", text) and OF_PYTHON.search(text)
    return found[0] if found else None if text else "no words"


pytestmark = pytest.mark.filterwarnings("ignore")  # of torch and of ours, for what the calls are
NAMES = [name for name in shared() if name not in NOT_DRAWN and name not in ("set_printoptions", "seed")]


def attack(seed, each):
    """Make so many bad calls of every function; returns the numbers of outcomes, and the errors that are of the inside."""
    counts, wrong = Counter(), []
    for name in NAMES:
        function = pair(name)[1]
        for call in itertools.islice(drawn(seed, name), each):
            try:
                function(*ours(call.args), **ours(call.kwargs))
            except Exception as error:
                found = internal(name, error)
                counts[f"refused by {type(error).__name__}"] += 1
                if found:
                    wrong.append(ascii(f"{name}{call}: {found}: {type(error).__name__}: {error}")[:400])
            else:
                counts["answered"] += 1
    return counts, wrong


def test_a_bad_call_of_every_function_is_refused_in_words():
    counts, wrong = attack(0, 1)
    assert not wrong and counts.total() > 700 and counts.total() > 2 * counts["answered"]


@pytest.mark.sweep
def test_bad_calls_of_every_function_are_refused_in_words():
    counts, wrong = attack(1, 11)
    print(counts.total(), "bad calls:", dict(counts))
    assert not wrong, "\n".join([f"{len(wrong)} errors of the inside", *wrong[:40]])
    assert counts.total() >= 7800


OURS = {  # where torch tells of its inside, or accepts the call
    "F.max_pool2d()": "TypeError: max_pool2d", "F.lp_pool1d(None, 2.0, 2)": "TypeError: lp_pool1d.*input.*NoneType",
    "F.unfold(img, 1.5)": "TypeError: unfold.*kernel_size.*float", "F.unfold('a', 2)": "TypeError: unfold.*input.*str",
    "nn.MaxPool2d()": "TypeError: MaxPool2d.*kernel_size", "nn.BatchNorm1d(3)()": "TypeError: .*forward.*input",
    "nn.RNN(3, 4)(np.ones((5, 2, 3)))": "TypeError: RNN.*input.*numpy.ndarray",
    "nn.LSTMCell(3, 4)(np.ones((2, 3)))": "TypeError: LSTMCell.*input.*numpy.ndarray",
    "F.fractional_max_pool2d(img, 0, output_size=3)": "RuntimeError: fractional_max_pool2d.*kernel_size.*0",
    "F.embedding(i, w, padding_idx='a')": "TypeError: embedding.*padding_idx.*str",
    "setattr(x, 'grad', w.float()[:2, :3])": "RuntimeError: .*dtype", "optim.Adam([x], betas=0.9)": "TypeError: .*betas.*0.9",
}


def refusal(m, text):
    """The error of a text in one library."""
    words = {**names(m), "np": np, "x": m.arange(6.0).reshape(2, 3).double().requires_grad_(), "w": m.ones(4, 3).double(),
             "sig": m.ones(2, 4, 7).double(), "img": m.ones(2, 4, 6, 6).double(), "i": m.tensor([[0, 1, 2], [2, 1, 0]]),
             **{short: importlib.import_module(f"{m.__name__}.{name}") for short, name in
                (("optim", "optim"), ("sched", "optim.lr_scheduler"), ("data", "utils.data"))}}
    for name in ("parametrize", "prune", "rnn"):
        importlib.import_module(f"{m.__name__}.nn.utils.{name}")
    with pytest.raises(Exception) as caught:  # noqa: PT011  of any type, for it is compared
        eval(text, words)
    return caught.value


def test_keys_of_a_state_are_listed():
    ours = str(refusal(symgrad, "nn.Linear(3, 2).load_state_dict({'weight': x, 'b.a': x, 'a': 1})"))
    assert re.search(r'(?s)missing.*"bias".*unexpected.*"b.a", "a"', ours.lower()), ours


@pytest.mark.parametrize("text", OURS)
def test_errors_name_the_function_and_the_value(text):
    error = refusal(symgrad, text)
    assert re.match(OURS[text], f"{type(error).__name__}: {error}"), error
