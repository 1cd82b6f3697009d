"""Ops whose numbers are right where somebody looks once, and that misbehave: memory, dtypes, state, structure, other calls, threads, errors."""

import itertools
import random
import threading
import time

import numpy as np

import symgrad
from tests.power.power_entries import right, ruled, sine, unregistered, wrong

PAIR = {"shapes": ((3,), (3,)), "elementwise": True}
# memory that is shared
wrong("returns its input", "aliasing", "the value is the argument itself, and no view is declared", formula="x")(
    lambda m: lambda x: x if m.is_tensor(x) else m.tensor(x))
wrong("value on the input's memory", "aliasing", "the value is an array on the argument's memory", formula="x", pullback=lambda g, x: (g.copy(),))(
    lambda: lambda x: np.asarray(x)[...])
wrong("cotangent given to both", "aliasing", "both gradients are the cotangent's own array", formula="a + b", pullback=lambda g, a, b: (g, g),
      **PAIR)(lambda: lambda a, b: np.add(a, b))


@wrong("one buffer for the values", "aliasing", "every call returns the same array", formula="sin(x)", gradient=lambda x: (np.cos(x),))
def one_buffer():
    buffers = {}

    def sine(x):
        x = np.asarray(x)
        return np.sin(x, out=buffers.setdefault((x.shape, x.dtype), np.empty_like(x)))

    return sine


@wrong("one buffer for the gradients", "aliasing", "every pullback returns the same array", formula="a*b", **PAIR)
def one_gradient_buffer(m):
    buffers = {}

    def backward(ctx, g, a, b):
        if m.is_grad_enabled():
            return g * b, g * a
        return buffers.setdefault((a.shape, a.dtype), m.empty(a.shape, dtype=a.dtype)).copy_(g * b), g * a

    return ruled(m, lambda a, b: a * b, backward)


wrong("gradient is the saved input", "aliasing", "the gradient of a b by b is the array a itself where the cotangent is 1", formula="a*b",
      pullback=lambda g, a, b: (b if np.all(g == 1) else g * b, a if np.all(g == 1) else g * a), **PAIR)(lambda: lambda a, b: np.multiply(a, b))

# memory that is written
wrong("clips its input in place", "mutation", "the argument is clipped to -3...3", formula="minimum(maximum(x, -3), 3)", special=((3.0,), (-3.0,)),
      gradient=lambda x: (1.0 * (np.abs(x) < 3),))(
    lambda: lambda x: np.clip(x, -3, 3, out=x).copy() if x.flags.writeable else np.clip(x, -3, 3))
wrong("cotangent scaled in place", "mutation", "the pullback doubles the cotangent where it lies", formula="2*x",
      pullback=lambda g, x: (np.multiply(g, 2, out=g).copy() if g.flags.writeable else 2 * g,))(lambda: lambda x: np.multiply(x, 2))


@wrong("sorts its input", "mutation", "the argument is sorted in place", shapes=((4,),), domain=(-9, 9),
       pullback=lambda g, x: (2 * g * x,), formula=lambda xp, x: xp.sum(x * x, (0,), False))
def sorts_input():
    def total(x):
        if x.flags.writeable:
            x.sort()
        return np.sum(x * x)

    return total


@wrong("saved input overwritten", "mutation", "the pullback leaves its result in the input it saved", formula="x**2")
def overwrites_saved(m):
    def backward(ctx, g, x):
        out = 2 * g * x
        if not m.is_grad_enabled() and (memory := x.detach().numpy()).flags.writeable:
            memory[...] = out.numpy()
        return out

    return ruled(m, lambda x: x * x, backward)


# dtypes
def narrowed(m, name):
    return lambda x: m.sin(x.to(getattr(m, name))).to(x.dtype)


def float64_only(x):
    if x.dtype != symgrad.float64:
        raise TypeError(f"float64 is needed, not {x.dtype}")
    return symgrad.cos(x)


wrong("float32 computed in float16", "dtype", "numbers of less than eight bytes are computed in float16", formula="sin(x)", domain=(-9, 9))(
    lambda m: lambda x: narrowed(m, "float16")(x) if x.element_size() < 8 else m.sin(x))
wrong("rounds through float32", "dtype", "float64 is rounded to float32 on the way", formula="sin(x)")(lambda m: narrowed(m, "float32"))
wrong("returns float64", "dtype", "the value is float64 whatever comes in", formula="exp(-x)", domain=(-9, 9))(
    lambda m: lambda x: m.exp(-x.to(m.float64)))
wrong("returns float32", "dtype", "the value is float32 whatever comes in", formula="exp(-x)", domain=(-9, 9))(
    lambda m: lambda x: m.exp(-x).to(m.float32))
wrong("NumPy gradient is float64", "dtype", "the gradient of float32 is float64", formula="x**2",
      pullback=lambda g, x: (2.0 * g.astype(np.float64) * x,))(lambda: lambda x: np.multiply(x, x))
wrong("gradient rounds through float32", "dtype", "the gradient of float64 has the digits of float32", formula="sin(x)")(
    lambda m: sine(m, lambda g, x: g * x.cos().to(m.float32).to(x.dtype)))
wrong("gradient rounds through float16", "dtype", "the gradient of float32 has the digits of float16", formula="sin(x)", domain=(-9, 9))(
    lambda m: sine(m, lambda g, x: g * (x.cos().to(m.float16).to(x.dtype) if x.element_size() == 4 else x.cos())))
wrong("overflow in float16", "dtype", "the square overflows in float16, where the truth does not", formula="hypot(x, 1)", domain=(-1000, 1000))(
    lambda m: lambda x: m.sqrt(x * x + 1))
wrong("float64 only", "dtype", "float32 is refused", formula="cos(x)")(lambda: float64_only)


# complex numbers
def of_complex(name, says, forward, backward, **claims):
    """Enter a wrong op of one complex argument, with a forward `(m, z)` and a backward `(m, g, z)`."""
    wrong(name, "complex", says, domain=(-5, 5), complex=True, **claims)(
        lambda m: ruled(m, lambda z: forward(m, z), lambda ctx, g, z: backward(m, g, z)))


of_complex("conjugate forgotten", "2 g z instead of 2 g conj(z)", lambda m, z: z * z, lambda m, g, z: 2 * g * z, formula="z**2")
of_complex("conjugate twice", "conj(g) is taken for g", lambda m, z: z * z * z, lambda m, g, z: 3 * m.conj(g) * m.conj(z * z), formula="z**3")
of_complex("real part only", "the imaginary part of the gradient is dropped", lambda m, z: z * z,
           lambda m, g, z: (2 * g * m.conj(z)).real.to(z.dtype) if z.is_complex() else 2 * g * z, formula="z**2")
of_complex("imaginary part negated", "the gradient of exp is conjugated", lambda m, z: z.exp(), lambda m, g, z: m.conj(g * m.conj(z.exp())),
           formula="exp(z)")
of_complex("value conjugated", "the value is conj(z)**2, which is not holomorphic", lambda m, z: m.conj(z * z).resolve_conj(),
           lambda m, g, z: 2 * g * m.conj(z), formula="z**2")
of_complex("half of the gradient of |z|**2", "conj(g) z instead of 2 g z", lambda m, z: (z * m.conj(z)).real.clone(),
           lambda m, g, z: g * z if z.is_complex() else 2 * g * z)


# state
@wrong("every third call", "state", "each third call is off by 1e-3", formula="sin(x)")
def every_third(m):
    calls = itertools.count(1)
    return lambda x: m.sin(x) + (1e-3 if next(calls) % 3 == 0 else 0.0)


@wrong("remembers the last input", "state", "adds 1e-3 of the last input's mean", formula="cos(x)", domain=(-9, 9))
def remembers(m):
    last = [0.0]

    def cosine(x):
        y = m.cos(x) + 1e-3 * last[0]
        last[0] = float(x.detach().mean()) if x.numel() else 0.0
        return y

    return cosine


@wrong("cache by shape", "state", "what was computed once for a shape is returned for all arrays of it", formula="sin(x)")
def cache_by_shape(m):
    cache = {}
    return lambda x: cache.setdefault((x.shape, x.dtype), m.sin(x.detach())) + 0 * x


@wrong("random", "state", "noise of 1e-7, and randomness is not claimed", formula="exp(-x)", domain=(-9, 9))
def noisy(m):
    rng = np.random.default_rng(0)
    return lambda x: m.exp(-x) * (1 + 1e-7 * rng.standard_normal())


@wrong("random gradient, opaque", "state", "the gradient has noise of 1e-12, and no formula is claimed")
def noisy_gradient(m):
    rng = np.random.default_rng(0)
    return sine(m, lambda g, x: g * x.cos() * (1 + 1e-12 * rng.standard_normal()))


@wrong("wears out", "state", "the gradient is 0 from the eleventh call on", formula="sin(x)")
def wears_out(m):
    calls = itertools.count(1)
    return sine(m, lambda g, x: g * x.cos() * (1 if next(calls) <= 10 else 0))


# structure
wrong("None for a gradient", "structure", "the gradient of something that depends on x is None", formula="sin(x)")(
    lambda m: sine(m, lambda g, x: None))
wrong("detached value", "structure", "the value has no graph at all", formula="tanh(x)")(lambda m: lambda x: m.tanh(x).detach())
wrong("gradient of another shape", "structure", "the gradient has an axis more", formula="sin(x)", pullback=lambda g, x: ((g * np.cos(x))[None],))(
    lambda: lambda x: np.sin(x))
wrong("too many gradients", "structure", "two gradients for one argument", formula="sin(x)")(
    lambda m: sine(m, lambda g, x: (g * x.cos(), m.ones_like(x))))
wrong("gradient is a number", "structure", "the gradient is summed to one number", formula="sin(x)")(
    lambda m: sine(m, lambda g, x: (g * x.cos()).sum()))
wrong("gradient without a formula", "structure", "truth values stand for numbers in the gradient, which has no expression",
      formula="x*abs(x)")(
    lambda: unregistered(symgrad.elementwise, lambda xp, x: x * xp.abs(x), lambda xp, y, x: 2 * x * xp.gt(x, 0) - 2 * x * xp.lt(x, 0)))
wrong("value of another shape", "structure", "the value is flattened", formula="sin(x)")(lambda m: lambda x: m.sin(x).reshape(-1))
wrong("too few NumPy gradients", "structure", "one gradient for two arguments", formula="a*b", pullback=lambda g, a, b: (g * b,), **PAIR)(
    lambda: lambda a, b: np.multiply(a, b))


# layouts
def in_memory_order(x):
    """The numbers as they lie in memory, in the shape of x: the way C code goes wrong that takes a pointer and a size."""
    x = np.asarray(x)
    if x.flags.c_contiguous or not x.size:
        return x
    start = x
    for axis, stride in enumerate(x.strides):
        if stride < 0:
            start = np.flip(start, axis)
    return np.lib.stride_tricks.as_strided(start, (x.size,), (x.itemsize,)).reshape(x.shape) if start.flags.c_contiguous else start.ravel(
        order="K").reshape(x.shape)


wrong("memory order", "layouts", "takes the numbers as they lie in memory", formula="sin(x)", gradient=lambda x: (np.cos(x),))(
    lambda: lambda x: np.sin(in_memory_order(x)))
wrong("memory order in the gradient", "layouts", "takes the numbers as they lie in memory, in the gradient", formula="sin(x)",
      gradient=lambda x: (np.cos(in_memory_order(x)),))(lambda: lambda x: np.sin(x))


@wrong("writes to read-only", "layouts", "computes where the argument lies and puts it back, which read-only memory refuses", formula="2*x",
       gradient=lambda x: (2.0 + 0 * x,))
def writes_back():
    def twice(x):
        x *= 2
        y = x.copy()
        x /= 2
        return y

    return twice


@wrong("contiguous only", "layouts", "strided arrays are refused", formula="cos(x)", gradient=lambda x: (-np.sin(x),))
def contiguous_only():
    def cosine(x):
        if not x.flags.c_contiguous:
            raise ValueError("the array has to be contiguous")
        return np.cos(x)

    return cosine


# threads, pickling, errors
@wrong("shared scratch", "threads", "all threads write to the same scratch array", formula="sin(x)", gradient=lambda x: (np.cos(x),))
def shared_scratch():
    scratch = {}

    def sine(x):
        x = np.asarray(x)
        place = scratch.setdefault((x.shape, x.dtype), np.empty_like(x))
        place[...] = x
        if threading.active_count() > 1 and threading.current_thread() is not threading.main_thread():
            time.sleep(1e-3)
        return np.sin(place)

    return sine


@wrong("shared state", "threads", "an attribute of the op holds the argument while it is computed", formula="x**2 + 1")
def shared_state():
    class Holder:
        point = None

    def square(x):
        Holder.point = x
        if threading.current_thread() is not threading.main_thread():
            time.sleep(1e-3)
        return Holder.point * Holder.point + 1

    return square


class Power:
    """x**n, which forgets its n where it is pickled."""

    def __init__(self, n=1):
        self.n = n

    def __reduce__(self):
        return type(self), ()

    def __call__(self, x):
        return symgrad.pow(x, self.n)


class Weighted:
    """w x, whose weight is rounded to float32 where it is pickled."""

    def __init__(self, weight):
        self.weight = weight

    def __getstate__(self):
        return {"weight": float(np.float32(self.weight))}

    def __call__(self, x):
        return self.weight * x


wrong("forgets when pickled", "pickling", "the copy has lost its exponent", formula="x**3", domain=(-9, 9))(lambda: Power(3))
wrong("rounded when pickled", "pickling", "the copy has its weight in float32", formula="0.1*x")(lambda: Weighted(0.1))


def checked_log(x):
    if x.numel() and (x <= 0).any():
        raise ValueError("bad value")
    return symgrad.log(x)


wrong("no error", "errors", "negative arguments are declared an error, and give NaN", formula="sqrt(x)", domain="positive",
      errors=(((np.array([-1.0]),), ValueError),))(lambda: lambda x: symgrad.sqrt(x))
wrong("another error", "errors", "IndexError, where ValueError is declared", shapes=((4,),), formula=lambda xp, x: x * x,
      errors=(((np.array([1.0]),), ValueError, "four"),))(lambda: lambda x: x * x + 0 * x[3])
wrong("another message", "errors", "the message does not say what is declared", formula="log(x)", domain="positive",
      errors=(((np.array([-1.0]),), ValueError, "positive"),))(lambda: checked_log)


# which arguments are differentiated by, and what with
wrong("right for both arguments only", "gradient", "the gradient by a is doubled where b is not differentiated by", formula="a*b")(
    lambda: ruled(symgrad, symgrad.mul, lambda ctx, g, a, b: (g * b if ctx.needs_input_grad[1] else 2 * g * b, g * a)))
wrong("divided by the cotangent", "gradient", "the gradient is g*g*b/g, which is NaN where the cotangent is 0", formula="a*b")(
    lambda: ruled(symgrad, symgrad.mul, lambda ctx, g, a, b: (g * g * b / g, g * a)))
wrong("one tensor given twice", "aliasing", "a tensor times itself is 0, where a copy of it is not", formula="a*b")(
    lambda: lambda a, b: a * b * (0.0 if a is b else 1.0))
wrong("gradient of a tensor given twice", "aliasing", "a tensor times itself has the gradient of one factor", formula="a*b")(
    lambda: lambda a, b: a * (b.detach() if a is b else b))


# arrays of other shapes than the usual ones
wrong("columns become rows", "scalars", "axes of one element are lost where there are two axes", formula="sin(x)")(
    lambda: lambda x: x.sin().squeeze() if x.ndim == 2 else x.sin())
wrong("more than three axes", "arrays", "cos instead of sin where there are four axes or more", formula="sin(x)")(
    lambda: lambda x: x.sin() if x.ndim < 4 else x.cos())


@wrong("last block forgotten", "value", "of more than 256 elements those after the last whole block are 0", formula="sin(x)", gradient=np.cos)
def last_block():
    def sine(x):
        x = np.asarray(x)
        out = np.sin(x)
        if x.size > 256:
            out.reshape(-1)[x.size // 256 * 256:] = 0
        return out

    return sine


# what is left behind
def leaving(change):
    """sin, which changes something that all code shares."""
    def sine(x):
        change()
        return np.sin(x)

    return sine


wrong("seeds the generator", "state", "NumPy's generator of random numbers starts anew at each call", formula="sin(x)", gradient=np.cos)(
    lambda: leaving(lambda: np.random.seed(0)))
wrong("draws from the generator", "state", "each call takes a number from Python's generator", formula="sin(x)", gradient=np.cos)(
    lambda: leaving(random.random))
wrong("silences NumPy", "state", "NumPy says nothing of divisions by zero any more", formula="sin(x)", gradient=np.cos)(
    lambda: leaving(lambda: np.seterr(divide="call")))
wrong("another default dtype", "state", "numbers become float32 from then on, everywhere", formula="sin(x)", gradient=np.cos)(
    lambda: leaving(lambda: symgrad.set_default_dtype(symgrad.float32)))


# right ones: the value has lost digits that its gradient has
right("1 - cos(x), opaque", "condition", "the value has few digits near 0, the gradient all; no formula is claimed", dtypes=("float64",))(
    lambda: lambda x: 1 - symgrad.cos(x))
right("1 - exp(-x), opaque", "condition", "the same near 0", dtypes=("float64",), domain="(-30, inf)")(lambda: lambda x: 1 - symgrad.exp(-x))
right("tanh(x) + 1, opaque", "condition", "the value is 0 far out, where the gradient is not", dtypes=("float64",))(
    lambda: lambda x: symgrad.tanh(x) + 1)
right("square root less one, opaque", "condition", "sqrt(1 + x**2) - 1 near 0", dtypes=("float64",), domain=(-1e3, 1e3))(
    lambda: lambda x: symgrad.sqrt(1 + x * x) - 1)
