"""An index that is written after it was used: the gradient is that of the elements that were selected."""

import numpy as np
import pytest

import symgrad
from symgrad.nn import functional as F


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
