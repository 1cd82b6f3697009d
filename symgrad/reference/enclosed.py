"""The oracle and the rules of a recorded computation as one program in ball arithmetic. This module needs python-flint.

SymPy's partial derivative of each elementary function becomes steps of the tape, and so do the library's rules; equal computations share their
program, which is traced again only where it takes another branch.
"""

from __future__ import annotations

import functools
import operator
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import sympy
from flint import acb, arb
from sympy.logic.boolalg import BooleanAtom

from symgrad.carriers import ball
from symgrad.carriers.batched import Batched
from symgrad.carriers.digits import Undefined
from symgrad.carriers.lapack import reads_hermitian_parts
from symgrad.carriers.special.table import SPECIAL
from symgrad.graph.derivative import DerivativeNode
from symgrad.graph.node import Leaf, Node
from symgrad.graph.op import REGISTRY
from symgrad.graph.order import upstream
from symgrad.reference.elementary import placeholder
from symgrad.reference.oracle import Oracle, OracleValues
from symgrad.reference.recorder import RecordingCarrier
from symgrad.reference.run import Run
from symgrad.reference.tape import ONE, Program, Ref, Tape, _at_least, _differ, _more, _truth, emit, total, tracing
from symgrad.reference.tape import Changed as Changed
from symgrad.reference.tape import Straddles as Straddles
from symgrad.reference.template import _key
from symgrad.reference.traced import NoEnclosure as NoEnclosure
from symgrad.reference.traced import Traced, lift_value

Operand = Any  # a symbol, the number of a step, or a constant: an exact ball or a truth value


def _inverse(x: Any) -> Any:
    return 1 / x


def _heaviside(x: Any, at_zero: Any = None) -> Any:
    half = arb(0.5) if at_zero is None else at_zero
    return half if x.is_zero() else arb(1) if x > 0 else arb(0) if x < 0 else arb(0).union(arb(1))


def _dirac(x: Any, order: Any = None) -> Any:
    return arb(0) if x.is_zero() or not x.contains(0) else arb.nan()


def _polygamma(n: Any, x: Any) -> Any:
    return SPECIAL["digamma_derivative"].balls(x, int(n.unique_fmpz())) if n != 0 else x.digamma()  # type: ignore[misc]


def _airy(i: int) -> Callable[[Any], Any]:
    return lambda x: x.airy()[i]


def _bessel(name: str) -> Callable[[Any, Any], Any]:
    return lambda order, x: getattr(x, name)(order)


KINKED = sympy.sign, sympy.Heaviside, sympy.DiracDelta
METHODS = {"Abs": "__abs__", "sign": "sgn", "ceiling": "ceil", "loggamma": "lgamma", "Ei": "ei", "Si": "si", "Ci": "ci", "Shi": "shi", "Chi": "chi",
           "LambertW": "lambertw", "factorial": "fac", "fresnels": "fresnel_s", "fresnelc": "fresnel_c"} | {name: name for name in (
               "exp log sin cos tan cot sec csc asin acos atan sinh cosh tanh coth sech csch asinh acosh atanh floor erf erfc erfi gamma digamma "
               "li").split()}
FUNCTIONS: dict[str, Callable[..., Any]] = {
    **{name: operator.methodcaller(method) for name, method in METHODS.items()},
    **{f"bessel{letter}": _bessel(f"bessel_{letter}") for letter in "jyik"},
    **{name: _airy(i) for i, name in enumerate(("airyai", "airyaiprime", "airybi", "airybiprime"))},
    "elliptic_k": lambda m: acb(m).elliptic_k().real, "elliptic_f": lambda z, m: SPECIAL["ellipkinc"].balls(z, m),  # type: ignore[misc]
    "elliptic_e": lambda *xs: acb(xs[0]).elliptic_e().real if len(xs) == 1 else SPECIAL["ellipeinc"].balls(*xs),  # type: ignore[misc]
    "zeta_derivative": lambda s, a, n: SPECIAL["zeta_derivative"].balls(s, a, int(n.unique_fmpz()), 0),  # type: ignore[misc]
    "Max": ball._larger, "Min": ball._smaller, "atan2": lambda y, x: arb.atan2(y, x), "Heaviside": _heaviside, "DiracDelta": _dirac,
    "polygamma": _polygamma, "zeta": lambda s, a=1: s.zeta(a), "lowergamma": lambda s, x: x.gamma_lower(s),
    "uppergamma": lambda s, x: x.gamma_upper(s), "expint": lambda n, x: x.expint(n), "Mod": lambda a, b: a - b * (a / b).floor(),
    "erfinv": lambda x: SPECIAL["erfinv"].balls(x)}  # type: ignore[misc]
CONDITIONS = {sympy.Eq: ball._equal, sympy.Ne: _differ, sympy.StrictLessThan: ball._less, sympy.LessThan: ball._at_most,
              sympy.StrictGreaterThan: _more, sympy.GreaterThan: _at_least}
CONSTANTS = {sympy.pi: arb.pi, sympy.E: arb.const_e, sympy.EulerGamma: arb.const_euler, sympy.Catalan: arb.const_catalan}


@functools.cache
def _power(n: int) -> Callable[[Any], Any]:
    return _inverse if n == -1 else ball._square if n == 2 else lambda x: ball._power(x, arb(n))


@functools.cache
def _root(n: int) -> Callable[[Any], Any]:
    return operator.methodcaller("sqrt") if n == 2 else lambda x: x.root(n)


def _selected(*parts: Any) -> Any:
    """The first one of some values, each of which is followed by its condition, whose condition holds."""
    for value, condition in zip(parts[::2], parts[1::2]):
        if _truth(condition):
            return value
    raise Undefined("no branch")


@functools.lru_cache(4096)
def _steps(e: sympy.Basic) -> tuple[list[tuple[Any, tuple[Operand, ...], bool]], Operand]:
    """An expression as steps: a function, its operands, and whether it is a kink where its first one is 0; and the result.

    Raises NoEnclosure for a function without an enclosure.
    """
    steps: list[tuple[Any, tuple[Operand, ...], bool]] = []
    known: dict[Any, Operand] = {}

    def add(function: Any, *operands: Operand, kink: bool = False) -> Operand:
        steps.append((function, operands, kink))
        return len(steps) - 1

    def chain(operands: Sequence[Operand], function: Any = operator.mul) -> Operand:
        return functools.reduce(lambda a, b: add(function, a, b), operands)

    def power(base: Any, exponent: Any) -> Operand:
        if base is sympy.E:
            return add(FUNCTIONS["exp"], build(exponent))
        if exponent.is_Rational and abs(exponent.p) < 10**6 and exponent.q < 1000:
            out = build(base) if exponent.q == 1 else add(_root(exponent.q), build(base))
            return out if exponent.p == 1 else add(_power(int(exponent.p)), out)
        return add(ball._power, build(base), build(exponent))

    def build(e: Any) -> Operand:
        if e not in known:
            known[e] = _build(e)
        return known[e]

    def _build(e: Any) -> Operand:
        if e.is_Symbol or isinstance(e, BooleanAtom):
            return e if e.is_Symbol else bool(e)
        if e.is_Integer:
            return arb(int(e))
        if e.is_Rational:
            return add(operator.truediv, arb(int(e.p)), arb(int(e.q)))
        if e.is_Float:
            return exact_ball(e)
        if e in CONSTANTS:
            return add(CONSTANTS[e])
        if e is sympy.I:
            return acb(0, 1)
        if e.is_Add:
            return add(total, *map(build, e.args))
        if e.is_Mul:
            coefficient, rest = e.as_coeff_mul()
            if coefficient.is_Rational and coefficient != 1:
                product = chain([build(x) for x in rest])
                product = add(operator.mul, arb(int(coefficient.p)), product) if abs(coefficient.p) != 1 else product
                product = add(operator.neg, product) if coefficient.p == -1 else product
                return add(operator.truediv, product, arb(int(coefficient.q))) if coefficient.q != 1 else product
            return chain([build(x) for x in e.args])
        if e.is_Pow:
            return power(*e.as_base_exp())
        if isinstance(e, sympy.Piecewise):
            return add(_selected, *(build(part) for pair in e.args for part in pair.args))
        if type(e) in CONDITIONS or isinstance(e, sympy.Not):
            return add(CONDITIONS.get(type(e), ball._not), *map(build, e.args))
        if isinstance(e, (sympy.And, sympy.Or)):
            return chain([build(x) for x in e.args], ball._and if isinstance(e, sympy.And) else ball._or)
        name = type(e).__name__
        if not isinstance(e, (sympy.Function, sympy.Max, sympy.Min)) or name not in FUNCTIONS:
            raise NoEnclosure(f"{name} has no enclosure")
        operands = [build(x) for x in e.args]
        return chain(operands, FUNCTIONS[name]) if name in ("Max", "Min") else add(FUNCTIONS[name], *operands, kink=isinstance(e, KINKED))

    return steps, build(e)


def exact_ball(x: Any) -> Any:
    """A number of mpmath or a float of SymPy as a ball without radius."""
    sign, mantissa, exponent, bits = x._mpf_
    with ball.precision(max(64, bits)):
        return arb(int(mantissa) * (-1 if sign else 1)) * arb(2) ** int(exponent)


def value_of(e: sympy.Basic, at: Mapping[sympy.Symbol, Any]) -> Any:
    """The value of an expression at the scalars of its symbols, as steps of the tape."""
    steps, result = _steps(e)
    found: list[Any] = []

    def scalar(operand: Operand) -> Any:
        return found[operand] if type(operand) is int else at[operand] if isinstance(operand, sympy.Symbol) else operand

    for function, operands, kink in steps:
        arguments = [scalar(x) for x in operands]
        if kink and type(arguments[0]) is Ref:
            arguments[0].tape.note_kink(emit(ball._equal, arguments[0], arb(0)))
        found.append(emit(function, *arguments))
    return scalar(result)


class _TracedOracle(OracleValues):
    constant = staticmethod(lambda x: x if type(x) is Ref else ONE if x == 1 else arb(x))
    number = staticmethod(lambda e: value_of(e, {}))
    total = staticmethod(functools.partial(emit, total))
    call = staticmethod(lambda function, *xs: value_of(function.expr, {placeholder(i): x for i, x in enumerate(xs)}))
    holds = staticmethod(lambda relation, a, b: emit(CONDITIONS[relation], a, b))

    def note_border(self, a: Any, b: Any) -> None:
        (a if type(a) is Ref else b).tape.note_kink(emit(ball._equal, a, b))


# Programs of a run


class Programs:
    """The programs of the computations with one signature, one for each combination of branches."""

    MOST = 8  # branches

    def __init__(self, complex: bool = False) -> None:
        self.complex = complex  # whether the numbers are complex
        self.found: list[Program] = []
        self.refused = False  # whether a function has no enclosure
        self.used: dict[str, Any] = {}  # the ops that the rules call by name

    def add(self, program: Program, recorder: RecordingCarrier | None = None) -> None:
        self.found = [program, *self.found[:self.MOST - 1]]
        self.used |= {} if recorder is None else {name: REGISTRY[name] for name in vars(recorder) if name in REGISTRY}

    @property
    def size(self) -> int:
        return sum([len(program.steps) for program in self.found])

    @property
    def valid(self) -> bool:
        return all([REGISTRY.get(name) is op for name, op in self.used.items()])


_programs: OrderedDict[Any, Programs] = OrderedDict()
KEPT, STEPS = 16, 500_000  # signatures, and the steps of their programs, of about 150 bytes each


def programs_of(run: Run, order: int, full: int) -> Programs | None:
    """The programs of the signature of a run; new ones if the rules of a node may call a user's code, None for a batch or complex inputs."""
    nodes = upstream([run.root])
    if any([type(node.value) is Batched for node in nodes]) or any([leaf.value.dtype.kind != "f" for leaf in run.nodes]):
        return None
    key = None if any(map(_calls_code, nodes)) else _signature(run, nodes, order, full)
    if key is None:
        return Programs()
    found = _programs.pop(key, None)
    if found is None or not found.valid:
        found = Programs()
    _programs[key] = found
    while len(_programs) > KEPT or len(_programs) > 1 and sum([programs.size for programs in _programs.values()]) > STEPS:
        _programs.popitem(last=False)
    return found


def _calls_code(node: Node) -> bool:
    return type(node).outside and getattr((node.args or (None,))[-1], "content", None) is None


def _signature(run: Run, nodes: Sequence[Node], order: int, full: int) -> Any:
    """The ops, shapes, parameters and constants of a computation; None if a parameter has no hash."""
    leaves, places = run.nodes, {node: i for i, node in enumerate(nodes)}
    key: list[Any] = [order, full, reads_hermitian_parts(), tuple([(places.get(leaf), leaf.value.shape) for leaf in leaves])]
    inputs = {*leaves}
    for node in nodes:
        if node in inputs:
            key.append(node.value.shape)
        elif isinstance(node, Leaf) or type(node) is DerivativeNode and node.parents[0] is None:
            key.append(_key(node.value))
        else:
            args, count = node.args or (), len(node.parents)
            operands = [_key(a) if p is None or a.dtype.kind in "biu" else (a.shape, a.dtype.kind) for a, p in zip(args, node.parents)]
            parents = tuple([None if p is None else places.get(p) for p in node.parents])
            key.append((type(node) if type(node) is DerivativeNode else node.op, parents, tuple(operands), _key(args[count:])))
    out = tuple(key)
    try:
        hash(out)
    except TypeError:
        return None
    return out


def trace(run: Run, oracle: Oracle | None, rules: Callable[..., list[Any]], order: int, full: int, values: Sequence[Any],
          bits: int) -> tuple[Program, RecordingCarrier]:
    """The program of the oracle's values and those of the `rules`, and the recorder of these; its inputs are the elements of the leaves and of the
    direction. Without an oracle, it has the rules only, and a program of their value.

    Raises NoEnclosure for a function without an enclosure, Straddles where the bits do not decide a condition, and Undecided or Undefined at
    another point at which it cannot be traced.
    """
    with tracing(bits) as tape:
        point, along = _inputs(tape, values)
        references = [] if oracle is None else _TracedOracle(oracle, 15, point).derivatives(order, full, along)
        numbers = iter(point)
        arrays = [Traced.fill([next(numbers) for _ in range(leaf.value.size)], tuple(leaf.value.shape)) for leaf in run.leaves]
        recorder = RecordingCarrier(Traced.carrier, lift_value)
        found = rules(recorder, run, arrays, order, full, along.view(Traced))
        program = tape.program(len(values), [*references, *found])
        if oracle is None:
            program.value = tape.program(len(values), found[:1])
        program.rules = program if oracle is None else tape.program(len(values), found)
        return program, recorder


def trace_oracle(oracle: Oracle, values: Sequence[Any], order: int, full: int, bits: int) -> Program:
    """The program of an oracle's numbers; its inputs are the values of its leaves and the direction."""
    with tracing(bits) as tape:
        point, along = _inputs(tape, values)
        return tape.program(len(values), _TracedOracle(oracle, 15, point).derivatives(order, full, along))


def _inputs(tape: Tape, values: Sequence[Any]) -> tuple[list[Ref], np.ndarray]:
    refs = list(map(tape.input, values))
    along = np.empty(len(refs) // 2, object)
    along[:] = refs[len(along):]
    return refs[:len(along)], along


def trace_expressions(definitions: Mapping[sympy.Symbol, Any], expressions: Sequence[Any], symbols: Sequence[sympy.Symbol], values: Sequence[Any],
                      bits: int, rules: Callable[..., list[Any]] | None = None, complex: bool = False) -> tuple[Program, RecordingCarrier]:
    """The program of expressions of some symbols, and of symbols that are defined by earlier expressions, and the recorder of rules; its inputs are
    the symbols. The numbers of `rules(recorder, filled)` are further outputs, where `filled(expressions, shape)` are values of the carrier.
    """
    with tracing(bits) as tape:
        at = {s: tape.input(x) for s, x in zip(symbols, values)}
        for s, e in definitions.items():
            at[s] = value_of(e, at)
        recorder = RecordingCarrier(Traced.carrier, lift_value, complex)
        found = [value_of(e, at) for e in expressions]
        found += rules(recorder, lambda cells, shape: Traced.fill([value_of(e, at) for e in cells], shape)) if rules else []
        return tape.program(len(values), found), recorder


def exact_number(x: Any) -> Any:
    """A float, a number of mpmath or a rational one, perhaps complex, as a ball; balls unchanged."""
    if isinstance(x, (arb, acb)):
        return x
    if hasattr(x, "_mpf_"):
        return exact_ball(x)
    if hasattr(x, "imag") and x.imag:
        return acb(exact_number(x.real), exact_number(x.imag))
    return arb(x) if isinstance(x, float) else arb(int(x.numerator)) / arb(int(x.denominator))
