"""Calls that make no sense, of every function that torch shares: answered, or refused by an error for a user."""

import itertools
from collections import Counter

import pytest

torch = pytest.importorskip("torch")

from .bad_calls import drawn, internal  # noqa: E402
from .database import ours, pair, shared  # noqa: E402
from .written import NOT_DRAWN  # noqa: E402

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
