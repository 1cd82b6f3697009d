"""Numbers that record how they are computed: with them, a text in Python for arrays is run once, to be written in another language."""

from __future__ import annotations

import ast
import math
from collections.abc import Callable
from typing import Any

FEW = 4  # repetitions that are written one after the other
NAMES = {"abs": "abs", "arcsin": "asin", "arcsinh": "asinh", **{name: name for name in (
    "clip cos cosh digamma digamma_derivative erf erfc exp exp2 expm1 floor gamma lgamma log log1p maximum minimum round sign sin sinh sqrt tan tanh "
    "where").split()}}


class Value:
    """A number of a program: an operation on others. `inside` are the counters of the loops that it depends on."""

    __iter__ = None  # Python would try the places 0, 1, ... without end

    def __init__(self, op: str, *args: Any) -> None:
        self.op, self.args = op, args
        self.inside: frozenset[Value] = frozenset().union(*(a.inside for a in self.operands))
        if op in ("points", "index"):
            self.inside = frozenset((self,))
        elif op in ("sum", "loop"):
            self.inside -= {args[0]}

    @property
    def operands(self) -> list[Value]:
        """The values that it is computed from."""
        return [x for a in self.args for x in (a if isinstance(a, list) else [a]) if isinstance(x, Value)]

    def __bool__(self) -> bool:
        raise TypeError("a condition of the text must be on numbers that are known")

    def __getitem__(self, place: Any) -> Value:
        assert place == (..., None)
        return self

    def __abs__(self) -> Value:
        return made("abs", self)

    def __neg__(self) -> Value:
        return made("neg", self)

    def __pow__(self, power: Any) -> Value:
        if isinstance(power, Value):
            return made("pow", self, power)
        if power < 0:
            return made("div", 1, self**-power)
        if power == 0.5:
            return made("sqrt", self)
        if power != int(power) or power > 12:
            return made("pow", self, power)
        half = self ** (power // 2) if power > 1 else made("constant", 1.0)
        square = made("mul", half, half)
        return made("mul", square, self) if power % 2 else square

    def __rpow__(self, base: Any) -> Value:
        return made("pow", base, self)

    def sum(self, axis: int) -> Value:
        """The sum over the points of the innermost axis."""
        (points,) = [k for k in self.inside if k.op == "points"]
        return known("sum", points, self)


def _operator(op: str, swapped: bool) -> Callable[[Any, Any], Value]:
    return lambda a, b: made(op, b, a) if swapped else made(op, a, b)


for _word, _op in {"add": "add", "sub": "sub", "mul": "mul", "truediv": "div", "floordiv": "floor_divide", "mod": "remainder", "and": "logical_and",
                   "or": "logical_or"}.items():
    setattr(Value, f"__{_word}__", _operator(_op, swapped=False))
    setattr(Value, f"__r{_word}__", _operator(_op, swapped=True))
for _op in ("lt", "le", "gt", "ge", "eq"):
    setattr(Value, f"__{_op}__", _operator(_op, swapped=False))

KNOWN: dict[Any, Value] = {}


def known(op: str, *args: Any) -> Value:
    """The one value of an operation, so that what a text computes twice is written once."""
    return KNOWN.setdefault((op, *[id(a) if isinstance(a, Value) else repr(a) for a in args]), Value(op, *args))


def made(op: str, *args: Any) -> Value:
    """A value, without operations on 0 and 1 that do nothing."""
    if op == "clip":
        x, low, high = args
        x = x if low is None else made("where", made("lt", x, low), low, x)
        return x if high is None else made("where", made("gt", x, high), high, x)
    if op == "constant":
        return known(op, float(args[0]))
    operands = [a if isinstance(a, Value) else made("constant", a) for a in args]
    numbers = [a.args[0] if a.op == "constant" else math.nan for a in operands]
    a, b = numbers[0], numbers[-1]
    if op in ("add", "sub", "mul", "neg") and all(x.op == "constant" for x in operands):
        return made("constant", -a if op == "neg" else a + b if op == "add" else a - b if op == "sub" else a * b)
    if op == "mul" and 0 in numbers:
        return made("constant", 0.0)
    if op == "add" and a == 0 or op == "mul" and a == 1:
        return operands[1]
    if op in ("add", "sub") and b == 0 or op in ("mul", "div") and b == 1:
        return operands[0]
    return made("neg", operands[1]) if op == "sub" and a == 0 else known(op, *operands)


class Arrays:
    """The module of arrays that a text calls."""

    inf, nan = math.inf, math.nan

    def __getattr__(self, name: str) -> Any:
        if name not in NAMES:
            raise AttributeError(name)
        return lambda *args: made(NAMES[name], *args) if any(isinstance(a, Value) for a in args) else getattr(math, NAMES[name])(*args)

    def jn(self, order: int, x: Value) -> Value:
        return known("call", "jn", made("constant", order), x)

    def yn(self, order: int, x: Value) -> Value:
        return known("call", "yn", made("constant", order), x)

    def zeros_like(self, x: Value) -> Value:
        return made("constant", 0.0)

    def arange(self, first: float, last: float) -> Value:
        return known("points", range(int(first), int(last)))

    def cumprod(self, x: Value, axis: int) -> Value:
        return known("cumprod", x)


class Loops(ast.NodeTransformer):
    """Loops that change numbers alone become calls of `run_loop` with their body as a function."""

    known: set[str] = set()  # names that are assigned before a statement

    def visit_FunctionDef(self, node: ast.FunctionDef) -> Any:
        outer, self.known = self.known, {a.arg for a in node.args.args}
        body: list[Any] = []
        for statement in node.body:
            new = self.visit(statement)
            body += new if isinstance(new, list) else [new]
            self.known |= {name.id for name in ast.walk(statement) if isinstance(name, ast.Name) and isinstance(name.ctx, ast.Store)}
        self.known, node.body = outer, body
        return node

    def visit_For(self, node: ast.For) -> Any:
        targets = [t for s in node.body if isinstance(s, ast.Assign) for t in s.targets]
        names = [n for t in targets for n in (t.elts if isinstance(t, ast.Tuple) else [t])]
        plain = all(isinstance(s, ast.Assign) for s in node.body) and all(isinstance(n, ast.Name) for n in names)
        if not plain or not ast.unparse(node.iter).startswith("range("):
            return node
        changed = [n for n in dict.fromkeys(n.id for n in names if isinstance(n, ast.Name)) if n in self.known]
        values = ", ".join([*changed, ""])
        text = f"def _body({ast.unparse(node.target)}, {values}): pass\n({values}) = run_loop(_body, {ast.unparse(node.iter)}, ({values}), {changed})"
        function, call = ast.parse(text).body
        assert isinstance(function, ast.FunctionDef)
        function.body = [*node.body, ast.Return(ast.parse(f"({values})", mode="eval").body)]
        return [function, call]


def run_loop(body: Callable[..., Any], steps: range, start: tuple[Any, ...], names: list[str]) -> tuple[Any, ...]:
    """The numbers that a loop changes, after it."""
    if len(steps) > FEW and all(isinstance(x, (int, float, Value)) for x in start):
        try:
            index = Value("index", steps)
            carried = [Value("carried", name, index) for name in names]
            results = [made("add", x, 0) for x in body(index, *carried)]
            loop = Value("loop", index, carried, [made("add", x, 0) for x in start], results)
            return tuple([Value("after", loop, i) for i in range(len(names))])
        except TypeError:  # where the body needs the number itself
            pass
    for k in steps:
        start = body(k, *start)
    return start
