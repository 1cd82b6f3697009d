"""Views and their bases: lifetime, staleness, interrupted writes; leaves that are reshaped, and indices that are written, before the backward."""

import gc
import weakref

import numpy as np
import pytest

import symgrad
from symgrad.nn import functional
from symgrad.nn import functional as F
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


def assigned(x, i):
    y = x.clone()
    y[i] = y[i] * 2
    return y


def added(x, i):
    y = x.clone()
    y[i] += 1
    return y * y


INTEGERS = {
    "x[i]": lambda x, i: x[i], "x[:, i]": lambda x, i: x[:, i], "x[i, i]": lambda x, i: x[i, i], "x[i] = ...": assigned, "x[i] += ...": added,
    "x.index_put": lambda x, i: x.index_put((i,), x[:2] * 2), "index_select": lambda x, i: x.index_select(0, i),
    "gather": lambda x, i: x.gather(0, i[:, None]), "take": lambda x, i: x.take(i), "take_along_dim": lambda x, i: x.take_along_dim(i[:, None], 0),
    "scatter": lambda x, i: x.scatter(0, i[:, None], x * 2), "scatter_add": lambda x, i: x.scatter_add(0, i[:, None], x * 2),
    "scatter_reduce": lambda x, i: x.scatter_reduce(0, i[:, None], x, "prod"), "index_add": lambda x, i: x.index_add(0, i, x * 3),
    "index_copy": lambda x, i: x.index_copy(0, i, x * 3), "index_fill": lambda x, i: x.index_fill(1, i, 3.0),
    "index_reduce": lambda x, i: x.index_reduce(0, i, x, "prod"), "repeat_interleave": lambda x, i: x.repeat_interleave(i, 0),
    "embedding": lambda x, i: F.embedding(i, x), "embedding_bag": lambda x, i: F.embedding_bag(i[None], x), "nll_loss": lambda x, i: F.nll_loss(x, i),
    "cross_entropy": lambda x, i: F.cross_entropy(x, i), "multi_margin_loss": lambda x, i: F.multi_margin_loss(x, i),
}
MASKS = {
    "x[m]": lambda x, m: x[m], "x[m] = ...": assigned, "masked_select": lambda x, m: x.masked_select(m),
    "masked_fill": lambda x, m: x.masked_fill(m, 1.0), "masked_scatter": lambda x, m: x.masked_scatter(m, x * 2),
    "index_put": lambda x, m: x.index_put((m,), x[0] * 2),
}


def gradient(function, index, write):
    x = symgrad.arange(6.0).reshape(2, 3).sin().requires_grad_()
    y = function(x, index)
    if write:
        index[1] = index[0]
    weights = symgrad.arange(1.0, 1 + y.numel()).reshape(y.shape)
    return symgrad.autograd.grad((y * weights).sum(), x)[0].tolist()


@pytest.mark.parametrize("function, make", [*((f, lambda: symgrad.tensor([0, 1])) for f in INTEGERS.values()),
                                            *((f, lambda: symgrad.tensor([[True] * 3, [False] * 3])) for f in MASKS.values()),
                                            (INTEGERS["x[i]"], lambda: np.array([0, 1])), (INTEGERS["x[i] = ..."], lambda: np.array([0, 1])),
                                            (MASKS["x[m]"], lambda: np.array([[True] * 3, [True, False, False]]))],
                         ids=[*INTEGERS, *MASKS, "x[array]", "x[array] = ...", "x[array of booleans]"])
def test_the_gradient_is_that_of_the_elements_that_were_selected(function, make):
    assert gradient(function, make(), True) == gradient(function, make(), False)


OPS = {
    "cat": lambda x, y: symgrad.cat([x, y]), "stack": lambda x, y: symgrad.stack([x, y]), "mm": lambda x, y: x @ y.t(),
    "mv": lambda x, y: x @ y[0], "index_select": lambda x, y: x.index_select(0, symgrad.tensor([0, 1, 0])), "add": lambda x, y: x + y,
    "scaled": lambda x, y: x * 2.3, "sum": lambda x, y: x.sum(0), "mean": lambda x, y: x.mean(), "reshape": lambda x, y: x.reshape(-1) * 1.7,
    "item": lambda x, y: x[0] * 1.7, "index": lambda x, y: x[[0, 1]], "where": lambda x, y: symgrad.where(x > 0, x, y),
    "cumsum": lambda x, y: x.cumsum(0), "flip": lambda x, y: x.flip(0), "pad": lambda x, y: functional.pad(x, (1, 1)),
    "linear": lambda x, y: functional.linear(x, y), "einsum": lambda x, y: symgrad.einsum("ij,kj->ik", x, y), "tril": lambda x, y: x.tril(),
    "repeat": lambda x, y: x.repeat(2, 1), "split": lambda x, y: x.split(1)[0] * 1.7, "masked_fill": lambda x, y: x.masked_fill(y > 1, 0.3),
    "scatter_add": lambda x, y: x.scatter_add(0, symgrad.tensor([[0, 1, 0]]), y), "lerp": lambda x, y: symgrad.lerp(x, y, 0.3),
    "avg_pool1d": lambda x, y: functional.avg_pool1d(x, 2), "sin": lambda x, y: x.sin(), "clone": lambda x, y: x.clone(),
    "embedding": lambda x, y: functional.embedding(symgrad.tensor([0, 1]), x), "unfold": lambda x, y: x.unfold(1, 2, 1) * 1.7,
    "softmax": lambda x, y: x.softmax(0),
}
CHANGES = {
    "unsqueeze_": lambda x: x.unsqueeze_(0), "t_": lambda x: x.t_(), "transpose_": lambda x: x.transpose_(0, 1),
    "data": lambda x: setattr(x, "data", symgrad.ones(7)), "data of a number": lambda x: setattr(x, "data", symgrad.ones(())),
    "set_": lambda x: x.set_(symgrad.ones(5)), "as_strided_": lambda x: x.as_strided_((4, 2, 3), (0, 3, 1)),
}


def leaves():
    return [symgrad.tensor(v, requires_grad=True) for v in ([[0.3, -1.2, 2.2], [1.1, 0.7, 0.4]], [[1.3, 0.2, -2.0], [0.1, 1.7, 0.9]])]


@pytest.mark.sampled(70)
@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("name", OPS)
def test_gradients_are_those_of_the_former_shape(name, change):
    x, y = leaves()
    OPS[name](x, y).sum().backward()
    expected = [x.grad, y.grad]
    for which in (0, 1):
        pair = leaves()
        out = OPS[name](*pair).sum()
        changed = pair[which]
        with symgrad.no_grad():
            CHANGES[change](changed)
        try:
            out.backward()
        except RuntimeError as error:
            assert "shape" in str(error) or "modified by an inplace operation" in str(error), error
            continue
        for i, leaf in enumerate(pair):
            if expected[i] is None:
                assert leaf.grad is None
            else:
                assert leaf.grad.shape == leaf.shape
                np.testing.assert_allclose(leaf.grad.numpy(), np.broadcast_to(expected[i].numpy(), leaf.shape), rtol=1e-12)


def test_what_is_computed_afterwards_has_the_new_shape():
    x, _ = leaves()
    seen = []
    x.register_hook(lambda g: seen.append(tuple(g.shape)))
    before = (x * 2.3).sum()
    with symgrad.no_grad():
        x.unsqueeze_(0)
    (x * 1.7).sum().backward()
    before.backward()
    assert x.grad.shape == (1, 2, 3) and seen == [(1, 2, 3), (2, 3)]
    np.testing.assert_allclose(x.grad.numpy(), np.full((1, 2, 3), 4.0), rtol=1e-12)
    with symgrad.no_grad():
        x.squeeze_(0)
        x.t_()
    with pytest.raises(RuntimeError, match=r"a gradient has shape \[1, 2, 3\], but its leaf has shape \[3, 2\] now"):
        leaf = symgrad.tensor([[[0.3, 1.1, 0.2], [0.1, 0.7, 0.9]]], requires_grad=True)
        out = (leaf * 2.3).sum()
        with symgrad.no_grad():
            leaf.squeeze_(0)
            leaf.t_()
        out.backward()
