"""Lifting: the public functions and methods of Tensors from the ops of the registry, and the traced carrier."""

from __future__ import annotations

import functools
import inspect
import re
from typing import Any

from symgrad.carriers import numeric
from symgrad.engine.calls import named_as_one
from symgrad.engine.data import as_value
from symgrad.engine.documentation import documentation, stored
from symgrad.engine.recording import NUMBERS, Lifted, convert, core, operand
from symgrad.engine.storage.views import own
from symgrad.engine.storage.writes import into
from symgrad.engine.tables import MethodTable
from symgrad.engine.tensor import Tensor, wrap
from symgrad.graph.closures import specialized
from symgrad.graph.op import REGISTRY, Op

__all__ = ["FUNCTIONS", "METHODS", "by_ranks", "install", "lift", "methods_of", "public_signature", "traced"]


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
_clone = core(REGISTRY["clone"])

@functools.cache
def public_signature(op: Op) -> inspect.Signature:
    """The signature of the public function of an op: that of `prepare`, or of the rule, without the carrier."""
    given = inspect.signature(op.prepare or op.forward)
    return given.replace(parameters=list(given.parameters.values())[1:])


DOCUMENTATION = stored()
NUMPY_WORDS = {"axis": "dim", "keepdims": "keepdim", "ddof": "correction"}


def _public_function(op: Op, core: Lifted) -> Lifted:
    """The public function of an op: it converts keywords, NumPy's names and numbers to the arguments of the rule."""
    signature = public_signature(op)
    names = list(signature.parameters)
    words = {numpy: torch for numpy, torch in NUMPY_WORDS.items() if torch in names}
    plain, composite, arity = op.kind == "elementwise", op.kind == "composite", op.arity
    quick = arity == 1 and not plain and not composite and op.prepare is not None

    def tensors(args: tuple, kwargs: dict[str, Any]) -> tuple[tuple, dict[str, Any]]:
        bound = signature.bind(*args, **kwargs)
        given = bound.arguments
        for name in names[:arity]:
            if name in given and not isinstance(given[name], Tensor) and name != "equation":
                given[name] = operand(op, given[name])
                if name == names[0] and type(given[name]) in NUMBERS:
                    given[name] = wrap(as_value(given[name]))
        return bound.args, bound.kwargs

    @specialized
    def function(*args: Any, **kwargs: Any) -> Any:
        if plain and not kwargs and len(args) == arity:
            return core(*args)
        try:
            if quick and not kwargs and args and isinstance(args[0], Tensor):
                prepared = op.prepare(traced, *args)  # type: ignore[misc]
                return prepared if isinstance(prepared, Tensor) else core(*prepared)
            if kwargs:
                if "out" in kwargs and "out" not in names:
                    target = kwargs.pop("out")
                    if target is not None:
                        return into(target, op.name, function, *args, **kwargs)
                kwargs = {words.get(key, key): value for key, value in kwargs.items()}
            if not plain and arity is not None and (len(args) < arity or not all([isinstance(x, Tensor) for x in args[:arity]])):
                args, kwargs = tensors(args, kwargs)
            elif arity is None and args and isinstance(args[0], (list, tuple)):
                args = [x if isinstance(x, Tensor) else wrap(as_value(x)) for x in args[0]], *args[1:]
            if composite:
                out = own(core(traced, *args, **kwargs), args)
                return out if op.saved is None else named_as_one(op, out, args[:arity])
            if op.prepare:
                prepared = op.prepare(traced, *args, **kwargs)
            else:
                prepared = args if len(args) == len(names) and not kwargs else signature.bind(*args, **kwargs).arguments.values()
        except (TypeError, ValueError, RuntimeError, IndexError) as error:
            raise _named(op, signature, error, args, kwargs) from None
        return prepared if isinstance(prepared, Tensor) else core(*prepared)  # otherwise `prepare` returned the result

    return function


PRODUCTS = {(2, 2): "mm", (2, 1): "mv", (1, 2): "vm", (1, 1): "dot"}


def by_ranks(general: Lifted) -> Lifted:
    """matmul with direct calls for vectors and matrices, which skip the handling of batches."""
    products = {ranks: core(REGISTRY[name]) for ranks, name in PRODUCTS.items()}

    def function(*args: Any, **kwargs: Any) -> Any:
        if len(args) == 2 and not kwargs:
            input, other = args
            if isinstance(input, Tensor) and isinstance(other, Tensor):
                a, b = input._value.shape, other._value.shape
                product = products.get((len(a), len(b)))
                if product is not None and a[-1] == b[0]:
                    return product(input, other)
        return general(*args, **kwargs)

    return function


def _named(op: Op, signature: inspect.Signature, error: Exception, args: tuple, kwargs: dict[str, Any]) -> Exception:
    """An error of the arguments with the name of the op, and its signature if the call does not match that."""
    try:
        signature.bind(*args, **kwargs)
    except TypeError as wrong:
        return TypeError(f"{op.name}(): {wrong}; it is called as {op.name}{signature}")
    plain = type(error) in (TypeError, ValueError, RuntimeError, IndexError)
    if not plain or str(error).startswith((op.name, "view size")) or re.match(r"[\w.]+(\(\))?: ", str(error)):
        return error
    return type(error)(f"{op.name}: {error}")


def lift(op: Op) -> Lifted:
    """The public function of an op, with its signature and documentation."""
    if op.kind == "composite":
        function = _public_function(op, op.forward)
        if op.name == "matmul":
            function = by_ranks(function)
    else:
        inner = core(op)
        direct = op.kind == "elementwise" and not op.parameters and op.prepare is None and op.argument_names in (("input",), ("input", "other"))
        function = inner if direct else _public_function(op, inner)
    function.__name__ = function.__qualname__ = op.name
    function.__doc__ = DOCUMENTATION.get(op.name) or documentation(op, public_signature(op))
    function.__signature__ = public_signature(op)  # type: ignore[attr-defined]
    function.op = op  # type: ignore[attr-defined]
    return function


def install(op: Op) -> Lifted:
    """Add an op to the traced carrier; returns its public function."""
    function = lift(op)
    for name in (op.name, *op.aliases):
        setattr(Traced, name, staticmethod(function))
    return function


def methods_of(op: Op, function: Lifted) -> dict[str, Lifted]:
    """The methods of Tensor for an op, by name."""
    return dict.fromkeys((op.name, *op.aliases), function) if op.method and op.public else {}


FUNCTIONS: dict[str, Lifted] = {}
METHODS = MethodTable()
for _op in list(REGISTRY.values()):
    _function = install(_op)
    METHODS.update(methods_of(_op, _function))
    if _op.public:
        _function.__module__ = "symgrad"  # the public module, where pickle looks the name up
        FUNCTIONS.update(dict.fromkeys((_op.name, *_op.aliases), _function))
