"""The claims about an op, the decorator that attaches them, the profiles of the checks, and the context in which an op under test is called."""

from __future__ import annotations

import dataclasses
import numbers
import warnings
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeVar

import numpy as np

from symgrad.autograd import is_grad_enabled, set_grad_enabled
from symgrad.dtypes.dtype import get_default_dtype, set_default_dtype
from symgrad.engine.tasks import with_modes_of_caller
from symgrad.system.restoring import states_restored

F = TypeVar("F", bound=Callable[..., Any])
MARK = "__symgrad_op__"
ULP = {"float64": 1000.0, "float32": 256.0, "float16": 32.0, "bfloat16": 32.0, "complex128": 1000.0, "complex64": 256.0}  # allowed by default


@dataclass(frozen=True)
class Claims:
    """The claims about an op, as `op` and the checks take them.

    - `formula`: text, a SymPy expression, or a function `(xp, *arrays)` or of tensors.
    - `domain`: one for every argument or a mapping by name, in any form that `symgrad.check` takes;
      `symgrad.graph.domains.COMPLEX` for complex numbers.
    - `parameters`: the arguments after the tensors; `shapes`: the shapes of the tensors, for an op that is not elementwise.
    - `special`: points (one number per argument) at kinks or edges, or pairs (point, gradient) with the gradient by convention.
    - `errors`: pairs (arguments, exception) or (arguments, exception, pattern).
    - `gradient`, `pullback`, `pushforward`: the derivatives of a NumPy function: `gradient(*arrays)` of an elementwise function
      gives one array per argument, the others are called as `pullback(g, *arrays)` and `pushforward(tangents, *arrays)`.
    - `order`: how often it can be differentiated; `dtypes`: those it takes, the widest of which the examples have; `ulp`: the largest error in
      units in the last place, a number, or a mapping from dtypes to a number or to one for each order.
    - `imprecise`: it may lose digits where the steps of its formula do in floats; without this claim the checks report it as "imprecise".
    - `view`: the value may share memory with an argument; `random`: two calls may differ.
    - `batched`, `complex`: it works inside vmap, and for complex numbers; if None, calls decide.
    - `framework`, `output`, `name`: its framework, which of several results is checked, and its name in reports.
    - `without`: checks that do not apply, each with the reason.
    """

    formula: Any = None
    domain: Any = None
    parameters: tuple[Any, ...] = ()
    shapes: tuple[tuple[int, ...], ...] | None = None
    elementwise: bool | None = None
    special: tuple[Any, ...] = ()
    errors: tuple[Any, ...] = ()
    gradient: Callable[..., Any] | None = None
    pullback: Callable[..., Any] | None = None
    pushforward: Callable[..., Any] | None = None
    order: int | None = None
    dtypes: tuple[str, ...] | None = None
    ulp: float | Mapping[str, float] | None = None
    imprecise: bool = False
    view: bool = False
    random: bool = False
    batched: bool | None = None
    complex: bool | None = None
    framework: str | None = None
    output: int | None = None
    name: str | None = None
    without: Mapping[str, str] = field(default_factory=dict)

    def allowed(self, dtype: Any, order: int) -> float:
        """The largest error of a derivative of an order in units in the last place, times the condition: as claimed for the dtype, else the default.

        >>> Claims().allowed("float64", 1), Claims(ulp=8).allowed("float64", 2), Claims(ulp={"float64": (8, 8, 64, 512)}).allowed("float64", 3)
        (1000.0, 8.0, 512.0)
        """
        name = np.dtype(dtype).name
        found: Any = self.ulp.get(name) if isinstance(self.ulp, Mapping) else self.ulp
        if found is None:
            return ULP[name]
        return float(found[min(order, len(found) - 1)]) if isinstance(found, (tuple, list)) else float(found)

    def but(self, **changes: Any) -> Claims:
        """The claims with some replaced. Raises TypeError for an unknown name, and for a value of another form."""
        unknown = [name for name in changes if name not in _NAMES]
        if unknown:
            raise TypeError(f"symgrad.testing: {unknown[0]!r} is not something an op can claim; those are {', '.join(sorted(_NAMES))}")
        for name, (fits, expected) in _FORMS.items():
            if changes.get(name) is not None and not fits(changes[name]):
                raise TypeError(f"symgrad.testing: {name} is {changes[name]!r}; expected {expected}")
        for name in ("parameters", "special", "errors"):
            if name in changes:
                changes[name] = tuple(changes[name])
        return dataclasses.replace(self, **changes)


DTYPES = ("float64", "float32", "float16", "bfloat16", "complex128", "complex64")


def _listed(x: Any) -> bool:
    return isinstance(x, (tuple, list))


def _positive(x: Any) -> bool:
    return isinstance(x, numbers.Real) and float(x) > 0


_FORMS: dict[str, tuple[Callable[[Any], bool], str]] = {
    "parameters": (_listed, "a tuple of the arguments after the tensors, such as (2,)"),
    "shapes": (lambda x: _listed(x) and all(_listed(s) and all(isinstance(n, numbers.Integral) and int(n) >= 0 for n in s) for s in x),
               "a shape for each tensor argument, such as ((2, 3),) for one"),
    "special": (_listed, "a list of points with one number for each argument, such as [(0.0,), (1.0,)]"),
    "errors": (lambda x: _listed(x) and all(_listed(e) and len(e) in (2, 3) and all(
                isinstance(kind, type) and issubclass(kind, BaseException) for kind in (e[1] if _listed(e[1]) else [e[1]])) for e in x),
               "pairs (arguments, exception), perhaps with a pattern of its message, such as [((-1.0,), ValueError, 'negative')]"),
    "order": (lambda x: isinstance(x, numbers.Integral) and int(x) >= 0, "how often the op can be differentiated, such as 1"),
    "dtypes": (lambda x: _listed(x) and all(name in DTYPES for name in x), f"a tuple of some of {', '.join(DTYPES)}"),
    "ulp": (lambda x: _positive(x) or isinstance(x, Mapping) and all(
                k in DTYPES and all(map(_positive, v if _listed(v) else [v])) for k, v in x.items()),
            "a positive number, or one for each dtype, such as {'float64': 8, 'float32': 4}"),
    "without": (lambda x: isinstance(x, Mapping) and all(isinstance(v, str) and v for v in x.values()),
                "the reason for each check that does not apply, such as {'third': 'the second derivative has jumps'}"),
    **dict.fromkeys(("gradient", "pullback", "pushforward"), (callable, "a function")),
}
_NAMES = frozenset(f.name for f in dataclasses.fields(Claims))


def op(function: Any = None, /, **claims: Any) -> Any:
    """Attach claims to a function or a class, as a decorator: pytest then runs every check on it, each as a separate test.

    The claims are those of `Claims`. The function is returned unchanged but for the attribute that holds them; a class is a
    `Function` of symgrad or torch, whose `apply` is checked.

    Raises TypeError for an unknown claim or one of another form, and for an object that is no function and no class with `apply`.

    >>> import symgrad
    >>> @op(formula="x*exp(-x)", domain="real")
    ... def ricker(x):
    ...     return x * symgrad.exp(-x)
    >>> claims_of(ricker).formula
    'x*exp(-x)'
    """
    if function is None:
        checked = Claims().but(**claims)

        def mark(marked: F) -> F:
            if isinstance(marked, type) and not callable(getattr(marked, "apply", None)):
                raise TypeError(f"symgrad.testing.op marks functions and classes with apply; {marked.__name__} has none")
            setattr(marked, MARK, checked)
            return marked

        return mark
    if not callable(function):
        raise TypeError(f"symgrad.testing.op marks functions and classes, not {type(function).__name__}; write @op(formula=...) above one")
    return op(**claims)(function)


def claims_of(function: Any) -> Claims | None:
    """The claims attached to a function, None if there are none."""
    return vars(function).get(MARK) if hasattr(function, "__dict__") else None


class Profile(NamedTuple):
    """The number of random examples per check (the fixed ones are added), the highest order of derivatives, and the effort of proofs (0: none)."""

    name: str
    examples: int
    order: int
    effort: float


PROFILES = {"dev": Profile("dev", 20, 3, 0.0), "ci": Profile("ci", 60, 3, 1.0), "thorough": Profile("thorough", 1000, 3, 10.0)}


def profile_named(name: str | Profile) -> Profile:
    """A profile by its name. Raises ValueError for an unknown name.

    >>> profile_named("ci").examples
    60
    """
    if isinstance(name, Profile):
        return name
    if name not in PROFILES:
        raise ValueError(f"symgrad.testing: profile is {name!r}; expected one of {', '.join(PROFILES)}")
    return PROFILES[name]


class GlobalState(NamedTuple):
    """Global state: a description, how to read it, how to restore it, and a change made before a call."""

    what: str
    read: Callable[[], Any]
    put_back: Callable[[Any], Any]
    before: Callable[[], Any] = lambda: None


STATES = (GlobalState("NumPy's handling of errors", np.geterr, lambda state: np.seterr(**state)),
          GlobalState("symgrad's default dtype", get_default_dtype, set_default_dtype),
          GlobalState("whether symgrad records", is_grad_enabled, set_grad_enabled))


@contextmanager
def silence() -> Iterator[None]:
    """A context without floating-point errors and warnings, which restores the default dtype and the grad mode that the op may have changed."""
    with states_restored(*((state.read, state.put_back) for state in STATES)), np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def in_a_thread(function: Callable[[], Any]) -> Any:
    """The result of a function that is called in a thread of its own, in the modes and the context of the caller."""
    def work() -> Any:
        with np.errstate(all="ignore"):
            return function()

    with ThreadPoolExecutor(1) as pool:
        return pool.submit(with_modes_of_caller(work)).result()
