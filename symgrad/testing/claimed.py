"""`ClaimedOp`: an op with its claims, and the names, domains, shapes and dtype of its arguments, derived from claims and from a first call."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import inspect
import itertools
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import sympy

from symgrad.checks.cross import names_of
from symgrad.dtypes.dtype import numpy_dtype
from symgrad.engine.traced import FUNCTIONS
from symgrad.formulas.parsing import parse
from symgrad.frameworks.adapter import Adapter, AdapterOptions, NotApplicable, is_active
from symgrad.frameworks.levels import adapter_of
from symgrad.frameworks.naming import argument_names, name_of, owner_of
from symgrad.frameworks.own import OpAdapter
from symgrad.frameworks.torch import TorchAdapter
from symgrad.graph.domains import BOOLEAN, COMPLEX, REAL, Domain
from symgrad.graph.op import REGISTRY, Op
from symgrad.sampling.domain_reader import SIMPLE, domains_of, simple_number
from symgrad.testing.claims import Claims, Profile, claims_of, profile_named, silence
from symgrad.testing.failure import dtype_and_shape, exact_text, raised_at


def is_function(formula: Any) -> bool:
    """Whether a formula is a Python function, not text or a SymPy object."""
    if inspect.isroutine(formula):
        return True
    if isinstance(formula, str) or not callable(formula):
        return False
    return not isinstance(formula, (sympy.Basic, sympy.MatrixBase))


def names_in(formula: Any) -> list[str] | None:
    """The names of a formula's arguments, in order for text and functions and sorted for SymPy; None for no formula.

    Raises ParseError for text that is no formula.
    """
    if formula is None:
        return None
    if isinstance(formula, str):
        return list(parse(formula).names)
    if is_function(formula):
        names = [p.name for p in inspect.signature(formula).parameters.values() if p.default is p.empty]
        return names[1:] if names[:1] == ["xp"] else names
    if isinstance(formula, sympy.Lambda):
        return [str(s) for s in formula.signature]
    return list(names_of(formula) or ())


def is_scalar(formula: Any, names: Sequence[str]) -> bool:
    """Whether a formula maps numbers to a number: text or SymPy that names the arguments and none of their elements."""
    if is_function(formula):
        return False
    if isinstance(formula, str):
        return set(names_in(formula) or ()) <= set(names)
    if isinstance(formula, sympy.Lambda):
        return True
    return not isinstance(formula, (list, tuple, sympy.MatrixBase, sympy.NDimArray)) and set(names_in(formula) or ()) <= set(names)


TYPES = ("float64", "float32", "float16")
SHAPES = ((4,), (2, 3), (1,), ())
ORDINARY = 20  # the number of ordinary points in a vector, and the length of all vectors if every shape is compiled for
TRIAL_SHAPES = ((3, 4), (4, 3), (2, 3), (3,), (2,), (4,), (3, 3), (2, 2), (2, 4), (3, 2), (4, 2), ())  # beside (2, 3) or (3,), in the order of trials
MOST_TRIED = 150


class ClaimedOp:
    """An op under test and its claims.

    - `subject` calls the op in its framework.
    - `names`, `domains`, `shapes` and `dtype` describe the tensor arguments.
    - `elementwise` says whether the op acts on each element.
    - `shrink` says whether a failing example is simplified.

    Raises TypeError for a value that is no op and for unknown claims, ValueError for domains and formulas that do not fit the op.
    """

    def __init__(self, op: Any, claims: Claims | None = None, profile: str | Profile = "dev", seed: int = 0, shrink: bool = True, **options: Any):
        self.claims = (claims or claims_of(op) or Claims()).but(**options)
        self.profile, self.seed = profile_named(profile), seed
        self.subject, self.claims = _adapter_for(op, self.claims)
        self.name = self.claims.name or self.subject.name
        self._looked = False
        self.first: tuple[list[np.ndarray], list[np.ndarray]] | None = None  # the arguments and the results of the very first calls
        self.shrink = shrink

    @cached_property
    def names(self) -> list[str]:
        op = self.subject.op
        if op is not None and op.arity is not None:
            own, said = list(op.argument_names), names_in(self.claims.formula) or []
            return said if len(own) == len(said) == 1 else own
        if op is not None:
            return [f"x{i}" for i in range(len(self.shapes))]
        claims = self.claims
        known = argument_names(self.subject.function, names_in(claims.formula), len(claims.parameters), len(claims.shapes or ()) or None)
        if known:
            return known
        count = len(self.claims.shapes or ()) or next((n for n in range(1, 5) if any(self._takes([s] * n) for s in ((), (3,), (2, 3)))), 1)
        return [f"x{i}" for i in range(count)]

    def _takes(self, shapes: Sequence[tuple[int, ...]], values: Sequence[float] = ()) -> bool:
        try:
            with silence():
                self._value([x + x * np.eye(*s) if len(s) == 2 else np.full(s, x) for s, x in zip(shapes, values or [0.5] * len(shapes))])
            return True
        except Exception:  # a user's function may raise anything
            return False

    def _value(self, xs: Sequence[np.ndarray]) -> np.ndarray:
        try:
            return self.subject.value(xs)
        except Exception:  # a user's function may raise anything
            return self.subject.value([x.astype(np.float32) if x.dtype == np.float64 else x for x in xs])

    @cached_property
    def dtype(self) -> str:
        """The floating-point type of the examples: float64, or the widest type claimed. Raises ValueError if the op gives no value."""
        return "float64" if self.subject.op is not None else example_dtype(self)

    @cached_property
    def domains(self) -> list[Domain]:
        op = self.subject.op
        if self.claims.domain is None and op is not None:
            given = op.domain or (REAL,)
            return [given[min(i, len(given) - 1)] for i in range(len(self.names))]
        names = self.names  # outside `try`: its errors have a prefix of their own
        try:
            return list(domains_of(self.claims.domain, names).values())
        except (TypeError, ValueError) as error:
            raise type(error)(f"symgrad.testing: {self.name}: {error}") from error

    def domain_of(self, i: int) -> Domain:
        """The domain of argument i; the last one is that of all further arguments."""
        return self.domains[min(i, len(self.domains) - 1)]

    @cached_property
    def elementwise(self) -> bool:
        """Whether the op is elementwise: as claimed, as its kind or its formula says, or as calls show."""
        op = self.subject.op
        if self.claims.elementwise is not None:
            return self.claims.elementwise
        if op is not None:
            return bool(op.kind == "elementwise")
        if self.claims.shapes is not None:
            return False
        if self.claims.formula is not None:
            return is_scalar(self.claims.formula, self.names)
        return self._acts_on_elements()

    def _acts_on_elements(self) -> bool:
        base = [np.roll(np.resize(_some_numbers(d), 3), k) for k, d in enumerate(self.domains)]
        try:
            with silence():
                whole = self._value(base)
                parts = [self._value([x[i:i + 1] for x in base]) for i in range(3)]
        except Exception:  # a user's function may raise anything on vectors
            return False
        return whole.shape == (3,) and all(p.shape == (1,) for p in parts) and (
            self.claims.random or bool(np.allclose(whole, np.concatenate(parts), rtol=1e-3, atol=1e-6, equal_nan=True)))

    @cached_property
    def shapes(self) -> tuple[tuple[int, ...], ...]:
        """The shapes of the tensor arguments of an op that is not elementwise."""
        op = self.subject.op
        if self.claims.shapes is not None:
            return self.claims.shapes
        if op is not None and op.docs.shapes:
            return tuple(op.docs.shapes)
        count = 2 if op is not None and op.arity is None else len(self.names)
        if op is None:  # a function of matrices, square matrices, vectors or numbers
            values = [simple_number(d) or 0.0 for d in self.domains]
            same = ((s,) * count for s in ((3, 4), (3, 3), (4,), ()))
            return next((shapes for shapes in same if self._takes(shapes, values)), None) or self.fitting_shapes() or ((3, 4),) * count
        return ((3, 4),) * count

    def fitting_shapes(self) -> tuple[tuple[int, ...], ...] | None:
        """Shapes with different sides that the op takes, as those of the matrices of a product; None if it takes none of those that are tried."""
        values = [simple_number(d) or 0.0 for d in self.domains]
        for first in ((2, 3), (3,)):
            for rest in itertools.islice(itertools.product(TRIAL_SHAPES, repeat=len(values) - 1), MOST_TRIED):
                if self._takes((first, *rest), values):
                    return first, *rest
        return None

    @property
    def order(self) -> int:
        """The highest order of derivatives that is checked."""
        if not self._looked:
            self._looked = True
            with silence(), contextlib.suppress(Exception):  # the checks report it
                self._look()
        return min(self.profile.order, self.subject.orders)

    def _look(self) -> None:
        values = [simple_number(d) or 0.0 for d in self.domains]
        shapes = [(ORDINARY if self.subject.compiles else 3,)] * len(values) if self.elementwise else self.shapes
        xs = [np.full(shape, x, self.dtype) for shape, x in zip(shapes, values)]
        if not self.subject.compiles:  # what is compiled is the same at each call
            self.first = xs, [y.copy() for y in self.results_of_ones(xs)]
        if self.subject.op is None and self.subject.orders:
            self.subject.probe(xs)

    def results_of_ones(self, xs: Sequence[np.ndarray]) -> list[np.ndarray]:
        """The value, the derivatives of each order and the tangent, with ones for the cotangent and the tangents; as far as there are any."""
        out = [self.subject.value([x.copy() for x in xs])]
        ones = [np.ones_like(x) if is_active(x) else None for x in xs]
        calls: list[Any] = [functools.partial(self.subject.gradient, xs, np.ones_like(out[0]), *[ones] * k) for k in range(self.subject.orders)]
        for call in [*calls, *([lambda: [self.subject.tangent(xs, ones)]] if self.subject.forward else [])]:
            with contextlib.suppress(Exception):
                out += [y for y in call() if y is not None]
        return out

    def ulp(self, dtype: Any, order: int) -> float:
        """The largest error allowed, in units in the last place times the condition of the point."""
        return self.claims.allowed(dtype, order)

    def inputs(self, xs: Sequence[np.ndarray]) -> dict[str, np.ndarray]:
        names = self.names if len(self.names) == len(xs) else [f"x{i}" for i in range(len(xs))]
        return dict(zip(names, xs))


def _adapter_for(op: Any, claims: Claims) -> tuple[Adapter, Claims]:
    """The adapter for an op, with the claims that follow.

    An op is one of the registry, a symgrad function, a `Function` class, or a function of another framework; a tuple (function, gradient) is
    a function with its gradient. Derivatives of functions are for real numbers unless complex ones are claimed.

    Raises TypeError for what cannot be called, ImportError where the framework is not installed.
    """
    if isinstance(op, tuple) and len(op) == 2 and all(map(callable, op)):
        op, claims = op[0], claims.but(gradient=op[1])
    if isinstance(op, Op) and op.kind == "composite":
        op = FUNCTIONS.get(op.name, op)  # a composite op has no rules of its own
    name = "" if isinstance(op, Op) else name_of(op)
    if inspect.isclass(op) and callable(getattr(op, "apply", None)):
        op = op.apply  # type: ignore[attr-defined]
    if not isinstance(op, Op) and not callable(op):
        raise TypeError(f"symgrad.testing checks ops, functions and classes with apply, not {type(op).__name__}")
    known, options = op if isinstance(op, Op) else getattr(op, "op", None), _options(claims)
    if isinstance(known, Op) and (known is op or REGISTRY.get(known.name) is known and known.kind != "composite" and known.surface.prepare is None
                                  and claims.framework in (None, "symgrad") and not options.given):
        if known.docs.examples and not claims.parameters:
            claims = claims.but(parameters=known.docs.examples[0])
        return OpAdapter(known, _options(claims)), claims
    adapter = adapter_of(op, claims.framework, name, options)
    if claims.complex is None and (adapter.framework != "symgrad" or owner_of(op) is not None):
        claims = claims.but(complex=False)
    if claims.dtypes is None and isinstance(adapter, TorchAdapter):
        claims = claims.but(dtypes=adapter.module_dtypes())
    return adapter, claims


def _options(claims: Claims) -> AdapterOptions:
    return AdapterOptions(**{f.name: getattr(claims, f.name) for f in dataclasses.fields(AdapterOptions) if hasattr(claims, f.name)})


def _some_numbers(domain: Domain) -> list[float]:
    return list(dict.fromkeys(x for x in (1.0, -2.0, *SIMPLE) if x in domain))[:3] or [simple_number(domain) or 0.0]


def special_points(claimed: ClaimedOp) -> list[tuple[tuple[Any, ...], Any]]:
    """The special points of the claims and of the op: pairs (one number per argument, the claimed gradient or None)."""
    op = claimed.subject.op
    out: list[tuple[tuple[Any, ...], Any]] = []
    for point in (*claimed.claims.special, *(op.docs.special if op is not None else ())):
        gradient = None
        if isinstance(point, (tuple, list)) and len(point) == 2 and (isinstance(point[0], (tuple, list)) or len(claimed.names) == 1):
            point, gradient = point
        out.append((tuple(point) if isinstance(point, (tuple, list)) else (point,), gradient))
    return out


def cast(x: np.ndarray, dtype: str) -> np.ndarray:
    """An array of floats in a floating-point type, one of complex numbers in the complex type that belongs to it; any other array unchanged."""
    if x.dtype.kind == "c":
        return x.astype(np.complex128 if dtype == "float64" else np.complex64)
    return x.astype(numpy_dtype(dtype)) if x.dtype.kind == "f" else x


def example_dtype(claimed: ClaimedOp) -> str:
    """The floating-point type of the examples of a function: the widest type claimed, else float64.

    Raises ValueError if the function gives no value at several points of its domain, or takes single numbers only; the message has the remedy.
    """
    dtypes = claimed.claims.dtypes or ()
    wanted = next((name for name in TYPES if name in dtypes), TYPES[0])
    first: tuple[Exception, list[np.ndarray]] | None = None
    for xs in _trial_points(claimed):
        xs = [cast(x, wanted) for x in xs]
        error = _exception_of_call(claimed, xs)
        if error is None:
            if claimed.elementwise and first is not None and not any(x.ndim for x in xs):
                raise _refusal(claimed, *first, "takes single numbers alone", f"Give a function of arrays, such as numpy.vectorize({claimed.name}), "
                               f"or claim shapes={((),) * len(xs)} of the numbers it takes") from first[0]
            return wanted
        first = first or (error, xs)
    if first is None or any(name.startswith("complex") for name in dtypes):
        return wanted
    narrower = [name for name in TYPES if not dtypes
                and any(_exception_of_call(claimed, [cast(x, name) for x in xs]) is None for xs in _trial_points(claimed))]
    if narrower:
        raise _refusal(claimed, *first, "takes no float64", f"It takes {narrower[0]}: if it is made for that, claim dtypes=({narrower[0]!r},), "
                       f"and it is attacked in it") from first[0]
    raise _refusal(claimed, *first, "gives no value", f"It is called with an array for each of {', '.join(claimed.inputs(first[1]))}, then with what "
                   f"is claimed as parameters; formula=, domain=, shapes=, parameters= and output= say what it takes and gives") from first[0]


def _trial_points(claimed: ClaimedOp) -> Iterator[list[np.ndarray]]:
    """Arguments to try, filled with simple numbers of the domains: of the op's shapes, or of several shapes for an elementwise op."""
    columns = list(map(_some_numbers, claimed.domains))
    count = len(claimed.names) if claimed.elementwise else len(claimed.shapes)
    several = [(s,) * count for s in SHAPES[claimed.subject.compiles:]]
    for shapes in several if claimed.elementwise else [claimed.shapes]:
        for k in range(max(map(len, columns), default=1)):
            yield [_fill(shape, columns[min(i, len(columns) - 1)], k, claimed.domain_of(i))
                   for i, shape in enumerate(shapes)]


def _fill(shape: tuple[int, ...], column: Sequence[float], k: int, domain: Domain) -> np.ndarray:
    x = column[k % len(column)]
    out = np.full(shape, x) + (x * np.eye(*shape) if len(shape) == 2 else 0.0)
    return out.astype(bool) if domain == BOOLEAN else out + 0.5j if domain == COMPLEX else out


def _exception_of_call(claimed: ClaimedOp, xs: Sequence[np.ndarray]) -> Exception | None:
    try:
        with silence(), claimed.subject.context():
            claimed.subject.value([x.copy() for x in xs])
    except NotApplicable:
        return None
    except Exception as error:  # a user's function may raise anything
        return error
    return None


def _refusal(claimed: ClaimedOp, error: Exception, xs: Sequence[np.ndarray], what: str, remedy: str) -> ValueError:
    given = ", ".join(f"{name} = {exact_text(x)} ({dtype_and_shape(x) if is_active(x) else x.dtype.name})" for name, x in claimed.inputs(xs).items())
    further = f" and {', '.join(map(repr, claimed.claims.parameters))}" if claimed.claims.parameters else ""
    where = raised_at(error)
    raised = f"{type(error).__name__}{f' ({where})' if where else ''}: {str(error).strip().partition(chr(10))[0]}"
    return ValueError(f"symgrad.testing: {claimed.name} {what}: called with {given}{further} it raised {raised}. {remedy}")
