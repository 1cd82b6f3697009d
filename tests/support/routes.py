"""Every route to a gradient and to a Hessian of a scalar function of a tensor, as functions (f, x) that return arrays."""

import numpy as np

import symgrad
from symgrad import autograd, func
from symgrad.autograd import forward_ad, functional

tensor = symgrad.tensor


def units(x):
    """The unit tangents of a tensor."""
    return [tensor(row.reshape(x.shape)) for row in np.eye(x.numel(), dtype=x.detach().numpy().dtype)]


def rows(found):
    return np.stack([t.detach().numpy() for t in found])


def leaf(x):
    return x.detach().clone().requires_grad_()


def backward(f, x):
    x = leaf(x)
    f(x).backward()
    return x.grad


def gradient(f, x, **words):
    x = leaf(x)
    return autograd.grad(f(x), x, materialize_grads=True, **words)[0]


def by_forward_ad(f, x):
    out = []
    for v in units(x):
        with forward_ad.dual_level():
            t = forward_ad.unpack_dual(f(forward_ad.make_dual(x, v))).tangent
            out.append(np.zeros(()) if t is None else t.detach().numpy())
    return np.stack(out)


def batched_gradient(f, x):
    x = leaf(x)
    return autograd.grad(f(x), x, grad_outputs=tensor([1.0, 2.0], dtype=x.dtype), is_grads_batched=True)[0][0]


def linearized(f, x):
    _, along = func.linearize(f, x)
    return rows([along(v) for v in units(x)])


GRADIENTS = {
    "backward": backward, "autograd.grad": gradient, "create_graph": lambda f, x: gradient(f, x, create_graph=True),
    "grad": lambda f, x: func.grad(f)(x), "grad_and_value": lambda f, x: func.grad_and_value(f)(x)[0],
    "jacrev": lambda f, x: func.jacrev(f)(x), "jacfwd": lambda f, x: func.jacfwd(f)(x), "jacobian": lambda f, x: func.jacobian(f)(x),
    "vjp": lambda f, x: func.vjp(f, x)[1](tensor(1.0, dtype=x.dtype))[0], "jvp": lambda f, x: rows([func.jvp(f, (x,), (v,))[1] for v in units(x)]),
    "linearize": linearized, "functional.jacobian": functional.jacobian, "functional.vjp": lambda f, x: functional.vjp(f, x)[1],
    "functional.jacobian, forward": lambda f, x: functional.jacobian(f, x, vectorize=True, strategy="forward-mode"),
    "functional.jvp": lambda f, x: rows([functional.jvp(f, x, v)[1] for v in units(x)]), "forward_ad": by_forward_ad, "batched": batched_gradient,
    "jet": lambda f, x: rows([func.jet(f, (x,), ([v],))[1][0] for v in units(x)]),
    "vmap of grad": lambda f, x: func.vmap(func.grad(f))(symgrad.stack([x, x]))[1],
    "vmap of jvp": lambda f, x: func.vmap(lambda v: func.jvp(f, (x,), (v,))[1])(symgrad.stack(units(x))),
}


def twice(f, x):
    x = leaf(x)
    (g,) = autograd.grad(f(x), x, create_graph=True)
    return rows([autograd.grad(g, x, v, retain_graph=True)[0] for v in units(x)])


def twice_batched(f, x):
    x = leaf(x)
    (g,) = autograd.grad(f(x), x, create_graph=True)
    return autograd.grad(g, x, symgrad.stack(units(x)), is_grads_batched=True)[0]


def twice_backward(f, x):
    out = []
    for v in units(x):
        y = leaf(x)
        (g,) = autograd.grad(f(y), y, create_graph=True)
        (g * v).sum().backward()
        out.append(y.grad)
    return rows(out)


def forward_over_reverse(f, x):
    out = []
    for v in units(x):
        with forward_ad.dual_level():
            z = forward_ad.make_dual(leaf(x), v)
            (g,) = autograd.grad(f(z), z, create_graph=True)
            t = forward_ad.unpack_dual(g).tangent
            out.append(np.zeros(x.shape) if t is None else t.detach().numpy())
    return np.stack(out)


def polarised(second):
    """A symmetric matrix from its quadratic form."""
    def route(f, x):
        e = units(x)
        return np.array([[(float(second(f, x, a + b)) - float(second(f, x, a - b))) / 4 for b in e] for a in e])

    return route


def remembered(make):
    def route(f, x):
        h = make(f)
        return [h(x) for _ in range(4)][-1]

    return route


def dense(found):
    return found.toarray() if hasattr(found, "toarray") else found.todense() if hasattr(found, "todense") else found


def shifted_and_back(f, x):
    h = func.hessian(f)
    for k in range(3):
        h(x + 0.25 * k)
    return h(x)


REFERENCE = "hessian"
HESSIANS = {
    "hessian": lambda f, x: func.hessian(f)(x), "remembered": remembered(func.hessian), "from another point": shifted_and_back,
    "auto": lambda f, x: dense(func.hessian(f, structure="auto")(x)), "auto, remembered": lambda f, x: dense(remembered(
        lambda f: func.hessian(f, structure="auto"))(f, x)),
    "local": lambda f, x: dense(func.hessian(f, structure="local")(x)), "chunks": lambda f, x: func.hessian(f, chunk_size=1)(x),
    "factors": lambda f, x: dense(func.hessian(f, structure="factors")(x)),
    "hvp": lambda f, x: rows([func.hvp(f, x, v) for v in units(x)]), "vhp": lambda f, x: rows([func.vhp(f, x, v) for v in units(x)]),
    **{f"{a.__name__} of {b.__name__}": lambda f, x, a=a, b=b: a(b(f))(x) for a in (func.jacrev, func.jacfwd)
       for b in (func.jacrev, func.jacfwd, func.grad)},
    "grad of grad": lambda f, x: rows([func.grad(lambda z, v=v: (func.grad(f)(z) * v).sum())(x) for v in units(x)]),
    "grad of jvp": lambda f, x: rows([func.grad(lambda z, v=v: func.jvp(f, (z,), (v,))[1])(x) for v in units(x)]),
    "jvp of grad": lambda f, x: rows([func.jvp(func.grad(f), (x,), (v,))[1] for v in units(x)]),
    "vjp of grad": lambda f, x: rows([func.vjp(func.grad(f), x)[1](v)[0] for v in units(x)]),
    "linearize of grad": lambda f, x: linearized(func.grad(f), x), "grad of autograd.grad": twice, "batched": twice_batched,
    "backward of autograd.grad": twice_backward, "forward_ad of autograd.grad": forward_over_reverse,
    "functional": functional.hessian, "functional, vectorized": lambda f, x: functional.hessian(f, x, vectorize=True),
    "functional, forward": lambda f, x: functional.hessian(f, x, vectorize=True, outer_jacobian_strategy="forward-mode"),
    "functional.hvp": lambda f, x: rows([functional.hvp(f, x, v)[1] for v in units(x)]),
    "functional.vhp": lambda f, x: rows([functional.vhp(f, x, v)[1] for v in units(x)]),
    "vmap of hessian": lambda f, x: func.vmap(func.hessian(f))(symgrad.stack([x, x]))[1],
    "vmap of hvp": lambda f, x: func.vmap(lambda v: func.hvp(f, x, v))(symgrad.stack(units(x))),
    "jet": polarised(lambda f, x, v: func.jet(f, (x,), ([v, 0 * v],))[1][1].item()),
    "directional": polarised(lambda f, x, v: func.directional_derivatives(f, 2)(x, v)[2].item()),
    "derivatives": polarised(lambda f, x, v: func.derivatives(lambda t: f(x + t * v), 2)(tensor(0.0))[2].item()),
    "laplacian along": polarised(lambda f, x, v: func.laplacian(f, directions=v[None])(x).item()),
    "operator": lambda f, x: func.hessian_operator(f)(x) @ np.eye(x.numel()),
}
TRACES = {"laplacian": lambda f, x: func.laplacian(f)(x), "laplacian, remembered": remembered(func.laplacian),
          "hessian_trace": lambda f, x: func.hessian_trace(f)(x).value, "hessian_diag": lambda f, x: func.hessian_diag(f)(x).sum()}
FORWARD = ("jacfwd", "jvp", "linearize", "forward", "jet", "directional", "derivatives", "laplacian along")  # which need a pushforward


def array(found):
    return np.asarray(found.detach().numpy() if isinstance(found, symgrad.Tensor) else found, dtype=float)


def disagreements(f, x, forward=True, tolerance=1e-9):
    """The routes that give something else than the first one, with what they give."""
    found = {}
    for kind, routes in (("gradient", GRADIENTS), ("Hessian", HESSIANS)):
        first = None
        for name, route in routes.items():
            if not forward and any(word in name for word in FORWARD):
                continue
            with np.errstate(all="ignore"):
                try:
                    value = array(route(f, x))
                except Exception as error:
                    found[kind, name] = repr(error)[:200]
                    continue
            if first is None:
                first = value
            if value.shape != first.shape or not np.allclose(value, first, rtol=tolerance, atol=tolerance, equal_nan=True):
                found[kind, name] = value.tolist()
    for name, route in TRACES.items():
        with np.errstate(all="ignore"):
            value = float(array(route(f, x)))
        if not np.isclose(value, np.trace(first), rtol=tolerance, atol=tolerance, equal_nan=True):
            found["trace", name] = value
    return {"first": first.tolist(), **found} if found else {}
