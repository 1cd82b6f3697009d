"""Recorded programs printed as source of NumPy, as LaTeX and as graphs: the source computes what the function does."""

import numpy as np
import pytest

import symgrad
from symgrad.nn import functional as F
from symgrad.program.program import ArraySpec, Program, Step

X = np.array([[0.1, 0.2, 0.3], [1.0, 2.0, -3.0]])
W = np.arange(12.0).reshape(3, 4) / 10 - 0.5
V = np.array([0.5, -1.5, 2.0])
IDS = symgrad.tensor([2, 0, 2, 1, 1])

FUNCTIONS = {
    "chain": (lambda x: (x.sin() * x.exp() + 2.0).tanh().sigmoid() / 3.0, X),
    "rare": (lambda x: F.softplus(x, 2.0) + F.logsigmoid(x) + symgrad.sinc(x) + symgrad.exp2(x) + (x * x + 1).log2() + x.abs().rsqrt(), X),
    "net": (lambda x, w: ((x @ w).tanh() ** 2).sum(), X, W),
    "reductions": (lambda x: (x.sum(0) + x.mean() + x.amax(0) - x.amin() + x.std(0) + x.norm() + x.logsumexp(1).sum(), x.prod(), x.argmax(1)), X),
    "indexing": (lambda x, v: x[:, IDS].sum(1) * x[1, :2] + v[None, 1:].sum() + x[0, IDS[:2]] + x[IDS[1:2]].sum(), X, V),
    "where": (lambda x, v: symgrad.where((x > v) & (x != 0.0), x, symgrad.maximum(v * 2.0, x)).sum(1) + symgrad.where(x > 0, 1.0, 0.0).sum(), X, V),
    "broadcast": (lambda x, v: (x[:, None, :] - v[None, :, None]).square().reshape(2, 9).sum(1, keepdim=True).expand(2, 4), X, V),
    "cross entropy": (lambda x: F.cross_entropy(x, symgrad.tensor([0, 2])), X),
    "structure": (lambda x, w: (symgrad.cat([x, x.flip(0)]).cumsum(0), symgrad.stack([x, x.roll(1, 1)], 1), (x @ w).tril() + (x @ w).triu(1)), X, W),
    "products": (lambda x, w: (symgrad.einsum("ij,jk->ki", x, w), symgrad.outer(x[0], x[1]), x[0].dot(x[1]), (x.T @ x).diagonal(), x.T), X, W),
    "writes": (lambda x, v: (x.index_add(1, symgrad.tensor([2, 0, 2, 1, 1]), x[:, [0, 1, 1, 2, 0]]).sum(0)
                              + x.index_fill(1, symgrad.tensor([2]), 0.5).sum(0) * v), X, V),
    "windows": (lambda x: x.unfold(1, 2, 1).amax(2) + x.softmax(1)[:, :2] + x.log_softmax(0)[:, 1:], X),
    "scalars": (lambda x: x.sum() * 2.0 + x[0, 0].exp().clamp(min=0.5).atan2(x[1, 1]), X),
}


def _values(result):
    if isinstance(result, (tuple, list)):
        return [y for part in result for y in _values(part)]
    return [np.asarray(result)]


CASES = [(name, derivative) for name in FUNCTIONS for derivative in ("value", "gradient")] + [("net", "hessian"), ("cross entropy", "hessian")]


def _recorded(name, derivative, dtype=np.float64):
    f, *args = FUNCTIONS[name]
    args = [x.astype(dtype) for x in args]
    tensors = [symgrad.tensor(x) for x in args]
    if derivative == "value":
        compiled = symgrad.compile(f)
        found = compiled(*tensors)
    else:
        compiled = symgrad.compile(lambda *xs: sum(y.square().sum() if y.dtype.is_floating_point else 0.0 for y in symgrad_leaves(f(*xs))),
                                   argnums=tuple(range(len(args))))
        found = getattr(compiled, derivative)(*tensors)
    assert len(compiled.report.programs) == 1, str(compiled.report)
    return compiled.program(derivative), args, [y.numpy() for y in symgrad_leaves(found)]


def symgrad_leaves(tree):
    return [leaf for part in tree for leaf in symgrad_leaves(part)] if isinstance(tree, (tuple, list)) else [tree]


def check_printed(printer, convert, name, derivative, dtype=np.float64):
    program, args, expected = _recorded(name, derivative, dtype)
    source = printer(program, name="f")
    space = {}
    exec(compile(source, "<printed>", "exec"), space)
    captured = [IDS.numpy()] * (len(program.inputs) - len(args))
    got = _values(space["f"](*map(convert, args + captured)))
    assert len(got) == len(expected)
    for y, z in zip(got, expected):
        assert y.shape == z.shape and y.dtype == z.dtype, source
        np.testing.assert_allclose(y, z, rtol=1e-12 if dtype is np.float64 else 1e-4, atol=1e-13 if dtype is np.float64 else 1e-5, err_msg=source)


@pytest.mark.parametrize("name, derivative", CASES)
def test_numpy(name, derivative):
    check_printed(symgrad.to_python, np.array, name, derivative)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_float32(name):
    check_printed(symgrad.to_python, np.array, name, "value", np.float32)


@pytest.fixture
def energy():
    f = symgrad.compile(lambda x, w: ((x @ w).tanh() ** 2).sum() / 2.0)
    f(symgrad.tensor(X), symgrad.tensor(W))
    return f


def test_the_text(energy):
    assert symgrad.to_python(energy, name="energy", names=["x", "w"]) == """import numpy as np


def energy(x, w):
    return np.sum(np.tanh(x @ w)**2) / 2.0
"""
    energy.gradient(symgrad.tensor(X), symgrad.tensor(W))
    assert symgrad.to_torch(energy.program("gradient"), names=["x", "w"]) == """import torch


def _sech(x):
    z = torch.exp(-torch.abs(x))
    return 2 * z / (1 + z * z)


def f(x, w):
    v1 = x @ w
    return torch.tanh(v1) * _sech(v1)**2 @ torch.permute(w, (1, 0))
"""


def test_latex(energy):
    assert symgrad.to_latex(energy, name="E", names=["x", "w"]) == r"""\begin{aligned}
v_{1} &= x \, w \\
v_{2} &= \tanh\left(v_{1}\right) \\
v_{3} &= v_{2}^{2} \\
v_{4} &= \operatorname{sum}\left(v_{3}, (0, 1)\right) \\
E &= \frac{v_{4}}{2.0}
\end{aligned}"""
    scaled = symgrad.compile(lambda x: x.abs() * -2.0 + x[0])
    scaled(symgrad.ones(2))
    assert symgrad.to_latex(scaled).splitlines()[2:4] == [r"v_{2} &= \left(-2.0\right) \, v_{1} \\",
                                                          r"v_{3} &= \operatorname{getitem}\left(x_{0}, 0\right) \\"]


def test_latex_puts_numbers_with_an_exponent_in_parentheses():
    f = symgrad.compile(lambda x: 1e-30 ** x)
    f(symgrad.ones(2))
    assert symgrad.to_latex(f).splitlines()[1] == r"f &= \left(1.0 \cdot 10^{-30}\right)^{x_{0}}"


def test_a_long_result_is_returned_without_a_name():
    f = symgrad.compile(lambda x: (x.sin() + x.cos() + x.exp() + x.tanh() + x.sigmoid()) * (x.atan() - x.sinh()))
    f(symgrad.ones(2))
    assert "return (np.sin(x0)" in symgrad.to_python(f)


def test_dot(energy):
    text = symgrad.to_dot(energy, names=["x", "w"])
    assert text.startswith("digraph program {") and r'0 [label="x\nfloat64[2, 3]"]' in text and r'7 [label="div\nfloat64[]", peripheries=2]' in text
    assert [line.strip() for line in text.splitlines() if "->" in line] == ["0 -> 3", "1 -> 3", "3 -> 4", "4 -> 5", "5 -> 6", "6 -> 7", "2 -> 7"]


def test_values_that_choose_a_branch_are_no_results():
    f = symgrad.compile(lambda x: x.sin() if x.sum() > 0 else x.cos())
    f(symgrad.ones(2))
    assert len(f.program().outputs) == 1
    assert "sum" not in symgrad.to_python(f) + symgrad.to_latex(f) + symgrad.to_dot(f)


def test_captured_tensors_are_inputs():
    w = symgrad.ones(3, requires_grad=True)
    f = symgrad.compile(lambda x: x * w)
    f(symgrad.ones(3))
    assert symgrad.to_python(f, names=["x", "w"]).endswith("def f(x, w):\n    return x * w\n")


def test_errors(energy):
    new = symgrad.compile(lambda x: x.sin())
    with pytest.raises(RuntimeError, match=r"nothing was recorded for 'gradient': call <lambda>.gradient\(...\) first"):
        new.program("gradient")
    with pytest.raises(ValueError, match="'slope' is not one of value, gradient"):
        new.program("slope")
    for names, message in ((["x"], "2 inputs, and there are 1 names"), (["x", "x"], "'x'"), (["x", "1\nimport os"], "distinct identifiers"),
                           (["x", "np"], "reserved"), (["x", "_sech"], "'_sech'")):
        with pytest.raises(ValueError, match=message):
            symgrad.to_python(energy, names=names)
    with pytest.raises(TypeError, match="f.program"):
        symgrad.to_python(energy.program(), derivatives=1)
    with pytest.raises(TypeError, match="names are for recorded programs"):
        symgrad.to_python(lambda x: x, names=["x"])
    with pytest.raises(TypeError, match="backend='c'"):
        symgrad.to_c(energy)
    with pytest.raises(TypeError, match="expected a recorded program"):
        symgrad.to_dot(3)
    spec = ArraySpec((2,), np.dtype(float))
    with pytest.raises(TypeError, match=r"the word 'sinc_derivative' .* cannot be written in PyTorch"):
        symgrad.to_torch(Program([spec], [], [Step("sinc_derivative", (0,), (7,), *spec)], [1]))
    with pytest.raises(TypeError, match=r"cannot be written in NumPy"):
        symgrad.to_python(Program([spec], [], [Step("einsum", (0,), ('i->i", x0) + evil("',), *spec)], [1]))


def test_large_constants():
    def program(n):
        spec = ArraySpec((n,), np.dtype(float))
        return Program([spec], [np.arange(float(n))], [Step("add", (0, 1), (), *spec)], [2])

    assert "C1 = np.array([0.0, 1.0, 2.0, 3.0, 4.0])\n\n\ndef f(x0):\n    return x0 + C1" in symgrad.to_python(program(5))
    with pytest.raises(ValueError, match="too large for source; make it an argument"):
        symgrad.to_python(program(200_000))


def test_a_compiled_function_with_shapes_is_still_a_formula():
    assert "np.sin(x)" in symgrad.to_python(symgrad.compile(lambda x: x.sin()), (), name="f")
