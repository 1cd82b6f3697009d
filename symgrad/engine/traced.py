"""Lifting: the public functions and methods of Tensors from the ops of the registry, and the traced carrier.

A composite function that is one node in torch gives its last node torch's name, and the values that torch saves of the call.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from symgrad.carriers import numeric
from symgrad.dtypes.dtype import common_dtype, result_dtype
from symgrad.engine.data import as_value, operand_value
from symgrad.engine.documentation import documentation, stored
from symgrad.engine.method_table import Later, MethodTable
from symgrad.engine.operands import NUMBERS, Lifted, constants, flag, number, operand
from symgrad.engine.recording import convert, core
from symgrad.engine.refusals import named, no_tensor
from symgrad.engine.slopes import slope_op
from symgrad.engine.storage.views import own
from symgrad.engine.storage.writes import into
from symgrad.engine.tensor import Tensor, wrap
from symgrad.errors import FREED
from symgrad.graph.classes import derived, specialized
from symgrad.graph.common import join
from symgrad.graph.derived import RECORDERS
from symgrad.graph.freed import freed
from symgrad.graph.modes import special, thread
from symgrad.graph.node import GRADIENT, NAMED, RELEASED, Leaf, Node
from symgrad.graph.op import REGISTRY, Op, signature_of
from symgrad.system.errorstate import quietly


def _plain(x: Any) -> Any:
    """A NumPy value, used only for its shape and dtype."""
    return x._value if isinstance(x, Tensor) else as_value(x)


class Traced:
    """The carrier of Tensors: every op of the registry by name, so that rules are recorded, too."""

    @staticmethod
    def zeros_like(x: Any, shape: Any = None) -> Tensor:
        return wrap(numeric.zeros_like(_plain(x), shape))

    @staticmethod
    def ones_like(x: Any, shape: Any = None) -> Tensor:
        return wrap(numeric.ones_like(_plain(x), shape))

    @staticmethod
    def eye_like(x: Any, n: int) -> Tensor:
        return wrap(numeric.eye_like(_plain(x), n))

    @staticmethod
    def indicator(condition: Tensor, like: Any) -> Tensor:
        value = _plain(like)
        if condition._node is None:
            return wrap(numeric.indicator(condition._value, value))
        return traced.where(condition, wrap(numeric.ones_like(value)), wrap(numeric.zeros_like(value)))  # keeps the condition in formulas

    @staticmethod
    def numbers(x: Tensor) -> Any:
        """The NumPy value, for computations without a derivative, such as sorting."""
        return x._value

    @staticmethod
    def copy(x: Tensor, order: Any = "K") -> Tensor:
        return _clone(x, order)

    @staticmethod
    def astype(x: Tensor, dtype: Any, source: Any = None) -> Tensor:
        return convert(x, dtype)


traced: Any = Traced()
_slope = functools.cache(lambda op, i: core(slope_op(op, i)))
RECORDERS[Traced] = lambda _, op, i, y, args: _slope(op, i)(*args)
_clone = core(REGISTRY["clone"])

@functools.cache
def public_signature(op: Op) -> inspect.Signature:
    """The signature of the public function of an op: that of `prepare`, or of the rule, without the carrier."""
    given = signature_of(op.surface.prepare or op.forward)
    return given.replace(parameters=list(given.parameters.values())[1:])


DOCUMENTATION = stored()
MAY_BE_TENSORS = frozenset(("dims", "rcond", "spacing"))  # of the parameters whose defaults are numbers
PLAIN = frozenset((int, float, bool, complex, str, type(None), tuple, list))  # types of parameters that are no tensors
NUMPY_WORDS = {"axis": "dim", "keepdims": "keepdim", "ddof": "correction"}


def _public_function(op: Op, core: Lifted, signature: inspect.Signature) -> Lifted:
    """The public function of an op: it converts keywords, NumPy's names and numbers to the arguments of the rule."""
    names = list(signature.parameters)
    words = {numpy: torch for numpy, torch in NUMPY_WORDS.items() if torch in names}
    plain, composite, arity = op.kind == "elementwise", op.kind == "composite", op.arity
    prepare, joined, saves = op.surface.prepare, op.surface.joined, op.numerics.saved is not None
    several = next((k for k, p in signature.parameters.items() if p.kind is p.VAR_POSITIONAL), None)
    quick = arity == 1 and not plain and not composite and prepare is not None
    checks = {name: flag if type(p.default) is bool else number for name, p in signature.parameters.items()
              if type(p.default) in (bool, int, float) and name not in MAY_BE_TENSORS}
    first = min(map(names.index, checks), default=99)
    known, flags = frozenset(names) - {several}, frozenset([name for name, check in checks.items() if check is flag])
    straight = arity in (1, 2) and not composite and prepare is None and not checks  # called with what `core` is called with
    complete = len(names) if plain and prepare is None else arity  # a call with so many arguments is one of the rule

    def tensors(args: tuple, kwargs: dict[str, Any]) -> tuple[tuple, dict[str, Any]]:
        bound = signature.bind(*args, **kwargs)
        given = bound.arguments
        for name in names[:arity]:
            if name in given and not isinstance(given[name], Tensor) and name != "equation":
                given[name] = operand(op, given[name])
                if name == names[0] and type(given[name]) in NUMBERS:
                    beside = [x._value for x in map(given.get, names[1:arity]) if isinstance(x, Tensor)]
                    array = as_value(given[name])
                    given[name] = wrap(quietly(array.astype, result_dtype((given[name], *beside))) if beside else array)
        return bound.args, bound.kwargs

    @specialized
    def function(*args: Any, **kwargs: Any) -> Any:
        if plain and not kwargs and (len(args) == arity or len(args) == complete):
            return core(*args)
        if straight and not kwargs and len(args) == len(names) and isinstance(args[0], Tensor) and (arity == 1 or isinstance(args[1], Tensor)):
            return core(*args)
        usual = not kwargs or known.issuperset(kwargs) and PLAIN.issuperset(map(type, kwargs.values())) and (
            flags.isdisjoint(kwargs) or all([type(x) is bool for name, x in kwargs.items() if name in flags]))
        if checks and (not usual or len(args) > first and not PLAIN.issuperset(map(type, args[first:]))):
            args = (*[checks[name](op, name, x) if name in checks else x for name, x in zip(names, args)], *args[len(names):])
            kwargs = {name: checks[name](op, name, x) if name in checks else x for name, x in kwargs.items()}
        try:
            if not usual:
                if "out" in kwargs and "out" not in names:
                    target = kwargs.pop("out")
                    if target is not None:
                        return into(target, op.name, function, *constants(op, *args), **kwargs)
                kwargs = {words.get(key, key): value for key, value in kwargs.items()}
                if several in kwargs and len(args) == names.index(several):
                    args = (*args, kwargs.pop(several))
            if quick and args and isinstance(args[0], Tensor):
                prepared = prepare(traced, *args, **kwargs)  # type: ignore[misc]
                return prepared if isinstance(prepared, Tensor) else core(*prepared)
            if not plain and arity is not None and not (len(args) >= arity and isinstance(args[0], Tensor) and (
                    arity == 1 or all([isinstance(x, Tensor) or type(x) in NUMBERS for x in args[1:arity]]))):
                args, kwargs = tensors(args, kwargs)
            elif arity is None and args and isinstance(args[0], (list, tuple)):
                args = [x if isinstance(x, Tensor) else wrap(operand_value(x)) for x in args[0]], *args[1:]
            if composite:
                out = core(traced, *args, **kwargs)
                if type(out) is not Tensor or out._view is not None:
                    out = own(out, args)
                if joined and type(out) is not Tensor:
                    join(joined, [x._node_slot for x in out])
                return out if not saves else named_as_one(op, out, args[:arity])
            if prepare:
                prepared = prepare(traced, *args, **kwargs)
            else:
                prepared = args if len(args) == len(names) and not kwargs else signature.bind(*args, **kwargs).arguments.values()
        except (TypeError, ValueError, RuntimeError, IndexError) as error:
            raise _named(op, signature, error, args, kwargs) from None
        except AttributeError as error:
            found = no_tensor(op.name, error, signature.bind(*args, **kwargs).arguments.items())
            if found is error:
                raise
            raise found from None
        return prepared if isinstance(prepared, Tensor) else core(*prepared)  # otherwise `prepare` returned the result

    return function


PRODUCTS = {(2, 2): "mm", (2, 1): "mv", (1, 2): "vm", (1, 1): "dot"}


def _of_one_dtype(input: Any, other: Any) -> tuple[Any, Any]:
    """A tensor and an array of NumPy in their common dtype; two tensors are not promoted by a product. Other operands stay as they are."""
    if isinstance(input, Tensor) and type(other) is np.ndarray:
        other = wrap(as_value(other))
    elif isinstance(other, Tensor) and type(input) is np.ndarray:
        input = wrap(as_value(input))
    else:
        return input, other
    target = common_dtype(input._value, other._value)
    return convert(input, target), convert(other, target)


def by_ranks(general: Lifted) -> Lifted:
    """matmul with direct calls for vectors and matrices, which skip the handling of batches."""
    products = {ranks: core(REGISTRY[name]) for ranks, name in PRODUCTS.items()}

    def function(*args: Any, **kwargs: Any) -> Any:
        if len(args) == 2 and not kwargs:
            input, other = args
            if isinstance(input, Tensor) and isinstance(other, Tensor):
                a, b = input._value.shape, other._value.shape
                product = products.get((len(a), len(b)))
                if product is not None and a[-1] == b[0] and input._value.dtype is other._value.dtype:
                    return product(input, other)
            else:
                args = _of_one_dtype(input, other)
        return general(*args, **kwargs)

    return function


def _named(op: Op, signature: inspect.Signature, error: Exception, args: tuple, kwargs: dict[str, Any]) -> Exception:
    """An error of the arguments with the name of the op, and its signature if the call does not match that."""
    try:
        signature.bind(*args, **kwargs)
    except TypeError as wrong:
        return TypeError(f"{op.name}: {wrong}; it is called as {op.name}{signature}")
    plain = type(error) in (TypeError, ValueError, RuntimeError, IndexError) or type(error).__module__.startswith("numpy")
    return named(op.name, error) if plain and not str(error).startswith(op.name) else error


def lift(op: Op) -> Lifted:
    """The public function of an op, with its signature and documentation."""
    signature = public_signature(op)
    if op.kind == "composite":
        function = _public_function(op, op.forward, signature)
        if op.name == "matmul":
            function = by_ranks(function)
    else:
        inner = core(op)
        names_of_operands = op.argument_names in (("input",), ("input", "other"))
        direct = op.kind == "elementwise" and not op.parameters and op.surface.prepare is None and names_of_operands
        function = inner if direct else _public_function(op, inner, signature)
    function.__name__ = function.__qualname__ = op.name
    function.__doc__ = DOCUMENTATION.get(op.name) or (documentation(op, signature) if op.surface.public else op.docs.doc)
    function.__signature__ = signature  # type: ignore[attr-defined]
    function.op = op  # type: ignore[attr-defined]
    return function


def install(op: Op) -> Lifted:
    """Add an op to the traced carrier; returns its public function."""
    function = lift(op)
    for name in (op.name, *op.surface.aliases):
        setattr(Traced, name, staticmethod(function))
    return function


def methods_of(op: Op, function: Any) -> dict[str, Any]:
    """The methods of Tensor for an op, by name."""
    return dict.fromkeys((op.name, *op.surface.aliases), function) if op.surface.method and op.surface.public else {}


_registered: dict[str, Lifted] = {}


def registered(op: Op) -> Lifted:
    """The one public function of an op of the registry, made when it is first asked for."""
    function = _registered.get(op.name)
    if function is None:
        function = lift(op)
        if op.surface.public:
            function.__module__ = "symgrad"  # the public module, where pickle looks the name up
        else:
            function.__qualname__ = f"Traced.{op.name}"  # modules of the surface have it under other names
        function = _registered.setdefault(op.name, function)  # that of another thread, if it was faster
    return function


class _Functions(Mapping[str, Lifted]):
    """The public functions of the ops of the registry, by name."""

    def __init__(self, ops: dict[str, Op]):
        self.ops = ops

    def __getitem__(self, name: str) -> Lifted:
        return registered(self.ops[name])

    def __contains__(self, name: object) -> bool:
        return name in self.ops

    def __iter__(self) -> Iterator[str]:
        return iter(self.ops)

    def __len__(self) -> int:
        return len(self.ops)


def _static(op: Op) -> Any:
    return staticmethod(registered(op))


FUNCTIONS = _Functions({name: op for op in REGISTRY.values() if op.surface.public for name in (op.name, *op.surface.aliases)})
METHODS = MethodTable()
for _op in list(REGISTRY.values()):
    for _name in (_op.name, *_op.surface.aliases):
        setattr(Traced, _name, Later(functools.partial(_static, _op)))
    METHODS.update(methods_of(_op, Later(functools.partial(registered, _op))))


@functools.cache
def _call_class(op: Op, base: type[Node]) -> type[Node] | None:
    """The class of the last node of a composite: that of its op, with the values and nodes of the call's tensors in `call`.

    None for a class whose nodes have more to copy than those of an op.
    """
    if base is Leaf or hasattr(base, "residual"):
        return None
    names = op.argument_names

    def saved(k: int | None, name: str) -> property:
        def get(self: Any) -> Any:
            if self.call is None:
                raise RuntimeError(FREED)
            asked = [needed.split() for (_, node), needed in zip(self.call, op.numerics.saved or ()) if node is not None and node.flags & GRADIENT]
            if not any(name in needed for needed in asked):
                return None
            return wrap(self.value, self) if k is None else wrap(*self.call[k])

        return property(get)

    def release(self: Any) -> None:
        if base.saves:
            self.flags |= RELEASED
            if not self.flags & NAMED:
                self.args, self.value = None, freed
        else:
            base.release(self)
        self.call = None

    words: dict[str, Any] = {"__slots__": ("call",), "__doc__": op.docs.doc, "saves": None, "release": release, "torch_named": lambda self: self}
    for k, name in [*enumerate(names), (None, "result")]:
        words[f"_saved_{'self' if name == 'input' else name}"] = saved(k, name)
    return derived(base, f"{op.surface.node_name}Backward0", **words)


def named_as_one(op: Op, out: Any, given: Sequence[Any]) -> Any:
    """The result of a composite function, whose node has torch's name of the call if it was recorded by the composite."""
    node = out._node_slot
    if node is None or special and not thread.modes.plain:
        return out
    for x in given:
        if not isinstance(x, Tensor) or x._node_slot is node:
            return out
    cls = _call_class(op, type(node))  # type: ignore[arg-type]
    if cls is None:
        return out
    named: Any = object.__new__(cls)
    named.args, named.parents, named.value, named.flags, named.sequence_nr = node.args, node.parents, node.value, node.flags, node.sequence_nr
    if node.kept is not None:
        named.kept = node.kept
    named.call = tuple([(x._value, x._node_slot) for x in given])
    out._node_slot = named
    return out
