"""`autograd.forward_ad`: what is ours alone. What torch says is in the recorded programs of `forward_ad`."""

import gc
import weakref

import pytest

import symgrad
from symgrad import tensor
from symgrad.autograd import forward_ad as fw
from symgrad.graph.modes import DEFAULT, thread


def x():
    return tensor([1.0, 2.0])


def v():
    return tensor([3.0, 4.0])


def tangent_of(t):
    found = fw.unpack_dual(t).tangent
    return None if found is None else found.tolist()


def test_where_torch_gives_other_tangents():
    with fw.dual_level():
        d = fw.make_dual(x(), v())
        with symgrad.inference_mode():
            assert fw.unpack_dual(d).tangent is not None
        assert fw.unpack_dual(fw.make_dual(x().requires_grad_(), v())).primal.grad_fn.name() == "Identity"
        d.mul_(d)
        assert tangent_of(d) == [6.0, 16.0]
    with pytest.raises(RuntimeError):
        fw.unpack_dual(x(), level=0)


@pytest.mark.parametrize("call, error", [
    (lambda: fw.unpack_dual(x(), level=3), RuntimeError), (lambda: fw.make_dual(1.0, v()), TypeError), (lambda: fw.make_dual(x(), 1.0), TypeError),
    (lambda: fw.unpack_dual(1.0), TypeError)])
def test_what_is_refused(call, error):
    with fw.dual_level():
        with pytest.raises(error):
            call()
        d = fw.make_dual(x(), v())
        assert tangent_of(d * d) == [6.0, 16.0]  # the level goes on


@pytest.mark.parametrize(("forward", "jvp", "error"), [
    (lambda ctx, x: (x * 2, "word"), lambda ctx, t: (t * 2, t), RuntimeError),
    (lambda ctx, x: (x * 2, x.long()), lambda ctx, t: (2.0, None), TypeError)])
def test_results_of_a_jvp_that_are_refused(forward, jvp, error):
    made = type("Made", (symgrad.autograd.Function,), {"forward": staticmethod(forward), "jvp": staticmethod(jvp)})
    with fw.dual_level(), pytest.raises(error):
        made.apply(fw.make_dual(x(), v()))


def test_an_overwritten_primal_is_detected():
    with fw.dual_level():
        d = fw.make_dual(x().requires_grad_() * 1, v())
        y = d * d
        d.data[0] = 7.0  # not counted, as in torch
        d.detach()[0] = 5.0
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            fw.unpack_dual(y)


def test_the_recorder_of_a_level():
    assert fw.enter_dual_level() == 0 and thread.modes.recorder is not DEFAULT
    fw.exit_dual_level(level=0)
    assert thread.modes.recorder is DEFAULT and thread.modes.plain


def test_intermediate_values_are_freed_within_a_level():
    enabled = gc.isenabled()
    gc.disable()
    try:
        with fw.dual_level():
            y = fw.make_dual(x(), v())
            between = []
            for _ in range(3):
                y = y.sin() * 2
                between.append(weakref.ref(y._node))
            assert [r() is None for r in between] == [True, True, False]
    finally:
        if enabled:
            gc.enable()


def test_formulas_of_tangents():
    a = tensor(2.0, symbol="a")
    with fw.dual_level():
        found = fw.unpack_dual(fw.make_dual(a, tensor(1.0)).sin())
        assert str(found.primal.expr) == "sin(a)" and str(found.tangent.expr) in ("cos(a)", "1.0*cos(a)")


@pytest.mark.parametrize("batched", [False, True])
@pytest.mark.parametrize("needs", [False, True])
@pytest.mark.parametrize(("primal", "view", "alike"), [
    (lambda: symgrad.arange(6.0).reshape(2, 3).t(), lambda d: d.t().view(-1), lambda t: t.t().reshape(-1)),
    (lambda: symgrad.arange(6.0).reshape(3, 2), lambda d: d.view(-1), lambda t: t.reshape(-1)),
    (lambda: symgrad.arange(9.0)[3:].view(2, 3).t(), lambda d: d[1:].t(), lambda t: t[1:].t())])
def test_views_of_the_primal_exist_for_tangents_of_every_layout(primal, view, alike, needs, batched):
    def derivatives(tangent):
        found = [alike(tangent), alike(x * 2 * tangent)]
        with fw.dual_level():
            d = fw.make_dual(x, tangent)
            return [fw.unpack_dual(view(y)).tangent for y in (d, d * d)], found

    x, tangents = primal().requires_grad_(needs), symgrad.arange(12.0).reshape(2, 2, 3).transpose(1, 2)
    for tangent in (tangents, tangents.contiguous()):
        found = symgrad.func.vmap(derivatives)(tangent) if batched else derivatives(tangent[0])
        assert [t.tolist() for t in found[0]] == [t.tolist() for t in found[1]]


@pytest.mark.parametrize("call", [lambda d, t: symgrad.add(d, t, out=t), lambda d, t: symgrad.add(t, t, out=d),
                                  lambda d, t: symgrad.cat([t, d], out=symgrad.zeros(4))])
def test_out_is_refused(call):
    constant = x()
    with fw.dual_level():
        d = fw.make_dual(x(), v())
        with pytest.raises(NotImplementedError, match="^(add|cat): with out="):
            call(d, constant)
        assert constant.tolist() == [1.0, 2.0]
        symgrad.add(constant, fw.unpack_dual(d).primal, out=constant)
    symgrad.add(d, constant, out=constant)
    assert constant.tolist() == [3.0, 6.0]


def test_the_switch_of_forward_mode_as_a_function():
    with fw.dual_level():
        d = fw.make_dual(x(), v())
        fw.set_fwd_grad_enabled(False)
        assert tangent_of(d) is None
        fw.set_fwd_grad_enabled(True)
        assert tangent_of(d) == [3.0, 4.0]
    with pytest.raises(AttributeError, match="has no attribute '_levels'"):
        fw._levels


@pytest.mark.parametrize("function, at", [
    (lambda a, b: a / b, (1.0, 1e-310)), (lambda a, b: a**b, (3.0, 1000.0)), (symgrad.hypot, (0.0, -0.0)), (symgrad.atan2, (1e-166, 1e-162)),
    (symgrad.xlogy, (1.0, 1e-310)), (lambda a, b: a / 3 / b, (1 / 3, 1e-309))])
def test_the_pushforward_of_a_pullback_whose_tangents_are_not_finite(function, at):
    """A constant derivative on the way has no parent that moves."""
    with fw.dual_level():
        duals = [fw.make_dual(tensor(number, requires_grad=True), tensor(1.0)) for number in at]
        found = symgrad.autograd.grad(function(*duals), duals, tensor(1.0), create_graph=True)
        second = [fw.unpack_dual(g).tangent for g in found]
    assert all(t is None or t.shape == () for t in second) and not all(t is None or t.isfinite() for t in second)
