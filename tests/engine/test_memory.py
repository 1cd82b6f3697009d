"""Results have memory of their own: what is written into a result or an argument changes no other value, and no later call."""

import numpy as np
import pytest

import symgrad
from symgrad.engine.recording import core
from symgrad.engine.tensor import Tensor
from symgrad.engine.traced import FUNCTIONS
from symgrad.graph.domains import COMPLEX
from symgrad.graph.op import REGISTRY
from tests.support import points
from tests.support.exemptions import exempt

LAYOUTS = {
    "contiguous": lambda v: tensor(v),
    "transposed": lambda v: tensor(v.T.copy()).permute(tuple(range(v.ndim))[::-1]),
    "strided": lambda v: tensor(np.repeat(v, 2, -1))[..., ::2] if v.ndim else tensor(np.repeat(v, 2))[1],
    "expanded": lambda v: tensor(v[:1]).expand(v.shape) if v.ndim else tensor(v),
    "scalar": lambda v: symgrad.tensor(v.reshape(-1)[0]),
    "array without dimensions": lambda v: tensor(v.reshape(-1)[0]),
    "empty": lambda v: tensor(v[:0] if v.ndim else v),
}
KINDS = {"float": np.float64, "complex": np.complex128, "integer": np.int64, "boolean": np.bool_}
RETURNED = exempt("memory")
REFUSED = (RuntimeError, TypeError, ValueError, IndexError, AttributeError, NotImplementedError, ArithmeticError)


def tensor(value):
    """A tensor of its own array, even where that has no dimensions."""
    out = symgrad.tensor(value)
    out._array()
    return out


def tensors(x):
    """The tensors in a result, or among arguments."""
    return [t for part in x for t in tensors(part)] if isinstance(x, (tuple, list)) else [x] if isinstance(x, Tensor) else []


def values(x):
    return [np.array(t._value) for t in tensors(x)]


def base(t):
    return t if t._base is None else t._base


def write(t):
    """Change every element."""
    t = base(t)
    t.copy_(t.logical_not() if t.dtype is symgrad.bool else t + 1)


def same(found, expected):
    return [(a.shape, a.tobytes()) for a in found] == [(b.shape, b.tobytes()) for b in expected]


def shared(call, args, view=False):
    """What a call shares that it must not: an empty text where it shares nothing, None where it refuses the arguments."""
    try:
        first = call(*args)
    except REFUSED:
        return None
    expected, given = values(first), values(args)
    written = [base(t)._version for t in tensors(args)]
    bases = values([base(t) for t in tensors(args)])

    def restore():
        for t, old in zip(tensors(args), bases):
            base(t).copy_(symgrad.tensor(old))

    for t in tensors(first):
        write(t)
    if not view:
        if not same(values(args), given):
            return "what is written into a result is written into an argument"
        if [base(t)._version for t in tensors(args)] != written:
            return "what is written into a result is counted as a write into an argument"
    restore()
    second = call(*args)
    if not same(values(second), expected):
        return "what is written into a result changes the next call"
    seen = [t._version for t in tensors(second)]
    for t in tensors(args):
        write(t)
    if not view:
        if not same(values(second), expected):
            return "what is written into an argument changes a result"
        if [t._version for t in tensors(second)] != seen:
            return "what is written into an argument is counted as a write into a result"
    restore()
    return "" if same(values(call(*args)), expected) else "what is written into an argument changes the next call"


def rule_calls(op):
    """The op as rules call it: with its examples, in every layout."""
    drawn = points.arrays(op, np.random.default_rng(0))
    for name, layout in LAYOUTS.items():
        if op.parameters and op.kind != "elementwise" and name in ("scalar", "array without dimensions", "empty"):
            continue  # of another shape than the examples go with
        for example in points.examples(op):
            given = [layout(v.astype(complex) if COMPLEX in op.domain else v) for v in drawn]
            yield name, core(op), (given, *example) if op.arity is None else (*given, *example)


def public_calls(op, layout, kind):
    """The op as people call it: the usage it documents, and every tuple of arguments that it takes."""
    def a():
        return LAYOUTS[layout](np.arange(1, 7).reshape(2, 3).astype(KINDS[kind]))

    def x():
        return LAYOUTS[layout](np.array([0.25, 0.5, 0.75]).astype(KINDS[kind]))

    def used(a, x):
        return eval(op.docs.usage, {"symgrad": symgrad, "a": a, "x": x})

    function, zero = FUNCTIONS[op.name], symgrad.tensor(0)
    if op.docs.usage:
        yield used, (a(), x())
    most = op.arity if op.kind == "elementwise" and not op.parameters else 9  # what comes behind these is out=
    for rest in ((), (0,), (1,), (0, 1), (zero,), (0, zero), ((2, 3),), (2, 0), (0, zero, 1.0), (0.5,)):
        if len(rest) < most:
            yield function, (a(), *rest)
    condition = a() > 2 if kind != "complex" else zero
    for given in ((a(), a()), (a(), a(), a()), ([a()],), ([a(), a()],), (condition, a(), a()), (a(), 0, zero, a()), (a(), zero, a())):
        if len(given) <= most:
            yield function, given
    yield lambda x: function(x, out=symgrad.empty(0, dtype=x.dtype)), (a(),)


@pytest.mark.sweep
def test_rules_share_no_memory():
    wrong = []
    for op in REGISTRY.values():
        if op.kind != "composite" and op.name not in exempt("alone"):
            wrong += [f"{op.name} ({layout}, {args[len(points.shapes(op)):]}): {found}"
                      for layout, call, args in rule_calls(op) if (found := shared(call, args, bool(op.view)))]
    assert not wrong, "\n".join(wrong)


@pytest.mark.sweep
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.filterwarnings("ignore")
def test_functions_share_no_memory(kind):
    wrong, called = [], set()
    for op in REGISTRY.values():
        for layout in (LAYOUTS if kind == "float" else ("transposed", "scalar")) if op.surface.public else ():
            if op.name in RETURNED and layout == "expanded":
                continue  # whose elements cannot be written one by one
            for i, (call, args) in enumerate(public_calls(op, layout, kind)):
                found = shared(call, args, bool(op.view) or op.name in RETURNED)
                if found is not None:
                    called.add(op.name)
                if found:
                    wrong.append(f"{op.name} ({layout}, call {i}): {found}")
    assert not wrong, "\n".join(wrong)
    if kind == "float":
        assert not (missing := {op.name for op in REGISTRY.values() if op.surface.public} - called), missing
