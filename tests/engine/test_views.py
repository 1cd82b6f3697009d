"""Views and their bases: lifetime of the metadata, staleness, and interrupted writes."""

import gc
import warnings
import weakref

import numpy as np
import pytest

import symgrad
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


def test_a_refused_division_does_not_increment_the_version():
    for x in (symgrad.arange(4), symgrad.arange(4).reshape(2, 2)):
        with pytest.raises(RuntimeError, match="the result has the dtype"):
            x.div_(x.float() + 1)
        with pytest.raises(RuntimeError, match="the result has the dtype"):
            x.div_(x + 1)
        assert x._version == 0


@pytest.mark.parametrize("write", [lambda t: t.mul_(2), lambda t: t[:2].mul_(2), lambda t: t.__setitem__(0, 1.0), lambda t: t.t_(),
                                   lambda t: t.copy_(t + 1)])
def test_the_error_for_a_changed_value_names_the_line_that_wrote_it(write):
    x = symgrad.ones(3, requires_grad=True) * 1
    y = (x * x).sum()
    write(x)
    with pytest.raises(RuntimeError, match="modified by an inplace operation") as raised:
        y.backward()
    assert __file__ in str(raised.value)


def test_a_write_to_a_stale_view_of_the_same_array_is_recorded():
    class Identity(symgrad.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x

        @staticmethod
        def backward(ctx, g):
            return g

    base = symgrad.ones(2, requires_grad=True) * 1
    view = Identity.apply(base)
    base.mul_(2)
    with pytest.raises(RuntimeError, match="made by a custom Function"):
        view.neg_()
    with pytest.raises(RuntimeError, match="made by a custom Function"):
        view.mul_(2.0)
    assert view.tolist() == [2, 2]


READS = {"item": lambda v: v.item(), "tolist": lambda v: v.tolist(), "float": float, "detach": lambda v: v.detach().numpy(),
         "repr": lambda v: float(repr(v)[7:10])}


@pytest.mark.parametrize("read", READS)
@pytest.mark.parametrize("grad", [True, False])
def test_the_numbers_of_a_stale_view_without_a_node_are_read(read, grad):
    """A view that may not be used in the graph any more still has the numbers of its memory, as in torch."""
    base = symgrad.full((2,), 0.7, requires_grad=grad) * 1
    view = base.unbind()[1]
    base.mul_(3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # float() of a tensor that requires grad
        assert READS[read](view) == pytest.approx(2.1)


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


@pytest.mark.parametrize("index, name", [
    (slice(None), "Slice"), (slice(0, 3), "Slice"), (slice(-3, None), "Slice"), (..., "Alias"), ((), "Alias"), ((slice(None),), "Alias"),
    ((slice(None), slice(0, 4)), "Alias"), ((slice(None), slice(0, 9)), "Alias"), ((slice(None), slice(-4, None)), "Slice"),
    ((0, slice(0, 4)), "Select"), ((None, slice(0, 3)), "Unsqueeze"), ((..., slice(0, 4)), "Alias"), ((slice(1, 2), ...), "Slice"),
    ((slice(0, 3), ..., slice(0, 2)), "Slice"), ((slice(None), slice(None, None, 2)), "Slice")], ids=repr)
def test_the_node_of_an_index_has_the_name_that_torch_gives_it(index, name):
    """Recorded with torch 2.13: a slice of everything has a node if it stands alone, and none within a tuple."""
    x = symgrad.ones(3, 4, requires_grad=True)
    assert x[index].grad_fn.name() == f"{name}Backward0"
    assert symgrad.equal(symgrad.autograd.grad(x[index].sum(), x)[0].sum(), x[index].detach().sum())


ROWS, FLAG = symgrad.tensor([0, 1]), symgrad.tensor(True)


@pytest.mark.parametrize("index, read, written", [
    (ROWS, "AccumulateGrad", "IndexPutBackward0"), ((slice(None), ROWS), "AccumulateGrad", "IndexPutBackward0"),
    ((..., ROWS), "AccumulateGrad", "IndexPutBackward0"), ((slice(0, 3), ROWS), "AccumulateGrad", "IndexPutBackward0"),
    ((ROWS, slice(1, 3)), "SliceBackward0", "CopySlices"), ((1, ROWS), "SelectBackward0", "CopySlices"),
    ((None, ROWS), "UnsqueezeBackward0", "CopySlices"), (FLAG, "UnsqueezeBackward0", "CopySlices"), (True, "UnsqueezeBackward0", "CopySlices"),
    (symgrad.tensor(False), "UnsqueezeBackward0", "CopySlices"), ((FLAG, ROWS), "UnsqueezeBackward0", "CopySlices"),
    ((ROWS, FLAG), "UnsqueezeBackward0", "CopySlices"), ((..., True), "UnsqueezeBackward0", "CopySlices")], ids=repr)
def test_an_index_with_arrays_selects_from_the_view_of_its_other_parts(index, read, written):
    """Recorded with torch 2.13: integers, slices, None and single booleans are a view, and the arrays are an index into it."""
    x, w = symgrad.ones(3, 4, requires_grad=True), symgrad.tensor(2.0, requires_grad=True)
    y = x[index]
    assert y.grad_fn.name() == "IndexBackward0" and y.grad_fn.next_functions[0][0].name().rpartition("::")[2] == read
    assert symgrad.autograd.grad(y.sum(), x)[0].sum().item() == y.numel()
    z = symgrad.ones(3, 4)
    z[index] = w
    assert z.grad_fn.name().rpartition("::")[2] == written
    assert symgrad.autograd.grad(z.sum(), w)[0].item() == y.numel() == z.sum().item() - 12


def test_a_view_with_a_hook_is_used_before_it_is_written():
    x = symgrad.ones(4, requires_grad=True)
    base = x * 1
    seen, view = [], base[1:]
    view.register_hook(seen.append)
    before = (view + 1).exp().sum()
    view.add_(1.0)
    (before + (view + 1).exp().sum() + view.exp().sum()).backward()
    e = np.exp(1.0)
    np.testing.assert_allclose(x.grad, [0, *[2 * e**2 + e**3] * 3], rtol=1e-14)
    np.testing.assert_allclose(seen[0], [e**2] * 3, rtol=1e-14)


@pytest.mark.parametrize("square", [lambda t: t * t, lambda t: symgrad.stack([t, t]).prod(0), lambda t: t @ t])
def test_a_stale_view_that_stands_twice_in_a_call_has_one_node(square):
    """By `grad`, by a hook and by retain_grad: 2 x."""
    def written():
        base = symgrad.tensor([1.0, 2.0], requires_grad=True) * 1
        view = base[:]
        base.mul_(3)
        return view

    view = written()
    y = square(view)
    assert symgrad.autograd.grad(y.sum(), view)[0].tolist() == [6.0, 12.0]
    view, told = written(), []
    y = square(view)
    view.retain_grad()
    view.register_hook(told.append)
    y.sum().backward()
    assert view.grad.tolist() == told[0].tolist() == [6.0, 12.0]


def test_ops_of_every_kind_on_a_stale_view():
    ops = {"one": lambda v: v.sin(), "two": lambda v: v * v, "number": lambda v: 2 * v, "linear": lambda v: v.sum(), "product": lambda v: v @ v,
           "general": lambda v: v.clamp(0.0, 9.0), "view": lambda v: v.view(2, 1), "indexed": lambda v: v[[0, 1]],
           "joined": lambda v: symgrad.cat([v, v]), "exp": lambda v: v.exp(), "large": lambda v: v.repeat(200).tanh(),
           "in place": lambda v: v.clone().mul_(v)}
    for name, op in ops.items():
        gradients = []
        for written in (True, False):
            w = symgrad.tensor([0.5, 1.5, 2.5], requires_grad=True)
            base = w * 1
            view = base[:2]
            if written:
                base.mul_(1)
            op(view).sum().backward()
            gradients.append(w.grad.tolist())
        assert gradients[0] == gradients[1], name
        with symgrad.no_grad():
            base.mul_(1)
            assert op(view).grad_fn is None, name
