"""Ties, weights and empty indices of scatters and histograms. Calls of one line are in `calls/scattered.txt`."""


import pytest

import symgrad

torch = pytest.importorskip("torch")


def test_ties_share_the_gradient_and_zeros_have_the_gradient_of_the_product():
    x, s = symgrad.tensor([1.0, 3.0], requires_grad=True), symgrad.tensor([3.0, 3.0, 0.0], requires_grad=True)
    y = x.scatter_reduce(0, symgrad.tensor([1, 1, 0]), s, "amax")
    y[1].backward()
    assert x.grad.tolist() == pytest.approx([0, 1 / 3]) and s.grad.tolist() == pytest.approx([1 / 3, 1 / 3, 0])
    product = symgrad.func.hessian(lambda t: t[:1].scatter_reduce(0, symgrad.tensor([0, 0]), t[1:], "prod").sum())
    assert product(symgrad.tensor([0.0, 2.0, 0.0])).tolist() == [[0, 0, 2], [0, 0, 0], [2, 0, 0]]


def test_a_histogram_is_differentiable_by_the_weights():
    x, w = symgrad.tensor([0.1, 0.2, 0.9]), symgrad.tensor([1.0, 2.0, 3.0], requires_grad=True)
    hist = symgrad.histogram(x, 2, range=(0.0, 1.0), weight=w).hist
    assert symgrad.autograd.grad(hist[0], w)[0].tolist() == [1, 1, 0]


@pytest.mark.parametrize("largest", [True, False])
def test_of_equal_elements_the_first_are_chosen(largest):
    """Torch promises no order of them, and has another one for other sizes; the values are the same."""
    numbers = [2.0, 1.0, 2.0, 1.0, 2.0, 3.0, 1.0, 3.0]
    order = sorted(range(8), key=lambda i: (-numbers[i] if largest else numbers[i], i))
    e, t = symgrad.tensor(numbers), torch.tensor(numbers)
    for k in range(1, 9):
        values, indices = symgrad.topk(e, k, largest=largest)
        assert indices.tolist() == order[:k] and values.tolist() == torch.topk(t, k, largest=largest)[0].tolist()
    assert symgrad.sort(e, descending=largest)[1].tolist() == order == torch.sort(t, descending=largest, stable=True)[1].tolist()
