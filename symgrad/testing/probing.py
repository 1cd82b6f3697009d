"""The first call of a function: which floating-point type it takes, and why it cannot be attacked where no call gives a value."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from symgrad.checking.foreign.domains import SIMPLE, simple_number
from symgrad.domains import BOOLEAN, COMPLEX, Domain
from symgrad.testing.failure import NotApplicable, kind, raised_at, shown
from symgrad.testing.subjects.base import is_active

if TYPE_CHECKING:
    from symgrad.testing.attack import Attack

__all__ = ["cast", "dtype_taken"]

TYPES = ("float64", "float32", "float16")
SHAPES = ((4,), (2, 3), (1,), ())
NUMBERS = 3  # of a domain that are tried


def cast(x: np.ndarray, dtype: str) -> np.ndarray:
    """An array of doubles, real or complex, in a narrower type; any other as it is."""
    if dtype == "float64" or x.dtype not in (np.float64, np.complex128):
        return x
    return x.astype(np.complex64 if x.dtype.kind == "c" else dtype)


def dtype_taken(attack: Attack) -> str:
    """The floating-point type to attack a function in: the widest that is claimed, else float64.

    Raises ValueError where it gives no value in it at several points of its domain, or takes single numbers alone, with what it said and what to do.
    """
    claimed = attack.claims.dtypes or ()
    wanted = next((name for name in TYPES if name in claimed), TYPES[0])
    first: tuple[Exception, list[np.ndarray]] | None = None
    for xs in _points(attack):
        xs = [cast(x, wanted) for x in xs]
        error = _raised(attack, xs)
        if error is None:
            if attack.elementwise and first is not None and not any(x.ndim for x in xs):
                raise ValueError(_numbers_alone(attack, *first)) from first[0]
            return wanted
        first = first or (error, xs)
    if first is None or any(name.startswith("complex") for name in claimed):
        return wanted
    narrower = [name for name in TYPES if not claimed and any(_raised(attack, [cast(x, name) for x in xs]) is None for xs in _points(attack))]
    raise ValueError(_refusal(attack, *first, narrower)) from first[0]


def _points(attack: Attack) -> Iterator[list[np.ndarray]]:
    """Arguments to try: of the op's own shapes, or of several for one that acts on elements, filled with simple numbers of its domains."""
    columns = [[x for x in (1.0, -2.0, *SIMPLE[1:]) if x in d][:NUMBERS] or [simple_number(d) or 0.0] for d in attack.domains]
    count = len(attack.names) if attack.elementwise else len(attack.shapes)
    several = [(s,) * count for s in SHAPES[attack.subject.compiles:]]
    for shapes in several if attack.elementwise else [attack.shapes]:
        for k in range(max(map(len, columns), default=1)):
            yield [_filled(shape, columns[min(i, len(columns) - 1)], k, attack.domains[min(i, len(columns) - 1)])
                   for i, shape in enumerate(shapes)]


def _filled(shape: tuple[int, ...], column: Sequence[float], k: int, domain: Domain) -> np.ndarray:
    x = column[k % len(column)]
    out = np.full(shape, x) + (x * np.eye(*shape) if len(shape) == 2 else 0.0)
    return out.astype(bool) if domain == BOOLEAN else out + 0.5j if domain == COMPLEX else out


def _raised(attack: Attack, xs: Sequence[np.ndarray]) -> Exception | None:
    """What a call raises, None where it gives a value."""
    from symgrad.testing.checks.base import silence

    try:
        with silence(), attack.subject.context():
            attack.subject.value([x.copy() for x in xs])
    except NotApplicable:
        return None
    except Exception as error:  # whatever a user's function raises
        return error
    return None


def _said(attack: Attack, error: Exception, xs: Sequence[np.ndarray]) -> str:
    given = ", ".join(f"{name} = {shown(x)} ({kind(x) if is_active(x) else x.dtype.name})" for name, x in attack.inputs(xs).items())
    further = f" and {', '.join(map(repr, attack.claims.parameters))}" if attack.claims.parameters else ""
    where = raised_at(error)
    raised = f"{type(error).__name__}{f' ({where})' if where else ''}: {str(error).strip().partition(chr(10))[0]}"
    return f"called with {given}{further} it raised {raised}"


def _refusal(attack: Attack, error: Exception, xs: Sequence[np.ndarray], narrower: Sequence[str]) -> str:
    names = ", ".join(attack.inputs(xs))
    if narrower:
        return (f"symgrad.testing: {attack.name} takes no float64: {_said(attack, error, xs)}. It takes {narrower[0]}: if it is made for that, "
                f"claim dtypes=({narrower[0]!r},), and it is attacked in it")
    return (f"symgrad.testing: {attack.name} gives no value: {_said(attack, error, xs)}. It is called with an array for each of {names}, then with "
            f"what is claimed as parameters; formula=, domain=, shapes=, parameters= and output= say what it takes and gives")


def _numbers_alone(attack: Attack, error: Exception, xs: Sequence[np.ndarray]) -> str:
    return (f"symgrad.testing: {attack.name} takes single numbers alone: {_said(attack, error, xs)}. Give a function of arrays, such as "
            f"numpy.vectorize({attack.name}), or claim shapes=({'(), ' * len(xs)}) of the numbers it takes").replace(", ) of", ",) of")
