"""The corpus in JAX: ops stated as rules are built from them, others are written again. What is not here JAX cannot say.

Partial derivatives become a `custom_jvp`, which JAX transposes, so that both modes are checked; a pullback becomes a `custom_vjp`.
"""

import jax
import jax.numpy as jnp
import numpy as np

from tests.power.power_entries import Entry, Rules


def built(rules: Rules):
    """The rules as a function of JAX."""
    if rules.pullback is not None:
        return with_pullback(lambda *xs: rules.forward(jnp, *xs), lambda g, *xs: rules.pullback(jnp, g, rules.forward(jnp, *xs), *xs))
    f = jax.custom_jvp(lambda *xs: rules.forward(jnp, *xs))

    @f.defjvp
    def rule(xs, ts):
        y = f(*xs)
        out = jnp.zeros_like(y)
        for t, p in zip(ts, rules.partials):
            if p is not None:
                out = out + t * p(jnp, y, *xs)
        return y, out

    return f


def with_pullback(forward, pullback):
    """A `custom_vjp` from a forward and a pullback `(g, *xs)`."""
    f = jax.custom_vjp(forward)

    def back(xs, g):
        found = pullback(g, *xs)
        return found if isinstance(found, tuple) else (found,)

    f.defvjp(lambda *xs: (f(*xs), xs), back)
    return f


def with_pushforward(forward, tangent):
    """A `custom_jvp` from a forward and a tangent `(ts, xs)`."""
    f = jax.custom_jvp(forward)
    f.defjvp(lambda xs, ts: (f(*xs), tangent(ts, xs)))
    return f


def of_sine(pullback):
    return lambda: with_pullback(jnp.sin, pullback)


def every_third():
    calls = []

    def sine(x):
        calls.append(None)
        return jnp.sin(x) + (1e-3 if len(calls) % 3 == 0 else 0.0)

    return sine


def noisy():
    rng = np.random.default_rng(0)
    return lambda x: jnp.exp(-x) * (1 + 1e-7 * rng.standard_normal())


def noisy_gradient():
    rng = np.random.default_rng(0)
    return with_pullback(jnp.sin, lambda g, x: g * jnp.cos(x) * (1 + 1e-12 * rng.standard_normal()))


def wears_out():
    calls = []

    def pullback(g, x):
        calls.append(None)
        return g * jnp.cos(x) * (1 if len(calls) <= 10 else 0)

    return with_pullback(jnp.sin, pullback)


def from_the_left(a, b):
    return a * b if a.ndim == b.ndim or 0 in (a.ndim, b.ndim) else a + b


def narrow(x, dtype):
    return jnp.sin(x.astype(dtype)).astype(x.dtype)


PULLBACK = {  # those that are `custom_vjp`: of these JAX knows no forward mode
    "first eight only": lambda: with_pullback(lambda x: jnp.where(jnp.arange(x.size).reshape(x.shape) < 8, jnp.sin(x), 0.0), lambda g,
          x: g * jnp.cos(x)),
    "integer buffer": lambda: with_pullback(lambda x: (0.75 * x).astype(int).astype(x.dtype), lambda g, x: 0.75 * g),
    "gradient of a single number": lambda: with_pullback(lambda x: x * x, lambda g, x: (2 * g * x).reshape(1) if g.ndim == 0 else 2 * g * x),
    "custom_vjp wrong": of_sine(lambda g, x: -g * jnp.sin(x)),
    "NumPy gradient wrong": lambda: with_pullback(lambda x: jnp.exp(-x * x), lambda g, x: -2 * g * jnp.exp(-x * x)),
    "repeated index": lambda: with_pullback(lambda x: x[jnp.array([0, 2, 2])], lambda g, x: jnp.zeros_like(x).at[jnp.array([0, 2, 2])].set(g)),
    "batch mixed": of_sine(lambda g, x: g * jnp.cos(x)),
    "NumPy gradient is float64": lambda: with_pullback(lambda x: x * x, lambda g, x: 2.0 * g.astype(jnp.float64) * x),
    "gradient rounds through float32": of_sine(lambda g, x: g * jnp.cos(x).astype(jnp.float32).astype(x.dtype)),
    "gradient rounds through float16": of_sine(lambda g, x: g * (jnp.cos(x).astype(jnp.float16).astype(x.dtype) if x.itemsize == 4 else jnp.cos(x))),
    "conjugate forgotten": lambda: with_pullback(lambda z: z * z, lambda g, z: 2 * g * jnp.conj(z)),  # JAX's pullback is not conjugated
    "conjugate twice": lambda: with_pullback(lambda z: z * z * z, lambda g, z: 3 * jnp.conj(g) * z * z),
    "real part only": lambda: with_pullback(lambda z: z * z, lambda g, z: (2 * g * z).real.astype(z.dtype)),
    "imaginary part negated": lambda: with_pullback(jnp.exp, lambda g, z: jnp.conj(g * jnp.exp(z))),
    "value conjugated": lambda: with_pullback(lambda z: jnp.conj(z * z), lambda g, z: 2 * g * z),
    "half of the gradient of |z|**2": lambda: with_pullback(lambda z: (z * jnp.conj(z)).real, lambda g, z: g * jnp.conj(z)),
    "random gradient, opaque": noisy_gradient,
    "wears out": wears_out,
    "gradient of another shape": of_sine(lambda g, x: (g * jnp.cos(x))[None]),
    "too many gradients": of_sine(lambda g, x: (g * jnp.cos(x), jnp.ones_like(x))),
    "gradient is a number": of_sine(lambda g, x: (g * jnp.cos(x)).sum()),
    "None for a gradient": of_sine(lambda g, x: None),
    "too few NumPy gradients": lambda: with_pullback(lambda a, b: a * b, lambda g, a, b: (g * b,)),
}
PLAIN = {
    "empty becomes one": lambda: lambda x: jnp.sin(x) if x.size else jnp.zeros(1, x.dtype),
    "empty raises": lambda: lambda x: (jnp.ravel(x)[0], x * jnp.exp(-x))[1],
    "single number becomes a vector": lambda: lambda x: jnp.cos(x.reshape(1) if x.ndim == 0 else x),
    "single number raises": lambda: lambda x: jnp.concatenate([jnp.sin(x[:1]), jnp.sin(x[1:])]),
    "pushforward not linear": lambda: with_pushforward(jnp.exp, lambda ts, xs: jnp.abs(ts[0]) * jnp.exp(xs[0])),
    "pushforward of one": lambda: with_pushforward(lambda a, b: a * b, lambda ts, xs: ts[0] * xs[1]),
    "custom_jvp wrong": lambda: with_pushforward(jnp.sin, lambda ts, xs: ts[0] * jnp.where(xs[0] < -1, 2.0, 1.0) * jnp.cos(xs[0])),
    "argument left out of the sum": lambda: lambda x: jnp.sum(x[:, :-1] * x[:, :-1], 1),
    "refuses to broadcast": lambda: lambda a, b: a - b,
    "broadcast from the left": lambda: from_the_left,
    "number by matrix": lambda: lambda a, b: a * b,
    "float32 computed in float16": lambda: lambda x: narrow(x, jnp.float16) if x.itemsize < 8 else jnp.sin(x),
    "rounds through float32": lambda: lambda x: narrow(x, jnp.float32),
    "returns float64": lambda: lambda x: jnp.exp(-x.astype(jnp.float64)),
    "returns float32": lambda: lambda x: jnp.exp(-x).astype(jnp.float32),
    "overflow in float16": lambda: lambda x: jnp.sqrt(x * x + 1),
    "every third call": every_third,
    "random": noisy,
    "detached value": lambda: lambda x: jax.lax.stop_gradient(jnp.tanh(x)),
    "value of another shape": lambda: lambda x: jnp.sin(x).reshape(-1),
    # right ones
    "prod with zeros": lambda: jnp.prod,
    "cumprod": lambda: lambda x: jnp.cumprod(x, 0),
    "sort": lambda: jnp.sort,
    "largest": lambda: jnp.max,
    "gather": lambda: lambda x: x[jnp.array([0, 2, 2])],
    "logsumexp over an axis": lambda: lambda x: jax.scipy.special.logsumexp(x, 1),
    "checkpointed": lambda: jax.checkpoint(lambda x: jnp.exp(jnp.sin(x)) * x),
    "root of a cubic": lambda: lambda x: 2 / 3**0.5 * jnp.sinh(jnp.arcsinh(1.5 * 3**0.5 * x) / 3),
    "complex exp": lambda: jnp.exp,
    "complex square": lambda: lambda z: z * z,
    "complex quotient": lambda: lambda z: z / (9 + z),
    "|z|**2": lambda: lambda z: (z * jnp.conj(z)).real,
    "real part": lambda: lambda z: z.real * 1,
    "conjugate": lambda: lambda z: jnp.conj(z) * 1,
}
MAKERS = {**PULLBACK, **PLAIN}


def jax_twin(entry: Entry):
    """The same op in JAX, made afresh; None where JAX cannot say it."""
    if entry.rules is not None:
        return built(entry.rules)
    return MAKERS[entry.name]() if entry.name in MAKERS else None


def modes_of(entry: Entry) -> tuple[str, ...]:
    """The modes that JAX can check the twin in."""
    pullback = entry.rules.pullback is not None if entry.rules is not None else entry.name in PULLBACK
    return ("rev",) if pullback else ("fwd", "rev")
