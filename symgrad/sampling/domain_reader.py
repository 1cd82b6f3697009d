"""Domains of arguments in the forms that users write: a Domain, a pair, a SymPy set, a name, or text such as "-1..1"."""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from symgrad.formulas.parsing import ParseError, parse
from symgrad.types.domains import BOOLEAN, INTEGER, NEGATIVE, NONNEGATIVE, NONZERO, POSITIVE, REAL, Domain, Interval

__all__ = ["domain_of", "domains_of", "parse_domains", "simple_number", "written"]

NONPOSITIVE = Domain("NONPOSITIVE", (Interval(-math.inf, 0.0),))
UNIT = Domain("UNIT", (Interval(0.0, 1.0),))
NAMED = {"real": REAL, "positive": POSITIVE, "nonnegative": NONNEGATIVE, "negative": NEGATIVE, "nonpositive": NONPOSITIVE, "nonzero": NONZERO,
         "unit": UNIT, "integer": INTEGER, "boolean": BOOLEAN}
EXPECTED = f"a pair (low, high), a symgrad Domain, a SymPy set, one of {', '.join(NAMED)}, or text such as '-1..1', '(0, 1]' or '{{-1, 1}}'"
SIMPLE = (1.0, 0.5, 2.0, -1.0, -0.5, 3.0, 0.25, -0.25, -2.0, 10.0, -10.0, 0.0)


def written(domain: Domain) -> str:
    """A domain in the notation that `domain_of` reads.

    >>> written(POSITIVE), written(NONZERO), written(Domain("d", (Interval(-1.0, 1.0),)))
    ('(0, inf)', '(-inf, inf) without 0', '[-1, 1]')
    """
    def part(i: Interval) -> str:
        if i.low == i.high:
            return f"{{{i.low:g}}}"
        return f"{'(' if i.open_low or math.isinf(i.low) else '['}{i.low:g}, {i.high:g}{')' if i.open_high or math.isinf(i.high) else ']'}"

    text = " or ".join(map(part, domain.intervals))
    if domain.excluded:
        text += " without " + ", ".join(f"{x:g}" for x in domain.excluded)
    return text + (", whole numbers" if domain.integer else "")


def domains_of(given: Any, names: Sequence[str]) -> dict[str, Domain]:
    """A domain for each argument, from a mapping by name or one for all of them; all real numbers where none is given.

    Raises TypeError for a name that is no argument and for what is no domain, ValueError for a domain without points.
    """
    if isinstance(given, Mapping):
        unknown = [str(name) for name in given if name not in names]
        if unknown:
            raise TypeError(f"check: domain names {unknown[0]}, but the arguments are {', '.join(names) or 'none'}")
        return {name: domain_of(given[name], name) if name in given else REAL for name in names}
    return {name: REAL if given is None else domain_of(given, name) for name in names}


def domain_of(given: Any, name: str = "x") -> Domain:
    """One domain, as any of the forms that users write.

    Raises TypeError for another form and ValueError for a domain that excludes every point.

    >>> domain_of("positive"), written(domain_of((0, 1))), written(domain_of("(0, pi/2]"))
    (POSITIVE, '[0, 1]', '(0, 1.5708]')
    """
    if isinstance(given, Domain):
        out = given
    elif isinstance(given, str):
        out = NAMED[given.strip().lower()] if given.strip().lower() in NAMED else _from_text(given, name)
    elif isinstance(given, (tuple, list)) and len(given) == 2 and all(isinstance(x, (int, float)) for x in given):
        out = _interval(float(given[0]), float(given[1]))
    elif getattr(given, "is_set_expr", False) or hasattr(given, "is_subset"):  # a SymPy set
        out = _from_sympy(given, name)
    else:
        raise TypeError(f"check: the domain of {name} is {given!r}; expected {EXPECTED}")
    if not any(simple_number(Domain("", (i,), out.excluded, out.integer)) is not None for i in out.intervals):
        raise ValueError(f"check: the domain {given!r} of {name} excludes every point; give one with points in it, such as (0, 1) or 'positive'")
    return out


def _interval(low: float, high: float, open_low: bool = False, open_high: bool = False) -> Domain:
    return Domain(f"[{low:g}, {high:g}]", (Interval(low, high, open_low, open_high),))


RANGE = re.compile(r"\s*(?P<open>[\[(]?)\s*(?P<low>[^,]*?)\s*(?:\.\.|,)\s*(?P<high>[^,]*?)\s*(?P<close>[\])]?)\s*$")


def _from_text(text: str, name: str) -> Domain:
    inner = text.strip()
    if inner.startswith("{") and inner.endswith("}"):
        numbers = [_end(part, text, name) for part in inner[1:-1].split(",") if part.strip()]
        return Domain(inner, tuple(Interval(x, x) for x in sorted(numbers)))
    match = RANGE.match(inner)
    bracketed = inner[:1] in ("[", "(") and inner[-1:] in ("]", ")")
    if match is None or "," in inner and not bracketed:
        near = difflib.get_close_matches(text.strip().lower(), NAMED, 1)
        raise TypeError(f"check: the domain of {name} is {text!r}{f' (did you mean {near[0]!r}?)' if near else ''}; expected {EXPECTED}")
    low, high = match["low"], match["high"]
    if ".." in inner and not bracketed:
        low, _, high = inner.partition("..")
    return _interval(_end(low, text, name), _end(high, text, name), bracketed and inner[0] == "(", bracketed and inner[-1] == ")")


def _end(text: str, domain: str, name: str) -> float:
    """A number in a domain: a constant formula, or inf; parsed, never evaluated."""
    if text.strip().lower().lstrip("+-") in ("inf", "infinity", "oo"):
        return -math.inf if text.strip().startswith("-") else math.inf
    try:
        formula = parse(text)
        if not formula.names:
            return float(formula())
    except ParseError:
        pass
    raise TypeError(f"check: {text.strip()!r} in the domain {domain!r} of {name} is not a number; expected {EXPECTED}")


def _from_sympy(given: Any, name: str) -> Domain:
    import sympy

    pieces: list[Interval] = []
    excluded: list[float] = []
    integer = False
    stack = [given]
    while stack:
        part = stack.pop()
        if part is sympy.S.EmptySet:
            continue
        if part is sympy.S.Reals:
            pieces.append(Interval())
        elif part in (sympy.S.Integers, sympy.S.Naturals, sympy.S.Naturals0):
            integer = True
            pieces.append(Interval() if part is sympy.S.Integers else Interval(1.0 if part is sympy.S.Naturals else 0.0))
        elif isinstance(part, sympy.Interval):
            pieces.append(Interval(float(part.start), float(part.end), bool(part.left_open), bool(part.right_open)))
        elif isinstance(part, sympy.FiniteSet):
            pieces += [Interval(float(x), float(x)) for x in part]
        elif isinstance(part, sympy.Union):
            stack += part.args
        elif isinstance(part, sympy.Complement) and isinstance(part.args[1], sympy.FiniteSet):
            stack.append(part.args[0])
            excluded += [float(x) for x in part.args[1]]
        else:
            raise TypeError(f"check: the domain of {name} is {given}; of SymPy's sets, intervals, finite sets, the integers, unions of these and "
                            f"their complements in finite sets can be drawn from")
    return Domain(str(given), tuple(sorted(pieces, key=lambda i: i.low)), tuple(excluded), integer)


def simple_number(domain: Domain) -> float | None:
    """A number in the domain that is easy to read, None if there is none.

    >>> simple_number(POSITIVE), simple_number(domain_of((20, 30))), simple_number(Domain("none", (Interval(1.0, 0.0),)))
    (1.0, 25.0, None)
    """
    for x in SIMPLE:
        if x in domain:
            return x
    for i in domain.intervals:
        low, high = max(i.low, -1e308), min(i.high, 1e308)
        middle = low / 2 + high / 2
        if math.isinf(i.high) or math.isinf(i.low):
            middle = low + 1 if math.isinf(i.high) else high - 1
        for x in (middle, float(math.floor(middle)), float(math.ceil(middle)), low, high, float(np.nextafter(low, high)), float(math.ceil(low))):
            if x in domain:
                return x
    return None


def parse_domains(text: str) -> dict[str, Any]:
    """Read the domains of the command line, such as "x=positive, y=-1..1, z=(0, 1], k={-1, 1}", or one for all such as "-1..1".

    Raises ValueError for other text.

    >>> parse_domains("x=positive, y=-1..1, k={-1, 1}")
    {'x': 'positive', 'y': '-1..1', 'k': '{-1, 1}'}
    """
    parts, depth, start = [], 0, 0
    for at, c in enumerate(text):
        depth += (c in "([{") - (c in ")]}")
        if c == "," and not depth:
            parts.append(text[start:at])
            start = at + 1
    parts.append(text[start:])
    out: dict[str, Any] = {}
    for part in parts:
        name, sign, spec = part.partition("=")
        name = name.strip()
        if not sign or not name.isidentifier() or not spec.strip():
            raise ValueError(f"{part.strip()!r} is not a domain; write NAME=DOMAIN, as in x=positive,y=-1..1")
        if name in out:
            raise ValueError(f"{name} is given twice")
        out[name] = spec.strip()
    return out
