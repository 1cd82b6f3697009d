"""Ops that compute the derivative of large arrays together with the value: by a kernel, in place of their rule, or from a shared exponential."""

from __future__ import annotations

import functools
import operator
from typing import Any, cast

import numpy as np

from symgrad.carriers import numeric
from symgrad.carriers.dual import Dual
from symgrad.carriers.elementwise import MANY
from symgrad.carriers.kernels import KERNELS, Kernel
from symgrad.carriers.transforms import TRANSFORMS
from symgrad.engine.operands import Lifted
from symgrad.engine.tensor import Tensor, wrap
from symgrad.graph.classes import become, derived
from symgrad.graph.freed import freed
from symgrad.graph.modes import special, thread
from symgrad.graph.node import GRADIENT, NAMED, RELEASED, TRACKED, Node, node_class
from symgrad.graph.op import REGISTRY, Op
from symgrad.system.errorstate import quietly

float32, float64 = np.dtype(np.float32), np.dtype(np.float64)
FEW = 1  # the least number of elements for a kernel that is for few, too


@functools.cache
def _kernel_class(base: type[Node], kernel: Kernel) -> type[Node]:
    """The node class of a call with a kernel."""
    def vjp(self: Any, xp: Any, g: Any, y: Any, args: tuple, needs: Any) -> Any:
        found = None
        if xp is numeric and (type(g) is np.float64 or type(g) is np.ndarray and g.dtype is y.dtype):
            found = kernel.pull(g, y, self.kept if keeps else None, *args)
        return base.vjp(xp, g, y, args, needs) if found is None else found

    def release(self: Any) -> None:
        self.flags |= RELEASED
        if not self.flags & NAMED:
            self.args, self.value, self.kept = None, freed, None

    keeps = kernel.value is not None
    words: dict[str, Any] = {"__slots__": ("kept",), "release": release, "saves": None} if keeps else {}
    return derived(base, vjp=vjp, finite=kernel.finite, **words)


def with_kernel(op: Op, plain: Lifted) -> Lifted:
    """The function of an op: `plain`, except on numbers that require grad and have a kernel: many of float64 as a rule."""
    if op.name not in KERNELS or REGISTRY.get(op.name) is not op:
        return plain
    arity, kernel, plain_class = op.arity, KERNELS[op.name], cast(Any, node_class(op))
    value, few = kernel.value, kernel.few

    def function(input: Any, *rest: Any, **words: Any) -> Tensor:
        if not isinstance(input, Tensor) or type(x := input._value) is not np.ndarray or x.size < (FEW if few else MANY) or words:
            return plain(input, *rest, **words)
        p = input._node_slot
        if x.dtype is not float64 and not (few and x.dtype is float32) or not x.flags.c_contiguous or special and not thread.modes.plain:
            return plain(input, *rest)
        if value is None:
            out = plain(input, *rest)
            node: Any = out._node_slot
            if node is not None and node.op is op and node.flags & GRADIENT and _is_alike(out._value, node.args, arity, kernel.finite):
                become(node, _kernel_class(node.__class__, kernel))
            return out
        args: tuple[Any, ...] = (x, *rest)
        parents: tuple[Node | None, ...] = (p,)
        flags = 0 if p is None else p.flags
        if arity != 1:
            operands = rest[:cast(int, arity) - 1]
            values = [z._value if isinstance(z, Tensor) else z for z in operands]
            if not all([type(z) is float or type(z) is np.ndarray and z.dtype is x.dtype for z in values]):
                return plain(input, *rest)
            args, parents = (x, *values, *args[arity:]), (p, *[z._node_slot if isinstance(z, Tensor) else None for z in operands])
            flags = functools.reduce(operator.or_, [q.flags for q in parents if q is not None], 0)
        if not flags & GRADIENT or any([isinstance(z, Tensor) for z in args]) or (found := quietly(value, *args)) is None:
            return plain(input, *rest)
        y, kept = found
        node = _kernel_class(plain_class, kernel)(args, parents, y, flags & TRACKED)
        node.kept = kept
        return wrap(y, node)

    return function


def _is_alike(y: Any, args: tuple, arity: int | None, is_reduced: bool) -> bool:
    """Whether the tensors among the arguments, and a value that is not one number, are arrays of one shape in row-major order, or Python numbers."""
    shape = args[0].shape if type(args[0]) is np.ndarray else None
    return shape is not None and (type(y) is np.float64 if is_reduced else type(y) is np.ndarray and y.shape == shape) and all([
        type(a) in (int, float) or type(a) is np.ndarray and a.dtype is float64 and a.shape == shape and a.flags.c_contiguous for a in args[:arity]])


def by_transforms(op: Op) -> Lifted:
    """The rule of an op for numbers that calls a transform, if there is one, for arrays of double precision."""
    if op.name not in TRANSFORMS:
        return op.forward
    value, taken, _, _ = TRANSFORMS[op.name]

    def of_value(xp: Any, x: Any, *rest: Any) -> Any:
        return value(x, *rest) if type(x) is np.ndarray and x.dtype.char == taken and x.size else op.forward(xp, x, *rest)

    return of_value


def transpose_of_numbers(op: Op) -> Lifted | None:
    """The transpose of a linear op of one argument, which for arrays of double precision calls a transform, if there is one; None for other ops."""
    rule = getattr(op.vjp, "transpose", None)
    if op.name not in TRANSFORMS or rule is None:
        return rule
    _, _, transpose, taken = TRANSFORMS[op.name]

    def of_cotangent(xp: Any, g: Any, shape: Any, *rest: Any) -> Any:
        return transpose(g, shape, *rest) if type(g) is np.ndarray and g.dtype.char == taken and g.size else rule(xp, g, shape, *rest)

    return of_cotangent


LARGE = 256  # elements from which sharing an exponential is worth its overhead


def _node_with_residual(op: Op, slope: Lifted, bend: Lifted) -> type[Node]:
    """The node class of an op whose derivative is computed from a residual of the forward."""

    def vjp(self: Any, xp: Any, g: Any, y: Any, args: tuple, needs: Any) -> tuple:
        if xp is numeric:
            partial = slope(self.residual)
            return (np.multiply(g, partial, out=partial),)
        (x,) = args
        if type(x) is Dual and xp.base is numeric:
            partial = slope(self.residual)
            return (g * Dual(partial, x.tangent * bend(x.value, self.value, partial)),)
        return op.vjp(xp, g, y, args, needs)  # type: ignore[misc]

    def residual_jvp(self: Any, tangent: Any) -> Any:
        return tangent * slope(self.residual)

    def release(self: Any) -> None:
        self.flags |= RELEASED
        if not self.flags & NAMED:
            self.args, self.value, self.residual = None, freed, None

    return derived(node_class(op), __slots__=("residual",), vjp=vjp, residual_jvp=residual_jvp, release=release, saves=None)


def with_residual(op: Op, plain: Lifted, pair: Lifted, slope: Lifted, bend: Lifted) -> Lifted:
    """The function of a unary op: `plain`, except on large arrays that require grad, where `pair` computes value and residual."""
    make = _node_with_residual(op, slope, bend)

    def function(input: Any, *, out: Any = None) -> Tensor:
        if not isinstance(input, Tensor) or input._node_slot is None or out is not None:
            return plain(input, out=out)
        x, p = input._value, input._node_slot
        if type(x) is not np.ndarray or x.size < LARGE or x.dtype.kind != "f" or not p.flags & GRADIENT or special and not thread.modes.plain:
            return plain(input)
        y, residual = quietly(pair, x)
        node = make((x,), (p,), y, p.flags & TRACKED)
        node.residual = residual  # type: ignore[attr-defined]
        return wrap(y, node)

    return function
