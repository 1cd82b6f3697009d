"""`Op`: one differentiable operation as data, its four constructors, and the registry.

A rule is a pure function of a namespace `xp`, the carrier, so that one definition serves numbers, Tensors, SymPy expressions and
fifty-digit floats. The declaration states the structure of an op; the constructor derives the rest:

| constructor   | you write                           | derived                                             |
|---------------|-------------------------------------|-----------------------------------------------------|
| `elementwise` | the partial derivatives             | pullback, pushforward, broadcasting                 |
| `linear`      | a transpose per argument            | pushforward = forward                               |
| `multilinear` | a transpose per argument            | pushforward = forward, one argument replaced        |
| `primitive`   | pullback and pushforward            | nothing                                             |
| `composite`   | the function, over `xp`             | everything, from the ops it calls; it adds no node  |

Rules never undo a broadcast and never conjugate: the engine sums a cotangent to the shape of its argument, and for complex
values it calls a rule with conjugated arguments (see `symgrad.engine.passes`).
"""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from types import FunctionType
from typing import Any

from symgrad.graph.derived import elementwise_jvp, elementwise_vjp, with_recorded_slopes
from symgrad.graph.domains import REAL, Domain
from symgrad.graph.regions import regions_of

Rule = Callable[..., Any]
REGISTRY: dict[str, Op] = {}


@dataclass(frozen=True, slots=True)
class Numerics:
    """How the values of an op are computed and kept.

    - `layout`: the order in memory of the elements of a new result: "operands" and "last" follow the operands, from the first or the last on,
      "first" the first operand, "rows" is row by row, "images" the format of images where all operands of as many dimensions have it, else row by
      row.
    - `saves`: the rules read values of the call.
    - `saved`: for each argument the names of the values that its cotangent reads, "result" and parameters among them; found by tracing the rule
      if it is not given. A write to a saved value makes the pullback raise.
    - `inverse(xp, y)`: the argument, for an op that saves only its result.
    - `supports_out`: the numeric carrier's function has no parameters and writes into an array given last, so that `name_` needs no temporary.
    - `integers`: integer input stays integer.
    - `refuses`: NumPy's letters of the kinds of dtypes ("b" bool, "c" complex, "V" is bfloat16) that the promoted operands may not have; a binary
      op without `integers` refuses what its function of the carrier refuses.
    """

    layout: str = ""
    saves: bool = True
    saved: tuple[str, ...] | None = None
    inverse: Rule | None = None
    supports_out: bool = False
    integers: bool = False
    refuses: str = ""


@dataclass(frozen=True, slots=True)
class Documentation:
    """What documents an op, and where it is tested.

    - `usage`: a call for the documentation, of a vector x or a matrix a.
    - `examples`: tuples of parameters for tests and documentation, which begin with the arguments in the domain FIXED; `shapes`: the shapes of
      their tensors, by default (3, 4).
    - `special`: points at kinks, poles and ends of the domain.
    - `kinks`: arguments of calls at which the derivative does not exist, or is a limit; the reference shows what is returned there. Numbers and lists
      in the place of tensors are tensors.
    """

    doc: str = ""
    usage: str = ""
    examples: tuple[tuple[Any, ...], ...] = ()
    shapes: tuple[tuple[int, ...], ...] = ()
    special: tuple[tuple[float, ...], ...] = ()
    kinks: tuple[tuple[Any, ...], ...] = ()


@dataclass(frozen=True, slots=True)
class Surface:
    """How programs meet an op, under torch's names.

    - `public` and `method`: there is a function, and a method of Tensor, with the op's name and its `aliases`.
    - `prepare(xp, ...)`: the public signature where it differs from that of `forward`; it returns the arguments of `forward`, or the result.
    - `node_name`: the name of the node's class; `names(node)`: torch's name of the node, where it depends on the arguments.
    - `joined`: torch's name of the one node that it has for the outputs of a composite.
    """

    public: bool = True
    method: bool = True
    aliases: tuple[str, ...] = ()
    prepare: Rule | None = None
    node_name: str = ""
    names: Callable[[Any], str | None] | None = None
    joined: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class Op:
    """One operation: its rule and its structure; how numbers are computed, the documentation and torch's names are groups of their own.

    `forward(xp, *tensors, *parameters)` returns the value; `vjp(xp, g, y, args, needs)` a tuple with one cotangent (or None)
    per tensor argument; `jvp(xp, tangents, y, args)` the tangent, where a tangent may be None for zero. `arity` counts the
    tensor arguments; None means that a sequence of them comes first. `parameters` describes the other arguments.

    - `selects`: the derivative is zero on a region, by elements that are not selected there; the engine then treats 0 · ∞ as 0.
    - `piecewise_linear`: the partial derivatives are constant on regions. For an elementwise op both are derived from the partials.
    - `slope`: of a derivative of an op that selects, which may jump: that op, and the arguments by which it is differentiated.
    - `exponent(args)`: for an op that is a power of its first argument, the exponent; None if it is none of these arguments.
    - `square`: for a length, such as a norm, the name of the op that is its square: smooth where the length has a kink. A power of a length that is 0
      is recorded as a function of both.
    - `elementwise`: a composite that works element by element, so that it stands in formulas.
    - `view`: the value shares memory with the input; "many" if it is one of several views.
    - `outside`: its rules are, or call, a user's code, which runs in the error state of its own (see `symgrad.system.errorstate`).

    A declaration gives the fields of all groups as keywords of one call, which `Op.of` and `but` sort.
    """

    name: str
    kind: str
    forward: Rule
    vjp: Rule | None
    jvp: Rule | None
    arity: int | None
    argument_names: tuple[str, ...]
    parameters: tuple[inspect.Parameter, ...]
    partials: tuple[Any, ...] = ()
    domain: tuple[Domain, ...] = ()

    differentiable: bool = True
    selects: bool = False
    piecewise_linear: bool = False
    slope: tuple[Op, tuple[int, ...]] | None = None
    exponent: Callable[[tuple], Any] | None = None
    square: str = ""
    elementwise: bool = False
    view: bool | str = False
    outside: bool = False

    numerics: Numerics = Numerics()
    docs: Documentation = Documentation()
    surface: Surface = Surface()

    @classmethod
    def of(cls, *rule: Any, **rest: Any) -> Op:
        """An op that is not registered, with the fields of groups given as keywords."""
        own, groups = _sorted(rest)
        return cls(*rule, **own | {group: _GROUPS[group](**given) for group, given in groups.items()})

    def but(self, **changes: Any) -> Op:
        """The op with other fields, those of groups among them."""
        own, groups = _sorted(changes)
        return replace(self, **own | {group: replace(getattr(self, group), **given) for group, given in groups.items()})

    def __repr__(self) -> str:
        return f"<Op {self.name}: {self.kind}>"

    @property
    def may_drop(self) -> bool:
        """Whether its saved values may tell that an element does not count; a factor of a product may be the zero of a selection."""
        return self.kind != "elementwise" or self.selects or self.name == "mul"


_GROUPS: dict[str, type] = {"numerics": Numerics, "docs": Documentation, "surface": Surface}
_GROUP_OF = {field.name: group for group, kind in _GROUPS.items() for field in fields(kind)}


def _sorted(given: dict[str, Any]) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
    """Keywords of `Op`: its own fields, and those of each group."""
    own: dict[str, Any] = {}
    groups: dict[str, dict[str, Any]] = {}
    for key, value in given.items():
        if (group := _GROUP_OF.get(key)) is None:
            own[key] = value
        else:
            groups.setdefault(group, {})[key] = value
    return own, groups


signature_of = functools.lru_cache(1024)(inspect.signature)


def _is_plain(rule: Rule) -> bool:
    """Whether the signature of a rule can be read from its code, in a tenth of the time of `inspect.signature`; importing asks for all."""
    return type(rule) is FunctionType and not rule.__dict__ and not rule.__code__.co_flags & (inspect.CO_VARARGS | inspect.CO_VARKEYWORDS)


def _argument_names(rule: Rule) -> tuple[str, ...]:
    """The names of the arguments of a rule after the carrier."""
    if not _is_plain(rule):
        return tuple(signature_of(rule).parameters)[1:]
    code = rule.__code__
    return code.co_varnames[1:code.co_argcount + code.co_kwonlyargcount]


def _parameters(rule: Rule, names: Sequence[str], start: int) -> tuple[inspect.Parameter, ...]:
    """The arguments of a rule from that of index `start` on."""
    if start >= len(names):
        return ()
    if not _is_plain(rule):
        return tuple(signature_of(rule).parameters.values())[1 + start:]
    code, empty = rule.__code__, inspect.Parameter.empty
    count = code.co_argcount - 1
    defaults = dict(zip(names[count - len(rule.__defaults__ or ()):count], rule.__defaults__ or ())) | (rule.__kwdefaults__ or {})
    kinds = inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY
    return tuple([inspect.Parameter(names[i], kinds[(i + 1 >= code.co_posonlyargcount) + (i >= count)], default=defaults.get(names[i], empty))
                  for i in range(start, len(names))])


def _register(name: str, kind: str, forward: Rule, vjp: Rule | None, jvp: Rule | None, arity: int | None, **rest: Any) -> Op:
    if kind == "elementwise" and all(partial is None for partial in rest["partials"]):
        rest |= {"differentiable": False, "saves": False, "integers": True}
    if kind == "elementwise":
        rest.setdefault("layout", "operands")
    tensors = 1 if arity is None else arity
    names = _argument_names(forward)
    doc = (rest.pop("doc", "") or forward.__doc__ or "").strip()
    doc = inspect.cleandoc(doc) if "\n" in doc else doc
    node_name = rest.pop("node_name", None) or "".join(part.capitalize() for part in name.split("_"))
    if rest.get("domain") is not None and not isinstance(rest["domain"], tuple):
        rest["domain"] = (rest["domain"],) * tensors
    if name in REGISTRY:
        raise ValueError(f"{name}: an op of this name is registered already; choose another name")
    node_name += "" if kind == "composite" or re.search(r"Backward|Copy", node_name) else "Backward0"
    op = Op.of(name, kind, forward, vjp, jvp, arity, names[:tensors], _parameters(forward, names, tensors), doc=doc, node_name=node_name,
               **rest)
    REGISTRY[name] = op
    return op


def _forward_of(name: str, forward: Rule | None, names: str) -> Rule:
    """The given rule, or a call of `xp.<name>` for an op that is a function of every carrier."""
    if forward is not None:
        return forward

    def call(xp: Any, *xs: Any) -> Any:
        return getattr(xp, name)(*xs)

    positional = inspect.Parameter.POSITIONAL_OR_KEYWORD
    call.__signature__ = inspect.Signature([inspect.Parameter(n, positional) for n in ("xp", *names.split())])  # type: ignore[attr-defined]
    return call


def elementwise(name: str, forward: Rule | None, *partials: Any, domain: Any = REAL, vjp: Rule | None = None, jvp: Rule | None = None,
                **rest: Any) -> Op:
    """Register an elementwise op: y = f(x1, ..., xn), broadcast.

    Each partial is a rule `(xp, y, *xs)` for dy/dxi, a number where it is constant, or None where the argument is not differentiated, such as a
    condition. `forward` None is the carrier's function of that name. `vjp` replaces the pullback derived from the partials where one
    computation gives several of them, `jvp` the pushforward of an op that maps complex values to real ones.
    """
    rule = _forward_of(name, forward, "input" if len(partials) == 1 else "input other")
    parameters = len(_argument_names(rule)) > len(partials)
    regions = regions_of(partials, parameters, rest.get("examples", ()))
    if not any(callable(partial) for partial in partials):
        rest.setdefault("saves", False)
    else:
        rest |= {"selects": regions.selects, "piecewise_linear": regions.piecewise_linear}
    pull, push = vjp or elementwise_vjp(partials, parameters), jvp or elementwise_jvp(partials)
    if regions.jumps and not vjp and not jvp:
        pull, push = with_recorded_slopes(lambda: op, pull, push)
    op = _register(name, "elementwise", rule, pull, push, len(partials), partials=partials, domain=domain, **rest)
    return op


def linear(name: str, forward: Rule, *transposes: Rule, variadic: bool = False, jvp: Rule | None = None, **rest: Any) -> Op:
    """Register an op that is linear in its tensor arguments jointly.

    Each transpose is a rule `(xp, g, shape, *parameters)` that carries a cotangent back to an argument of that shape. A
    variadic op takes a sequence of tensors and one transpose `(xp, g, shapes, *parameters)` that returns them all. `jvp` replaces the pushforward
    of an op with one argument whose forward asks more of it than a tangent has, such as its layout in memory.
    """
    if not rest.get("view") and "index" in _argument_names(forward):
        rest = {"saved": ("index",) * len(transposes), "saves": True, **rest}
    rest.setdefault("saves", False)
    if variadic:
        def vjp(xp: Any, g: Any, y: Any, args: tuple, needs: Sequence) -> tuple:
            count = len(needs)
            return tuple(transposes[0](xp, g, [x.shape for x in args[:count]], *args[count:]))

        def push_all(xp: Any, tangents: Sequence, y: Any, args: tuple) -> Any:
            count = len(tangents)
            filled = [xp.zeros_like(x) if t is None else t for t, x in zip(tangents, args)]
            return forward(xp, filled, *args[count:])

        return _register(name, "linear", forward, vjp, push_all, None, **rest)

    arity = len(transposes)
    if arity == 1:
        (transpose,) = transposes


        def pull(xp: Any, g: Any, y: Any, args: tuple, needs: Sequence) -> tuple:
            return (transpose(xp, g, args[0].shape, *args[1:]),)

        pull.transpose = transpose  # type: ignore[attr-defined]
        push = jvp or (lambda xp, tangents, y, args: forward(xp, tangents[0], *args[1:]))
        return _register(name, "linear", forward, pull, push, 1, **rest)

    def vjp_each(xp: Any, g: Any, y: Any, args: tuple, needs: Sequence) -> tuple:
        rest = args[arity:]
        return tuple([None if need is None else transpose(xp, g, x.shape, *rest) for transpose, x, need in zip(transposes, args, needs)])

    def jvp_all(xp: Any, tangents: Sequence, y: Any, args: tuple) -> Any:
        return forward(xp, *(xp.zeros_like(x) if t is None else t for t, x in zip(tangents, args)), *args[arity:])

    return _register(name, "linear", forward, vjp_each, jvp_all, arity, **rest)


def multilinear(name: str, forward: Rule, *transposes: Rule, variadic: bool = False, **rest: Any) -> Op:
    """Register an op that is linear in each tensor argument by itself.

    Each transpose is a rule `(xp, g, *xs, *parameters)` for the cotangent of its argument; a variadic op takes a sequence of
    tensors and one rule `(xp, g, xs, i, *parameters)` for the i-th.
    """
    arity = None if variadic else len(transposes)

    def vjp(xp: Any, g: Any, y: Any, args: tuple, needs: Sequence) -> tuple:
        out: list[Any] = []
        for i, need in enumerate(needs):
            out.append(None if need is None else transposes[i](xp, g, *args) if not variadic  # noqa: PERF401  a comprehension takes longer
                       else transposes[0](xp, g, args[:len(needs)], i, *args[len(needs):]))
        return tuple(out)

    def jvp(xp: Any, tangents: Sequence, y: Any, args: tuple) -> Any:
        count, out = len(tangents), None
        for i, t in enumerate(tangents):
            if t is not None:
                replaced = (*args[:i], t, *args[i + 1:count])
                term = forward(xp, *((replaced,) if variadic else replaced), *args[count:])
                out = term if out is None else out + term
        return out

    return _register(name, "multilinear", forward, vjp, jvp, arity, **rest)


def primitive(name: str, forward: Rule, *, vjp: Rule | Sequence[Rule] | None = None, jvp: Rule | None = None, arity: int = 1, **rest: Any) -> Op:
    """Register an op whose pullback and pushforward are both written out.

    `vjp(xp, g, y, *xs, *parameters)` gives one cotangent, or a tuple of them when `arity` is above one; it may be one rule for each argument, of
    which only those that are needed are called. `jvp(xp, *tangents, y, *xs, *parameters)` gives the tangent (every tangent filled in). Without them
    the op has integer or boolean values.
    """
    if vjp is None or jvp is None:
        return _register(name, "primitive", forward, None, None, arity, differentiable=False, saves=False, **rest)

    def pull(xp: Any, g: Any, y: Any, args: tuple, needs: Sequence) -> tuple:
        if not callable(vjp):
            return tuple([None if need is None else rule(xp, g, y, *args) for rule, need in zip(vjp, needs)])
        out = vjp(xp, g, y, *args)
        return (out,) if arity == 1 else out

    def push(xp: Any, tangents: Sequence, y: Any, args: tuple) -> Any:
        return jvp(xp, *(xp.zeros_like(x) if t is None else t for t, x in zip(tangents, args)), y, *args)

    return _register(name, "primitive", forward, pull, push, arity, **rest)


def composite(name: str, *, arity: int = 1, **rest: Any) -> Callable[[Rule], Rule]:
    """Register, as a decorator, a public function `(xp, ...)` written with other ops; it records their nodes and none of its own.

    With `saved` the last of them is shown under the node name of the function, with the values of the call that torch saves.
    """
    def register(function: Rule) -> Rule:
        _register(name, "composite", function, None, None, arity, saves=False, **rest)
        return function

    return register
