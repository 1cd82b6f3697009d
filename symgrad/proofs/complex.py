"""Complex cases: analytic ops are proved on the complex plane, other ops of complex numbers by their real and imaginary parts.

The gradient is the conjugate cotangent: for L = Re Σ conj(g) y it is ∂L/∂a + i ∂L/∂b at z = a + i b. For an analytic op this is
g conj(dy/dz). The pullback calls the rule with conjugated arguments, so that the rule itself must be g dy/dz on the plane.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import sympy

from symgrad.carriers import numeric, precise, symbolic
from symgrad.graph.domains import COMPLEX
from symgrad.graph.op import Op
from symgrad.proofs.case import Case, Claims, Key, symbol_array
from symgrad.proofs.tape import Tape
from symgrad.reference.elementary import derivative
from symgrad.reference.recorder import RecordingCarrier

REFUSALS = (TypeError, ValueError, RuntimeError, AttributeError, NotImplementedError, ArithmeticError, IndexError, Warning)


class ComplexParts(Case):
    """An op that is not analytic, in terms of the real and imaginary parts of its arguments, at order 1."""

    highest_order = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        self.domains = {}
        self.parts: dict[str, tuple[Any, Any]] = {}
        sample = _sample(self.op, self.parameters, self.shapes)
        assert sample is not None
        arguments, value = sample
        self.complex_value = np.iscomplexobj(value)
        self.rules = _readable(self.op, self.parameters, arguments, value)
        for i in self.active:
            name, shape = self.names[i], self.shapes[i]
            a = symbol_array(f"re_{name}" if np.iscomplexobj(arguments[i]) else name, shape, {"real": True})
            b = symbol_array(f"im_{name}", shape, {"real": True}) if np.iscomplexobj(arguments[i]) else None
            self.symbols[name] = a if b is None else a + b * sympy.I
            self.parts[name] = (a, b)

    @property
    def variables(self) -> list[sympy.Symbol]:
        return [s for i in self.active for part in self.parts[self.names[i]] if part is not None for s in part.ravel().tolist()]

    def supply(self, name: str, shape: tuple[int, ...]) -> Any:
        if name not in self.symbols:
            of = name.removeprefix("t_")
            two_parts = self.complex_value if name == "g" else self.parts[of][1] is not None
            real, imag = symbol_array(f"re_{name}" if two_parts else name, shape, {"real": True}), symbol_array(f"im_{name}", shape, {"real": True})
            self.symbols[name] = real + imag * sympy.I if two_parts else real
        return self.symbols[name]

    def claims(self, recorder: RecordingCarrier, supply: Callable[[str, tuple[int, ...]], Any], order: int) -> Claims:
        base = recorder.base
        cells = [supply(self.names[i], self.shapes[i]) for i in self.active]
        y = self.op.forward(base, *cells, *self.parameters)
        g = supply("g", tuple(y.shape))
        read = base.conj if self.complex_value else lambda x: x
        assert self.op.vjp is not None and self.op.jvp is not None
        pulled = self.op.vjp(base, g, read(y), (*map(read, cells), *self.parameters), (True,) * len(cells))
        for i, c in zip(self.active, pulled):
            yield Key(1, f"vjp by {self.names[i]}"), c.ravel().tolist()
        if "jvp" in self.rules:
            tangents = [supply(f"t_{self.names[i]}", self.shapes[i]) for i in self.active]
            yield Key(1, "jvp"), self.op.jvp(base, tangents, y, (*cells, *self.parameters)).ravel().tolist()

    def reference_derivatives(self, order: int, region: Any, tape: Tape) -> Iterator[tuple[Key, list[Any]]]:
        ys = [[sympy.sympify(e).doit() for e in y.as_real_imag()] for y in self.forward()]  # with the parts of real expressions evaluated
        g = [e.as_real_imag() for e in self.supply("g", self.output).ravel().tolist()]
        total = sympy.Add(*(p * u + q * v for (p, q), (u, v) in zip(g, ys)))
        for i in self.active:
            a, b = self.parts[self.names[i]]
            found = [derivative(total, s) for s in a.ravel().tolist()]
            if b is not None:
                found = [d + sympy.I * derivative(total, s) for d, s in zip(found, b.ravel().tolist())]
            yield Key(1, f"vjp by {self.names[i]}"), found
        if "jvp" in self.rules:
            moves: list[tuple[Any, Any]] = []
            for i in self.active:
                ts = [t.as_real_imag() for t in self.supply(f"t_{self.names[i]}", self.shapes[i]).ravel().tolist()]
                for part, k in zip(self.parts[self.names[i]], (0, 1)):
                    moves += [] if part is None else [(s, t[k]) for s, t in zip(part.ravel().tolist(), ts)]
            yield Key(1, "jvp"), [sympy.Add(*(t * (derivative(u, s) + sympy.I * derivative(v, s)) for s, t in moves)) for u, v in ys]


def complex_cases(op: Op, parameters: tuple[Any, ...], shapes: tuple[tuple[int, ...], ...], notes: list[str]) -> Iterator[Case]:
    """The cases of the op on complex numbers, if it takes them; a rule without a formula is added to `notes`."""
    sample = None if "c" in op.numerics.refuses else _sample(op, parameters, shapes)
    if sample is None:
        return
    readable = _readable(op, parameters, *sample)
    missing = [rule for rule in ("vjp", "jvp") if rule not in readable]
    if missing:
        note = f"on complex numbers {'its rules' if len(missing) > 1 else 'the ' + missing[0]} cannot be proved: a formula has no dtype and no order"
        notes += [note] if note not in notes else []
    if "vjp" in readable:
        analytic = not missing and COMPLEX not in op.domain and _is_analytic(op, parameters, sample[0])
        yield (Case if analytic else ComplexParts)(op, parameters, shapes, True)


def _sample(op: Op, parameters: tuple[Any, ...], shapes: tuple[tuple[int, ...], ...]) -> tuple[list[Any], Any] | None:
    """Arguments and the value of an op with complex arguments or a complex value; None if there is no such value."""
    rng = np.random.default_rng(0)
    drawn = [rng.uniform(0.2, 0.9, (2, *shape)) for shape in shapes]
    real, plane = [d[0] for d in drawn], [d[0] + 1j * d[1] for d in drawn]
    for xs in ([real, plane] if COMPLEX in op.domain else [plane]):
        try:
            with warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("error")
                y = _value(op, numeric, xs, parameters)
                assert op.vjp is not None
                pulled = op.vjp(numeric, np.ones_like(y), y, (*xs, *parameters), (True,) * len(xs))
        except REFUSALS:
            continue
        if any(c is not None for c in pulled) and (np.iscomplexobj(y) or np.iscomplexobj(xs[0])) and np.asarray(y).dtype.kind in "fc":
            return xs, y
    return None


def _is_analytic(op: Op, parameters: tuple[Any, ...], xs: list[Any]) -> bool:
    """Whether the change by an imaginary step is i times the change by a real one."""
    def moved(step: complex) -> Any:
        args = [x + step * (1 + 0.1 * k) for k, x in enumerate(xs)]
        return np.asarray(_value(op, numeric, args, parameters), complex)

    along, across = moved(1e-5) - moved(-1e-5), moved(1e-5j) - moved(-1e-5j)
    return bool(np.all(np.abs(across - 1j * along) <= 1e-8))


def _readable(op: Op, parameters: tuple[Any, ...], xs: list[Any], y: Any) -> list[str]:
    """The names of the rules that the exact carriers can evaluate; empty if they cannot evaluate the forward rule."""
    if op.vjp is None or op.jvp is None:
        return []
    out = []
    needs, ones = (True,) * len(xs), np.ones_like(y) * (1 + 0.5j if np.iscomplexobj(y) else 1)
    cells = [precise.lift_value(x) for x in xs]
    try:
        for carrier, lift in ((precise, precise.lift_value), (symbolic, lambda x: symbolic.lift_value(x, exact=True))):
            if not _close(_value(op, carrier, [*map(lift, xs)], parameters), y):
                return []
        z, one = _value(op, precise, cells, parameters), precise.lift_value(ones)
        if all(map(_close, op.vjp(precise, one, z, (*cells, *parameters), needs), op.vjp(numeric, ones, y, (*xs, *parameters), needs))):
            out.append("vjp")
        tangents = [x * (0.3 + (0.4j if np.iscomplexobj(x) else 0)) for x in xs]
        try:
            pushed = op.jvp(numeric, tangents, y, (*xs, *parameters))
        except REFUSALS:
            return [*out, "jvp"]  # a rule that raises is left to its statement, which says so
        if _close(op.jvp(precise, [precise.lift_value(t) for t in tangents], z, (*cells, *parameters)), pushed):
            out.append("jvp")
    except REFUSALS:
        pass
    return out


def _value(op: Op, carrier: Any, xs: list[Any], parameters: tuple[Any, ...]) -> Any:
    return op.forward(carrier, *((xs,) if op.arity is None else xs), *parameters)


def _close(exact: Any, number: Any) -> bool:
    if exact is None or number is None:
        return exact is number
    values = np.array([complex(sympy.N(e)) if isinstance(e, sympy.Basic) else complex(e) for e in exact.ravel().tolist()]).reshape(exact.shape)
    return values.shape == np.shape(number) and bool(np.allclose(values, number, rtol=1e-12, atol=1e-14))
