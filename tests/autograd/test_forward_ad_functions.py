"""The `jvp` of custom Functions under dual tensors: when it is called, and what is refused, in torch's words."""

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
            ctx.square = x * x
            return x * ctx.square

        @staticmethod
        def jvp(ctx, t):
            return 3 * ctx.square * t

    x = symgrad.tensor([1.0, 2.0], requires_grad=True)
    with fw.dual_level():
        t = fw.unpack_dual(Cube.apply(fw.make_dual(x, symgrad.ones(2)))).tangent
    assert t.tolist() == [3, 12] and symgrad.autograd.grad(t.sum(), x)[0].tolist() == [6, 12]


VIEW = "A custom Function is returning a view but the jvp is not returning a view of the given grad input."
BASE = "A custom Function is returning a view but the jvp is not returning a view of the same base as the given grad input."
NO_VIEW = "A custom Function's forward is returning a view (or an input as-is) but the jvp is not returning a view."


@pytest.mark.parametrize("needs", [False, True])
@pytest.mark.parametrize("forward", [lambda ctx, x: x, lambda ctx, x: x[:]])
@pytest.mark.parametrize(("jvp", "view", "words"), [
    (lambda t: t.view(2), False, None), (lambda t: t[:], True, None), (lambda t: t, False, NO_VIEW), (lambda t: t * 2, False, NO_VIEW),
    (lambda t: None, False, NO_VIEW), (lambda t: (t * 1)[:], False, VIEW), (lambda t: (t * 1)[:], True, BASE)])
def test_the_tangent_of_a_view_is_a_view_of_the_tangent(forward, jvp, view, words, needs):
    with fw.dual_level():
        d, tangent = dual(needs, view)
        if words is not None:
            with pytest.raises(RuntimeError) as caught:
                function(forward, jvp).apply(d)
            assert str(caught.value) == words
            return
        y = function(forward, jvp).apply(d)
        assert tangent_of(y) == [3.0, 4.0]
        if not needs:
            assert fw.unpack_dual(y).tangent._base is tangent


@pytest.mark.parametrize(("jvp", "words"), [
    (lambda t: t.mul_(2), None), (lambda t: t * 2, "An inplace custom Function is not modifying the forward mode gradients inplace."),
    (lambda t: None, "An inplace custom Function is not modifying the forward mode gradients inplace."),
    (lambda t: t.mul_(2).view(2), "An inplace custom Function is not returning the forward mode gradients as-is.")])
def test_the_tangent_of_an_argument_written_in_place_is_written_in_place(jvp, words):
    def forward(ctx, x):
        ctx.mark_dirty(x)
        return x.mul_(2)

    for plain in False, True:
        made = function(forward, jvp)
        with fw.dual_level():
            d, tangent = dual()
            if plain:
                d = d * 1
            if words is not None:
                with pytest.raises(RuntimeError) as caught:
                    made.apply(d)
                assert str(caught.value).startswith(words)
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


@pytest.mark.parametrize(("forward", "jvp", "error", "words"), [
    (marked, lambda t: (t * 2, t), RuntimeError, "Function's jvp returned a gradient at position 1, but  the corresponding forward output is not a "),
    (lambda ctx, x: (x * 2, x.long()), lambda t: (t * 2, t), RuntimeError, "Function's jvp returned a gradient at position 1"),
    (lambda ctx, x: (x * 2, "word"), lambda t: (t * 2, t), RuntimeError, "Function's jvp returned a gradient at position 1"),
    (marked, lambda t: t * 2, RuntimeError, "Function's jvp returned an invalid number of forward gradients (expected 2 but got 1)"),
    (marked, lambda t: (2.0, None), TypeError, "MadeBackward: jvp must return Tensors or None, but returned float at position 0"),
    (marked, lambda t: (t * 2, None), None, None)])
def test_outputs_without_a_derivative(forward, jvp, error, words):
    with fw.dual_level():
        d, _ = dual()
        if error is not None:
            with pytest.raises(error) as caught:
                function(forward, jvp).apply(d)
            assert str(caught.value).startswith(words)
            return
        y, constant = function(forward, jvp).apply(d)
        assert tangent_of(y) == [6.0, 8.0] and tangent_of(constant) is None
