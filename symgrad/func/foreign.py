"""`foreign`: a function of NumPy arrays, from NumPy, SciPy or C, as an op with derivatives."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from symgrad.autograd.batched import VmapInfo
from symgrad.carriers.batched import Batched, batch_size
from symgrad.carriers.duck import DuckArray, Unrecordable
from symgrad.engine.data import as_value
from symgrad.engine.tensor import Tensor, wrap
from symgrad.func.custom import custom_vjp
from symgrad.func.rules import NoRuleFormula, is_tracked
from symgrad.trees import flatten


class foreign(custom_vjp):
    """A decorator that makes an op of a function of arrays: of NumPy, SciPy or C, or of a solver of one's own.

    The function gets NumPy arrays (numbers for 0-d tensors) and returns arrays; it must not write to its arguments. Its derivatives are rules of
    Tensors, which may call the function itself, other such functions and all of symgrad; they are right to every order for which the functions that
    they call have rules:

    - `f.defvjp(fwd, bwd)`, the pullback as of `custom_vjp`, and `f.defjvp(rule)` or `f.defjvps(*rules)`, the pushforward as of `custom_jvp`. A
      pullback without a pushforward serves reverse mode only; a pushforward alone serves both modes, if a pullback can be derived from it.
    - `f.defvmap(rule)`, for batches: `rule(info, in_dims, *args) -> (outputs, out_dims)`, as the `vmap` of an `autograd.Function`, with arrays.
      Without it, or where it returns NotImplemented, the function is called once for each member.
    - `f.defformula(function)`: the same function of Tensors, of which the formula, the checks and the sparsity of Hessians are those of `f`.

    Raises AttributeError if no derivative is defined; `ArrayNeeded`, a TypeError, for a rule that gives NumPy a tensor with a graph or of a batch;
    otherwise what `custom_vjp` raises.

    >>> import scipy.special
    >>> from symgrad.func import foreign, grad
    >>> @foreign
    ... def jv(order, x):
    ...     return scipy.special.jv(order, x)
    >>> jv.defjvps(None, lambda t, y, order, x: t * (jv(order - 1, x) - jv(order + 1, x)) / 2)
    >>> grad(grad(jv, 1), 1)(0, 1.0)
    tensor(-0.3251)
    """

    kind = "foreign"
    vmap_rule: Callable[..., Any] | None = None

    def __init__(self, fun: Callable[..., Any], nondiff_argnums: Sequence[int] = ()):
        super().__init__(fun, nondiff_argnums)
        self.kernel, self.fun = fun, self._evaluate

    def defvmap(self, rule: Callable[..., Any]) -> Callable[..., Any]:
        """Define the values of a batch; returns the rule."""
        self.vmap_rule = rule
        return rule

    def defformula(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Define the function of Tensors that stands for this one in formulas; returns it."""
        self.formula = function
        return function

    def _evaluate(self, *args: Any) -> Any:
        """The value: by the kernel for numbers, by the formula where it is recorded to be read in another carrier."""
        leaves, form = flatten(args)
        if any([isinstance(x, Tensor) and is_tracked(x) for x in leaves]):
            if self.formula is None:
                raise NoRuleFormula(f"{self.name}: a function of NumPy arrays has no formula; declare one with {self.name}.defformula")
            return self.formula(*args)
        values = [x._value if isinstance(x, Tensor) else x for x in leaves]
        found, shape = flatten(self._of_members(values, form.unflatten))
        return shape.unflatten([wrap(_own(as_value(y), values)) if isinstance(y, (np.ndarray, np.number, float, complex, DuckArray)) else y
                                for y in found])

    def _of_members(self, values: list[Any], form: Callable[[list[Any]], Any]) -> Any:
        """The arrays that the kernel returns, for each member of batches."""
        ducks = [x for x in values if isinstance(x, DuckArray)]
        if not ducks:
            return self.kernel(*form(values))
        members = [x for x in ducks if type(x) is Batched]
        if len(members) != len(ducks):
            raise Unrecordable(f"{self.name}, a function of NumPy arrays")
        level = max([x.level for x in members])
        count, batched = batch_size(values, level), [type(x) is Batched and x.level == level for x in values]
        if self.vmap_rule is not None and not any([isinstance(x.data, DuckArray) for x in members]):
            found = self.vmap_rule(VmapInfo(count, "error"), form([0 if b else None for b in batched]),
                                   *form([x.data if b else x for x, b in zip(values, batched)]))
            if found is not NotImplemented:
                leaves, shape = flatten(found[0])
                dims = flatten(found[1])[0] if isinstance(found[1], tuple) else [found[1]] * len(leaves)
                return shape.unflatten([y if d is None else Batched(np.moveaxis(y, d, 0), level) for y, d in zip(leaves, dims)])
        if not count:
            raise RuntimeError(f"vmap: {self.name} is called for each member of a batch, and the batch is empty; declare {self.name}.defvmap")
        rows = [flatten(self._of_members([x.data[i] if b else x for x, b in zip(values, batched)], form)) for i in range(count)]
        return rows[0][1].unflatten([Batched(np.stack(column), level) for column in zip(*[leaves for leaves, _ in rows])])


def _own(y: Any, values: Sequence[Any]) -> Any:
    """The array itself, or a copy if it has the memory of an argument."""
    return y.copy() if any([isinstance(x, np.ndarray) and np.may_share_memory(x, y) for x in values]) else y

