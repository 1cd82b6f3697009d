"""User-defined ops: a declaration gives the public function, derivatives of every order, the formula and the checks.

The constructors are those of `symgrad.graph.op`, but return the public function. A user's op may be redeclared under the same name, as by a
notebook cell that runs twice; built-in names are protected.
"""

from __future__ import annotations

import functools
import inspect
import keyword
import reprlib
import sys
import unicodedata
from collections.abc import Callable
from typing import Any

from symgrad.carriers import PROTOCOL, numeric
from symgrad.engine.graph_breaks import explaining_arrays
from symgrad.engine.operands import kept_narrow
from symgrad.engine.tensor import Tensor
from symgrad.engine.traced import install, methods_of, traced
from symgrad.graph import op as ops
from symgrad.graph.op import REGISTRY, Op
from symgrad.methods.assemble import attach, detach
from symgrad.system.limits import SHORT

Rule = Callable[..., Any]
BUILT_IN = frozenset(REGISTRY)
_declared: dict[str, frozenset[str]] = {}  # the ops declared here, with their names and aliases


def is_name(name: Any) -> bool:
    """Whether an op can have a name: a short identifier in the spelling that Python gives it in source code."""
    return (isinstance(name, str) and len(name) <= SHORT and name.isidentifier() and not keyword.iskeyword(name)
            and unicodedata.normalize("NFKC", name) == name)


def _declare(constructor: Callable[..., Op], name: str, rules: tuple, rest: dict[str, Any]) -> Callable[..., Tensor]:
    """Register and lift an op; it replaces an op of the same name that was declared here."""
    rest.setdefault("method", False)
    names = frozenset((name, *rest.get("aliases", ())))
    mine = _declared.get(name, frozenset())
    for each in names:
        if not is_name(each):
            raise ValueError(f"an op is named by an identifier such as 'swish', not by {reprlib.repr(each)}")
        taken = each in BUILT_IN or each in PROTOCOL or hasattr(numeric, each) or hasattr(traced, each) or rest["method"] and hasattr(Tensor, each)
        if taken and each not in mine:
            raise ValueError(f"{each}: this name belongs to symgrad or to another op; choose another name")
    for i, rule in enumerate(rules):
        if not callable(rule) and not (constructor is ops.elementwise and i and isinstance(rule, (int, float, type(None)))):
            raise TypeError(f"{name}: rule {i} is {rule!r}, which cannot be called; a rule is a function of the namespace xp and the arguments")
    before, members = REGISTRY.get(name), [(owner, each, vars(owner).get(each)) for owner in (type(traced), Tensor) for each in names | mine]
    try:
        REGISTRY.pop(name, None)
        op = REGISTRY[name] = _keep_bfloat16(constructor(name, *rules, **rest))
        function = install(op)
        detach(mine)
        attach(methods_of(op, function))
        _declared[name] = names
        function.__module__ = sys._getframe(2).f_globals.get("__name__", function.__module__)  # the caller's module, where pickle looks the name up
    except BaseException:
        _put(REGISTRY, name, before)
        _put(_declared, name, mine or None)
        for owner, each, member in members:
            if member is not None:
                setattr(owner, each, member)
            elif each in vars(owner):
                delattr(owner, each)
        raise
    return function


def _put(table: dict[str, Any], name: str, value: Any) -> None:
    """Set an entry of a table, or remove it if the value is None."""
    table.pop(name, None)
    if value is not None:
        table[name] = value


def _is_bfloat16(x: Any) -> bool:
    """Whether an array or a Tensor is in bfloat16."""
    dtype = getattr(getattr(x, "_value", x), "dtype", None)  # None for carriers without machine types
    return getattr(dtype, "kind", "") == "V"


def _keep_bfloat16(op: Op) -> Op:
    """The op with value and derivatives converted back to bfloat16 where NumPy promotes them with Python numbers in its rules."""
    @functools.wraps(op.forward)
    def forward(xp: Any, *args: Any) -> Any:
        with explaining_arrays():
            y = op.forward(xp, *args)
        given = args[:1] if op.arity is None else args[:op.arity]
        x = next(filter(_is_bfloat16, given[0] if op.arity is None else given), None)
        return y if x is None or _is_bfloat16(y) else kept_narrow(y, x.dtype)

    def vjp(xp: Any, g: Any, y: Any, args: tuple, needs: Any) -> tuple:
        with explaining_arrays():
            out = op.vjp(xp, g, y, args, needs)  # type: ignore[misc]
        return tuple(c if c is None or _is_bfloat16(c) else xp.astype(c, g.dtype) for c in out) if _is_bfloat16(g) else out

    def jvp(xp: Any, tangents: Any, y: Any, args: tuple) -> Any:
        with explaining_arrays():
            t = op.jvp(xp, tangents, y, args)  # type: ignore[misc]
        return t if t is None or not _is_bfloat16(y) or _is_bfloat16(t) else xp.astype(t, y.dtype)

    return op.but(forward=forward, vjp=op.vjp and vjp, jvp=op.jvp and jvp, outside=True)


def _unregister(name: str) -> None:
    """Remove a declared op; used by tests."""
    REGISTRY.pop(name, None)
    names = _declared.pop(name, frozenset())
    detach(names)
    for each in names:
        if each in vars(type(traced)):
            delattr(type(traced), each)


def elementwise(name: str, forward: Rule, *partials: Any, **rest: Any) -> Callable[..., Tensor]:
    """Declare an elementwise op, y = f(x1, ..., xn), broadcast, and return its function.

    `forward(xp, x1, ..., xn)` computes the value with functions of the namespace `xp`, which exist for numbers, formulas and
    fifty-digit floats. Each partial `(xp, y, x1, ..., xn)` is dy/dxi; a number where it is constant, None where the
    argument is not differentiated. `domain`, `special`, `doc`, `aliases` and `method` are as in `symgrad.graph.op.Op`.

    Raises ValueError for a name that is taken, and unless there is one partial for each argument of `forward`.

    >>> import symgrad
    >>> bump = symgrad.elementwise("bump", lambda xp, x: xp.exp(-x * x), lambda xp, y, x: -2 * x * y)
    >>> x = symgrad.tensor(1.0, requires_grad=True)
    >>> bump(x).backward()
    >>> round(x.grad.item(), 6)
    -0.735759
    """
    if callable(forward):
        count = len(inspect.signature(forward).parameters) - 1
        if not partials or len(partials) > count:
            raise ValueError(f"{name}: forward has {count} argument{'s' * (count != 1)} after xp, and {len(partials)} partials are given; "
                             f"give one for each")
    return _declare(ops.elementwise, name, (forward, *partials), rest)


def linear(name: str, forward: Rule, *transposes: Rule, **rest: Any) -> Callable[..., Tensor]:
    """Declare an op that is linear in its tensor arguments jointly, and return its function.

    Each transpose `(xp, g, shape, *parameters)` carries a cotangent back to an argument of that shape.

    Raises ValueError for a name that is taken.

    >>> import symgrad
    >>> twice = symgrad.linear("twice", lambda xp, x: x + x, lambda xp, g, shape: g + g)
    >>> twice(symgrad.tensor([1.0, 2.0]))
    tensor([2., 4.])
    """
    return _declare(ops.linear, name, (forward, *transposes), rest)


def multilinear(name: str, forward: Rule, *transposes: Rule, **rest: Any) -> Callable[..., Tensor]:
    """Declare an op that is linear in each tensor argument by itself, and return its function.

    Each transpose `(xp, g, *xs, *parameters)` gives the cotangent of its argument.

    Raises ValueError for a name that is taken.

    >>> import symgrad
    >>> area = symgrad.multilinear("area", lambda xp, a, b: a * b, lambda xp, g, a, b: g * b, lambda xp, g, a, b: g * a)
    >>> area(symgrad.tensor(3.0), symgrad.tensor(4.0))
    tensor(12.)
    """
    return _declare(ops.multilinear, name, (forward, *transposes), rest)


def primitive(name: str, forward: Rule, *, vjp: Rule | None = None, jvp: Rule | None = None, **rest: Any) -> Callable[..., Tensor]:
    """Declare an op whose pullback and pushforward are both written out, and return its function.

    `vjp(xp, g, y, *xs, *parameters)` gives the cotangent (a tuple of them for `arity` above one) and `jvp(xp, *tangents, y, *xs,
    *parameters)` the tangent. Without them the op has no derivative.

    Raises ValueError for a name that is taken, and where only one of the two rules is given.

    >>> import symgrad
    >>> total = symgrad.primitive("total_of_squares", lambda xp, x: xp.sum(x * x), vjp=lambda xp, g, y, x: 2 * g * x,
    ...                           jvp=lambda xp, t, y, x: xp.sum(2 * t * x))
    >>> total(symgrad.tensor([3.0, 4.0]))
    tensor(25.)
    """
    if (vjp is None) != (jvp is None):
        raise ValueError(f"{name}: give both vjp and jvp, or neither; only {'jvp' if vjp is None else 'vjp'} is given")
    return _declare(ops.primitive, name, (forward,), {"vjp": vjp, "jvp": jvp, **rest})
