"""The catalogue: a map from SymPy functions to the ops of the registry that compute them, derived from the ops' forward rules.

The symbolic carrier gives the formula of an op; the catalogue is the inverse. An op whose formula is one SymPy function of its arguments
computes that function; an op with a longer formula, such as `round` or `log2`, is found by pattern matching. So every declared op is in
the catalogue. Functions without an op have a definition in `definitions`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import sympy
from sympy.core.function import AppliedUndef
from sympy.logic.boolalg import Boolean

from symgrad.algebra.stable import stable_form_to_differentiate
from symgrad.algebra.values import Unknown
from symgrad.carriers import symbolic
from symgrad.carriers.special.table import SPECIAL
from symgrad.graph.op import REGISTRY, Op
from symgrad.methods.extending import BUILT_IN
from symgrad.reports.base import short
from symgrad.symbolic.carrier_function import DEFINITIONS, HALF, Call, CarrierFunction, is_special

ZERO, ONE = sympy.S.Zero, sympy.S.One
ARITHMETIC = {"add", "sub", "mul", "div", "neg", "pow", "square", "sqrt", "rsqrt", "reciprocal"}  # planned by `_sum`, `_product` and `_power`
EXCLUDED = {"isfinite", "isnan", "isinf"}  # ops whose symbolic formula is a constant
COMPOSED = {"sinc"}  # composite ops that are elementwise
WITH_PARAMETERS: dict[str, dict[str, tuple[int, ...]]] = {  # names of ops with given parameters
    "sinc_derivative": {f"sinc{n}": (n,) for n in (1, 2, 3)}, "digamma_derivative": {f"digamma_derivative{n}": (n,) for n in (1, 2, 3, 4)},
    **{op: {f"{op}{n}": (n,) for n in range(4)} for op in ("erf_slope", "ndtr_slope", "i1e_derivative", "bessel_i_moment", "bessel_k_moment",
                                                               "fresnel_sine", "fresnel_cosine")},
    **{op: {f"{op}{n}": (n,) for n in (2, 3)} for op in ("silu_derivative", "mish_derivative")},
    "polygamma_difference": {f"polygamma_difference{n}": (n,) for n in range(4)},
    **{op: {f"{op}{n}": (n,) for n in (1, 2)} for op in ("ellipk_derivative", "ellipe_derivative", "ellipkm1_derivative")},
    **{op: {f"{op}{n}": (0, n) for n in (1, 2)} for op in ("ellipkinc_derivative", "ellipeinc_derivative")},
    "expi_derivative": {f"expi_derivative{n}": (n,) for n in range(1, 4)},  # by parts, the gradient of the quotient underflows before the value
    "zeta_derivative": {f"zeta_derivative{n}{m}" if m else f"zeta_derivative{n}": (n, m) for n in range(4) for m in range(4 - n) if n + m},
    **{op: {f"{op}{n}": (n,) for n in range(1, 5)} for op in ("erfcx_derivative", "log_ndtr_derivative")},
    "gammainc_derivative": {f"gammainc_derivative{n}": (n,) for n in (1, 2)},
    "gamma_density": {f"gamma_density{n}": (n,) for n in range(3)},
    "beta_derivative": {f"beta_derivative{m}{n}": (m, n) for m in range(4) for n in range(4 - m) if m + n},
    **{op: {f"{op}{n}": (n,) for n in range(6)} for op in ("bessel_j", "bessel_y", "bessel_i", "bessel_k")},
    "spherical_bessel_j0_derivative": {f"spherical_bessel_j0_derivative{n}": (n,) for n in range(3)}}
WHOLE = {"erfcx", "log_ndtr", "gammainc", "gammaincc", "scaled_modified_bessel_k1"} | {  # whose formulas overflow or cancel by parts
    name for op in ("erfcx_derivative", "log_ndtr_derivative", "gammainc_derivative", "gamma_density", "beta_derivative", "polygamma_difference",
                    "spherical_bessel_j0_derivative", "bessel_k_moment", "ellipk_derivative", "ellipe_derivative", "ellipkm1_derivative",
                    "ellipkinc_derivative", "ellipeinc_derivative", "zeta_derivative")
    for name in WITH_PARAMETERS[op] if name != "spherical_bessel_j0_derivative0"}

NAMED = {name: (op, parameters) for op, names in WITH_PARAMETERS.items() for name, parameters in names.items()}
BOOLEANS = {sympy.And: "logical_and", sympy.Or: "logical_or", sympy.Not: "logical_not"}
COMPLEX = {sympy.conjugate: "conj", sympy.re: "real", sympy.im: "imag", sympy.arg: "angle"}
UNEVALUATED = (sympy.Sum, sympy.Product, sympy.Derivative, sympy.Subs, sympy.Integral, sympy.Limit)
MANY = 10_000  # the most terms of a sum or product


# The ops of the registry


class _Entry(NamedTuple):
    """An op with its formula in stable forms, over symbols for its arguments."""

    op: str
    wilds: tuple[Any, ...]
    formula: Any


def _optional(op: Op, given: int = 0) -> bool:
    return all(parameter.default is not parameter.empty for parameter in op.parameters[given:])


@functools.cache
def _entry_of(op: Op, name: str, parameters: tuple[Any, ...] = ()) -> _Entry | None:
    """The entry of an elementwise op with some parameters and the defaults of the others; None if it has no formula of its arguments."""
    if op.kind != "elementwise" and op.name not in COMPOSED or not _optional(op, len(parameters)) or op.name in EXCLUDED:
        return None
    wilds = tuple(sympy.Dummy(f"w{i}", real=True) for i in range(op.arity or 0))
    try:
        formula = op.forward(symbolic, *[symbolic.ExactExpressions.fill([w], ()) for w in wilds], *parameters).item()
    except (TypeError, ValueError, NotImplementedError):
        return None
    if not formula.args or formula.free_symbols != set(wilds):
        return None
    return _Entry(name, wilds, stable_form_to_differentiate(formula))


def _is_arithmetic(e: Any) -> bool:
    """Whether a formula consists of sums, products and powers, and divides by no sum: then its parts compute it as well."""
    return e.is_Atom or (e.is_Add or e.is_Mul or e.is_Pow and (e.exp.is_positive or e.base.is_Atom)) and all(map(_is_arithmetic, e.args))


def _ops() -> list[Op]:
    of_lengths = {"beyond_zero", *[op.square for op in REGISTRY.values()]}  # which the recorder calls; the first has the derivatives of a length
    return [REGISTRY[name] for name in REGISTRY if name in BUILT_IN and name not in ARITHMETIC and name not in of_lengths]


@functools.cache
def known_functions() -> dict[Any, str]:
    """The ops that compute one SymPy function, by this function."""
    found = [entry for op in _ops() if (entry := _entry_of(op, op.name)) is not None and _is_function(entry)]
    return {entry.formula.func: entry.op for entry in found[::-1]}  # the first op of a function


def _is_function(entry: _Entry) -> bool:
    return entry.formula.args == entry.wilds and not (entry.formula.is_Add or entry.formula.is_Mul or entry.formula.is_Pow)


@functools.cache
def _patterns() -> dict[Any, list[_Entry]]:
    """The other ops by the outermost function of their formula, the longest first."""
    patterns: dict[Any, list[_Entry]] = {}
    for entry in [_entry_of(op, *named) for op in _ops() for named in ((op.name, ()), *WITH_PARAMETERS.get(op.name, {}).items())]:
        if entry is None or _is_function(entry) or not isinstance(entry.formula, sympy.Expr):
            continue
        if len(entry.wilds) == 1 or not _is_arithmetic(entry.formula):
            patterns.setdefault(entry.formula.func, []).append(entry)
    for entries in patterns.values():
        entries.sort(key=lambda entry: -sum(1 for _ in sympy.preorder_traversal(entry.formula)))
    return patterns


@functools.cache
def special_formulas() -> frozenset[str]:
    """The names of the ops with a longer formula in which there is a special function."""
    return frozenset(entry.op for entries in _patterns().values() for entry in entries if is_special(entry.formula))


def known_names() -> list[str]:
    """The names of the SymPy functions that ops can compute."""
    known = [*known_functions(), *DEFINITIONS, *BOOLEANS, *COMPLEX, sympy.Piecewise, sympy.ITE, sympy.Sum, sympy.Product]
    return sorted({kind.__name__ for kind in known})


# Pattern matching


Binding = dict[Any, Any]


def _bindings(pattern: Any, e: Any, binding: Binding) -> Iterator[Binding]:
    """The bindings of a pattern's symbols with which it equals the expression; they extend a given binding."""
    if pattern.is_Dummy:
        if pattern not in binding:
            yield {**binding, pattern: e}
        elif binding[pattern] == e:
            yield binding
    elif not pattern.args:
        if pattern == e:
            yield binding
    elif pattern.is_Mul and len(pattern.args) == 2 and pattern.args[0].is_Rational and pattern.args[1].is_Dummy:
        if isinstance(e, sympy.Expr):
            yield from _bindings(pattern.args[1], e / pattern.args[0], binding)
    elif pattern.func == e.func and len(pattern.args) == len(e.args):
        commutes = isinstance(pattern, (sympy.Add, sympy.Mul, sympy.Max, sympy.Min, sympy.And, sympy.Or))
        yield from (found for found, _ in _matches(_longest_first(pattern.args) if commutes else pattern.args, e.args, binding, commutes))


def _longest_first(patterns: Sequence[Any]) -> list[Any]:
    """Longer patterns are matched first, since they are more specific."""
    return sorted(patterns, key=lambda p: (bool(p.is_Dummy), -sum(1 for _ in sympy.preorder_traversal(p))))


def _matches(patterns: Sequence[Any], parts: Sequence[Any], binding: Binding, commutes: bool = True) -> Iterator[tuple[Binding, Sequence[Any]]]:
    """The bindings with which each pattern equals a different part, in order unless they commute; and the remaining parts."""
    if not patterns:
        yield binding, parts
        return
    for i, part in enumerate(parts if commutes else parts[:1]):
        for found in _bindings(patterns[0], part, binding):
            yield from _matches(patterns[1:], (*parts[:i], *parts[i + 1:]), found, commutes)


def known_formula(e: Any, accepted: Callable[[str], bool]) -> Call | None:
    """The expression as a call of an op with a longer formula; for a sum or product, the formula may match a part of it."""
    for entry in _patterns().get(e.func, ()):
        refused = not accepted(entry.op)
        if refused and entry.op not in WHOLE:
            continue
        if (e.is_Add or e.is_Mul) and len(e.args) >= len(entry.formula.args):
            found = next(_matches(_longest_first(entry.formula.args), e.args, {}), None)
        else:
            found = next(((binding, ()) for binding in _bindings(entry.formula, e, {})), None)
        if found is None:
            continue
        if refused:
            raise Unknown(f"{entry.op} cannot be written here, and computed by the parts of its formula it loses its digits")
        binding, rest = found
        call = Call(entry.op, tuple([binding[w] for w in entry.wilds]))
        return Call("add" if e.is_Add else "mul", (e.func(*rest), call)) if rest else call
    return None


# Planning one step


def plan(e: Any, accepted: Callable[[str], bool] = lambda op: True) -> Call | Any:
    """The call of the op that computes an expression from its parts, or an equal expression for a function with a definition.

    `accepted(name)` returns whether an op may be used. Raises Unknown for a function that is not in the catalogue.

    >>> x, y = sympy.symbols("x y", real=True)
    >>> plan(sympy.log(x) / sympy.log(2))
    Call(op='log2', args=(x,))
    >>> plan(x - 2 * y)
    Call(op='sub', args=(x, Call(op='mul', args=(2, y))))
    """
    return known_formula(e, accepted) or plan_parts(e, accepted)


def plan_parts(e: Any, accepted: Callable[[str], bool] = lambda op: True) -> Call | Any:
    """Like `plan`, without ops that have a longer formula."""
    if e.is_Add:
        return accepted("fmod_tensor") and _fmod_by_number(e) or _sum(e)
    if e.is_Mul:
        return _product(e)
    if e.is_Pow:
        return _power(*e.args)
    if isinstance(e, sympy.Piecewise):
        return _choice(e)
    if isinstance(e, sympy.ITE):
        condition, a, b = e.args
        return sympy.Or(sympy.And(condition, a), sympy.And(sympy.Not(condition), b))
    kind, args = e.func, e.args
    if kind in BOOLEANS:
        return Call(BOOLEANS[kind], args) if len(args) < 3 else Call(BOOLEANS[kind], (kind(*args[:-1]), args[-1]))
    if kind is sympy.log and _exponents(args[0]):
        return _log_of_sum(_exponents(args[0]))
    functions = known_functions()
    if kind in functions and (len(args) == REGISTRY[functions[kind]].arity or kind in (sympy.Max, sympy.Min)):
        return Call(functions[kind], args)
    if kind in COMPLEX:
        return Call(COMPLEX[kind], args)
    if kind in DEFINITIONS:
        return DEFINITIONS[kind](*args)
    if isinstance(e, UNEVALUATED):
        return _evaluate(e)
    if isinstance(e, sympy.Tuple):
        raise Unknown(f"{e} is a tuple; give an expression, an Array or a Matrix")
    op = REGISTRY.get(getattr(kind, "__name__", ""))
    if isinstance(e, (AppliedUndef, sympy.Function)) and op is not None and op.kind == "elementwise" and len(args) >= (count := op.arity or 0):
        if all(p.is_Number for p in args[count:]) and _optional(op, len(args) - count):
            return Call(op.name, args)
    if e.args and (refused := known_formula(e, lambda op: True)):
        raise Unknown(f"{refused.op} cannot be written here")
    if isinstance(e, (sympy.Expr, Boolean)) and e.args:
        raise Unknown(f"no op computes {getattr(kind, '__name__', kind)}, in {short(e)}; known are {', '.join(known_names())}")
    raise Unknown(f"{short(e)} ({type(e).__name__}) is not an expression of numbers")


def special_call(e: Any) -> Call | None:
    """A function of SymPy as a call of the special function of the carriers, with its parameters; None for another expression."""
    if isinstance(e, CarrierFunction):
        return Call(e.op, (*e.values, *e.parameters))
    if not isinstance(e, sympy.Function):
        return None
    try:
        call = plan(e)
    except Unknown:
        return None
    if not isinstance(call, Call):
        return None
    op, parameters = NAMED.get(call.op, (call.op, ()))
    return Call(op, (*call.args, *parameters)) if op in SPECIAL else None


def _sum(e: Any) -> Call:
    """A sum from left to right, with `sub` for terms with a negative coefficient, and numbers last."""
    plus: list[Any] = []
    minus: list[Any] = []
    for term in sorted(e.args, key=lambda t: bool(t.is_Number)):
        negative = term.is_Number and term.is_negative or term.is_Mul and term.args[0].is_Number and term.args[0].is_negative
        (minus if negative else plus).append(-term if negative else term)
    out: Any = plus[0] if plus else Call("neg", (minus.pop(0),))
    for term in plus[1:]:
        out = Call("add", (out, _multiple(term)))
    for term in minus:
        out = Call("sub", (out, _multiple(term)))
    return out


def _fmod_by_number(e: Any) -> Call | None:
    """u - c sign(u) floor(|u| / c), which cancels where u is much larger than the number c, as a call of `fmod`; other terms are added."""
    for term in e.args:
        coefficient, product = term.as_coeff_Mul()
        factors = sympy.Mul.make_args(product)
        signs, floors = ([f.args[0] for f in factors if isinstance(f, kind)] for kind in (sympy.sign, sympy.floor))
        if len(factors) == 2 and signs and floors and coefficient < -1e-300:
            scale, size = floors[0].as_coeff_Mul()
            parts = sympy.Add.make_args(signs[0])
            if size == sympy.Abs(signs[0]) and abs(scale * coefficient + 1) < 1e-12 and {p for p in parts if not p.is_Number} <= set(e.args):
                call, rest = Call("fmod_tensor", (signs[0], -coefficient)), sympy.Add(*[t for t in e.args if t != term], *[-p for p in parts])
                return Call("add", (rest, call)) if rest != 0 else call
    return None


def _multiple(e: Any) -> Any:
    """A term n * x with an integer n as a call of `mul`; other terms unchanged."""
    if e.is_Mul and e.args[0].is_Integer and len(e.args) == 2:
        return Call("mul", e.args)
    return e


def _exponents(e: Any) -> list[Any]:
    """The exponents of a sum of three exponentials or more; [] for any other expression. Sums of two are in `symgrad.algebra.stable`."""
    terms = [ZERO if term == 1 else term.args[0] if isinstance(term, sympy.exp) else None for term in e.args] if e.is_Add else []
    return terms if len(terms) > 2 and None not in terms else []


def _log_of_sum(exponents: Sequence[Any]) -> Call:
    return functools.reduce(lambda a, b: Call("logaddexp", (a, b)), exponents)


def _softmax_factors(factors: Sequence[Any]) -> tuple[list[Any], list[Any]]:
    """Pairs of factors exp(v) and 1 / Σ exp(u) as exp(v - log(Σ exp(u))), without overflow; and the other factors."""
    shares: list[Any] = []
    rest = list(factors)
    for factor in factors:
        above = next((f for f in rest if isinstance(f, sympy.exp)), None)
        if factor.is_Pow and factor.exp == -1 and above is not None and _exponents(factor.base):
            rest = [f for f in rest if f not in (factor, above)]
            shares.append(Call("exp", (Call("sub", (above.args[0], _log_of_sum(_exponents(factor.base)))),)))
    return shares, rest


def _product(e: Any) -> Call:
    """The product of the numerator's factors divided by that of the denominator's; integers are divided by, since their inverses are rounded."""
    coefficient, factors = e.as_coeff_mul()
    shares, factors = _softmax_factors(factors)
    above: list[Any] = shares
    below: list[Any] = []
    for factor in factors:
        base, power = factor.args if factor.is_Pow else (factor, ONE)
        (below if power.is_Number and power.is_negative else above).append(factor if not (power.is_Number and power.is_negative) else base**-power)
    sign = coefficient.is_Number and bool(coefficient.is_negative)  # a minus sign of the product
    coefficient = -coefficient if sign else coefficient
    p, q = coefficient.as_numer_denom() if coefficient.is_Rational else (coefficient, ONE)
    top = _chain("mul", [] if p == 1 and above else [p], above)
    bottom = _chain("mul", [] if q == 1 else [q], below) if below or q != 1 else None
    out = top if bottom is None else Call("div", (top, bottom))
    return Call("neg", (out,)) if sign else out


def _chain(op: str, first: Sequence[Any], rest: Sequence[Any]) -> Any:
    return functools.reduce(lambda a, b: Call(op, (a, b)), [*first, *rest])


def _power(base: Any, power: Any) -> Call:
    if power == 2:
        return Call("square", (base,))
    if power == HALF:
        return Call("sqrt", (base,))
    if power == -HALF:
        return Call("rsqrt", (base,))
    if power == -1:
        return Call("div", (ONE, base))
    return Call("pow", (base, power))


def _choice(e: Any) -> Any:
    """Nested selections in the order of the conditions; NaN if no condition holds."""
    out: Any = sympy.nan
    for value, condition in reversed(e.args):
        out = value if condition == sympy.true else Call("where", (condition, value, out))
    return out


def _evaluate(e: Any) -> Any:
    """The terms of a sum or product, or an evaluated derivative or integral."""
    if isinstance(e, (sympy.Sum, sympy.Product)):
        count = 1
        for limit in e.limits:
            if len(limit) != 3 or not (limit[1].is_Integer and limit[2].is_Integer):
                raise Unknown(f"{short(e)}: a {type(e).__name__} needs limits that are integers")
            count *= max(0, int(limit[2] - limit[1]) + 1)
        if count > MANY:
            raise Unknown(f"{short(e)} has {count} terms, more than {MANY}; write it with arrays")
    out = e.doit()
    if out.has(*UNEVALUATED):
        raise Unknown(f"SymPy cannot evaluate {short(e)}")
    return out
