"""Reductions at an index, elements put at positions, renorm in place and histograms, beside torch's in the same process."""

import itertools

import pytest

import symgrad

torch = pytest.importorskip("torch")

ROWS = [[0.5, -1.25, 2.0, 0.75], [1.5, 3.0, -0.5, 0.25], [-2.0, 0.125, 1.0, 4.0]]
SENT = [[1.75, -0.375, 2.5, 0.625], [0.875, 2.25, -3.5, 1.125], [-1.5, 0.0625, 3.25, -0.75]]
CALLS = [
    *(f"{{m}}.scatter_reduce(x, {dim}, {{m}}.tensor({index}), s[{part}], '{reduce}', include_self={own})"  # torch has no gradient of larger sources
      for reduce, own, (dim, index, part) in itertools.product(("sum", "prod", "mean", "amax", "amin"), (True, False), (
          (0, [[0, 0, 2, 1], [0, 1, 2, 1]], ":2"), (1, [[0, 0, 1], [3, 3, 3], [2, 1, 0]], ":, :3"), (-1, [[3]], ":1, :1")))),
    *(f"{{m}}.index_reduce(x, {dim}, {{m}}.tensor({index}), s[{part}], '{reduce}', include_self={own})" for reduce, own, (dim, index, part) in
      itertools.product(("prod", "mean", "amax", "amin"), (True, False), ((0, [2, 0, 2], ":"), (1, [1, 1, 3], ":, :3")))),
    "x.scatter_reduce(0, {m}.zeros(0, 4, dtype={m}.int64), s[:0], 'amax')", "x[0, 0].scatter_reduce(0, {m}.tensor([0, 0]), s[0, :2], 'prod')",
    "(x * 1).scatter_reduce_(0, {m}.tensor([[0, 0, 2, 1]]), s[:1], 'amax')", "(x * 1).index_reduce_(0, {m}.tensor([1]), s[:1], 'prod')",
    "(x * 1).put_({m}.tensor([0, 7, -1]), s[0, :3])", "(x * 1).put_({m}.tensor([[0, 0]]), s[:1, :2], True)", "(x * 1).renorm_(2, 0, 1.5)",
]
INTEGERS = [
    *(f"i.scatter_reduce(0, {{m}}.tensor([[0, 0, 1], [0, 1, 1]]), j, '{reduce}', include_self={own})"
      for reduce in ("sum", "prod", "mean", "amax", "amin") for own in (True, False)),
    "i.index_reduce(1, {m}.tensor([2, 2, 0]), j, 'mean')", "i.index_reduce(1, {m}.tensor([2, 2, 0]), j, 'amin', include_self=False)",
]
WRONG = [
    "x.scatter_reduce(0, {m}.tensor([[0, 0, 2, 1]]), s, 'median')", "x.scatter_reduce(0, {m}.tensor([[3]]), s, 'sum')",
    "x.scatter_reduce(0, {m}.tensor([0]), s, 'sum')", "x.scatter_reduce(0, {m}.tensor([[0, 0, 0, 0, 0]]), s, 'sum')",
    "x.index_reduce(0, {m}.tensor([0, 1]), s, 'prod')", "x.index_reduce(0, {m}.tensor([0, 1, 2]), s, 'sum')",
    "x.index_reduce(0, {m}.tensor([[0, 1, 2]]), s, 'prod')", "(x * 1).put_({m}.tensor([12]), s[0, :1])", "(x * 1).put_({m}.tensor([0, 1]), s[0, :1])",
    "{m}.histogram(x, 0)", "{m}.histogram(x, 3, range=(2.0, 1.0))", "{m}.histogram(i, 3)", "{m}.histogram(x, 3, weight=s[0])",
    "{m}.histogramdd(x, [2, 3])", "{m}.histogramdd(x[0], 2)", "{m}.histogramdd(x, 2, range=(0.0, 1.0))",
]
HISTOGRAMS = [
    "{m}.histogram(x, 4)", "{m}.histogram(x, 3, range=(-1.0, 2.0))", "{m}.histogram(x, {m}.tensor([-2.0, 0.5, 0.75, 4.0], dtype={m}.float64))",
    "{m}.histogram(x, 4, weight=s, density=True)", "{m}.histogram(x * 0 + 1, 3)", "{m}.histogram(x[:0], 2)", "x.histogram(5, density=True)",
    "{m}.histogramdd(x, 2)", "{m}.histogramdd(x[:, :2], [2, 3], range=(-2.0, 2.0, -1.0, 3.0), density=True)",
    "{m}.histogramdd(x[:, :2], [{m}.tensor([-3.0, 0.0, 2.0], dtype={m}.float64), {m}.tensor([-2.0, 1.0], dtype={m}.float64)], weight=s[:, 0])",
]


def names_of(m, grad):
    real = {"dtype": m.float64, "requires_grad": grad}
    return {"x": m.tensor(ROWS, **real), "s": m.tensor(SENT, **real), "i": m.tensor([[5, -3, 2], [7, 1, -4]]),
            "j": m.tensor([[4, -6, 3], [-2, 5, 9]]), "symgrad": symgrad, "torch": torch}


def evaluate(text, m, grad=False):
    names = names_of(m, grad)
    return eval(text.format(m=m.__name__), names), names


@pytest.mark.filterwarnings("ignore:.*reduce.*beta:UserWarning")
@pytest.mark.parametrize("text", CALLS)
def test_values_and_gradients(text):
    results = []
    for m in (symgrad, torch):
        y, names = evaluate(text, m, True)
        weights = m.arange(1.0, y.numel() + 1, dtype=m.float64).reshape(y.shape)
        results.append([y, *m.autograd.grad((y * weights).sum(), (names["x"], names["s"]), materialize_grads=True)])
    for ours, theirs in zip(*results):
        assert tuple(ours.shape) == tuple(theirs.shape)
        torch.testing.assert_close(torch.tensor(ours.detach().numpy()), theirs.detach(), rtol=1e-13, atol=1e-14)


@pytest.mark.filterwarnings("ignore:.*reduce.*beta:UserWarning")
@pytest.mark.parametrize("text", INTEGERS)
def test_integers(text):
    ours, theirs = (evaluate(text, m)[0] for m in (symgrad, torch))
    assert ours.tolist() == theirs.tolist() and str(ours.dtype) == str(theirs.dtype)


@pytest.mark.filterwarnings("ignore:.*reduce.*beta:UserWarning")
@pytest.mark.parametrize("text", WRONG)
def test_what_is_refused(text):
    with pytest.raises((RuntimeError, IndexError, NotImplementedError)) as theirs:
        evaluate(text, torch)
    with pytest.raises(theirs.type):
        evaluate(text, symgrad)


def test_ties_share_the_gradient_and_zeros_have_the_gradient_of_the_product():
    x, s = symgrad.tensor([1.0, 3.0], requires_grad=True), symgrad.tensor([3.0, 3.0, 0.0], requires_grad=True)
    y = x.scatter_reduce(0, symgrad.tensor([1, 1, 0]), s, "amax")
    y[1].backward()
    assert x.grad.tolist() == pytest.approx([0, 1 / 3]) and s.grad.tolist() == pytest.approx([1 / 3, 1 / 3, 0])
    product = symgrad.func.hessian(lambda t: t[:1].scatter_reduce(0, symgrad.tensor([0, 0]), t[1:], "prod").sum())
    assert product(symgrad.tensor([0.0, 2.0, 0.0])).tolist() == [[0, 0, 2], [0, 0, 0], [2, 0, 0]]


@pytest.mark.parametrize("text", HISTOGRAMS)
def test_histograms(text):
    ours, theirs = (evaluate(text, m)[0] for m in (symgrad, torch))
    assert type(ours).__name__ == ("histogramdd" if "dd(" in text else "histogram")
    assert isinstance(ours.bin_edges, tuple) == ("dd(" in text)
    edges = (zip(ours.bin_edges, theirs.bin_edges) if "dd(" in text else [(ours.bin_edges, theirs.bin_edges)])
    for a, b in [(ours.hist, theirs.hist), *edges]:
        torch.testing.assert_close(torch.tensor(a.numpy()), b, rtol=1e-13, atol=1e-15, equal_nan=True)


def test_a_histogram_is_differentiable_by_the_weights():
    x, w = symgrad.tensor([0.1, 0.2, 0.9]), symgrad.tensor([1.0, 2.0, 3.0], requires_grad=True)
    hist = symgrad.histogram(x, 2, range=(0.0, 1.0), weight=w).hist
    assert symgrad.autograd.grad(hist[0], w)[0].tolist() == [1, 1, 0]


@pytest.mark.parametrize("name, rest", [("scatter", ()), ("scatter_add", ()), ("scatter_reduce", ("sum",)), ("scatter_reduce", ("amax",)),
                                        ("index_add", ()), ("index_copy", ()), ("index_reduce", ("prod",))])
def test_an_index_without_elements_keeps_the_graph_of_the_source(name, rest):
    found = []
    for library in (torch, symgrad):
        x, source = (library.ones(n, dtype=library.float64, requires_grad=True) for n in (3, 0))
        y = getattr(x, name)(0, library.zeros(0, dtype=library.int64), source, *rest)
        found.append([y.tolist(), y._is_view(), *(g.tolist() for g in library.autograd.grad(y.sum(), (x, source)))])
    assert found[0] == found[1] == [[1.0] * 3, False, [1.0] * 3, []]
