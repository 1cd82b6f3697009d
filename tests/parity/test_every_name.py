"""Every function that torch shares, with the arguments of torch's own database of ops: values, dtypes, shapes, derivatives and what is refused.

The calls come from `torch.testing`, as functions, methods, in place and into `out`. The test command takes a sample of names, the sweep all.
"""

import itertools
import warnings

import pytest

torch = pytest.importorskip("torch")

from . import variants  # noqa: E402
from .compare import Different, compare  # noqa: E402
from .database import RANDOM, UNSET, pair, refusals, samples, shared  # noqa: E402
from .on_purpose import TABLE, compared, intended  # noqa: E402

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
    for dtype, form in itertools.product((torch.float64, torch.int64), (variants.as_method, variants.in_place, variants.with_out)):
        for call in spread(samples(name, dtype, dtype is torch.float64 and form is not variants.with_out), count):
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
