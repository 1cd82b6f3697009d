"""Ops from formulas for other frameworks: torch functions and JAX functions with derivatives of every order.

The generated code is compiled a second time with the functions of the other framework in place of NumPy's. The framework does not
differentiate this code: each derivative is the next form of the formula, and is numerically stable, too.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from symgrad.frameworks.adapter import import_extra
from symgrad.symbolic.formula import OpFormula, Order
from symgrad.symbolic.support import CONVERGED, Patch, average, horner, over, power
from symgrad.symbolic.wide import Guard, trusted_sizes, with_guard


class _Quiet:
    """A context that replaces NumPy's error state in frameworks without one."""

    def __enter__(self) -> None: ...

    def __exit__(self, *error: Any) -> None: ...


def _common_functions(xp: Any, where: Callable[..., Any], base: Callable[[Any], Mapping[str, Any]], widened: Callable[[Any], Any]) -> dict[str, Any]:
    """The functions of generated code that are common to both frameworks, defined by a namespace of elementary functions.

    `base(x)` returns the namespace of wide numbers for arrays of the kind of x, and `widened(x)` the array in the highest precision.
    """
    def averaged(direct: Any, slope: Any, ends: Any, *xs: Any) -> Any:
        return average(where, max(CONVERGED, 64 * float(xp.finfo(xs[0].dtype).eps)), direct, slope, ends, xs)

    def guarded_by(y: Any, guard: Guard, *xs: Any) -> Any:
        wide = [widened(x) for x in xs]
        return with_guard(base(wide[0]), trusted_sizes(xp.finfo(y.dtype)), y, guard, xs, wide)

    def sech(x: Any) -> Any:
        z = xp.exp(-xp.abs(x))
        return 2 * z / (1 + z * z)

    def softplus(x: Any) -> Any:
        return where(x > 0, x, 0 * x) + xp.log1p(xp.exp(-xp.abs(x)))

    def step(x: Any, middle: float = 0.5) -> Any:
        zero = 0 * x
        return where(x > 0, zero + 1, where(x < 0, zero, zero + middle))

    def cbrt(x: Any) -> Any:
        root = xp.sign(x) * xp.abs(x) ** (1 / 3)
        safe = where(root == 0, 0 * root + 1, root)
        return root - where(root == 0, 0 * root, (root - x / (safe * safe)) / 3)  # one Newton step

    def patched(y: Any, x: Any, patch: Patch) -> Any:
        u = (x - patch.centre) - patch.rest
        near = xp.abs(u) <= patch.radius
        return where(near, horner(where(near, u, 0 * x), patch.coefficients), y)

    def sigmoid(x: Any) -> Any:
        return xp.exp(where(x < 0, x, 0 * x)) / (1 + xp.exp(-xp.abs(x)))

    return over(xp, where) | {"sigmoids": lambda x: (sigmoid(x), sigmoid(-x)), "tanh_and_slope": lambda x: (xp.tanh(x), sech(x) * sech(x)),
            "sech": sech, "sech_square": lambda x: sech(x) * sech(x), "softplus": softplus,
            "sigmoid": sigmoid, "step": step, "cbrt": cbrt, "patched": patched, "averaged": averaged, "guarded": guarded_by,
            "power": power, "quiet": _Quiet, "square": lambda x: x * x, "nan": math.nan}


COMMON = "abs exp expm1 log log1p sin cos tan sinh cosh tanh sign floor ceil hypot logaddexp sqrt zeros_like logical_and logical_or logical_not "\
         "acos acosh asin asinh atan atan2 atanh pow remainder"


@functools.cache
def _torch_names() -> dict[str, Any]:
    torch = import_extra("torch", "as_torch_function")

    def of_two(function: Any) -> Callable[..., Any]:
        def call(a: Any, b: Any) -> Any:
            like = a if isinstance(a, torch.Tensor) else b
            return function(*[x if isinstance(x, torch.Tensor) else torch.as_tensor(x, dtype=like.dtype, device=like.device) for x in (a, b)])

        return call

    def where(condition: Any, a: Any, b: Any) -> Any:
        return torch.where(condition, a, b)

    names = {name: getattr(torch, name) for name in COMMON.split()}
    names |= {name: of_two(getattr(torch, name)) for name in ("maximum", "minimum", "hypot", "logaddexp", "atan2")}
    def frexp(x: Any) -> Any:
        m, e = torch.frexp(x)
        return m, e.to(x.dtype)

    names |= _common_functions(torch, where, lambda x: base, lambda x: x.double())
    base = names | {"where": where, "frexp": frexp, "ldexp": lambda m, e: torch.ldexp(torch.as_tensor(m, dtype=e.dtype), e), "average": average,
                    "longest": 1e306, "like": lambda x, y: x.to(y.dtype)}
    return names


@functools.cache
def _jax_names() -> dict[str, Any]:
    jnp = import_extra("jax.numpy", "as_jax")
    names = {name: getattr(jnp, name) for name in (*COMMON.split(), "maximum", "minimum", "cbrt")}
    def base(x: Any) -> dict[str, Any]:
        return short if x.dtype.itemsize < 8 else long

    names |= _common_functions(jnp, jnp.where, base, lambda x: x.astype(jnp.result_type(float))) | {"cbrt": jnp.cbrt}
    long = names | {"where": jnp.where, "frexp": jnp.frexp, "ldexp": lambda m, e: jnp.ldexp(m, e.astype(int)), "average": average, "longest": 1e306}
    long |= {"like": lambda x, y: x.astype(y.dtype)}
    short = long | {"longest": 1e36}
    return names


def torch_function(formula: OpFormula) -> Callable[..., Any]:
    """A function of torch tensors whose derivatives of every order are those of the formula.

    It is a `torch.autograd.Function`, whose backward calls the function of the next order. Tensors broadcast; Python numbers are converted.
    """
    torch = import_extra("torch", "as_torch_function")
    names = _torch_names()

    @functools.cache
    def function(k: Order) -> Callable[..., Any]:
        form = formula.form(k)
        compute = form.code.bound(names)

        def forward(*xs: Any) -> Any:
            return compute(*xs)

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
            given = dict(zip(form.places, ctx.saved_tensors))
            moved = [t * _partial(formula, formula.next(k, i), given, function) for i, t in zip(form.places, tangents) if t is not None]
            return functools.reduce(lambda a, b: a + b, moved)

        kind: Any = type(formula.name, (torch.autograd.Function,), {
            "forward": staticmethod(forward), "setup_context": staticmethod(setup_context), "backward": staticmethod(backward),
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
    names = _jax_names()

    @functools.cache
    def function(k: Order) -> Callable[..., Any]:
        form = formula.form(k)
        rule = jax.custom_jvp(form.code.bound(names))

        def jvp(primals: tuple, tangents: tuple) -> tuple:
            given = dict(zip(form.places, primals))
            y = rule(*primals)
            moved = [t * _partial(formula, formula.next(k, i), given, function) for i, t in zip(form.places, tangents)]
            return y, functools.reduce(lambda a, b: a + b, moved)

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


def _partial(formula: OpFormula, k: Order, given: dict[int, Any], function: Callable[[Order], Callable[..., Any]]) -> Any:
    """The value of a derivative: an integer, an argument, or a call of the function of that derivative."""
    exact = formula.exact(k)
    if exact.is_Integer:
        return int(exact)
    places = formula.form(k).places
    return given[places[0]] if exact.is_Symbol else function(k)(*[given[i] for i in places])
