"""A leaf that gets another shape in place between forward and backward.

Its gradient is broadcast to the new shape, as in torch, or a RuntimeError says why not.
"""

import numpy as np
import pytest

import symgrad
from symgrad.nn import functional

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
