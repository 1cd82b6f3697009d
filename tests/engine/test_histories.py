"""The histories of written, freed and detached tensors: values, hooks, and refusals in torch's order, found beside torch by random programs."""

import gc

import pytest

import symgrad
from symgrad.autograd import Function, grad
from symgrad.autograd.graph import get_gradient_edge
from tests.support.functions import leaf

FREED = "Trying to backward through the graph a second time"
CHANGED = "modified by an inplace operation"


class Nothing(Function):
    """x -> 2 x, with the gradient None."""

    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, g):
        return None


class Product(Function):
    """x, y -> x y"""

    @staticmethod
    def forward(ctx, x, y):
        ctx.save_for_backward(x, y)
        return x * y

    @staticmethod
    def backward(ctx, g):
        x, y = ctx.saved_tensors
        return g * y, g * x


class Same(Function):
    """x -> x"""

    @staticmethod
    def forward(ctx, x):
        return x

    @staticmethod
    def backward(ctx, g):
        return g


def unrecorded(x):
    """A view that no operation recorded, and that requires grad as its base does."""
    with symgrad.no_grad():
        return x.view(-1)


# Refusals


def freed_before_a_recorded_pass(x):
    y = x.sin()
    y.sum().backward()
    grad(y, x, symgrad.ones(2), create_graph=True)


def freed_divisor_without_history(x):
    y = symgrad.ones(2) / unrecorded(x)
    y.view(2).sum().backward()
    (y * 1).sum().backward()


def changed_divisor_before_a_stale_view(x):
    first, second = x.split(1)
    y = second / x
    with symgrad.no_grad():
        first.zero_()
    y.sum().backward()


def changed_constant_and_divisor(x):
    constant, divisor = symgrad.ones(3), x.sum()
    y = constant / divisor
    with symgrad.no_grad():
        constant.add_(1)
        divisor.add_(1)
    y.sum().backward()


def changed_above_an_undefined_gradient(x):
    y = x * 1
    y.reciprocal_()
    y.add_(y)
    Nothing.apply(y).sum().backward()


def changed_view_of_a_function(x):
    y = x * 1
    view = y.view(2)
    z = Product.apply(view, view)
    y[symgrad.tensor([0])] = 2.0
    z.sum().backward()


def changed_divisor_without_history(x):
    view = unrecorded(x)
    y = symgrad.ones(2) / view
    with symgrad.no_grad():
        view.add_(1)
    y.sum().backward()


def stale_value_of_an_assignment(x):
    first, second = (x * 1).split(1)
    with symgrad.no_grad():
        second.add_(1)
    first[symgrad.tensor([0])] = second


def assignment_of_a_stale_value_to_a_leaf(x):
    first, second = (leaf(1.0, 2.0, 3.0, 4.0) * 1).split(2)
    with symgrad.no_grad():
        first.add_(1)
    x[symgrad.tensor([0, 1])] = second


@pytest.mark.parametrize("program, message", [
    (freed_before_a_recorded_pass, FREED),
    (freed_divisor_without_history, FREED),
    (changed_divisor_before_a_stale_view, rf"{CHANGED}: \[torch.DoubleTensor \[2\]\] is at"),
    (changed_constant_and_divisor, rf"{CHANGED}: \[torch.DoubleTensor \[\]\], which is output 0 of Sum"),
    (changed_above_an_undefined_gradient, f"{CHANGED}.*output 0 of Reciprocal"),
    (changed_view_of_a_function, CHANGED),
    (changed_divisor_without_history, "the view was made under no_grad"),
    (stale_value_of_an_assignment, "output 1 of Split, is one of several"),
    (assignment_of_a_stale_value_to_a_leaf, "a leaf Variable that requires grad is being used in an in-place operation"),
])
def test_a_program_is_refused(program, message):
    with pytest.raises(RuntimeError, match=message):
        program(leaf(1.5, -2.0))


@pytest.mark.parametrize("mode", [symgrad.enable_grad, symgrad.no_grad, symgrad.inference_mode])
def test_an_input_that_a_function_returns_is_a_view_that_it_made_in_every_mode(mode):
    x = symgrad.ones(2)
    with mode():
        y = Same.apply(x)
    with pytest.raises(RuntimeError, match="made by a custom Function"):
        y.mul_(leaf(1.0, 2.0))


# Values and hooks


def test_posthooks_of_a_function_see_the_gradients_that_nobody_receives():
    x, seen = leaf(1.0, 2.0), []
    for other in (symgrad.tensor([3.0, 4.0]), unrecorded(leaf(3.0, 4.0)), leaf(3.0, 4.0)):
        y = Product.apply(x, other)
        y.grad_fn.register_hook(lambda inner, outer: seen.append([g.tolist() for g in inner]))
        assert grad(y.sum(), x)[0].tolist() == [3, 4]
    assert seen == [[[3, 4], [1, 2]]] * 3


def test_a_function_of_several_outputs_is_told_that_no_gradient_arrived_where_one_output_has_a_hook():
    class Two(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.set_materialize_grads(False)
            return x * 2, x * 3

        @staticmethod
        def backward(ctx, *gs):
            seen.append(gs)
            return gs[0]

    x, seen = leaf([1.0]), []
    y, z = Two.apply(x)
    z.register_hook(seen.append)
    Nothing.apply(y).sum().backward()
    assert seen == [None, (None, None)] and x.grad is None


def test_hooks_of_a_view_do_not_see_writes_through_its_views():
    x, seen = leaf(0.5, 1.0), []
    view = x.sin().view(1, 2)
    view.register_hook(lambda g: seen.append(g.tolist()))
    view[0, :1] = -2.0
    symgrad.autograd.backward(get_gradient_edge(view), symgrad.ones(1, 2))
    assert not seen and x.grad.tolist() == [0, pytest.approx(0.5403023058681398)]


def test_an_operand_of_a_write_that_is_the_view_itself_keeps_its_hooks():
    x, seen = leaf(0.5, 1.0), []
    view = (x * 1).view(1, 2)
    view.register_hook(lambda g: seen.append(g.tolist()))
    view.add_(view)
    view.sum().backward()
    assert seen == [[[1, 1]]] and x.grad.tolist() == [2, 2]


def test_the_view_that_was_written_keeps_its_history_when_its_base_leaves_the_graph():
    x = leaf(0.5, 1.0)
    y = x * 3
    view = y.view(2)
    view.mul_(2)
    y.detach_()
    view.sum().backward()
    assert x.grad.tolist() == [6, 6]


def test_a_view_of_a_base_that_left_the_graph_can_require_grad_again():
    base = symgrad.ones(4)
    written, view = base[:2], base[2:]
    written[symgrad.tensor([0])] = leaf(2.0)
    base.detach_()
    view.requires_grad_()
    assert view.requires_grad and view.is_leaf
    (view * 3).sum().backward()
    assert view.grad.tolist() == [3, 3]


def test_an_undefined_gradient_passes_by_writes_that_were_freed():
    x = leaf([2.0])
    y = x + symgrad.zeros(3)
    y[-1:].reciprocal_()
    y.sum().backward()
    Nothing.apply(y).sum().backward()
    assert x.grad.tolist() == [1.75]


def test_pairs_that_stand_alone_are_complex_at_any_distance():
    assert symgrad.view_as_complex(symgrad.arange(3.0).view(1, 3)[:, :2]).tolist() == [1j]
    with pytest.raises(RuntimeError, match="view_as_complex: .*strides"):
        symgrad.view_as_complex(symgrad.arange(6.0).view(2, 3)[:, :2])


@pytest.mark.parametrize("program", [changed_divisor_before_a_stale_view, changed_constant_and_divisor, changed_above_an_undefined_gradient,
                                     changed_view_of_a_function, changed_divisor_without_history])
def test_a_program_is_refused_without_the_garbage_collector(program, monkeypatch):
    monkeypatch.delattr(gc, "get_referrers")
    with pytest.raises(RuntimeError, match=CHANGED):
        program(leaf(1.5, -2.0))
    x = leaf(1.0, 2.0)
    y = (x * 2) * (x * 3)
    assert (y * x).grad_fn._saved_self.tolist() == y.tolist()
