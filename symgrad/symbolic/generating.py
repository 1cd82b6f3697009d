"""NumPy code from expressions, with common subexpressions, powers by multiplication, selections for pieces, and series next to points.

The code is generated from the expression tree, in which every function is one of a fixed list; argument names that are not plain
identifiers are replaced. So user text is never executed.

>>> import sympy
>>> x = sympy.Symbol("x", real=True)
>>> code = generate("f", [x], [sympy.exp(-x**2 / 2)])
>>> print(code.source)
def f(x):
    return exp(-square(x)/2)
>>> float(code(2.0))
0.1353352832366127
"""

from __future__ import annotations

import functools
import keyword
import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import sympy

from symgrad.algebra import stable_functions as stable
from symgrad.algebra.stable_products import Mean, Ratio
from symgrad.algebra.values import Unknown, value
from symgrad.carriers.special.table import SPECIAL
from symgrad.symbolic.carrier_function import Call
from symgrad.symbolic.catalogue import NAMED, known_functions, plan_parts, special_call
from symgrad.symbolic.support import SUPPORT, Guard, Patch

SIGMOIDS, FIRST, SECOND = map(sympy.Function, ("sigmoids", "first", "second"))  # a pair of functions that share one exponential
AVERAGED = sympy.Function("averaged")  # a `Mean` in the code: its number, and all arguments


def _with_pairs(outputs: Sequence[Any]) -> list[Any]:
    """Expressions in which sigmoid(u) and sigmoid(-u) are replaced by one call."""
    found = set().union(*(e.atoms(stable.sigmoid) for e in outputs))
    together: dict[Any, Any] = {}
    for f in sorted(found, key=sympy.default_sort_key):
        (u,) = f.args
        if f not in together and stable.sigmoid(-u) in found:
            together |= {f: FIRST(SIGMOIDS(u)), stable.sigmoid(-u): SECOND(SIGMOIDS(u))}
    return [e.xreplace(together) for e in outputs]


# Functions of generated code without an op, or with one whose code is slower; all others are those of the catalogue
OWN = {SIGMOIDS: "sigmoids", stable.step: "step", sympy.Heaviside: "step", stable.log_cosh: "log_cosh", stable.log1mexp: "log1mexp",
       stable.whole: "floor"}
MULTIPLIED = 8  # the largest power that is computed by multiplication
SUM, PRODUCT, SIGN, ATOM = range(4)  # the precedence of code
OPERATORS: dict[str, tuple[str, int, tuple[int, ...]]] = {
    "add": ("{} + {}", SUM, (SUM, PRODUCT)), "sub": ("{} - {}", SUM, (SUM, PRODUCT)), "mul": ("{}*{}", PRODUCT, (PRODUCT, ATOM)),
    "div": ("{}/{}", PRODUCT, (PRODUCT, ATOM)), "neg": ("-{}", SIGN, (PRODUCT,)), "eq": ("({} == {})", ATOM, (SUM, SUM)),
    "ne": ("({} != {})", ATOM, (SUM, SUM)), "lt": ("({} < {})", ATOM, (SUM, SUM)), "le": ("({} <= {})", ATOM, (SUM, SUM)),
    "gt": ("({} > {})", ATOM, (SUM, SUM)), "ge": ("({} >= {})", ATOM, (SUM, SUM))}  # with the precedences of the result and of the operands


class Code(NamedTuple):
    """A function of arrays: its source for display, the function, and the name, source and constants from which it is compiled."""

    source: str
    function: Callable[..., Any]
    name: str
    plain: str
    constants: dict[str, Any]

    def bound(self, names: Mapping[str, Any]) -> Callable[..., Any]:
        """The function compiled with other functions for the names in its code, such as those of another framework."""
        constants = {key: x.bound(names) if isinstance(x, Code) else x for key, x in self.constants.items()}
        if missing := {each for each in SPECIAL if re.search(rf"\b{each}\(", self.plain)} - names.keys():
            raise Unknown(f"{self.name}: the other framework has no {', '.join(sorted(missing))}")
        return _compile(self.name, self.plain, constants, names)

    def __call__(self, *xs: Any) -> Any:
        return self.function(*xs)


def plain_names(symbols: Sequence[Any]) -> list[str]:
    """A name for each symbol: that of the symbol if it is a plain identifier, else x1, x2, ...

    >>> import sympy
    >>> plain_names([sympy.Symbol("x"), sympy.Symbol("lambda"), sympy.Symbol("__import__('os')")])
    ['x', 'x1', 'x2']
    """
    out: list[str] = []
    used = {s.name for s in symbols}
    fresh = (name for name in (f"x{i}" for i in range(1, 10**9)) if name not in used)
    for symbol in symbols:
        name = symbol.name
        plain = re.fullmatch(r"[A-Za-z][A-Za-z0-9_]{0,30}", name) and not keyword.iskeyword(name) and name not in SUPPORT and not hasattr(np, name)
        plain = plain and name not in out and not re.fullmatch(
            r"t\d+|(patch|mean|slope|ends|guard)\d+|ratio_\d+_\d+|place|self|xp|out|True|False|None", name)
        out.append(name if plain else next(fresh))
    return out


RatioCode = Callable[[int, int], Code]


class _Printer:
    """The printer of expressions as NumPy code; `names` are those of the symbols, `ratio_code` is that of `generate`."""

    def __init__(self, names: Mapping[Any, str], ratio_code: RatioCode | None):
        self.names = names
        self.ratio_code = ratio_code
        self.guarded = False  # whether the code computes values that a selection discards
        self.codes: dict[str, Code] = {}  # the code of the ratios and means in the expression

    def text(self, expr: Any, level: int = SUM) -> str:
        out, own = self.of(expr)
        return f"({out})" if own < level else out

    def of(self, expr: Any) -> tuple[str, int]:
        """The code of an expression, or of a call of an op, and its precedence."""
        if isinstance(expr, Call):
            return self.call(expr)
        expr = sympy.sympify(expr)
        if expr in self.names:
            return self.names[expr], ATOM
        if isinstance(expr, sympy.Expr) and not expr.free_symbols:
            return self.number(expr)
        function = expr.func
        if function is sympy.Mul:
            constant, rest = expr.as_independent(*expr.free_symbols, as_Add=False)
            return self.of(plan_parts(expr) if constant.is_Rational else Call("mul", (constant, rest)))
        if function is sympy.Pow:
            return self.power(*expr.args)
        if function is Ratio:
            return self.ratio(*expr.args), ATOM
        if function is AVERAGED:
            i, *xs = expr.args
            return f"averaged(mean{i}, slope{i}, ends{i}, {', '.join(map(self.text, xs))})", ATOM
        if function in (FIRST, SECOND):
            return f"{self.text(expr.args[0], ATOM)}[{int(function is SECOND)}]", ATOM
        if function in OWN:
            return f"{OWN[function]}({', '.join(map(self.text, expr.args))})", ATOM
        self.guarded |= function is sympy.Piecewise
        try:
            known = function in known_functions() or function is sympy.Piecewise
            planned = (None if known else special_call(expr)) or plan_parts(expr)
        except Unknown:
            raise Unknown(f"{function.__name__} is not a function that NumPy code can be generated for") from None
        return self.of(planned)

    def call(self, call: Call) -> tuple[str, int]:
        """The code of a call of an op."""
        op, parameters = NAMED.get(call.op, (call.op, ()))
        args = (*call.args, *parameters)
        if op in OPERATORS:
            form, own, levels = OPERATORS[op]
            return form.format(*map(self.text, args, levels)), own
        if op not in SUPPORT:
            raise Unknown(f"{op} is not a function that NumPy code can be generated for")
        if len(args) > 2 and op in ("maximum", "minimum"):
            return functools.reduce(lambda a, b: f"{op}({a}, {b})", map(self.text, args)), ATOM
        return f"{op}({', '.join(map(self.text, args))})", ATOM

    def ratio(self, which: Any, order: Any, u: Any) -> str:
        assert self.ratio_code is not None, "an expression with ratios needs their code"
        name = f"ratio_{which}_{order}"
        self.codes[name] = self.ratio_code(int(which), int(order))
        return f"{name}({self.text(u)})"

    def number(self, expr: Any) -> tuple[str, int]:
        if expr is sympy.nan:
            return "nan", ATOM
        if expr.is_Integer and abs(expr) < 2**53:
            return (str(expr), ATOM) if expr >= 0 else (str(expr), SIGN)
        found = float(value(expr)([]))
        if not math.isfinite(found):
            raise Unknown(f"{expr} is {found}, not a finite number")
        return repr(found), ATOM if found >= 0 else SIGN

    def power(self, base: Any, exponent: Any) -> tuple[str, int]:
        if exponent.is_Rational and exponent.is_negative:
            return f"1/{self.text(base ** -exponent, ATOM)}", PRODUCT
        if exponent == 2:
            return f"square({self.text(base)})", ATOM
        if exponent.is_Integer and exponent <= MULTIPLIED:
            return f"power({self.text(base)}, {exponent})", ATOM
        if exponent == sympy.S.Half:
            return f"sqrt({self.text(base)})", ATOM
        if exponent.is_Rational and exponent.q == 2 and exponent.p <= 2 * MULTIPLIED:
            inner = self.text(base)
            n = int(exponent.p // 2)
            return (f"{self.text(base, ATOM)}*sqrt({inner})", PRODUCT) if n == 1 else (f"power({inner}, {n})*sqrt({inner})", PRODUCT)
        if exponent.is_Rational and exponent.q == 3 and exponent.p <= MULTIPLIED:
            inner = f"cbrt({self.text(base)})"
            return (inner if exponent.p == 1 else f"square({inner})" if exponent.p == 2 else f"power({inner}, {exponent.p})"), ATOM
        if base.is_number:
            return f"exp({self.text(sympy.log(base) * exponent)})" if base == sympy.E else f"pow({self.text(base)}, {self.text(exponent)})", ATOM
        return f"pow({self.text(base)}, {self.text(exponent)})", ATOM


def generate(name: str, symbols: Sequence[Any], outputs: Sequence[Any], patches: Sequence[Sequence[Patch]] = (),
             names: Sequence[str] | None = None, ratio_code: RatioCode | None = None,
             guards: Sequence[tuple[Guard, Sequence[str]] | None] = ()) -> Code:
    """The function of arrays that computes expressions of symbols: one value, or a tuple for several expressions.

    `patches` are, for each output, the series that replace it next to points of its first symbol. `ratio_code` returns the code of a
    derivative of a `Ratio`; it is needed if the outputs contain one. `guards` are, for each output, its guard (see `symgrad.symbolic.support`)
    with the names of the guard's arguments. Raises `symgrad.algebra.values.Unknown` for a function without a rule.
    """
    own = list(names or plain_names(symbols))
    name = f"{name}_" if name in SUPPORT else name  # so that the function does not call itself
    if not all(n.isidentifier() and not keyword.iskeyword(n) for n in (name, *own)):
        raise ValueError(f"the names of a function and of its arguments must be identifiers, not {name} and {', '.join(own)}")
    fresh = sympy.numbered_symbols("t", start=0, real=True)
    dummies = {s: sympy.Dummy(f"a{i}", **s.assumptions0) for i, s in enumerate(symbols)}
    plain, means = _without_means(outputs, symbols)
    shared, ends = sympy.cse(_with_pairs([e.xreplace(dummies) for e in plain]), symbols=fresh, order="none")
    known: dict[Any, str] = {dummies[s]: n for s, n in zip(symbols, own)}
    printer = _Printer(known, ratio_code)
    for i, mean in enumerate(means):
        printer.guarded = True  # the quotient is computed where it is 0/0
        printer.codes |= _codes_of_mean(mean, i, symbols, own, ratio_code)
    lines = []
    for symbol, expr in shared:
        text = printer.text(expr)
        known[symbol] = symbol.name
        lines.append(f"{symbol.name} = {text}")
    constants: dict[str, Any] = {}
    results = []
    for i, end in enumerate(ends):
        text = printer.text(end)
        for k, patch in enumerate(patches[i] if patches else ()):
            constants[f"patch{i}{k}"] = patch
            text = f"patched({text}, {own[0]}, patch{i}{k})"
            printer.guarded = True
        if not end.free_symbols & set(known):
            text = f"{text} + zeros_like({own[0]})"
        results.append(text)
    for i, guard in enumerate(guards):
        if guard is not None:
            constants[f"guard{i}"], of = guard
            results[i] = f"guarded({results[i]}, guard{i}, {', '.join(of)})"
            printer.guarded = True
    lines.append("return " + ", ".join(results))
    patches_of = "".join(f"\n# {key}: {patch.coefficients[:3]}... within {patch.radius:.3g} of {patch.centre:g}" for key, patch in constants.items()
                         if isinstance(patch, Patch))
    note = patches_of + "".join(f"\n\n{code.source}" for code in printer.codes.values())
    constants |= printer.codes
    body = ["with quiet():", *("    " + line for line in lines)] if printer.guarded else lines
    source = "\n    ".join([f"def {name}({', '.join(own)}):", *body])
    function = _compile(name, source, constants, SUPPORT)
    return Code(source + note, function, name, source, constants)


def _without_means(outputs: Sequence[Any], symbols: Sequence[Any]) -> tuple[list[Any], list[Any]]:
    """Expressions in which every outermost `Mean` is replaced by a numbered function of all symbols, and the means."""
    means: dict[Any, int] = {}

    def of(e: Any) -> Any:
        if isinstance(e, Mean):
            return AVERAGED(means.setdefault(e, len(means)), *symbols)
        return e.func(*map(of, e.args)) if e.has(Mean) else e

    return [of(sympy.sympify(e)) for e in outputs], list(means)


def _codes_of_mean(mean: Any, i: int, symbols: Sequence[Any], names: Sequence[str], ratio_code: RatioCode | None) -> dict[str, Code]:
    """The code of the quotient that equals a mean, of its integrand, and of its two ends."""
    closed, integrand, ends = mean.args
    (place,) = integrand.variables
    return {f"mean{i}": generate(f"mean{i}", symbols, [closed], names=names, ratio_code=ratio_code),
            f"slope{i}": generate(f"slope{i}", [*symbols, place], [integrand.expr], names=[*names, "place"], ratio_code=ratio_code),
            f"ends{i}": generate(f"ends{i}", symbols, list(ends), names=names, ratio_code=ratio_code)}


def _compile(name: str, source: str, constants: Mapping[str, Any], names: Mapping[str, Any]) -> Callable[..., Any]:
    """The function for generated source: every name in it is an argument, in SUPPORT, or in `constants`."""
    code = compile(source, f"<symgrad: {name}>", "exec")
    (function,) = [c for c in code.co_consts if hasattr(c, "co_names")]
    if not {*function.co_names} <= SUPPORT.keys() | constants.keys() or code.co_names != (name,):
        raise ValueError(f"the generated source of {name} uses other names than those of the table")
    space: dict[str, Any] = {"__name__": "symgrad.generated", **{each: names[each] for each in {*function.co_names} - constants.keys()}, **constants}
    exec(code, space)
    return space[name]
