"""Ops from formulas for other frameworks: torch functions and JAX functions with derivatives of every order.

The generated code is compiled a second time with the functions of the other framework in place of NumPy's. The framework does not
differentiate this code: each derivative is the next form of the formula, and is numerically stable, too.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Sequence
from typing import Any

from symgrad.frameworks.adapter import import_extra
from symgrad.symbolic.formula import OpFormula, Order
from symgrad.symbolic.support import ELEMENTARY, made_of


@functools.cache
def _torch_names() -> dict[str, Any]:
    torch = import_extra("torch", "as_torch_function")

    def of_two(function: Any) -> Callable[..., Any]:
        def call(a: Any, b: Any) -> Any:
            like = a if isinstance(a, torch.Tensor) else b
            return function(*[x if isinstance(x, torch.Tensor) else torch.as_tensor(x, dtype=like.dtype, device=like.device) for x in (a, b)])

        return call

    def frexp(x: Any) -> Any:
        m, e = torch.frexp(x)
        return m, e.to(x.dtype)

    names = {name: getattr(torch, name) for name in ELEMENTARY}
    names |= {name: of_two(getattr(torch, name)) for name in ("maximum", "minimum", "hypot", "logaddexp", "atan2")}
    return made_of(names | {
        "where": lambda condition, a, b: torch.where(condition, a, b), "finfo": lambda x: torch.finfo(x.dtype), "frexp": frexp, "longest": 1e306,
        "ldexp": lambda m, e: torch.ldexp(torch.as_tensor(m, dtype=e.dtype), e),
        "replaced": lambda y, mask, compute, *xs: torch.where(mask, compute(*[x.double() for x in xs]).to(y.dtype), y)})


@functools.cache
def _jax_names(widest: Any) -> dict[str, Any]:
    jnp = import_extra("jax.numpy", "as_jax")
    return made_of({name: getattr(jnp, name) for name in (*ELEMENTARY, "maximum", "minimum", "cbrt", "where", "frexp")} | {
        "finfo": lambda x: jnp.finfo(x.dtype), "longest": 1e306 if widest.itemsize == 8 else 1e36, "ldexp": lambda m, e: jnp.ldexp(m, e.astype(int)),
        "replaced": lambda y, mask, compute, *xs: jnp.where(mask, compute(*[x.astype(widest) for x in xs]).astype(y.dtype), y)})


def torch_function(formula: OpFormula) -> Callable[..., Any]:
    """A function of torch tensors whose derivatives of every order are those of the formula.

    It is a `torch.autograd.Function`, whose backward calls the function of the next order. Tensors broadcast; Python numbers are converted.
    """
    torch = import_extra("torch", "as_torch_function")

    @functools.cache
    def function(k: Order) -> Callable[..., Any]:
        form = formula.form(k)
        compute = form.code.bound(_torch_names())

        def setup_context(ctx: Any, inputs: tuple, output: Any) -> None:
            ctx.save_for_backward(*inputs)
            ctx.save_for_forward(*inputs)

        def backward(ctx: Any, g: Any) -> tuple:
            xs = ctx.saved_tensors
            given = dict(zip(form.places, xs))
            out = []
            for i, x, needed in zip(form.places, xs, ctx.needs_input_grad):
                out.append((g * _partial(formula, formula.next(k, i), given, function)).sum_to_size(x.shape) if needed else None)
            return tuple(out)

        def jvp(ctx: Any, *tangents: Any) -> Any:
            return _pushed(formula, k, ctx.saved_tensors, tangents, function)

        kind: Any = type(formula.name, (torch.autograd.Function,), {
            "forward": staticmethod(lambda *xs: compute(*xs)), "setup_context": staticmethod(setup_context), "backward": staticmethod(backward),
            "jvp": staticmethod(jvp), "generate_vmap_rule": True})
        return kind.apply

    def convert(xs: Sequence[Any]) -> list[Any]:
        tensors = [x for x in xs if isinstance(x, torch.Tensor)]
        dtype = functools.reduce(torch.promote_types, (t.dtype for t in tensors)) if tensors else torch.get_default_dtype()
        if not dtype.is_floating_point:
            dtype = torch.get_default_dtype()
        device = tensors[0].device if tensors else None
        return [torch.as_tensor(x, device=device).to(dtype) for x in xs]

    return _public(formula, function, convert, "torch tensors")


def jax_function(formula: OpFormula) -> Callable[..., Any]:
    """A `jax.custom_jvp` function of JAX arrays whose derivatives of every order are those of the formula; it works inside jit, vmap and grad."""
    jax = import_extra("jax", "as_jax")

    @functools.cache
    def function(k: Order) -> Callable[..., Any]:
        form = formula.form(k)
        compute = functools.cache(lambda widest: form.code.bound(_jax_names(widest)))
        rule = jax.custom_jvp(lambda *xs: compute(jax.numpy.result_type(float))(*xs))

        def jvp(primals: tuple, tangents: tuple) -> tuple:
            return rule(*primals), _pushed(formula, k, primals, tangents, function)

        rule.defjvp(jvp)
        return rule

    def convert(xs: Sequence[Any]) -> list[Any]:
        arrays = [jax.numpy.asarray(x) for x in xs]
        dtype = jax.numpy.result_type(float, *arrays) if not any(jax.numpy.issubdtype(a.dtype, jax.numpy.floating) for a in arrays) else (
            jax.numpy.result_type(*[x for x in xs]))
        return [a.astype(dtype) for a in arrays]

    return _public(formula, function, convert, "JAX arrays")


def _public(formula: OpFormula, function: Callable[[Order], Callable[..., Any]], convert: Callable[[Sequence[Any]], list[Any]], what: str) -> Any:
    """The function that users call, which converts its arguments."""
    def call(*xs: Any) -> Any:
        if len(xs) != len(formula.symbols):
            raise TypeError(f"{formula.name} takes {len(formula.symbols)} argument{'s' * (len(formula.symbols) != 1)}, not {len(xs)}")
        arguments = convert(xs)
        return function(formula.zero)(*[arguments[i] for i in formula.form(formula.zero).places])

    call.__name__ = call.__qualname__ = formula.name
    call.__doc__ = f"{formula.name} of {what}: {formula.expr}, with derivatives of every order."
    return call


def _pushed(formula: OpFormula, k: Order, primals: Sequence[Any], tangents: Sequence[Any], function: Callable[[Order], Callable[..., Any]]) -> Any:
    places = formula.form(k).places
    given = dict(zip(places, primals))
    moved = [t * _partial(formula, formula.next(k, i), given, function) for i, t in zip(places, tangents) if t is not None]
    return functools.reduce(operator.add, moved)


def _partial(formula: OpFormula, k: Order, given: dict[int, Any], function: Callable[[Order], Callable[..., Any]]) -> Any:
    """The value of a derivative: an integer, an argument, or a call of the function of that derivative."""
    exact = formula.exact(k)
    if exact.is_Integer:
        return int(exact)
    places = formula.form(k).places
    return given[places[0]] if exact.is_Symbol else function(k)(*[given[i] for i in places])
