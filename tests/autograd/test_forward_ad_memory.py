"""Dual tensors and memory: writes in place, views, layouts, `out=`, and how duals print."""

import pytest

import symgrad
from symgrad import tensor
from symgrad.autograd import forward_ad as fw


def x():
    return tensor([1.0, 2.0])


def v():
    return tensor([3.0, 4.0])


def tangent_of(t):
    found = fw.unpack_dual(t).tangent
    return None if found is None else found.tolist()


WRITES = {  # the write, and the tangent after it
    "by a number": (lambda d: d.mul_(2), [6.0, 8.0]),
    "by a dual": (lambda d: d.mul_(d), [6.0, 16.0]),
    "to a view": (lambda d: d[1:].mul_(2), [3.0, 8.0]),
    "to a view of a view": (lambda d: d.view(2, 1)[1].mul_(2), [3.0, 8.0]),
    "a constant": (lambda d: d.fill_(1.0), [0.0, 0.0]),
    "to an index": (lambda d: d.__setitem__(0, 5.0), [0.0, 4.0]),
}


@pytest.mark.parametrize("name", WRITES)
def test_a_write_in_place_writes_the_tangent_too(name):
    write, expected = WRITES[name]
    primal, tangent = x(), v()
    with fw.dual_level():
        d = fw.make_dual(primal, tangent)
        before = d * 1
        write(d)
        assert tangent_of(d) == expected == tangent.tolist() and fw.unpack_dual(d).tangent is tangent
        assert primal.tolist() == d.tolist() and tangent_of(primal) is None and tangent_of(before) == [3.0, 4.0]


@pytest.mark.parametrize("write, first", [(lambda d: d.mul_(2), 2.0), (lambda d: d[0].mul_(2), 2.0), (lambda d: d.__setitem__(0, 5.0), 5.0)])
def test_the_memory_of_a_leaf_is_not_written(write, first):
    w = x().requires_grad_()
    with fw.dual_level():
        for d in fw.make_dual(w, v()), fw.unpack_dual(fw.make_dual(w, v())).primal, fw.make_dual(w[:], v()):
            with pytest.raises(RuntimeError, match="^a view of a leaf Variable that requires grad is being used in an in-place operation."):
                write(d)
        computed = fw.make_dual(w * 1, v())
        write(computed)
    assert w.tolist() == [1.0, 2.0] and computed[0] == first


def test_a_lazy_tangent_is_that_of_the_time_of_the_operation():
    w = x().requires_grad_()
    with fw.dual_level():
        d = fw.make_dual(w * 1, v())
        y = d * 3
        d.mul_(2)
        assert tangent_of(y) == [9.0, 12.0] and tangent_of(d) == [6.0, 8.0]


def test_a_view_shares_its_tangent_with_its_base():
    with fw.dual_level():
        d = fw.make_dual(x(), v())
        part = d[1:]
        fw.unpack_dual(part).tangent.mul_(2)
        assert tangent_of(d) == [3.0, 8.0]
        fw.unpack_dual(d * 1).tangent.mul_(2)
        assert tangent_of(d) == [3.0, 8.0]


def test_writes_of_duals_into_tensors_without_a_tangent():
    with fw.dual_level():
        d = fw.make_dual(x(), v())
        whole, base, apart = x(), symgrad.zeros(2, 2), x()
        whole.add_(d)
        view = base.transpose(0, 1)
        view.copy_(d.expand(2, 2))
        assert not view.requires_grad and view.is_leaf and view.grad_fn is None
        view.mul_(2)
        apart.detach().add_(d)
        assert tangent_of(whole) == [3.0, 4.0] and tangent_of(apart) is None
        assert tangent_of(base) == [[6.0, 6.0], [8.0, 8.0]] and tangent_of(view) == [[6.0, 8.0], [6.0, 8.0]]


@pytest.mark.parametrize(("primal", "tangent", "shared"), [
    (x, v, True), (x, lambda: symgrad.arange(3.0)[1:], False), (lambda: symgrad.arange(3.0)[:2], v, False),
    (lambda: symgrad.zeros(2, 3), lambda: symgrad.zeros(3, 2).t(), False), (lambda: symgrad.zeros(3, 2).t(), lambda: symgrad.zeros(3, 2).t(), True),
    (lambda: tensor([1.0])[1:], lambda: tensor([1.0])[:0], True), (lambda: symgrad.zeros(0, 1), lambda: symgrad.zeros(0, 1), True)])
def test_a_tangent_of_another_layout_is_copied(primal, tangent, shared):
    given = tangent()
    with fw.dual_level():
        d = fw.make_dual(primal(), given)
        assert (fw.unpack_dual(d).tangent is given) == shared and tangent_of(d) == given.tolist()


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


def test_a_copied_tangent_has_the_memory_of_the_primal():
    primal = symgrad.arange(9.0)[3:].view(2, 3).t()
    with fw.dual_level():
        t = fw.unpack_dual(fw.make_dual(primal, symgrad.ones(3, 2))).tangent
    assert (t.stride(), t.storage_offset(), t.untyped_storage().nbytes()) == ((1, 3), 3, primal.untyped_storage().nbytes())


def test_a_copied_tangent_keeps_its_graph():
    w = symgrad.arange(3.0).requires_grad_()
    with fw.dual_level():
        t = fw.unpack_dual(fw.make_dual(x(), w[1:]) ** 2).tangent
    assert symgrad.autograd.grad(t.sum(), w)[0].tolist() == [0.0, 2.0, 4.0]


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


def test_printing():
    with fw.dual_level():
        d = fw.make_dual(x().requires_grad_(), v())
        assert repr(d) == "tensor([1., 2.], grad_fn=<ViewBackward0>, tangent=tensor([3., 4.]))"
        assert repr(fw.make_dual(tensor(1.0), tensor(2.0))) == "tensor(1., tangent=2.0)"
        assert "tangent" not in repr(fw.unpack_dual(d).primal) + repr(fw.unpack_dual(d).tangent) + repr(x())
    assert "tangent" not in repr(d)


def test_the_switch_of_forward_mode():
    assert fw._is_fwd_grad_enabled() and fw._current_level == -1
    with fw.dual_level():
        assert fw._current_level == 0
        d = fw.make_dual(x(), v())
        with fw.set_fwd_grad_enabled(False):
            assert not fw._is_fwd_grad_enabled() and tangent_of(d) is None
            y = d * d
            with fw._set_fwd_grad_enabled(True):
                assert tangent_of(d * d) == [6.0, 16.0]
        assert tangent_of(y) is None and tangent_of(d) == [3.0, 4.0]
        fw.set_fwd_grad_enabled(False)
        assert tangent_of(d) is None
        fw.set_fwd_grad_enabled(True)
        assert tangent_of(d) == [3.0, 4.0]
    with pytest.raises(AttributeError, match="has no attribute '_levels'"):
        fw._levels
