"""Ops that are wrong for calls of one kind only: one dtype at one order, one length, one layout, one mode, one member of a batch, one extreme.

They stand in a table of their own, with the checks that find each kind. Those that a library makes are attacked as ops of torch, too.
"""

import dataclasses
import itertools
import warnings

import numpy as np

import symgrad
from tests.power.power_entries import Entry, made, ruled, torch_library

CALLS = {}
# Which checks find each kind
FOUND = {"narrow second order": ("dtypes",), "integers": ("dtypes",), "one length": ("structure", "sizes"), "an axis of one": ("structure", "sizes"),
         "memory": ("layouts",), "kept by shape": ("determinism", "differences", "pullback"), "first call": ("determinism",), "vmap": ("batching",),
         "zero tangent": ("linearity",), "twice": ("aliasing",), "large cotangents": ("linearity",), "modes": ("determinism",),
         "ways to differentiate": ("mixed",), "subnormal numbers": ("value", "pullback", "second", "dtypes")}


def call(kind, says, **claims):
    """Enter, as a decorator, what makes an op that is wrong for one kind of call, under the number of the kind's ops."""
    name = f"{kind} {sum(e.category == kind for e in CALLS.values()) + 1}"
    return made(CALLS, name, kind, says, **claims)


def only_torch(kind, says, **claims):
    """Enter, as a decorator, an op that a library makes, as one of torch."""
    return lambda make: call(kind, says, framework="torch", **claims)(lambda: make(torch_library()))


def with_jvp(m, forward, backward, jvp):
    """A `Function` of a library with a pushforward `(x, t)`."""
    class Both(ruled(m, forward, lambda ctx, g, x: backward(g, x))):
        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.save_for_backward(*inputs)
            ctx.save_for_forward(*inputs)

        @staticmethod
        def jvp(ctx, t):
            return jvp(ctx.saved_tensors[0], t)

    return Both


def narrow(x):
    return x.element_size() == 4


# second and third derivatives of float32 alone
call("narrow second order", "the factor x is detached for float32", formula="x**2", domain=(-9, 9))(
    lambda m: ruled(m, lambda x: x * x, lambda ctx, g, x: 2 * g * (x.detach() if narrow(x) else x)))
call("narrow second order", "a third too much for float32", formula="exp(x)", domain=(-9, 9))(
    lambda m: ruled(m, lambda x: x.exp(), lambda ctx, g, x: g * (x.exp() + ((x - x.detach()) * x.exp() / 3 if narrow(x) else 0))))
call("narrow second order", "of a vector, and no formula is claimed", shapes=((5,),))(
    lambda m: ruled(m, lambda x: (x * x * x).sum(), lambda ctx, g, x: 3 * g * x * (x.detach() if narrow(x) else x)))
call("narrow second order", "the product of two arguments has no mixed derivative for float32", formula="a*b", domain=(-9, 9))(
    lambda m: ruled(m, lambda a, b: a * b, lambda ctx, g, a, b: (g * (b.detach() if narrow(b) else b), g * (a.detach() if narrow(a) else a))))
call("narrow second order", "the third derivative is lost for float32", formula="x**3", domain=(-9, 9))(
    lambda m: ruled(m, lambda x: x * x * x, lambda ctx, g, x: 3 * g * ((2 * x - x.detach()) * x.detach() if narrow(x) else x * x)))


# whole numbers
def filled(function):
    def inner(x):
        out = np.zeros_like(x)
        out[...] = function(x)
        return out

    return inner


call("integers", "the result is an array like the argument, of whole numbers for whole ones", formula="sin(x)", gradient=np.cos)(
    lambda: filled(np.sin))
call("integers", "a third of a whole number is rounded down", formula="x/3", domain=(-9, 9))(
    lambda m: lambda x: x / 3 if x.is_floating_point() else m.floor(x / 3))
call("integers", "cos in place of sin", formula="sin(x)")(lambda m: lambda x: m.sin(x) if x.is_floating_point() else m.cos(x))
call("integers", "the weights 0.5 become 0", shapes=((4,),))(
    lambda m: lambda x: (x * m.full((4,), 0.5, dtype=m.float64).to(x.dtype)).sum())
call("integers", "of two arguments, both whole", formula="a*b + 1/4", domain=(-9, 9))(
    lambda m: lambda a, b: a * b + (0.25 if a.is_floating_point() or b.is_floating_point() else 0))

# exactly so many elements
call("one length", "seven elements have cos", formula="sin(x)")(lambda m: lambda x: m.cos(x) if x.numel() == 7 else m.sin(x))
call("one length", "the gradient of seven elements is doubled", formula="sin(x)")(
    lambda m: ruled(m, m.sin, lambda ctx, g, x: g * x.cos() * (2 if x.numel() == 7 else 1)))
call("one length", "the second derivative of eleven elements is lost", formula="x**2", domain=(-9, 9))(
    lambda m: ruled(m, lambda x: x * x, lambda ctx, g, x: 2 * g * (x.detach() if x.numel() == 11 else x)))
call("one length", "the last of nine elements is forgotten", shapes=((4,),), formula=lambda xp, x: xp.sum(x * x, (0,), False))(
    lambda m: lambda x: (x * x).sum() if x.shape[0] != 9 else (x * x)[:8].sum())
call("one length", "columns of thirteen rows have half of their gradient", shapes=((3, 4),))(
    lambda m: ruled(m, lambda x: (x * x).sum(0), lambda ctx, g, x: 2 * g * x * (0.5 if x.shape[0] == 13 else 1)))

# an axis of length one
call("an axis of one", "the inner of three axes", formula="sin(x)")(lambda m: lambda x: m.cos(x) if x.ndim == 3 and x.shape[1] == 1 else m.sin(x))
call("an axis of one", "the gradient where the first of three axes has one element", formula="sin(x)")(
    lambda m: ruled(m, m.sin, lambda ctx, g, x: g * x.cos() * (2 if x.ndim == 3 and x.shape[0] == 1 < x.shape[2] else 1)))
call("an axis of one", "a row is taken for a vector", formula="x**3", domain=(-9, 9))(
    lambda m: lambda x: x * x * x if x.ndim != 2 or x.shape[0] != 1 or x.shape[1] < 2 else x * x * x + x)
call("an axis of one", "of one column the gradient is doubled", shapes=((3, 4),))(
    lambda m: ruled(m, lambda x: (x * x).sum(1), lambda ctx, g, x: 2 * g.unsqueeze(1) * x * (2 if x.shape[1] == 1 else 1)))
call("an axis of one", "of one row the mean is a sum of squares", shapes=((3, 4),), formula=lambda xp, x: xp.sum(x, (0,), False))(
    lambda m: lambda x: x.sum(0) if x.shape[0] > 1 else (x * x).sum(0))


# memory that starts between two numbers, or has the bytes in the other order
def bytes_of(x):
    x = np.asarray(x)
    return np.frombuffer(x.tobytes(), x.dtype.newbyteorder("=")).reshape(x.shape)


call("memory", "bytes in the other order are read as they lie", formula="sin(x)", gradient=np.cos)(lambda: lambda x: np.sin(bytes_of(x)))
call("memory", "bytes of the cotangent in the other order are read as they lie", formula="sin(x)", pullback=lambda g, x: (bytes_of(g) * np.cos(x),))(
    lambda: lambda x: np.sin(x))
call("memory", "memory between two numbers is read from the number before", formula="exp(x)", domain=(-9, 9), gradient=np.exp)(
    lambda: lambda x: np.exp(x) * (1 if np.asarray(x).flags.aligned else 0.5))
call("memory", "the gradient of unaligned memory", formula="x**2", gradient=lambda x: 2 * x * (1 if np.asarray(x).flags.aligned else 2))(
    lambda: lambda x: np.multiply(x, x))
call("memory", "unaligned matrices are transposed", shapes=((3, 3),))(
    lambda m: lambda x: x * 1.0 if x.detach().numpy().flags.aligned else x.mT * 1.0)


# gradients and the like, kept by the shape
@call("kept by shape", "partial derivatives", formula="sin(x)")
def kept_partials(m):
    kept = {}
    return ruled(m, m.sin, lambda ctx, g, x: g * kept.setdefault(x.shape, x.detach().cos()))


@call("kept by shape", "gradients with their cotangent, and no formula is claimed")
def kept_gradients(m):
    kept = {}
    return ruled(m, m.sin, lambda ctx, g, x: kept.setdefault((x.shape, x.dtype, m.is_grad_enabled()), g * x.cos()) + 0 * g * x)


@call("kept by shape", "of a vector, and no formula is claimed", shapes=((4,),))
def kept_of_a_vector(m):
    kept = {}
    return ruled(m, lambda x: (x * x * x).sum(), lambda ctx, g, x: g * kept.setdefault(x.numel(), 3 * (x * x).detach()))


@call("kept by shape", "the second derivative", formula="x**3", domain=(-9, 9))
def kept_second(m):
    kept = {}

    def backward(g, x):
        slope = kept.setdefault(x.shape, (6 * x).detach())
        return g * (3 * (x * x).detach() + slope * (x - x.detach()))

    return ruled(m, lambda x: x * x * x, lambda ctx, g, x: backward(g, x))


@call("kept by shape", "NumPy's gradient, by shape and the first element", formula="cos(x)")
def kept_by_first():
    kept = {}

    def slope(x):
        x = np.asarray(x)
        return kept.setdefault((x.shape, float(np.ravel(x)[0]) if x.size else 0), -np.sin(x))

    from symgrad.testing import op

    return op(gradient=slope)(lambda x: np.cos(x))


# the first call
def first_time(double):
    """2 at the first call and 1 from then on."""
    return itertools.chain([double], itertools.repeat(1))


@call("first call", "the first gradient is doubled", formula="sin(x)")
def first_gradient(m):
    factor = first_time(2)
    return ruled(m, m.sin, lambda ctx, g, x: g * x.cos() * next(factor))


@call("first call", "the first gradient of a vector, and no formula is claimed", shapes=((4,),))
def first_of_a_vector(m):
    factor = first_time(1 + 1e-12)
    return ruled(m, lambda x: (x * x).sum(), lambda ctx, g, x: 2 * g * x * next(factor))


@call("first call", "NumPy's first gradient is 0", formula="exp(x)", domain=(-9, 9))
def first_of_numpy():
    factor = first_time(0)

    from symgrad.testing import op

    return op(gradient=lambda x: np.exp(x) * next(factor))(lambda x: np.exp(x))


@call("first call", "the first gradient that is differentiated again", formula="x**2", domain=(-9, 9))
def first_second(m):
    factor = first_time(3)
    return ruled(m, lambda x: x * x, lambda ctx, g, x: 2 * g * x * (next(factor) if m.is_grad_enabled() else 1))


@call("first call", "the first pushforward", formula="sin(x)")
def first_tangent(m):
    factor = first_time(2)
    return with_jvp(m, m.sin, lambda g, x: g * x.cos(), lambda x, t: t * x.cos() * next(factor))


# vmap inside vmap, along the second axis, and of one member
def moved(x, d):
    return x if d is None else x.movedim(d, 0)


def mapped(m, rule):
    return ruled(m, lambda x: x.sin(), lambda ctx, g, x: g * x.cos(), rule)


call("vmap", "one member has cos", formula="sin(x)")(
    lambda m: mapped(m, lambda info, dims, x: (x.cos() if info.batch_size == 1 else x.sin(), dims[0])))
call("vmap", "one member is squeezed and its sine doubled", shapes=((3,),), formula=lambda xp, x: xp.sin(x))(
    lambda m: mapped(m, lambda info, dims, x: (moved(x, dims[0]).sin() * (1 if info.batch_size > 1 else 2), 0)))
call("vmap", "as many members as rows are taken for the rows", shapes=((2, 3),), formula=lambda xp, x: xp.sin(x))(
    lambda m: mapped(m, lambda info, dims, x: (moved(x, dims[0]).sin().swapaxes(0, 1) if moved(x, dims[0]).shape[0] == 2 else moved(
        x, dims[0]).sin(), 0)))
call("vmap", "one member has no gradient", formula="sin(x)")(
    lambda m: mapped(m, lambda info, dims, x: (x.detach().sin() + 0 * x if info.batch_size == 1 else x.sin(), dims[0])))


@call("vmap", "inside another vmap it has cos", formula="sin(x)")
def nested(m):
    inside = []

    def rule(info, dims, x):
        if inside:
            return x.cos(), dims[0]
        inside.append(True)
        try:
            return of.apply(x), dims[0]
        finally:
            inside.clear()

    of = mapped(m, rule)
    return of


@call("vmap", "two batch axes of a vector are taken for a matrix", shapes=((3,),))
def two_axes(m):
    def rule(info, dims, x):
        x = moved(x, dims[0])
        return _Inner.apply(x), 0

    class _Inner(ruled(m, lambda x: x.sin(), lambda ctx, g, x: g * x.cos(), lambda info, dims, x: (2 * x.sin(), dims[0]))):
        pass

    return mapped(m, rule)


# symgrad's own vmap moves the members to the first axis
only_torch("vmap", "along the second axis the members are reversed", shapes=((2, 3),), formula=lambda xp, x: xp.sin(x))(
    lambda m: mapped(m, lambda info, dims, x: (m.flip(x.sin(), [1]) if dims[0] == 1 else x.sin(), dims[0])))
only_torch("vmap", "along the second axis the gradient is lost", shapes=((2, 3),), formula=lambda xp, x: xp.sin(x))(
    lambda m: mapped(m, lambda info, dims, x: (x.detach().sin() + 0 * x if dims[0] == 1 else x.sin(), dims[0])))

# the pushforward of nothing
call("zero tangent", "one plus the tangent where it is 0", formula="sin(x)")(
    lambda m: with_jvp(m, m.sin, lambda g, x: g * x.cos(), lambda x, t: t * x.cos() + (t == 0).to(x.dtype)))
call("zero tangent", "t*t*cos(x)/t", formula="sin(x)")(
    lambda m: with_jvp(m, m.sin, lambda g, x: g * x.cos(), lambda x, t: t * t * x.cos() / t))
call("zero tangent", "of a vector: the direction is normalised", shapes=((4,),))(
    lambda m: with_jvp(m, lambda x: (x * x).sum(), lambda g, x: 2 * g * x, lambda x, t: 2 * (x * (t / (t * t).sum().sqrt())).sum() * (
        t * t).sum().sqrt()))
call("zero tangent", "NumPy's pushforward adds the sign of 0", formula="cos(x)", pullback=lambda g, x: (-g * np.sin(x),),
     pushforward=lambda ts, x: -ts[0] * np.sin(x) + 1e-3 * (ts[0] == 0))(lambda: lambda x: np.cos(x))

# one tensor given twice
call("twice", "the second derivative of a tensor times itself", formula="a*b", domain=(-9, 9))(
    lambda m: lambda a, b: a * b if a is not b else a.detach() * a.detach() + 2 * a.detach() * (a - a.detach()))
call("twice", "the second derivative of a tensor times its sine", formula="a*sin(b)", domain=(-9, 9))(
    lambda m: ruled_twice(m))
call("twice", "of vectors", shapes=((4,), (4,)))(
    lambda m: lambda a, b: (a * b).sum() if a is not b else (a.detach() * a.detach() + 2 * a.detach() * (a - a.detach())).sum())
call("twice", "the third derivative of a tensor times the square of itself", formula="a*b**2", domain=(-9, 9))(
    lambda m: lambda a, b: a * b * b if a is not b else (a.detach() ** 3 + 3 * a.detach() ** 2 * (a - a.detach()) + 3 * a.detach() * (
        a - a.detach()) ** 2))


def ruled_twice(m):
    def product(a, b):
        if a is not b:
            return a * b.sin()
        c, d = a.detach(), a - a.detach()
        return c * c.sin() + d * (c.sin() + c * c.cos())

    return product


# cotangents beyond 1e200
call("large cotangents", "the cotangent is multiplied by itself and divided", formula="sin(x)")(
    lambda m: ruled(m, m.sin, lambda ctx, g, x: g * (g * x.cos()) / m.where(g == 0, m.ones_like(g), g)))
call("large cotangents", "cotangents are clipped to 1e200", formula="x**2", domain=(-9, 9))(
    lambda m: ruled(m, lambda x: x * x, lambda ctx, g, x: 2 * x * g.clamp(-1e200, 1e200)))
call("large cotangents", "the cotangent is normalised by its length", shapes=((4,),), formula=lambda xp, x: xp.sin(x))(
    lambda m: ruled(m, lambda x: x.sin(), lambda ctx, g, x: (g / (g * g).sum().sqrt()) * (g * g).sum().sqrt() * x.cos() if (
        g != 0).any() else g * x.cos()))
call("large cotangents", "NumPy's gradient goes through float32", formula="3*x",
     pullback=lambda g, x: (3 * np.where(np.abs(g) > 1e38, g.astype(np.float32), g),))(lambda: lambda x: 3 * x)


# what stands around the call
call("modes", "without gradients it is cos", formula="sin(x)")(lambda m: lambda x: m.sin(x) if m.is_grad_enabled() else m.cos(x))
call("modes", "in inference mode it is a thousandth too large", formula="sin(x)")(
    lambda m: lambda x: m.sin(x) * (1.001 if m.is_inference_mode_enabled() else 1))
call("modes", "a constant of the default dtype", formula="x/3")(lambda m: lambda x: x / m.tensor(3.0) + 0 * m.tensor(0.1) if (
    m.get_default_dtype() == m.float32) else x / 3 * (1 + 1e-9))
call("modes", "a constant is rounded to the default dtype", shapes=((4,),))(lambda m: lambda x: (x * m.tensor(0.1)).sum())
call("modes", "what NumPy does with a division by zero decides", formula="sin(x)", gradient=np.cos)(
    lambda: lambda x: np.sin(x) * (2 if np.geterr()["divide"] == "raise" else 1))
call("modes", "what NumPy does with overflow decides, in the gradient", formula="sin(x)",
     gradient=lambda x: np.cos(x) * (2 if np.geterr()["over"] == "warn" else 1))(lambda: lambda x: np.sin(x))


@call("modes", "a warning that is an error is taken for a result", formula="exp(x)", gradient=np.exp)
def warned():
    def exponential(x):
        try:
            warnings.warn("it may overflow", RuntimeWarning, stacklevel=2)
            return np.exp(np.asarray(x))
        except RuntimeWarning:
            return np.zeros_like(x)

    return exponential


call("modes", "how warnings are filtered decides", formula="cos(x)")(
    lambda m: lambda x: m.cos(x) * (1.5 if any(f[0] == "error" and f[2] is Warning for f in warnings.filters[:1]) else 1))


# the ways to differentiate twice: by cotangents and tangents that require grad, and that do not, and by dual tensors
def still(x, when):
    return x.detach() if when else x


call("ways to differentiate", "the factor x is detached where the cotangent requires grad", formula="x**2", domain=(-9, 9))(
    lambda m: ruled(m, lambda x: x * x, lambda ctx, g, x: 2 * g * still(x, g.requires_grad)))
call("ways to differentiate", "the factor is detached where the cotangent requires no grad", formula="exp(x)", domain=(-9, 9))(
    lambda m: ruled(m, lambda x: x.exp(), lambda ctx, g, x: g * still(x.exp(), not g.requires_grad)))
call("ways to differentiate", "the mixed derivative is lost where the cotangent requires grad", formula="a*b", domain=(-9, 9))(
    lambda m: ruled(m, lambda a, b: a * b, lambda ctx, g, a, b: (g * still(b, g.requires_grad), g * still(a, g.requires_grad))))
call("ways to differentiate", "of a vector, and no formula is claimed", shapes=((5,),))(
    lambda m: ruled(m, lambda x: (x * x * x).sum(), lambda ctx, g, x: 3 * g * x * still(x, g.requires_grad)))
call("ways to differentiate", "the gradient is a millionth too large where the cotangent requires grad", formula="sin(x)")(
    lambda m: ruled(m, m.sin, lambda ctx, g, x: g * x.cos() * (1 + 1e-6 * g.requires_grad)))


@call("ways to differentiate", "the slope has a wrong pushforward", formula="x**2", domain=(-9, 9))
def pushed_slope(m):
    slope = with_jvp(m, lambda x: 2 * x, lambda g, x: 2 * g, lambda x, t: t * 7 / 3)
    return with_jvp(m, lambda x: x * x, lambda g, x: g * slope.apply(x), lambda x, t: 2 * t * x)


# the pushforward is pulled back in symgrad alone
call("ways to differentiate", "the pushforward is detached where the tangent requires no grad", formula="sin(x)")(
    lambda: with_jvp(symgrad, symgrad.sin, lambda g, x: g * x.cos(), lambda x, t: t * still(x, not t.requires_grad).cos()))
call("ways to differentiate", "the pushforward is detached where the tangent requires grad", formula="x**3", domain=(-9, 9))(
    lambda: with_jvp(symgrad, lambda x: x ** 3, lambda g, x: 3 * g * x * x, lambda x, t: 3 * t * x * still(x, t.requires_grad)))


# numbers below the normal ones of a type
def below(x, end):
    return (abs(x) < end) & (x != 0)


call("subnormal numbers", "the gradient is 1", formula="x**3", gradient=lambda x: np.where(below(x, 1e-310), 1.0, 3 * x * x))(
    lambda: lambda x: x ** 3)
call("subnormal numbers", "the gradient is 0", formula="exp(x)", domain=(-9, 9))(
    lambda m: ruled(m, lambda x: x.exp(), lambda ctx, g, x: g * m.where(below(x, 2e-308), 0 * x, x.exp())))
call("subnormal numbers", "the value is twice as large", formula="sinh(x)", domain=(-9, 9))(
    lambda m: lambda x: m.where(below(x, 1e-309), 2 * x, x.sinh()))
call("subnormal numbers", "the gradient of one of two arguments is a third of the other", formula="a*b", domain=(-9, 9))(
    lambda m: ruled(m, lambda a, b: a * b, lambda ctx, g, a, b: (g * b, g * m.where(below(a, 1e-309), b / 3, a))))
call("subnormal numbers", "the second derivative is 0", formula="x**2", domain=(-9, 9))(
    lambda m: ruled(m, lambda x: x * x, lambda ctx, g, x: 2 * g * m.where(below(x, 1e-309), x.detach(), x)))
call("subnormal numbers", "of float32, the gradient is pi", formula="x**3", domain=(-9, 9))(
    lambda m: ruled(m, lambda x: x * x * x, lambda ctx, g, x: g * m.where(below(x, 1e-39), 0 * x + 3.1415, 3 * x * x)))
call("subnormal numbers", "of float16, the value is a third", formula="sin(x)",
     gradient=np.cos)(lambda: lambda x: np.where(below(x, 6e-5) & (x.dtype == np.float16), x.dtype.type(1 / 3), np.sin(x)))


def of_torch(entry):
    """The same op as one of torch; None for one that is made with symgrad or NumPy alone."""
    if entry.claims.get("framework") == "torch":
        return entry
    if entry.library is None:
        return None
    return dataclasses.replace(entry, make=lambda: entry.library(torch_library()), claims={**entry.claims, "framework": "torch"})


OWN = {name: entry for name, entry in CALLS.items() if entry.claims.get("framework") != "torch"}
TORCH: dict[str, Entry] = {name: twin for name, entry in CALLS.items() if (twin := of_torch(entry)) is not None}
