"""The `jvp` of custom Functions under dual tensors: when it is called, and what is refused."""

import pytest

import symgrad
from symgrad.autograd import Function
from symgrad.autograd import forward_ad as fw


def function(forward, jvp):
    """A Function with this forward and jvp, which counts the calls of jvp."""
    def counted(ctx, *tangents):
        made.calls += 1
        return jvp(*tangents)

    made = type("Made", (Function,), {"forward": staticmethod(forward), "jvp": staticmethod(counted), "calls": 0})
    return made


def dual(needs=False, view=False):
    """A dual tensor of [1, 2] and its tangent [3, 4]."""
    tangent = symgrad.tensor([3.0, 4.0])
    d = fw.make_dual(symgrad.tensor([1.0, 2.0], requires_grad=needs), tangent)
    return d.view(2) if view else d, tangent


def tangent_of(t):
    found = fw.unpack_dual(t).tangent
    return None if found is None else found.tolist()


def test_jvp_is_called_together_with_the_forward():
    twice = function(lambda ctx, x: x * 2, lambda t: t * 2)
    with fw.dual_level():
        d, tangent = dual()
        y = twice.apply(d)
        tangent.mul_(10)
        assert tangent_of(y) == tangent_of(y) == [6.0, 8.0] and twice.calls == 1
        assert twice.apply(symgrad.ones(2)).tolist() == [2, 2] and twice.calls == 1
    assert twice.apply(d).tolist() == [2, 4] and twice.calls == 1


def test_tangents_with_a_graph_are_computed_when_they_are_asked_for():
    class Cube(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_forward(x)
            return x**3

        @staticmethod
        def jvp(ctx, t):
            (x,) = ctx.saved_for_forward
            return 3 * x * x * t

    x = symgrad.tensor([1.0, 2.0], requires_grad=True)
    with fw.dual_level():
        t = fw.unpack_dual(Cube.apply(fw.make_dual(x, symgrad.ones(2)))).tangent
    assert t.tolist() == [3, 12] and symgrad.autograd.grad(t.sum(), x)[0].tolist() == [6, 12]


@pytest.mark.parametrize("needs", [False, True])
@pytest.mark.parametrize("forward", [lambda ctx, x: x, lambda ctx, x: x[:]])
@pytest.mark.parametrize(("jvp", "view", "right"), [
    (lambda t: t.view(2), False, True), (lambda t: t[:], True, True), (lambda t: t, False, False), (lambda t: t * 2, False, False),
    (lambda t: None, False, False), (lambda t: (t * 1)[:], False, False), (lambda t: (t * 1)[:], True, False)])
def test_the_tangent_of_a_view_is_a_view_of_the_tangent(forward, jvp, view, right, needs):
    with fw.dual_level():
        d, tangent = dual(needs, view)
        if not right:
            with pytest.raises(RuntimeError, match="jvp"):
                function(forward, jvp).apply(d)
            return
        y = function(forward, jvp).apply(d)
        assert tangent_of(y) == [3.0, 4.0]
        if not needs:
            assert fw.unpack_dual(y).tangent._base is tangent


@pytest.mark.parametrize(("jvp", "right"), [
    (lambda t: t.mul_(2), True), (lambda t: t * 2, False), (lambda t: None, False), (lambda t: t.mul_(2).view(2), False)])
def test_the_tangent_of_an_argument_written_in_place_is_written_in_place(jvp, right):
    def forward(ctx, x):
        ctx.mark_dirty(x)
        return x.mul_(2)

    for plain in False, True:
        made = function(forward, jvp)
        with fw.dual_level():
            d, tangent = dual()
            if plain:
                d = d * 1
            if not right:
                with pytest.raises(RuntimeError):
                    made.apply(d)
                continue
            y = made.apply(d)
            assert y is d and d.tolist() == [2, 4] and tangent_of(y) == [6.0, 8.0] and made.calls == 1
            assert tangent.tolist() == ([3.0, 4.0] if plain else [6.0, 8.0])


@pytest.mark.parametrize("needs", [False, True])
@pytest.mark.parametrize("value", [1.0, [1.0, 2.0]])
def test_other_results_keep_the_tangent_before_an_argument_is_written(value, needs):
    def forward(ctx, x):
        ctx.mark_dirty(x)
        return x.mul_(2)

    x = symgrad.tensor(value, requires_grad=needs).clone()
    with fw.dual_level():
        d = fw.make_dual(x, tangent := symgrad.ones_like(x))
        before, view = d * 3, d.view_as(d)
        after = function(forward, lambda t: t.mul_(2)).apply(d)
        assert [fw.unpack_dual(t).tangent.sum().item() / x.numel() for t in (before, after, view, d)] == [3, 2, 2, 2]
        assert fw.unpack_dual(after).tangent is tangent


def marked(ctx, x):
    y = x.clone()
    ctx.mark_non_differentiable(y)
    return x * 2, y


@pytest.mark.parametrize(("forward", "jvp", "error"), [
    (marked, lambda t: (t * 2, t), RuntimeError), (lambda ctx, x: (x * 2, x.long()), lambda t: (t * 2, t), RuntimeError),
    (lambda ctx, x: (x * 2, "word"), lambda t: (t * 2, t), RuntimeError), (marked, lambda t: t * 2, RuntimeError),
    (marked, lambda t: (2.0, None), TypeError), (marked, lambda t: (t * 2, None), None)])
def test_outputs_without_a_derivative(forward, jvp, error):
    with fw.dual_level():
        d, _ = dual()
        if error is not None:
            with pytest.raises(error):
                function(forward, jvp).apply(d)
            return
        y, constant = function(forward, jvp).apply(d)
        assert tangent_of(y) == [6.0, 8.0] and tangent_of(constant) is None
