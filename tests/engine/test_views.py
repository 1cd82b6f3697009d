"""Views and their bases: lifetime of the metadata, staleness, and interrupted writes."""

import gc
import weakref

import pytest

import symgrad
from tests.support.sides import compare, programs, recorded
from tests.support.threads import run_in_threads


def test_a_cycle_through_the_hook_of_a_view_is_collected():
    w = symgrad.ones(4, requires_grad=True)
    base = w * 1
    view = base[:2]
    held = [base, view]
    view.register_hook(lambda g, held=held: None)
    base.register_hook(lambda g, held=held: None)
    view.mul_(3)
    view.register_hook(lambda g, held=held: None)
    left = [weakref.ref(x) for x in (base, view, base._view, base.grad_fn)]
    del base, view, held
    gc.collect()
    assert [r() for r in left] == [None] * 4


@pytest.mark.parametrize("write", [lambda t: t.mul_(2), lambda t: t[:2].mul_(2), lambda t: t.__setitem__(0, 1.0), lambda t: t.t_(),
                                   lambda t: t.copy_(t + 1)])
def test_the_error_for_a_changed_value_names_the_line_that_wrote_it(write):
    x = symgrad.ones(3, requires_grad=True) * 1
    y = (x * x).sum()
    write(x)
    with pytest.raises(RuntimeError, match="modified by an inplace operation") as raised:
        y.backward()
    assert __file__ in str(raised.value)


@pytest.mark.parametrize("pieces", [lambda b: b[1:], lambda b: b.split(1)[1]])
def test_the_numbers_of_a_stale_view_depend_on_what_its_base_depends_on(pieces):
    def f(x):
        base = x * 1
        view = pieces(base)
        base.mul_(3)
        with pytest.raises(RuntimeError, match="derivative would be lost"):
            view.tolist()
        with pytest.warns(UserWarning, match="a constant to every derivative"):
            view.item()
        return base.sum()

    assert symgrad.func.grad(f)(symgrad.ones(2)).tolist() == [3, 3]


def test_views_made_in_several_threads_are_stale_after_a_write():
    base = symgrad.ones(4, requires_grad=True) * 1
    made = []

    def work(_):
        for k in range(300):
            view = base[:2]
            if k % 3 == 0:
                made.append(view)

    run_in_threads(work, 4)
    base.mul_(2)
    assert len(made) == 400 and all(view.grad_fn.name() == "AsStridedBackward0" for view in made)


@pytest.mark.parametrize("name", [name for name in programs("histories") if name.startswith(("changed", "saved"))])
def test_who_has_a_value_is_found_without_the_garbage_collector(name, monkeypatch):
    monkeypatch.delattr(gc, "get_referrers")
    compare(programs("histories")[name], symgrad, recorded("histories")[name])
