"""Arguments at the edge: bounds beyond the range of an integer dtype, weights for each sample of a bag, and local_response_norm of integers."""

import numpy as np
import pytest
import torch

import symgrad

DTYPES = ("uint8", "int8", "int16", "int32", "int64")


@pytest.mark.parametrize("low, high", [(-1, None), (None, 300), (-1, 5), (-70_000, 70_001), (3, 2**40), (-2**40, 90), (None, None)])
@pytest.mark.parametrize("dtype", DTYPES)
def test_bounds_beyond_the_dtype_bound_nothing(dtype, low, high):
    """torch wraps negative bounds around for uint8, so that clamp(-1) is 255, and refuses the others."""
    if low is high is None:
        return
    x = np.array([0, 3, 100, 127 if dtype == "int8" else 200]).astype(dtype)
    found = symgrad.clamp(symgrad.tensor(x), low, high)
    assert str(found.dtype) == f"torch.{dtype}" and found.tolist() == np.clip(x.astype(object), low, high).tolist()
    assert symgrad.compile(lambda x: symgrad.clamp(x, low, high))(symgrad.tensor(x)).tolist() == found.tolist()
    ends = np.iinfo(dtype)
    if (low is None or ends.min <= low) and (high is None or high <= ends.max):
        assert found.tolist() == torch.clamp(torch.tensor(x), low, high).tolist()


@pytest.mark.parametrize("call", [lambda x: x.clamp(min=300), lambda x: x.clamp(max=-1), lambda x: symgrad.clamp_min(x, 256),
                                  lambda x: x.clamp_(max=-7)])
def test_bounds_without_an_answer_in_the_dtype_are_refused(call):
    with pytest.raises(RuntimeError, match=r"clamp\w*: (min|max)=-?\d+ cannot be converted to torch.uint8 without overflow"):
        call(symgrad.tensor([0, 3, 200], dtype=symgrad.uint8))


@pytest.mark.parametrize("words", [{}, {"padding_idx": 1}, {"include_last_offset": True}])
def test_bags_with_weights_for_each_sample_of_a_matrix(words):
    found = []
    for t in (symgrad, torch):
        weight = t.tensor(np.arange(12.0).reshape(4, 3) / 7, requires_grad=True)
        each = t.tensor(np.array([[0.3, -0.7], [1.1, 1 / 3], [0.6, 2.3]]), requires_grad=True)
        out = t.nn.functional.embedding_bag(t.tensor([[0, 1], [2, 3], [1, 1]]), weight, mode="sum", per_sample_weights=each, **words)
        (out ** 2).sum().backward()
        found.append([x.detach().numpy() for x in (out, weight.grad, each.grad)])
    for ours, theirs in zip(*found):
        np.testing.assert_allclose(ours, theirs, rtol=1e-12)


@pytest.mark.parametrize("shape", [(2, 3, 4), (1, 4, 3, 2), (1, 3, 2, 2, 2)])
@pytest.mark.parametrize("size", [1, 2, 3])
def test_local_response_norm_of_integers(shape, size):
    x = np.arange(np.prod(shape)).reshape(shape) * 3 % 17 - 5
    ours, theirs = (t.nn.functional.local_response_norm(t.tensor(x), size, alpha=1 / 3, beta=0.7, k=1.3).numpy() for t in (symgrad, torch))
    np.testing.assert_allclose(ours, theirs, rtol=1e-6)  # torch's default dtype is float32
    for t in (symgrad, torch):
        with pytest.raises(NotImplementedError):
            t.nn.functional.local_response_norm(t.tensor(x, dtype=t.int32), size)
