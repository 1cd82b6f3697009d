"""Compiled functions read present values, or refuse: a machine captures values of every kind and changes them between calls."""

import sys

import pytest
from hypothesis import Phase, settings

import symgrad
from symgrad.carriers.duck import Unrecordable
from symgrad.func import grad

from .captured import EFFECTS, KINDS, REFUSED
from .captures import Captures, X, check_equal, main, outcome, total

TestCaptures = Captures.TestCase
TestCaptures.settings = settings(max_examples=15, stateful_step_count=12, derandomize=True, phases=[Phase.explicit, Phase.reuse, Phase.generate],
                                 deadline=None)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("kind", KINDS)
def test_each_change_of_each_kind_is_seen(kind):
    for name in KINDS[kind](1 / 3).changes:
        slot = KINDS[kind](1 / 3)

        def f(x, read=slot.read):  # not the slot, whose changes refer to all that can change
            return total([read], x)

        compiled = symgrad.compile(f, backend="interpreter")
        for number in (0.0, -0.0, True, 2.5):
            for way, eager in ((compiled, f), (compiled.gradient, grad(f))):
                for _ in range(2):
                    check_equal(outcome(way, X[0]), outcome(eager, X[0]))
            try:
                slot.changes[name](number)
            except (AttributeError, KeyError, IndexError, NameError, TypeError, StopIteration, RuntimeError):
                break
        reasons = [row["reason"] for row in compiled.report.uncompiled]
        assert all("a step of the program raised" in reason or "may read" in reason for reason in reasons), (name, reasons)


@pytest.mark.parametrize("kind", REFUSED)
def test_what_cannot_be_watched_is_refused_with_its_name_and_line(kind):
    read, calls = REFUSED[kind](1.5).read, []

    def f(x):
        calls.append(1)
        return x.sum() * read(x)

    for _ in range(2):
        with pytest.raises(Unrecordable, match=r"^f: .*(is read in \S+ \(line \d+ of|are drawn from ).*as an argument"):
            symgrad.compile(f)(X[0])
    assert not calls


@pytest.mark.sampled(3)
@pytest.mark.parametrize("kind", EFFECTS)
def test_a_function_with_effects_runs_once_a_call(kind):
    ours, theirs = EFFECTS[kind](1.5), EFFECTS[kind](1.5)
    for way in (lambda f: symgrad.compile(f), lambda f: symgrad.compile(f).gradient, lambda f: symgrad.compile(grad(f))):
        compiled = way(lambda x: total([ours.read], x))
        eager = (lambda x: total([theirs.read], x)) if way.__code__.co_names == ("symgrad", "compile") else grad(lambda x: total([theirs.read], x))
        eager = grad(lambda x: total([theirs.read], x)) if "gradient" in way.__code__.co_names or "grad" in way.__code__.co_names else eager
        for _ in range(5):
            check_equal(compiled(X[0]), eager(X[0]))
            assert ours.state() == theirs.state()


PRINTING = {"text": lambda x: print("step"), "a shape": lambda x: print(x.shape), "a tensor": lambda x: print(x),
            "to the stream": lambda x: sys.stdout.write("step\n"),
            "errors": lambda x: print("step", file=sys.stderr), "before it is refused": lambda x: (print("step"), float(f"{x[0]}"))}


@pytest.mark.parametrize("name", PRINTING)
def test_a_function_prints_once_a_call(name, capsys):
    def f(x):
        PRINTING[name](x)
        return (x * x).sum()

    compiled = symgrad.compile(f)
    for _ in range(6):
        wanted, found = (function(X[0]) is None or "".join(capsys.readouterr()) for function in (f, compiled))
        assert found == wanted != ""
    assert compiled.report.uncompiled


def test_a_stream_that_a_recorded_function_keeps_writes(capsys):
    kept = []

    def f(x):
        kept.append(sys.stdout)
        return x.sum()

    symgrad.compile(f)(X[0])
    for stream in kept:
        print("kept", file=stream)
    assert capsys.readouterr().out == "kept\n" * len(kept) and kept


@pytest.mark.sweep
@pytest.mark.parametrize("k", range(2))
def test_many_machines(k, new_seed):
    assert main(["--seconds", "0", "--seed", str(new_seed + k)]) == 0
