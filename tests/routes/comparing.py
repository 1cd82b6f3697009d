"""What the routes give for one function, compared with the function evaluated with 160 digits or more, and differentiated by difference quotients.

The reference knows no rule of a derivative: `symgrad.reference` evaluates the ops' forward rules with mpmath at shifted points. Errors are
measured as the checks of `symgrad.testing` do: in ULP of the number, or of its change when the inputs change by their own size, or, if that
is not enough, by the rounding errors of the function's own steps.
"""

from __future__ import annotations

import math
import warnings
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import mpmath
import numpy as np

import symgrad
from symgrad.algebra.limits import OutOfTime, limited
from symgrad.carriers.digits import Undefined
from symgrad.dtypes.ulp import ulp_of
from symgrad.reference.tensors import ArrayReference, _Values, array_of
from symgrad.testing import Claims
from symgrad.testing.attack import Attack
from symgrad.testing.checks.measuring import compare
from symgrad.testing.claims import silence
from symgrad.testing.failure import Wrong

from .drawing import Function
from .table import ROUTES, NotHere, Problem, Route, here

__all__ = ["Difference", "Found", "examined"]

REFUSALS = (TypeError, ValueError, RuntimeError, NotImplementedError)
SECONDS = 3.0  # of processor time, after which a formula is left
TANGENTS = {"gradient": 0, "product": 1, "third": 2}  # the derivatives that are gradients, along so many tangents
OF_ELEMENTS = ("gradient", "product", "diagonal", "third", "Hessian", "cubic", "Hessian of slope")  # what has the shape and the dtype of the argument
CONTRACTED = {"Hessian": "product", "cubic": "third", "Hessian of slope": "third"}  # what a whole array of derivatives is multiplied to


class _Sums(ArrayReference):
    """The reference for an array of sums of derivatives along given moves, as values: such as the trace of the Hessian."""

    def __init__(self, base: ArrayReference, sums: Sequence[Sequence[Sequence[Any]]], shape: tuple[int, ...]):
        super().__init__(base.reader, base.exact)
        self.base, self.sums, self.shape = base, sums, shape

    def value(self, xs: Any) -> np.ndarray:
        """The sums."""
        near = self.base._values_near(xs)
        return array_of([self._sum(near, moves) for moves in self.sums], self.shape)

    def _sum(self, near: Any, moves: Sequence[Sequence[Any]], certain: bool = False) -> Any:
        terms = [near.derivative([m if isinstance(m, tuple) else near.direction([m]) for m in each], 0, certain) for each in moves]
        return None if any(t is None for t in terms) else mpmath.fsum(terms)

    def number(self, xs: Any, at: Any, wrt: Any, cells: Any, g: Any, tangents: Any, certain: bool = False) -> Any:
        """One sum, for many-digit arguments."""
        return self._sum(_Values(self.reader, xs, cells), self.sums[int(np.ravel_multi_index(at, self.shape)) if at else 0], certain)


@dataclass(frozen=True)
class Difference:
    """A route whose number is wrong: what it gave, and the reference."""

    route: str
    what: str
    told: str
    wrong: Any = None

    @property
    def kind(self) -> tuple[str, str]:
        """What shrinking keeps."""
        return self.route, "raised" if self.wrong is None else "wrong"


@dataclass
class Found:
    """What was found for one function."""

    function: Function
    differences: list[Difference] = field(default_factory=list)
    compared: Counter[str] = field(default_factory=Counter)  # numbers by route
    refused: Counter[tuple[str, str]] = field(default_factory=Counter)
    left: Counter[str] = field(default_factory=Counter)  # why something was not compared
    lost: Counter[str] = field(default_factory=Counter)  # by route: digits that the function's own steps lose


class _Reference:
    """The reference numbers of one function, each computed once: of its steps in the namespace of many digits, or of the recorded graph, replayed."""

    def __init__(self, function: Function, recorded: bool):
        self.function = function
        formula = (lambda x: function.scalar(x)) if recorded else lambda xp, x: function.formula(xp, x)
        claims = Claims(name="function", formula=formula, shapes=(function.point.shape,), elementwise=False)
        self.attack = Attack(function.scalar, claims, shrink=False)
        self.xs = (function.point,)
        self.one = np.ones((), function.point.dtype)
        self.known: dict[str, Any] = {}

    def of(self, what: str) -> tuple[Any, np.ndarray]:
        """The reference and its numbers."""
        if what not in self.known:
            truth, point, u = self.attack.truth, self.function.point, self.function.tangent
            if what == "value":
                self.known[what] = truth, truth.value(self.xs)
            elif not point.size:
                self.known[what] = truth, array_of([mpmath.mpf(0)], ()) if what not in OF_ELEMENTS else array_of([], point.shape)
            elif what in TANGENTS:
                self.known[what] = truth, truth.gradient(self.xs, self.one, *[[u]] * TANGENTS[what])[0]
            else:
                twice = [[(0, k), (0, k)] for k in range(point.size)]
                sums = [[each] for each in twice] if what == "diagonal" else [twice] if what == "trace" else [[[u] * int(what[-1])]]
                of = _Sums(truth, sums, point.shape if what == "diagonal" else ())
                self.known[what] = of, of.value(self.xs)
        return self.known[what]

    def compare(self, what: str, got: np.ndarray) -> bool:
        """Raise Wrong for a wrong number; whether digits are lost that the function's own steps lose."""
        of, true = self.of(what)
        before = len(self.attack.lost)
        if what in TANGENTS:
            compare(self.attack, what, got, true, self.xs, 0, self.one, *[[self.function.tangent]] * TANGENTS[what], wrt=(0,), of=of)
        else:
            compare(self.attack, what, got, true, self.xs, of=of)
        return len(self.attack.lost) > before


    def is_rounding(self, what: str, wrong: Wrong) -> bool:
        """Whether an error is that of a value which is rounded: the ULP allowed of |f| |u|ᵏ / |x|ⁿ, where derivatives cancel to 0 or nearly."""
        try:
            error, value = abs(mpmath.mpf(float(wrong.returned)) - wrong.true), abs(self.of("value")[1].item())
        except (TypeError, ValueError):
            return False
        orders = {"value": 0, "gradient": 1, "product": 2, "diagonal": 2, "trace": 2, "third": 3}
        order = orders[what] if what in orders else int(what.rpartition(" ")[2])  # "along 2"
        x, u = (np.abs(a.astype(np.float64)) for a in (self.function.point, self.function.tangent))
        least, along = min([1.0, *x[x > 0].tolist()]), max([1.0, *u.ravel().tolist()])
        bound = self.attack.ulp(self.function.point.dtype, order) * ulp_of(self.function.point.dtype.name).epsilon
        return bool(order and mpmath.isfinite(error) and error <= bound * value * along**order / least**order)


def numbers_of(route: Route, p: Problem, found: Any) -> np.ndarray:
    """What a route gave as an array of the function's dtype; whole Hessians and third derivatives are multiplied by the tangent."""
    wanted = p.function.point.shape if route.what in OF_ELEMENTS else ()
    if isinstance(found, symgrad.Tensor):
        dtype = p.x.dtype if route.what in OF_ELEMENTS else p.dtype
        if found.dtype != dtype:
            raise TypeMismatch(f"the result has the dtype {found.dtype}, and should have {dtype}")
    else:
        found = found.toarray() if hasattr(found, "toarray") else found.todense() if hasattr(found, "todense") else found
    out = np.asarray(found.detach().numpy() if isinstance(found, symgrad.Tensor) else found)
    if out.dtype.kind == "c":
        raise TypeMismatch(f"the result is complex: {out}")
    point, u = p.function.point, np.ravel(p.function.tangent).astype(np.float64)
    more = {"Hessian": 1, "Hessian of slope": 1, "cubic": 2}.get(route.what, 0)
    if out.size != math.prod(wanted) * point.size**more:
        raise TypeMismatch(f"the result has the shape {out.shape}")
    with np.errstate(all="ignore"):
        out = out.astype(np.float64).reshape((point.size,) * (more + 1) if more else wanted)
        for _ in range(more):
            out = out @ u
        return out.reshape(wanted).astype(point.dtype)


class TypeMismatch(Exception):
    """A result of another dtype or shape."""


def examined(function: Function, routes: Iterable[Route] = ROUTES, share: float = 1.0) -> Found:
    """Compute a function by every route, or by a share of them, and compare."""
    out, p = Found(function), Problem(function)
    with silence(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for recorded in (False, True):
            try:
                reference = _Reference(function, recorded)
                if reference.of("value")[1].item() is None:
                    out.left["the reference has no value"] += 1
                    return out
                break
            except (ArithmeticError, ValueError, TypeError, AttributeError, RuntimeError, NotImplementedError, IndexError, Undefined,
                    mpmath.libmp.NoConvergence) as error:
                if recorded:
                    out.left[f"no reference: {type(error).__name__}: {str(error)[:90]}"] += 1
                    return out
        for route in routes:
            if not here(route):
                out.left[f"{route.needs} is not installed"] += 1
            elif route.taken(function.seed, share):
                _take(out, p, reference, route)
    return out


def _take(out: Found, p: Problem, reference: _Reference, route: Route) -> None:
    what = CONTRACTED.get(route.what, route.what)
    try:
        _, true = reference.of(what)
    except (ArithmeticError, ValueError, Undefined, mpmath.libmp.NoConvergence) as error:
        out.left[f"no reference for a derivative: {type(error).__name__}: {str(error)[:90]}"] += 1
        return
    count = sum(t is not None for t in true.ravel().tolist())
    if not count and true.size:
        out.left[f"{what} does not exist"] += 1
        return
    try:
        with limited(SECONDS):
            got = numbers_of(route, p, route.compute(p))
        out.lost[route.name] += reference.compare(what, got)
        out.compared[route.name] += count
    except NotHere as reason:
        out.left[str(reason)] += 1
    except OutOfTime:
        out.left["SymPy takes long"] += 1
    except Wrong as wrong:
        if reference.is_rounding(what, wrong):
            out.lost[route.name] += 1
            return
        true_ = mpmath.nstr(wrong.true, 17) if isinstance(wrong.true, mpmath.mpf) else wrong.true
        at = f"{list(wrong.index)}" if wrong.index else ""
        out.differences.append(Difference(route.name, what, f"{what}{at} is {wrong.returned}, not {true_}"
                                          + (f" ({wrong.ulp:.3g} ULP)" if wrong.ulp is not None else ""), wrong))
    except TypeMismatch as error:
        out.differences.append(Difference(route.name, what, str(error)))
    except REFUSALS as error:
        text = str(error).strip().partition("\n")[0]
        if text:
            out.refused[route.name, f"{type(error).__name__}: {text[:120]}"] += 1
        else:
            out.differences.append(Difference(route.name, what, f"raised {type(error).__name__} without a message"))
    except Exception as error:
        out.differences.append(Difference(route.name, what, f"raised {type(error).__name__}: {str(error)[:200]}"))
