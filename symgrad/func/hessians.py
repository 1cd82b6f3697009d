"""Second derivatives of a scalar function: one recorded graph, a batch of tangents pushed through it, and one pullback of dual cotangents."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from symgrad.autograd.engine import read_traced
from symgrad.carriers.batched import Batched, levels_of, new_level
from symgrad.carriers.dual import Dual, DualCarrier
from symgrad.func.evaluation import Evaluation, evaluate, scalar
from symgrad.func.plans import Plans
from symgrad.func.transforms import _finished, _joined, _spread, _tangents, pulled, unit_chunks
from symgrad.graph import Node, record
from symgrad.passes import pullback_along, pushforward
from symgrad.saved import read_by
from symgrad.tensor import Tensor, wrap
from symgrad.trees import transpose

__all__ = ["hessian", "hvp", "second", "vhp"]


def second(ev: Evaluation, y: Tensor, tangents: Sequence[Tensor | None]) -> list[Tensor]:
    """The derivative of the gradient along tangents of the inputs, for every input: ∂²y/∂x∂xⱼ · tⱼ, summed over j.

    A pullback whose cotangents are dual gives the gradient and its tangent in one pass, and records nothing unless somebody outside differentiates
    by an input.
    """
    if y._node not in ev.between:
        return [_finished(ev, x, None) for x in ev.inputs]
    if any(node.op.kind == "function" for node in ev.between if hasattr(type(node), "op")):
        return _second_of_functions(ev, y, tangents)
    xp = ev.xp
    read = read_traced if ev.tracked else _read
    starts = {node: t if ev.tracked else t._value for node, t in zip(ev.nodes, tangents) if t is not None}
    before = record(ev.tracked)
    try:
        moved = pushforward(xp, (), starts, read, _read_by_pullback(ev))

        def read_dual(node: Node) -> tuple[Any, tuple]:
            value, args = read(node)
            if node.op.kind == "linear":
                return value, args
            parents = node.parents
            along = tuple([Dual(a, moved[p]) if p in moved else a for a, p in zip(args, parents)]) + args[len(parents):]
            return Dual(value, moved[node]) if node in moved else value, along

        seed = np.ones_like(y._value)[()]
        out = pullback_along(_carrier(xp), ev.path, ev.between, {y._node: wrap(seed) if ev.tracked else seed}, read_dual)
    except NotImplementedError:  # a function that states a pullback only
        return _second_of_functions(ev, y, tangents)
    finally:
        record(before)
    found = [out.get(node) for node in ev.nodes]
    return [_finished(ev, x, g.tangent if type(g) is Dual else None) for x, g in zip(ev.inputs, found)]


def _read_by_pullback(ev: Evaluation) -> list[Node]:
    """The nodes whose tangents the rules of a pullback read, or that those depend on, in order: what only linear ops use has none to compute."""
    between, read = ev.between, set[Node]()
    for node in reversed(ev.path):
        op, parents = node.op, node.parents
        names = read_by(op)
        if names is None:
            read.update([p for p in parents if p in between], (node,))
        else:
            for i, p in enumerate(parents):
                if p in between:
                    for name in names[min(i, len(names) - 1)]:
                        if name == "result":
                            read.add(node)
                        else:
                            read.add(parents[op.argument_names.index(name)] if op.arity is not None else p)  # type: ignore[arg-type]
        if node in read:
            read.update([p for p in parents if p in between])
    return [node for node in ev.path if node in read]


_carrier = functools.cache(DualCarrier)


def _read(node: Node) -> tuple[Any, tuple]:
    return node.value, node.args  # type: ignore[return-value]


def _second_of_functions(ev: Evaluation, y: Tensor, tangents: Sequence[Tensor | None]) -> list[Tensor]:
    """The same by a second pullback, where a custom Function says only how cotangents are pulled back: Σ tⱼ · ∂g/∂xⱼ by symmetry."""
    tracked = dataclasses.replace(ev, tracked=True)
    gradient = pulled(tracked, [(y, wrap(np.ones_like(y._value)))])
    first = dataclasses.replace(ev, outputs=gradient, between=tracked.between.union(*map(_upstream, gradient)))
    return pulled(first, [(g, t) for g, t in zip(gradient, tangents) if t is not None], True)


def _upstream(t: Tensor) -> frozenset[Node]:
    from symgrad.graph import upstream

    return frozenset(upstream([t._node], differentiable=True))


def hessian_rows(ev: Evaluation, y: Tensor, j: int, chunk_size: int | None) -> list[Tensor]:
    """∂²y/∂xⱼ∂x for every input x, the elements of xⱼ along the first axis."""
    parts: list[list[Tensor]] = [[] for _ in ev.inputs]
    for units in unit_chunks(ev.inputs[j], chunk_size):
        for part, t in zip(parts, second(ev, y, [wrap(units) if i == j else None for i in range(len(ev.inputs))])):
            part.append(_spread(ev, t, units))
    return [_joined(ev, part, (0, *x.shape), x) for part, x in zip(parts, ev.inputs)]


class Hessian:
    """The Hessian of a function as a function of the same arguments; `report` says what the last call found and did."""

    def __init__(self, func: Callable[..., Any], argnums: Any, has_aux: bool, structure: Any, chunk_size: int | None):
        functools.update_wrapper(self, func)
        self._asked = func, argnums, has_aux, structure, chunk_size
        self._plans = Plans()
        self.report: Any = None

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        func, argnums, has_aux, structure, chunk_size = self._asked
        ev = evaluate(func, args, kwargs, argnums, "hessian", has_aux)
        found = None
        if structure is not None or worth_a_plan(ev, chunk_size):
            found = self._planned(ev, func, structure, chunk_size)
        if found is None:
            found = _dense(ev, func, args, kwargs, argnums, has_aux, chunk_size)
        return (found, ev.free(ev.aux)) if has_aux else found

    def _planned(self, ev: Evaluation, func: Callable[..., Any], structure: str | None, chunk_size: int | None) -> Any:
        """The Hessian from as many products as its pattern needs: a sparse matrix of all elements by all elements where a structure was asked for.

        None where it is dense.
        """
        y = scalar(ev, func, "hessian")
        if structure is not None and (ev.tracked or levels_of(y._value)):
            raise RuntimeError("hessian: a sparse matrix of SciPy cannot be differentiated or batched; leave structure out inside other transforms")
        if structure == "local":
            from symgrad.func.sparsity import plan_hessian

            plan = plan_hessian(y._node, ev.nodes, local=True)
        else:
            plan = self._plans.of(ev, y)
        self.report = plan.report
        if plan.dense:
            return None
        products = compressed(ev, y, plan.seeds, chunk_size)
        return plan.recover(products) if structure is not None else _blocks(ev, plan.filled(products))


PLANNED = 32  # inputs from which a look for zeros costs less than it may save


def worth_a_plan(ev: Evaluation, chunk_size: int | None) -> bool:
    """Whether to look for zeros though nobody asked."""
    if ev.tracked or chunk_size is not None or len(ev.outputs) != 1 or ev.outputs[0]._value.dtype.kind != "f" or ev.outputs[0]._value.shape != ():
        return False
    return sum([x._value.size for x in ev.inputs]) >= PLANNED


def _blocks(ev: Evaluation, whole: np.ndarray) -> Any:
    """The matrix of all elements by all elements as a tree of trees of blocks."""
    ends = np.cumsum([0, *(x.numel() for x in ev.inputs)])
    return transpose(ev.form, ev.form, [wrap(whole[a:b, c:d].reshape((*x.shape, *z.shape))) for a, b, x in zip(ends, ends[1:], ev.inputs)
                                        for c, d, z in zip(ends, ends[1:], ev.inputs)])


def compressed(ev: Evaluation, y: Tensor, seeds: Any, chunk_size: int | None) -> np.ndarray:
    """The products of the Hessian with vectors over all elements of all inputs, which are the rows of `seeds`."""
    sizes = [x.numel() for x in ev.inputs]
    ends = np.cumsum([0, *sizes])
    out = []
    step = chunk_size or max(len(seeds), 1)
    for at in range(0, len(seeds), step):
        rows, level = seeds[at:at + step], new_level()
        tangents = [Batched(rows[:, a:b].reshape((len(rows), *x.shape)), level) for a, b, x in zip(ends, ends[1:], ev.inputs)]
        found = [_spread(ev, t, b)._value.reshape(len(rows), -1) for t, b in zip(second(ev, y, [wrap(t) for t in tangents]), tangents)]
        out.append(found[0] if len(found) == 1 else np.concatenate(found, 1))
    return out[0] if len(out) == 1 else np.concatenate(out) if out else np.zeros((0, int(ends[-1])))


def _dense(ev: Evaluation, func: Callable[..., Any], args: tuple, kwargs: dict, argnums: Any, has_aux: bool, chunk_size: int | None) -> Any:
    if len(ev.outputs) == 1 and ev.shape.kind is None and not ev.outputs[0]._value.ndim and ev.outputs[0]._value.dtype.kind != "c":
        (y,) = ev.outputs
        if y._value.dtype.kind not in "fV":
            scalar(ev, func, "hessian")
        blocks = [t.reshape((*x.shape, *z.shape)) for j, x in enumerate(ev.inputs)  # type: ignore[attr-defined]
                  for t, z in zip(hessian_rows(ev, y, j, chunk_size), ev.inputs)]
        return transpose(ev.form, ev.form, blocks)
    from symgrad.func.transforms import jacfwd, jacrev

    plain = (lambda *a, **k: func(*a, **k)[0]) if has_aux else func
    return jacfwd(jacrev(plain, argnums), argnums, chunk_size=chunk_size)(*args, **kwargs)


def hessian(func: Callable[..., Any], argnums: Any = 0, *, has_aux: bool = False, structure: str | None = None,
            chunk_size: int | None = None) -> Hessian:
    """The function that gives the Hessian of a scalar function: ∂²f/∂xᵢ∂xⱼ, of shape (*xᵢ.shape, *xⱼ.shape).

    The function runs once; all rows are computed together, `chunk_size` of them at a time. For trees of arguments the result is a tree of trees; a
    function of several outputs has the Hessian of each along leading axes. With `structure="auto"` the pattern of zeros is found from the recorded
    graph, and a sparse Hessian comes back as a `scipy.sparse.csr_array` of all elements by all elements, from as many products as the pattern
    needs colours; a dense one as without. "local" uses the pattern at the values of the arguments. `report` of the result then says what was found.

    Raises RuntimeError for arguments that cannot be differentiated, with a structure for an output that is no scalar, ValueError for another one.

    >>> import symgrad
    >>> symgrad.func.hessian(lambda x: (x**3).sum())(symgrad.tensor([1.0, 2.0]))
    tensor([[ 6.,  0.],
            [ 0., 12.]])
    """
    if structure not in (None, "auto", "local"):
        raise ValueError(f"hessian: structure must be None, 'auto' or 'local', not {structure!r}")
    return Hessian(func, argnums, has_aux, structure, chunk_size)


def hvp(func: Callable[..., Any], primals: Any, vectors: Any) -> Any:
    """The product of the Hessian of a scalar function with a vector, ∂²f/∂x² · v, in the form of the primals: at most a few times a gradient's cost.

    `primals` is a tuple with one entry for each argument, `vectors` another of the same form; one argument may be given without its tuple.

    Raises RuntimeError for a function that is no real scalar, and for vectors of another form or shape. B. A. Pearlmutter, Neural Computation 6
    (1994).

    >>> import symgrad
    >>> symgrad.func.hvp(lambda x: (x**3).sum(), symgrad.tensor([1.0, 2.0]), symgrad.tensor([1.0, 1.0]))
    tensor([ 6., 12.])
    """
    return _product(func, primals, vectors, "hvp")


def vhp(func: Callable[..., Any], primals: Any, vectors: Any) -> Any:
    """The product of a vector with the Hessian of a scalar function, vᵀ · ∂²f/∂x²: the same as `hvp`, for the Hessian is symmetric.

    Raises RuntimeError for a function that is no real scalar, and for vectors of another form or shape.

    >>> import symgrad
    >>> symgrad.func.vhp(lambda x: (x**3).sum(), symgrad.tensor([1.0, 2.0]), symgrad.tensor([1.0, 1.0]))
    tensor([ 6., 12.])
    """
    return _product(func, primals, vectors, "vhp")


def _product(func: Callable[..., Any], primals: Any, vectors: Any, asking: str) -> Any:
    alone = not isinstance(primals, tuple)
    ev, ts = _tangents(func, (primals,) if alone else primals, (vectors,) if alone else vectors, asking)
    found = ev.form.unflatten(second(ev, scalar(ev, func, asking), ts))
    return found[0] if alone else found
