"""Every op by itself, value and gradient: with ten elements beside torch, with 100,000 beside NumPy by hand, and products of matrices.

The calls are the usages in the declarations of the ops, with all arguments made beforehand; those of `nn.functional`, `linalg` and `fft` stand in
`calls.txt`. In all of them `x` and `y` are vectors of ten numbers inside the domain, `a` and `b` matrices, `s` a symmetric positive definite one,
`t` signs, `k` and `l` class numbers and `i` positions.
"""

import ast
import functools
import re
import statistics
import warnings
from pathlib import Path

import numpy as np

import symgrad
from symgrad.carriers.lapack import forget
from symgrad.engine.traced import FUNCTIONS
from tests.benchmarks.by_hand import BY_HAND
from tests.benchmarks.table import Row, compare, ratio, spell, torch_one_thread

INTERVALS = ((-3.0, 3.0), (0.1, 3.0), (-0.9, 0.9), (0.1, 0.9), (1.1, 3.0), (0.1, 0.3))
FURTHER = Path(__file__).with_name("calls.txt").read_text(encoding="utf-8").split()  # of ops without a usage, and of operators


class Call:
    """A call, as a text over the library `m` and the names of its arguments, and the op that it calls, None for one outside of the registry."""

    def __init__(self, text, op=None):
        self.text, self.op = text, op

    def __repr__(self):
        return re.sub(r"\bm\.(nn\.functional\.)?", "", self.text)


def calls():
    """Every call: the usage of each public op with a derivative, and the calls of an elementwise one with as many tensors as it takes."""
    seen = set()
    for name, op in {function.op.name: function.op for function in FUNCTIONS.values()}.items():
        if not op.differentiable:
            continue
        plain = f"m.{name}({', '.join('xyz'[:op.arity or 1])})"
        texts = [op.docs.usage.replace("symgrad.", "m.")] if op.docs.usage else []
        for text in texts if op.kind != "elementwise" or op.parameters else [plain, *texts]:
            seen.add(re.sub(r"\s", "", text))
            yield Call(text, op)
    yield from (Call(text) for text in FURTHER if text not in seen)


def interval(op, i=0):
    """Bounds of ordinary numbers inside the domain of an argument."""
    if op is None or not op.domain:
        return (-3.0, 3.0) if op is None else (0.1, 0.9)
    domain = op.domain[min(i, len(op.domain) - 1)]
    return next(((low, high) for low, high in INTERVALS if all(float(v) in domain for v in np.linspace(low, high, 31))), (0.1, 0.9))


def _arguments(op, n):
    """The arguments by name, vectors of n elements."""
    rng, columns = np.random.default_rng(0), max(3, n // 2)
    found = {name: rng.uniform(*interval(op, i), n) for i, name in enumerate("xyz")}
    found |= {name: rng.uniform(-3, 3, (2, columns)) for name in "ab"}
    square = rng.uniform(-1, 1, (3, 3))
    return {**found, "s": square @ square.T + np.eye(3), "t": np.resize([1.0, -1.0], n), "k": np.array([2, 0]),
            "l": np.tile([[2, 0, -1], [1, -1, 0]], columns)[:, :columns], "i": np.array([0, 2, 2, 7])}


class _Library:
    """torch or symgrad, in which the functions of `special` and `nn.functional` are found without these words."""

    def __init__(self, m):
        self._m = m

    def __getattr__(self, name):
        return next(getattr(place, name) for place in (self._m, self._m.special, self._m.nn.functional) if hasattr(place, name))


def _leaf(m, value, leaves):
    """A value with each tensor of floats in it a leaf that requires grad."""
    if type(value) in (list, tuple):
        return type(value)([_leaf(m, each, leaves) for each in value])
    if isinstance(value, m.Tensor):
        value = value.detach().clone()
        if value.is_floating_point() or value.is_complex():
            leaves.append(value.requires_grad_())
    return value


def _main(tree):
    """The outermost call or index of an expression: what is behind it takes parts of its result."""
    inner = tree
    while isinstance(inner, (ast.Attribute, ast.Subscript)):
        inner = inner.value
    return inner if isinstance(inner, ast.Call) else tree


def bound(m, call, n=10):
    """The call in one library, as a function without arguments, and its leaves."""
    names = {name: m.tensor(x) for name, x in _arguments(call.op, n).items()}
    space, leaves, kept = {"m": _Library(m), **names}, [], {}

    def hold(node):
        if isinstance(node, ast.Constant):
            return node
        name = f"given{len(kept)}"
        value = eval(compile(ast.Expression(ast.fix_missing_locations(node)), "usage", "eval"), space)
        kept[name] = value if value is names["t"] else _leaf(m, value, leaves)
        return ast.Name(name, ast.Load())

    tree = ast.parse(call.text, mode="eval")
    main = _main(tree.body)
    if isinstance(main, ast.Call):
        main.args = [ast.Starred(hold(each.value), ast.Load()) if isinstance(each, ast.Starred) else hold(each) for each in main.args]
        main.keywords = [ast.keyword(each.arg, hold(each.value)) for each in main.keywords]
        if isinstance(main.func, ast.Attribute) and isinstance(main.func.value, ast.Name) and main.func.value.id != "m":
            main.func.value = hold(main.func.value)
        else:
            kept["function"] = eval(compile(ast.Expression(main.func), "usage", "eval"), space)
            main.func = ast.Name("function", ast.Load())
    else:
        main.slice = hold(main.slice) if not isinstance(main.slice, (ast.Slice, ast.Tuple)) else main.slice
        main.value = hold(main.value)
    body = ast.fix_missing_locations(tree)
    return eval(f"lambda: {ast.unparse(body)}", kept), leaves


def results(m, found):
    """The tensors of a result that have a gradient."""
    if isinstance(found, m.Tensor):
        return [found] if found.requires_grad else []
    return [t for each in found for t in results(m, each)] if isinstance(found, (tuple, list)) else []


def step(m, call, n=10):
    """The call forward and backward, with ones as the cotangents; None for one without a derivative. No matrix was decomposed before."""
    function, leaves = bound(m, call, n)
    outs = results(m, function())
    if not outs or not leaves:
        return None
    ones = [m.ones_like(out.detach()) for out in outs]
    single = isinstance(function(), m.Tensor)

    def once():
        forget()
        for leaf in leaves:
            leaf.grad = None
        function().backward(ones[0])
        return [leaf.grad for leaf in leaves]

    def several():
        forget()
        for leaf in leaves:
            leaf.grad = None
        m.autograd.backward(results(m, function()), ones)
        return [leaf.grad for leaf in leaves]

    return once if single else several


SMALL, LARGE, PRODUCTS = 0.7, 1.5, 1.3  # bars
FEW, MANY, SIDE = (10, 3), 100_000, 500
BLOCK = 0.003  # seconds of one side in a round: there are many ops
AGAIN = 3  # times the rounds for what is above its bar


def _small(torch, call):
    """The call in both libraries; None if torch has no such function, or no derivative of it."""
    for n in FEW:  # some usages of the documentation go with its sizes
        try:
            ours, theirs = step(symgrad, call, n), step(torch, call, n)
            if ours is None or theirs is None:
                return None
            ours(), theirs()
            return ours, theirs
        except (RuntimeError, ValueError, IndexError, StopIteration):
            continue
    return None


def _large(call):
    """The call with many elements, and the same by hand; both give the same numbers, to six digits of the largest."""
    hand = BY_HAND[repr(call)]
    function, leaves = bound(symgrad, call, MANY)
    ours, xs = step(symgrad, call, MANY), [leaf.detach().numpy() for leaf in leaves]
    assert ours is not None
    xs = [xs[0] > 0, *xs] if repr(call).startswith("where") else xs
    value = function().detach().numpy()
    ones = np.ones(value.shape)[()]

    def theirs():
        return hand(*xs, ones)

    for a, b in zip([value, *[g.numpy() for g in ours()]], theirs()):
        assert not np.isfinite(b).all() or np.allclose(a, b, rtol=1e-6, atol=1e-12 + 1e-6 * float(np.abs(b).max(initial=0.0))), call
    return ours, theirs


def _measured(pair, timing, bar):
    """Our time by theirs and both; measured again, for longer, if it is above the bar, since other work on a machine makes outliers."""
    block = min(timing.block, BLOCK)
    found = ratio(*pair, timing.rounds, block)
    return min(found, ratio(*pair, AGAIN * timing.rounds, block)) if found[0] > bar and timing.block else found


@functools.cache
def every(timing):
    """A pair of a call and its row for each op with few elements, and for each with many."""
    torch = torch_one_thread()
    few, many, timing = [], [], timing._replace(rounds=max(1, timing.rounds // 4))
    before = torch and torch.get_default_dtype()
    if torch:
        torch.set_default_dtype(torch.float64)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for call in calls():
                pair = _small(torch, call) if torch else None
                if pair is not None:
                    quotient, a, b = _measured(pair, timing, SMALL)
                    few.append((repr(call), Row(f"{call!r}, 10 elements", "torch eager", f"{quotient:.2f}", f"{SMALL:.2f}", spell(a), spell(b))))
                if repr(call) in BY_HAND:
                    quotient, a, b = _measured(_large(call), timing, LARGE)
                    many.append((repr(call), Row(f"{call!r}, 100,000 elements", "NumPy by hand", f"{quotient:.2f}", f"{LARGE:.2f}", spell(a),
                                                 spell(b))))
    finally:
        if torch:
            torch.set_default_dtype(before)
    return few, many


def _summary(work, found, beside, bar):
    """The geometric mean of the figures, and how many are within the bar."""
    figures = [float(row.figure) for _, row in found]
    mean = f"{statistics.geometric_mean(max(f, 0.01) for f in figures):.2f}" if figures else "not installed"
    yield Row(f"{work}, geometric mean", beside, mean, f"{bar:.2f}")
    within = f"{sum(f <= bar for f in figures)} of {len(figures)}" if figures else "not installed"
    yield Row(f"{work}, calls within {bar:.2f}", beside, within, "all")


def _product(m, name):
    """A product of two matrices, forward and backward."""
    a, b = (m.tensor(np.random.default_rng(seed).standard_normal((SIDE, SIDE)), requires_grad=True) for seed in (0, 1))
    ones = m.ones((SIDE, SIDE), dtype=m.float64)
    function = {"matmul": m.matmul, "einsum": functools.partial(m.einsum, "ij,jk->ik"),
                "einsum, transposed": functools.partial(m.einsum, "ij,kj->ki")}[name]

    def once():
        a.grad = b.grad = None
        function(a, b).backward(ones)
        return a.grad, b.grad

    return once


def rows(timing):
    """The summary of both tables, and the products."""
    torch, (few, many) = torch_one_thread(), every(timing)
    yield from _summary("ops, 10 elements", few, "torch eager", SMALL)
    yield from _summary("ops, 100,000 elements", many, "NumPy by hand", LARGE)
    for name in ("matmul", "einsum", "einsum, transposed"):
        yield compare(f"{name}, {SIDE} x {SIDE}", "torch eager", _product(symgrad, name), torch and _product(torch, name), PRODUCTS, timing, 1e-9)


def above(timing):
    """The calls above the bars with their figures, the slowest first, as text."""
    few, many = every(timing)
    listed = []
    for size, beside, bar, found in (("10", "torch", SMALL, few), ("100,000", "NumPy by hand", LARGE, many)):
        slow = sorted(((float(row.figure), name) for name, row in found if float(row.figure) > bar), reverse=True)
        names = ", ".join(f"`{name}` {figure:.2f}" for figure, name in slow)
        listed.append(f"Above {bar:.2f} of {beside} with {size} elements: {names or 'none'}.")
    return "\n\n".join(listed)
