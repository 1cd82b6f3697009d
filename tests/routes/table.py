"""The routes: each computes the value of a function, or a derivative of it, in its own way. A new route is one line.

A row has a name, what it computes, and a function of a `Problem`. What is computed is
- "value": f(x), and "gradient": ∇f(x);
- "product": H u, the Hessian times the tangent; a whole "Hessian" is multiplied by it; "diagonal" and "trace" are those of the Hessian;
- "third": ∇(uᵀ H u); a whole array of third derivatives ("cubic") and a "Hessian of slope", that of z ↦ ∇f(z) · u, are multiplied by the tangent;
- "along 1", "along 2", "along 3": the derivatives of t ↦ f(x + t u) at 0.
"""

from __future__ import annotations

import importlib.util
import random
import re
from collections.abc import Callable
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import sympy

import symgrad
from symgrad import autograd, func
from symgrad.autograd import functional
from symgrad.program.native import find_compiler
from tests.support.c_interpreter import compiled as compiled_c
from tests.support.routes import GRADIENTS, HESSIANS, TRACES, leaf, remembered

from .drawing import Function

__all__ = ["ROUTES", "Problem", "Route", "here"]

tensor = symgrad.tensor
LARGEST_FORMULA = 4  # elements of an argument whose derivatives are read as formulas
SHORT = 3  # steps of a function whose third derivatives are read as formulas


class NotHere(Exception):
    """A route that does not apply to a problem; the message says why."""


def along(f: Callable[[Any], Any], u: Any) -> Callable[[Any], Any]:
    """The function z ↦ ∇f(z) · u."""
    return lambda z: (func.grad(f)(z) * u).sum()


class Problem:
    """A function at a point, as the routes take it."""

    def __init__(self, function: Function):
        self.f, self.function = function.scalar, function
        self.x, self.u = tensor(function.point), tensor(function.tangent)
        self.slope = along(self.f, self.u)  # z ↦ ∇f(z) · u
        self.curvature = along(self.slope, self.u)  # z ↦ uᵀ H(z) u

    @cached_property
    def dtype(self) -> Any:
        """The dtype of the value."""
        return self.f(self.x).dtype

    @property
    def leaf(self) -> Any:
        """A new leaf."""
        return leaf(self.x)

    @cached_property
    def named(self) -> Any:
        """A leaf with a symbol, for formulas."""
        if self.function.point.size > LARGEST_FORMULA:
            raise NotHere(f"formulas of more than {LARGEST_FORMULA} elements are long")
        return tensor(self.function.point, requires_grad=True, symbol="x")

    def evaluated(self, found: Any) -> np.ndarray:
        """The formula of a tensor, evaluated with fifty digits at the point."""
        if not isinstance(found, symgrad.Tensor) or not found.requires_grad and found._node is None:
            raise NotHere("a constant has no formula")
        formula, names = found.expr, self.named.expr
        if formula is None:
            raise NotHere("there is no formula")
        flat = [names] if isinstance(names, sympy.Symbol) else list(sympy.flatten(names.tolist()))
        at = {s: sympy.Float(float(v), 60) for s, v in zip(flat, np.ravel(self.function.point))}
        cells = [formula] if not hasattr(formula, "tolist") else sympy.flatten(formula.tolist())
        numbers = []
        for cell in cells:
            number = sympy.sympify(cell).xreplace(at)
            number = sympy.N(number, 50)
            if not number.is_number or not number.is_real and number.is_extended_real is None and not number.is_Float:
                raise NotHere(f"SymPy has no number for {str(number)[:60]}")
            numbers.append(float(number) if number.is_real or number.is_Float else float("nan"))
        return np.array(numbers).reshape(tuple(found.shape))


class Route(NamedTuple):
    """A row of the table; `needs` is the module that must be installed for it, and `share` the part of the functions that it is taken for."""

    name: str
    what: str
    compute: Callable[[Problem], Any]
    needs: str = ""
    share: float = 1.0

    def taken(self, seed: int, share: float = 1.0) -> bool:
        """Whether it is taken for the function of a seed, where only a share of all routes is."""
        return self.share * share >= 1 or random.Random(f"{self.name} {seed}").random() < self.share * share


def here(route: Route) -> bool:
    """Whether what a route needs is installed."""
    if route.needs == "compiler":
        return bool(find_compiler())
    return not route.needs or importlib.util.find_spec(route.needs) is not None


# Helpers: each makes a route of a function


def of(route: Callable[..., Any]) -> Callable[[Problem], Any]:
    """A route (f, x) of tests/support/routes.py."""
    return lambda p: route(p.f, p.x)


def compiled(make: Callable[[Any, Any], Callable[..., Any]], backend: str, calls: int = 2) -> Callable[[Problem], Any]:
    """The last of several calls of a compiled function."""
    def route(p: Problem) -> Any:
        f = symgrad.compile(make(p.f, p.u), derivatives="value", backend=backend)
        return [f(p.x) for _ in range(calls)][-1]

    return route


def derivative_of_compiled(take: Callable[[Any, Problem], Any], backend: str = "numpy") -> Callable[[Problem], Any]:
    """Something taken twice of one compiled function."""
    def route(p: Problem) -> Any:
        f = symgrad.compile(p.f, backend=backend)
        take(f, p)
        return take(f, p)

    return route


def formula(take: Callable[[Problem, Any], Any], third: bool = False) -> Callable[[Problem], Any]:
    """The formula of a tensor, evaluated."""
    def route(p: Problem) -> Any:
        if third and (len(p.function.steps) > SHORT or p.function.point.size > 2):
            raise NotHere("formulas of third derivatives are long")
        return p.evaluated(take(p, p.named))

    return route


def source(printer: Callable[..., str], order: int, run: Callable[[str, Problem], Any]) -> Callable[[Problem], Any]:
    """A result of the printed source: the value, or the derivative of an order."""
    def route(p: Problem) -> Any:
        if p.function.point.size > LARGEST_FORMULA:
            raise NotHere("sources of many elements are long")
        return run(printer(p.f, tuple(p.function.point.shape), at=[p.function.point], derivatives=order, name="f"), p)[order]

    return route


def _parts(found: Any, order: int) -> list[Any]:
    """Value, gradient and Hessian of what a source of Python returns."""
    if not isinstance(found, tuple):
        return [found]
    value, *more = found
    out = [value]
    for depth, part in enumerate(more, 1):
        for _ in range(depth):
            part = part[0]
        out.append(part)
    return out


def run_numpy(text: str, p: Problem) -> list[Any]:
    space: dict[str, Any] = {}
    exec(text, space)
    return _parts(space["f"](np.asarray(p.function.point, np.float64)[()]), 2)


def run_torch(text: str, p: Problem) -> list[Any]:
    import torch

    space: dict[str, Any] = {}
    exec(text, space)
    found = _parts(space["f"](torch.tensor(np.asarray(p.function.point, np.float64))), 2)
    return [y.detach().numpy() if isinstance(y, torch.Tensor) else y for y in found]


def run_jax(text: str, p: Problem) -> list[Any]:
    import jax

    jax.config.update("jax_enable_x64", True)
    space: dict[str, Any] = {}
    exec(text, space)
    return [np.asarray(y) for y in _parts(space["f"](jax.numpy.asarray(np.asarray(p.function.point, np.float64))), 2)]


def run_c(text: str, p: Problem) -> list[Any]:
    f, x, n = compiled_c(text)["f"], np.asarray(p.function.point, np.float64), p.function.point.size
    given = float(x) if not x.ndim else x.ravel().tolist()
    head = re.search(r"(double|void) f\(", text)
    assert head is not None
    if head[1] == "double":
        return [f(given)]
    outs = [[0.0], [0.0] * n, [0.0] * n * n][:text[head.start():].partition(")")[0].count("double *") - text.count("const double *x")]
    f(given, *outs)
    return outs


def chained(p: Problem, order: int, last_by_backward: bool = False) -> Any:
    """Nested `autograd.grad` with create_graph: ∇f, H u or ∇(uᵀ H u)."""
    x = p.leaf
    y = p.f(x)
    for k in range(order):
        if k == order - 1 and last_by_backward:
            y.backward()
            return x.grad
        (g,) = autograd.grad(y, x, create_graph=True, materialize_grads=True)
        y = (g * p.u).sum()
    return g


def third_formula(p: Problem, x: Any) -> Any:
    y = p.f(x)
    for _ in range(3):
        (g,) = autograd.grad(y, x, create_graph=True, materialize_grads=True)
        y = (g * p.u).sum()
    return g


def backward_formula(p: Problem, x: Any) -> Any:
    x = tensor(p.function.point, requires_grad=True, symbol="x")
    p.f(x).backward()
    return x.grad


def jet(p: Problem, order: int) -> Any:
    return func.jet(p.f, (p.x,), ([p.u, *[0 * p.u] * (order - 1)],))[1][order - 1]


def two(x: Any) -> Any:
    return symgrad.stack([x, x])


POLARISED = ("jet", "directional", "derivatives", "laplacian along")  # which lose digits by subtraction; below they are along the tangent
THIRD: dict[str, Callable[[Problem], Any]] = {
    "grad of grad of grad": lambda p: func.grad(p.curvature)(p.x),
    "autograd.grad, three times": lambda p: chained(p, 3),
    "backward of autograd.grad twice": lambda p: chained(p, 3, True),
    "hvp of slope": lambda p: func.hvp(p.slope, p.x, p.u), "vhp of slope": lambda p: func.vhp(p.slope, p.x, p.u),
    "jvp of hvp": lambda p: func.jvp(lambda z: func.hvp(p.f, z, p.u), (p.x,), (p.u,))[1],
    "linearize of hvp": lambda p: func.linearize(lambda z: func.hvp(p.f, z, p.u), p.x)[1](p.u),
    "grad of hvp": lambda p: func.grad(lambda z: (func.hvp(p.f, z, p.u) * p.u).sum())(p.x),
    "grad of uHu by hessian": lambda p: func.grad(lambda z: (func.hessian(p.f)(z).reshape(p.u.numel(), -1) @ p.u.reshape(-1)
                                                             ).dot(p.u.reshape(-1)))(p.x),
    "grad of jvp of jvp": lambda p: func.grad(lambda z: func.jvp(lambda w: func.jvp(p.f, (w,), (p.u,))[1], (z,), (p.u,))[1])(p.x),
    "grad of jet": lambda p: func.grad(lambda z: func.jet(p.f, (z,), ([p.u, 0 * p.u],))[1][1])(p.x),
    "vmap of nested grad": lambda p: func.vmap(func.grad(p.curvature))(two(p.x))[1],
    "functional.hvp of slope": lambda p: functional.hvp(p.slope, p.x, p.u)[1],
}
CUBIC: dict[str, Callable[[Problem], Any]] = {
    "jacfwd of hessian": lambda p: func.jacfwd(func.hessian(p.f))(p.x), "jacrev of hessian": lambda p: func.jacrev(func.hessian(p.f))(p.x),
    "jacfwd of jacrev of grad": lambda p: func.jacfwd(func.jacrev(func.grad(p.f)))(p.x),
    "jacfwd of jacfwd of jacfwd": lambda p: func.jacfwd(func.jacfwd(func.jacfwd(p.f)))(p.x),
    "jacrev of jacfwd of jacrev": lambda p: func.jacrev(func.jacfwd(func.jacrev(p.f)))(p.x),
    "vmap of jacfwd of hessian": lambda p: func.vmap(func.jacfwd(func.hessian(p.f)))(two(p.x))[1],
}
OF_SLOPE: dict[str, Callable[[Problem], Any]] = {
    "hessian of slope": lambda p: func.hessian(p.slope)(p.x),
    "hessian of slope, remembered": lambda p: remembered(func.hessian)(p.slope, p.x),
    "auto of slope": lambda p: func.hessian(p.slope, structure="auto")(p.x),
    "functional.hessian of slope": lambda p: functional.hessian(p.slope, p.x),
}
BACKENDS = {"interpreter": ("", 1 / 2), "numpy": ("", 1.0), "c": ("compiler", 1 / 12)}  # a compiler takes a fifth of a second
MADE: dict[str, tuple[str, Callable[[Any, Any], Any]]] = {  # what is compiled, made of f and u
    "f": ("value", lambda f, u: f), "grad": ("gradient", lambda f, u: func.grad(f)), "jacfwd": ("gradient", lambda f, u: func.jacfwd(f)),
    "hessian": ("Hessian", lambda f, u: func.hessian(f)), "grad of grad": ("product", lambda f, u: func.grad(along(f, u))),
    "hvp": ("product", lambda f, u: lambda z: func.hvp(f, z, u)),
    "jvp of grad": ("product", lambda f, u: lambda z: func.jvp(func.grad(f), (z,), (u,))[1]),
    "vjp of grad": ("product", lambda f, u: lambda z: func.vjp(func.grad(f), z)[1](u)[0]),
    "linearize of grad": ("product", lambda f, u: lambda z: func.linearize(func.grad(f), z)[1](u)),
    "jacrev of grad": ("Hessian", lambda f, u: func.jacrev(func.grad(f))), "third": ("third", lambda f, u: func.grad(along(along(f, u), u))),
    "jacfwd of hessian": ("cubic", lambda f, u: func.jacfwd(func.hessian(f))),
    "vmap of grad": ("gradient", lambda f, u: lambda z: func.vmap(func.grad(f))(two(z))[1]),
    "jet": ("along 3", lambda f, u: lambda z: func.jet(f, (z,), ([u, 0 * u, 0 * u],))[1][2]),
}
OF_COMPILED: dict[str, tuple[str, Callable[[Any, Problem], Any]]] = {  # what is taken of a compiled function
    "gradient": ("gradient", lambda c, p: c.gradient(p.x)), "value_and_gradient": ("gradient", lambda c, p: c.value_and_gradient(p.x)[1]),
    "hessian": ("Hessian", lambda c, p: c.hessian(p.x)), "hvp": ("product", lambda c, p: c.hvp(p.x, p.u)),
    "jvp": ("along 1", lambda c, p: c.jvp((p.x,), (p.u,))[1]), "jacobian": ("gradient", lambda c, p: c.jacobian(p.x)),
    "func.grad": ("gradient", lambda c, p: func.grad(c)(p.x)), "func.hessian": ("Hessian", lambda c, p: func.hessian(c)(p.x)),
    "backward": ("gradient", lambda c, p: GRADIENTS["backward"](c, p.x)), "jacfwd": ("gradient", lambda c, p: func.jacfwd(c)(p.x)),
    "nested grad": ("third", lambda c, p: func.grad(along(along(c, p.u), p.u))(p.x)),
    "vmap": ("gradient", lambda c, p: func.vmap(func.grad(c))(two(p.x))[1]),
}
FORMULAS: dict[str, tuple[str, Callable[[Problem], Any]]] = {
    "value": ("value", formula(lambda p, x: p.f(x))), "backward": ("gradient", formula(backward_formula)),
    "grad": ("gradient", formula(lambda p, x: func.grad(p.f)(x))), "jacfwd": ("gradient", formula(lambda p, x: func.jacfwd(p.f)(x))),
    "jacrev": ("gradient", formula(lambda p, x: func.jacrev(p.f)(x))), "hessian": ("Hessian", formula(lambda p, x: func.hessian(p.f)(x))),
    "hvp": ("product", formula(lambda p, x: func.hvp(p.f, x, p.u))),
    "jacrev of grad": ("Hessian", formula(lambda p, x: func.jacrev(func.grad(p.f))(x))),
    "grad of slope": ("product", formula(lambda p, x: func.grad(p.slope)(x))), "three times": ("third", formula(third_formula, True)),
    "jvp": ("along 1", formula(lambda p, x: func.jvp(p.f, (x,), (p.u,))[1])),
}
PRINTED = {"Python": (symgrad.to_python, run_numpy, ""), "C": (symgrad.to_c, run_c, ""), "torch": (symgrad.to_torch, run_torch, "torch"),
           "JAX": (symgrad.to_jax, run_jax, "jax")}


ROUTES: tuple[Route, ...] = (
    Route("eager", "value", lambda p: p.f(p.leaf)), Route("without a graph", "value", lambda p: p.f(p.x)),
    Route("grad_and_value, value", "value", lambda p: func.grad_and_value(p.f)(p.x)[1]),
    Route("jvp, value", "value", lambda p: func.jvp(p.f, (p.x,), (p.u,))[0]),
    Route("vjp, value", "value", lambda p: func.vjp(p.f, p.x)[0]), Route("linearize, value", "value", lambda p: func.linearize(p.f, p.x)[0]),
    Route("jet, value", "value", lambda p: func.jet(p.f, (p.x,), ([p.u, p.u],))[0]),
    Route("vmap", "value", lambda p: func.vmap(p.f)(two(p.x))[1]),
    *(Route(name, "gradient", of(route)) for name, route in GRADIENTS.items()),
    *(Route(f"{name}, twice" if name in GRADIENTS else name, "Hessian", of(route)) for name, route in HESSIANS.items() if name not in POLARISED),
    Route("hessian, seventh call", "Hessian", lambda p: _seventh(func.hessian(p.f), p.x)),
    Route("auto, seventh call", "Hessian", lambda p: _seventh(func.hessian(p.f, structure="auto"), p.x)),
    Route("hvp along u", "product", lambda p: func.hvp(p.f, p.x, p.u)), Route("vhp along u", "product", lambda p: func.vhp(p.f, p.x, p.u)),
    Route("autograd.grad, twice", "product", lambda p: chained(p, 2)),
    Route("backward of autograd.grad along u", "product", lambda p: chained(p, 2, True)),
    Route("hessian_diag", "diagonal", lambda p: func.hessian_diag(p.f)(p.x)),
    *(Route(name, what, route) for what, routes in (("third", THIRD), ("cubic", CUBIC), ("Hessian of slope", OF_SLOPE)) 
      for name, route in routes.items()),
    *(Route(f"jet {k}", f"along {k}", lambda p, k=k: jet(p, k)) for k in (1, 2, 3)),
    *(Route(f"jet of three, {k}", f"along {k}", lambda p, k=k: func.jet(p.f, (p.x,), ([p.u, 0 * p.u, 0 * p.u],))[1][k - 1]) for k in (1, 2, 3)),
    *(Route(f"directional_derivatives {k}", f"along {k}", lambda p, k=k: func.directional_derivatives(p.f, 3)(p.x, p.u)[k]) for k in (1, 2, 3)),
    *(Route(f"derivatives {k}", f"along {k}", lambda p, k=k: func.derivatives(lambda t: p.f(p.x + t * p.u), 3)(tensor(0.0, dtype=p.x.dtype))[k])
      for k in (1, 2, 3)),
    Route("vmap of jet", "along 3", lambda p: func.vmap(lambda x: func.jet(p.f, (x,), ([p.u, 0 * p.u, 0 * p.u],))[1][2])(two(p.x))[1]),
    Route("laplacian along u", "along 2", lambda p: func.laplacian(p.f, directions=p.u[None])(p.x)),
    *(Route(f"trace by {name}", "trace", of(route)) for name, route in TRACES.items()),
    *(Route(f"compile({name}), {backend}", what, compiled(make, backend), *BACKENDS[backend])
      for backend in BACKENDS for name, (what, make) in MADE.items()),
    *(Route(f"compile(f): {name}, {backend}", what, derivative_of_compiled(take, backend), *BACKENDS[backend])
      for backend in ("numpy", "c") for name, (what, take) in OF_COMPILED.items()),
    *(Route(f"expr of {name}", what, route, "", 1 / 3) for name, (what, route) in FORMULAS.items()),
    *(Route(f"{language} source, order {order}", ("value", "gradient", "Hessian")[order], source(printer, order, run), needs, 1 / 2)
      for language, (printer, run, needs) in PRINTED.items() for order in (0, 1, 2)),
)


def _seventh(h: Any, x: Any) -> Any:
    return [h(x) for _ in range(7)][-1]
