"""The catalogue of ops, generated from their declarations: formula, derivatives, domain, measured errors, and what they give at kinks and ties."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import sympy

from symgrad.carriers import symbolic
from symgrad.diagnose.kinks.switches import CONVENTIONS
from symgrad.engine.tensor import Tensor, wrap
from symgrad.engine.traced import traced
from symgrad.formulas.expressions import formula
from symgrad.graph.domains import FIXED, REAL
from symgrad.graph.op import REGISTRY, Op
from symgrad.graph.order import upstream
from symgrad.reference.accuracy import BOUNDS
from symgrad.reference.run import Run
from symgrad.reference.sources import RecordedSource
from symgrad.reports.base import first_line, number
from symgrad.sampling.domain_reader import domain_text
from symgrad.sampling.floats import Floats, ordinary_floats
from symgrad.scanning.report import AccuracyReport
from symgrad.scanning.scanner import ROUNDS, Scanner
from symgrad.scanning.subject import Subject


@dataclass
class KinkEntry:
    """A call of an op at a kink: the last element of its value, the gradient of that element, and the gradients of the gradient's elements.

    `gradient` has an array for each tensor argument, and `second` a row for each element of the gradient, and a column for each element of the
    tensor arguments; None where the second derivative is refused. `convention` is how the derivative was decided, by the ops that were recorded.
    """

    op: str
    at: tuple[Any, ...]
    value: float
    gradient: tuple[np.ndarray, ...]
    second: np.ndarray | None
    convention: str


def kinks_of(op: Op) -> list[KinkEntry]:
    """The calls that an op declares as `kinks`, with what is returned there.

    >>> (entry,) = kinks_of(REGISTRY["relu"])
    >>> entry.at, entry.gradient, entry.convention
    ((0.0,), (array(0.),), 'the derivative of least norm: 0')
    """
    return [_kink_entry(op, call) for call in op.docs.kinks]


def _kink_entry(op: Op, call: tuple[Any, ...]) -> KinkEntry:
    tensors = op.arity or 1
    args = [wrap(np.array(a)).requires_grad_() if i < tensors and isinstance(a, (float, list)) else a for i, a in enumerate(call)]
    leaves = [a for a in args if isinstance(a, Tensor)]
    with np.errstate(all="ignore"):
        result = getattr(traced, op.name)(*args)
        y = (result if isinstance(result, Tensor) else next(r for r in result if r.requires_grad)).reshape(-1)[-1]
        path = upstream([] if y._node is None else [y._node])
        names = [getattr(getattr(node, "op", None), "name", "") for node in reversed(path)]  # the last op that has a convention
        convention = next((CONVENTIONS[name] for name in (*names, op.name) if name in CONVENTIONS), "the limit, or the op's own formula")
        run = Run(leaves, y, None)
        gradient = run.gradients(y, create_graph=True)
        try:
            rows = [run.gradients(e, create_graph=True) for g in gradient for e in g.reshape(-1)]
            second = np.array([np.concatenate([s.detach().numpy().reshape(-1) for s in row]) for row in rows])
        except RuntimeError:  # vectors of equal values
            second = None
    return KinkEntry(op.name, call, y.item(), tuple(np.array(g.detach().numpy()) for g in gradient), second, convention)


def kink_table(names: Sequence[str] = ()) -> str:
    """The declared kinks of all ops, or of some by name, as a table in Markdown. Raises ValueError for an unknown name."""
    unknown = [name for name in names if name not in REGISTRY]
    if unknown:
        raise ValueError(f"ops: {', '.join(unknown)}: there is no such op; `symgrad ops` lists all")
    lines = ["| op | at | value | gradient | second derivatives | by |", "|---|---|---|---|---|---|"]
    for name in sorted(names or (n for n, op in REGISTRY.items() if op.surface.public or n.startswith("linalg_"))):
        for e in kinks_of(REGISTRY[name]):
            at = ", ".join(map(_text, e.at))
            second = "refused" if e.second is None else _text(e.second.tolist()) if e.second.any() else "0"
            lines.append(f"| `{name.replace('linalg_', 'linalg.')}` | {at} | {_number(e.value)} | "
                         f"{', '.join(_text(g.tolist()) for g in e.gradient)} | {second} | {e.convention} |")
    return "\n".join(lines)


def _text(x: Any) -> str:
    return f"[{', '.join(map(_text, x))}]" if isinstance(x, list) else _number(x) if isinstance(x, float) else repr(x)


def _number(x: float) -> str:
    return str(x) if not math.isfinite(x) else number(x + 0.0)


LETTERS = "x y z"
ORDER = 3  # of the highest derivatives that are scanned
LONGEST = 160  # characters of LaTeX; a longer formula is left out of the table


@dataclass
class OpEntry:
    """An op of the registry: its formula and its derivatives as SymPy expressions, where it has them, and the errors that a scan has measured.

    `ulp` are the largest errors of the value and of the derivatives of orders 1 to 3, in units in the last place; `within` counts the numbers whose
    error is within the bounds of 8, 8, 64 and 512, `compared` all that were compared, and `undecided` those without a reference value.
    """

    name: str
    aliases: tuple[str, ...]
    kind: str
    summary: str
    formula: Any
    derivatives: tuple[Any, ...]
    domain: str
    kinks: str
    ulp: tuple[float, ...] = ()
    points: int = 0
    within: int = 0
    compared: int = 0
    undecided: int = 0
    given: str = ""  # the parameters of the formula, such as "n = 3"


def catalogue(names: Sequence[str] = (), points: int = 0,
              tell: Callable[[str, int, int], Any] = lambda what, done, total: None) -> list[OpEntry]:
    """The entries of the public ops, or of some by name or alias, in alphabetical order.

    With `points`, every op that maps real numbers element by element is scanned at so many in each region, with each of its examples; `tell` is
    called before each op with its name, the number of those done, and of all.

    Raises ValueError for an unknown name.

    >>> (entry,) = catalogue(["tanh"])
    >>> entry.formula, entry.derivatives
    (tanh(x), (cosh(x)**(-2),))
    """
    known = {each: op for op in REGISTRY.values() if is_listed(op) for each in (op.name, *op.surface.aliases)}
    unknown = [name for name in names if name not in known]
    if unknown:
        raise ValueError(f"ops: {', '.join(unknown)}: there is no such op; `symgrad ops` lists all")
    chosen = {known[name].name: known[name] for name in names or known}
    out: list[OpEntry] = []
    for name in sorted(chosen):
        tell(name, len(out), len(chosen))
        out.append(_entry(chosen[name], points))
    return out


def is_listed(op: Op) -> bool:
    """Whether an op is public, under its own name, or as a function of `nn.functional`."""
    return op.surface.public or op.elementwise


def _entry(op: Op, points: int) -> OpEntry:
    formula, derivatives = _formulas(op)
    kind = op.kind if op.differentiable else "not differentiable"
    special = dict.fromkeys(tuple(0.0 if x == 0 else x for x in point) for point in op.docs.special)  # kinks, poles, and where forms change
    kinks = ", ".join(f"{p[0]:g}" if len(p) == 1 else f"({', '.join(f'{x:g}' for x in p)})" for p in special)
    entry = OpEntry(op.name, op.surface.aliases, kind, first_line(op.docs.doc, LONGEST), formula, derivatives, _domain(op), kinks, given=_given(op))
    for parameters in scanned_calls(op) if points else ():
        _add(entry, scan(op, parameters, points))
    return entry


def scanned_calls(op: Op) -> tuple[tuple[Any, ...], ...]:
    """The parameters with which an op is scanned: its examples, for each op that maps real numbers to real numbers element by element."""
    if not op.arity or not op.differentiable or not (op.elementwise or op.kind == "elementwise"):
        return ()
    return op.docs.examples or ((),)


def _formulas(op: Op) -> tuple[Any, tuple[Any, ...]]:
    """The formula of an elementwise op, and its derivatives by each argument, from the graph of a call at a point inside its domain.

    None and nothing for others, where there is no expression, and where the graph is that of a branch.
    """
    if not op.arity or not (op.elementwise or op.kind == "elementwise"):
        return None, ()
    names = LETTERS.split()[:op.arity]
    try:
        if not op.differentiable:
            cells = [symbolic.ExactExpressions.fill([sympy.Symbol(name, real=True)], ()) for name in names]
            return sympy.sympify(op.forward(symbolic, *cells).item()), (sympy.S.Zero,) * op.arity
        subject, floats, rng = Subject(op, parameters=scanned_calls(op)[0]), Floats(np.dtype(np.float64)), np.random.default_rng(0)
        (point,) = zip(*(ordinary_floats(d, floats, 1, rng) for d in subject.domains))
        subject.names = names[:subject.count]
        recording = subject.call_at(point, named=True)
        if recording.result.conditions:
            return None, ()
        found = [sympy.sympify(formula(t).item()) for t in recording.partials(1).values()]
        return found[0], tuple(found[1:])
    except (TypeError, ValueError, NotImplementedError, ArithmeticError, AttributeError):
        return None, ()


def _domain(op: Op) -> str:
    """The domains of the arguments that are not all real numbers."""
    texts = [domain_text(d).replace(" or ", " ∪ ") if d not in (REAL, FIXED) and hasattr(d, "intervals") else "" for d in op.domain]
    return ", ".join(f"{name} in {text}" for name, text in zip(op.argument_names, texts) if text) if len(texts) > 1 else "".join(texts)


def _given(op: Op) -> str:
    names = [name for name, d in zip(op.argument_names, op.domain) if d is FIXED] + [p.name for p in op.parameters]
    return ", ".join(f"{name} = {value}" for name, value in zip(names, op.docs.examples[0] if op.docs.examples else ()))


def scan(op: Op, parameters: tuple[Any, ...], points: int | None = None, rounds: int = ROUNDS) -> AccuracyReport:
    """The errors of an op with some parameters, in value and derivatives up to the third order, without explanations."""
    subject, floats = Subject(op, parameters=parameters), Floats(np.dtype(np.float64))
    source = RecordedSource(subject.run, [np.zeros(())] * subject.count)
    return Scanner(subject, source, subject.domains, floats, ORDER, points, 1.0, 0, lambda what, done, total: None, rounds, False).run()


def _add(entry: OpEntry, report: AccuracyReport) -> None:
    worst = [w.ulp if (w := report.of_order(order)) is not None else 0.0 for order in range(ORDER + 1)]
    entry.ulp = tuple(map(max, worst, entry.ulp or worst))
    entry.points += report.points
    entry.undecided += report.undecided
    for sample in report.samples:
        for index, errors in sample.errors.items():
            known = errors[~np.isnan(errors)]
            entry.compared += known.size
            entry.within += int(np.count_nonzero(known <= BOUNDS[len(index)]))


def _latex(e: Any) -> str:
    text = "" if e is None else sympy.latex(e).replace("|", r"\vert ")
    return f"${text}$" if text and len(text) <= LONGEST else ""


def table(entries: Sequence[OpEntry]) -> str:
    """The entries as a table in Markdown."""
    lines = ["| op | formula | derivatives | domain | special points | ULP, orders 0 to 3 |", "|---|---|---|---|---|---|"]
    for e in entries:
        name = " ".join(f"`{each}`" for each in (e.name, *e.aliases))
        formula = f"{_latex(e.formula)} for {e.given}" if e.given and _latex(e.formula) else _latex(e.formula) or e.summary.replace("|", r"\|")
        derivatives = ", ".join(_latex(d) or "…" for d in e.derivatives) if e.derivatives else f"({e.kind})"
        lines.append(f"| {name} | {formula} | {derivatives} | {e.domain} | {e.kinks} | {' / '.join(f'{u:.3g}' for u in e.ulp)} |")
    return "\n".join(lines)


def page(entries: Sequence[OpEntry]) -> str:
    """The page of the guide: the counts, and the table."""
    scanned = [e for e in entries if e.compared]
    formulas, special = sum(e.formula is not None for e in entries), sum(bool(e.kinks) for e in entries)
    within, compared, points, undecided = (sum(getattr(e, name) for e in scanned) for name in ("within", "compared", "points", "undecided"))
    measured = f"""
{len(scanned)} ops, all that map real numbers element by element, were scanned at {points:,} points, from subnormal to huge numbers and beside every
special point, with each example of their parameters:
{within:,} of {compared:,} values and derivatives ({100 * within / compared:.3f}%) are within 8, 8, 64 and 512 ULP (orders 0 to 3).
Left out are {undecided:,} numbers whose reference value many digits do not settle. The column of the table has the worst; an op that is
ill-conditioned somewhere, such as a sum of terms that may cancel, has large numbers there.
""" if compared else ""
    return f"""# Ops

You want to know which ops there are, what they compute, and how many digits they keep.

{len(entries)} public ops, those of `symgrad.nn.functional` among them; {formulas} have a formula per element, {special} special points, at which a
derivative is decided.
`symgrad ops` prints this table, `symgrad ops tanh` some rows, and `symgrad ops --scan 8 --write FILE` measures and writes this page.
A tensor with a name shows the formula and the derivative of a row:

```python
>>> import symgrad
>>> x = symgrad.tensor(0.5, requires_grad=True, symbol="x")
>>> y = symgrad.erf(x)
>>> y.backward()
>>> y.expr, x.grad.expr
(erf(x), 2*exp(-x**2)/sqrt(pi))

```
{measured}
{table(entries)}

## Kinks and ties

What the last element of the value gives as gradients at arguments where a derivative does not exist, or is a limit; `symgrad ops --kinks` prints it:

{kink_table()}

## What can go wrong

- An op of torch that is not here raises an AttributeError: declare it yourself as in [new ops](new_ops.md).
- Where an op has no formula, `symgrad.check` verifies numbers and proves nothing.
- The largest errors are those of the points that were drawn, on the machine that wrote this page.
"""
