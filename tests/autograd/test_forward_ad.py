"""`autograd.forward_ad`: dual tensors, their tangents, and errors recorded from torch 2.13."""

import gc
import weakref

import pytest

import symgrad
from symgrad import autograd, tensor
from symgrad.autograd import forward_ad as fw
from symgrad.graph.modes import DEFAULT, thread


def x():
    return tensor([1.0, 2.0])


def v():
    return tensor([3.0, 4.0])


def leaf():
    return tensor([1.0, 2.0], requires_grad=True)


def tangent(function, *duals):
    """The tangent of a function of dual tensors, as a list (None if there is none)."""
    with fw.dual_level():
        found = fw.unpack_dual(function(*(fw.make_dual(*pair) for pair in duals))).tangent
    return None if found is None else found.tolist()


# What torch gives for tangent [3, 4] at [1, 2].
TANGENTS = {
    "a product": (lambda d: d * d, [6.0, 16.0]),
    "a sum": (lambda d: (d * d).sum(), 22.0),
    "the dual itself": (lambda d: d, [3.0, 4.0]),
    "a product with a constant": (lambda d: d * x(), [3.0, 8.0]),
    "a constant": (lambda d: x() * 2, None),
    "a detached dual": (lambda d: d.detach() * d, [3.0, 8.0]),
    "detached": (lambda d: d.detach(), None),
    "data": (lambda d: d.data, None),
    "a comparison": (lambda d: d > 1, None),
    "an index": (lambda d: d.argmax(), None),
    "floor": (lambda d: d.floor(), [0.0, 0.0]),
    "a choice": (lambda d: symgrad.where(d > 1.5, d, x()), [0.0, 4.0]),
    "a maximum": (lambda d: d.max(0)[0], 4.0),
    "a concatenation": (lambda d: symgrad.cat([d, x()]), [3.0, 4.0, 0.0, 0.0]),
    "a stack": (lambda d: symgrad.stack([x(), d]), [[0.0, 0.0], [3.0, 4.0]]),
    "a slice": (lambda d: d[1:], [4.0]),
    "a matrix product": (lambda d: tensor([[1.0, 2.0], [3.0, 4.0]]) @ d, [11.0, 25.0]),
    "single precision": (lambda d: d.float(), [3.0, 4.0]),
}


@pytest.mark.parametrize("mode", [symgrad.enable_grad, symgrad.no_grad])
@pytest.mark.parametrize("name", TANGENTS)
def test_tangents_match_torch(name, mode):
    function, expected = TANGENTS[name]
    with mode():
        assert tangent(function, (x(), v())) == expected


def test_several_dual_arguments():
    assert tangent(lambda a, b: a * b + a, (x(), v()), (v(), x())) == [3 * 3 + 1 * 1 + 3, 4 * 4 + 2 * 2 + 4]


def test_complex_tangents():
    assert tangent(lambda d: d * d, (tensor([1 + 1j]), tensor([2 - 1j]))) == [6 + 2j]
    assert tangent(lambda d: d * 2, (x(), tensor([1j, 1.0]))) == [2j, 2.0]


def test_inference_mode_drops_tangents():
    with fw.dual_level():
        d = fw.make_dual(x(), v())
        with symgrad.inference_mode():
            assert fw.unpack_dual(d * d).tangent is None
            assert fw.unpack_dual(d).tangent is not None


def test_unpacking():
    with fw.dual_level():
        t = v()
        d = fw.make_dual(x(), t)
        found = fw.unpack_dual(d)
        assert isinstance(found, fw.UnpackedDualTensor) and found._fields == ("primal", "tangent")
        assert found.tangent is t and found.primal.tolist() == [1.0, 2.0]
        assert fw.unpack_dual(found.primal).tangent is None and fw.unpack_dual(found.primal * 2).tangent is None
        assert fw.unpack_dual(fw.unpack_dual(d * d).tangent).tangent is None
        again = fw.make_dual(fw.unpack_dual(d * d).primal, x())
        assert fw.unpack_dual(again * d).tangent.tolist() == [1 * 1 + 1 * 3, 2 * 2 + 4 * 4]
    y = x()
    assert fw.unpack_dual(y) == (y, None)


def test_a_dual_shares_the_memory_of_its_primal():
    for primal in x(), tensor(2.0):
        with fw.dual_level():
            d = fw.make_dual(primal, symgrad.ones_like(primal))
            assert d.shares_memory_with(primal)
            primal.mul_(2)
            assert d.tolist() == primal.tolist()


def test_a_dual_of_a_constant_requires_no_grad():
    with fw.dual_level():
        d = fw.make_dual(x(), v())
        y = (d * d).sum()
        assert not d.requires_grad and not y.requires_grad and d.is_leaf and y.is_leaf and y.grad_fn is None
        with pytest.raises(RuntimeError, match="^element 0 of tensors does not require grad and does not have a grad_fn"):
            y.backward()
        assert d.numpy().tolist() == [1.0, 2.0] and y.item() == 5.0


def test_a_dual_is_a_view_of_its_primal_in_the_graph():
    w = leaf()
    with fw.dual_level():
        d = fw.make_dual(w, v())
        assert d.requires_grad and not d.is_leaf and d.grad_fn.name() == "ViewBackward0"
        assert d.grad_fn.next_functions[0][0].variable is w
        y = d * d
        found = fw.unpack_dual(y)
        assert found.primal.grad_fn.name() == "Identity" and found.tangent.grad_fn.name() == "AddBackward0"
        assert autograd.grad(y.sum(), w, retain_graph=True)[0].tolist() == [2.0, 4.0]
        assert autograd.grad(found.primal.sum(), w, retain_graph=True)[0].tolist() == [2.0, 4.0]
        assert fw.unpack_dual(found.tangent).tangent is None and fw.unpack_dual(found.tangent * 2).tangent is None
        assert fw.unpack_dual(found.primal * d).tangent.tolist() == [1 * 3.0, 4 * 4.0]


def test_tangents_are_differentiated_by_primals_and_tangents():
    w, t = leaf(), tensor([3.0, 4.0], requires_grad=True)
    with fw.dual_level():
        moved = fw.unpack_dual(fw.make_dual(w, t) ** 3).tangent.sum()
        assert [g.tolist() for g in autograd.grad(moved, (w, t))] == [[18.0, 48.0], [3.0, 12.0]]
    a = tensor(2.0, requires_grad=True)
    with fw.dual_level():
        moved = fw.unpack_dual(fw.make_dual(x(), v()) * a).tangent
        assert autograd.grad(moved.sum(), a)[0].item() == 7.0
        moved = fw.unpack_dual(fw.make_dual(x(), t) * 2).tangent
        assert autograd.grad(moved.sum(), t)[0].tolist() == [2.0, 2.0]


def test_duals_record_no_graph_under_no_grad():
    a = tensor(2.0, requires_grad=True)
    with fw.dual_level(), symgrad.no_grad():
        y = fw.make_dual(x(), v()) * a
        assert not y.requires_grad and fw.unpack_dual(y).tangent.tolist() == [6.0, 8.0]
        assert not fw.unpack_dual(y).tangent.requires_grad and not fw.unpack_dual(y).primal.requires_grad


def test_an_overwritten_primal_is_detected():
    w = leaf()
    with fw.dual_level():
        d = fw.make_dual(w * 1, v())
        y = d * d
        d.data[0] = 7.0  # not counted, as in torch
        d.detach()[0] = 5.0
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            fw.unpack_dual(y)


# The level


def test_tangents_are_dropped_outside_the_level():
    with fw.dual_level():
        d = fw.make_dual(x(), v())
        y = d * d
    assert fw.unpack_dual(d).tangent is None and fw.unpack_dual(y).tangent is None
    assert fw.unpack_dual(y).primal.tolist() == [1.0, 4.0]
    with fw.dual_level():
        assert fw.unpack_dual(d).tangent is None and fw.unpack_dual(d * y).tangent is None
        assert fw.unpack_dual(fw.make_dual(d, x())).tangent.tolist() == [1.0, 2.0]


def test_a_level_is_exited_on_an_exception():
    with pytest.raises(ArithmeticError), fw.dual_level():
        raise ArithmeticError
    assert fw.enter_dual_level() == 0 and thread.modes.recorder is not DEFAULT
    fw.exit_dual_level(level=0)
    assert thread.modes.recorder is DEFAULT and thread.modes.plain
    with fw.dual_level() as level:
        assert level == 0 and fw.unpack_dual(fw.make_dual(x(), v(), level=0), level=0).tangent.tolist() == [3.0, 4.0]


def test_a_level_as_a_decorator():
    @fw.dual_level()
    def slope(at):
        """Of the square."""
        return fw.unpack_dual(fw.make_dual(at, tensor(1.0)) ** 2).tangent.item()

    assert slope(tensor(3.0)) == slope(tensor(3.0)) == 6.0 and slope.__doc__ == "Of the square."


def test_intermediate_values_are_freed_within_a_level():
    """The values in between are freed within the level, by reference counts alone."""
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


REFUSED = [
    (lambda: fw.make_dual(x(), symgrad.ones(3)), RuntimeError), (lambda: fw.make_dual(x(), symgrad.ones(1)), RuntimeError),
    (lambda: fw.make_dual(x().long(), v()), ValueError), (lambda: fw.make_dual(x(), v().long()), ValueError),
    (lambda: fw.make_dual(fw.make_dual(x(), v()), v()), RuntimeError), (lambda: fw.make_dual(fw.make_dual(x(), v()) * 2, v()), RuntimeError),
    (lambda: fw.make_dual(x(), fw.make_dual(x(), v())), RuntimeError), (fw.enter_dual_level, RuntimeError),
    (lambda: fw.exit_dual_level(level=5), RuntimeError), (lambda: fw.make_dual(x(), v(), level=3), RuntimeError),
    (lambda: fw.unpack_dual(x(), level=3), RuntimeError), (lambda: fw.make_dual(1.0, v()), TypeError), (lambda: fw.make_dual(x(), 1.0), TypeError),
    (lambda: fw.unpack_dual(1.0), TypeError)]


@pytest.mark.parametrize("call, error", REFUSED)
def test_what_is_refused(call, error):
    with fw.dual_level():
        with pytest.raises(error):
            call()
        d = fw.make_dual(x(), v())
        assert fw.unpack_dual(d * d).tangent.tolist() == [6.0, 16.0]  # the level goes on


@pytest.mark.parametrize("call", [lambda: fw.make_dual(x(), v()), fw.exit_dual_level, lambda: fw.unpack_dual(x(), level=0)])
def test_what_is_refused_outside_a_level(call):
    with pytest.raises(RuntimeError):
        call()


# Together with the rest


def test_formulas_of_tangents():
    a = tensor(2.0, symbol="a")
    with fw.dual_level():
        found = fw.unpack_dual(fw.make_dual(a, tensor(1.0)).sin())
        assert str(found.primal.expr) == "sin(a)" and str(found.tangent.expr) in ("cos(a)", "1.0*cos(a)")
