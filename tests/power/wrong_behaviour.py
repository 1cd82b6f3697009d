"""Ops whose numbers are right where somebody looks once, and that misbehave: memory, dtypes, state, structure, threads, pickling, errors."""

import threading
import time

import numpy as np

import symgrad
from symgrad.autograd import Function
from tests.power.power_entries import of_complex, unregistered, wrong


def of_sine(backward):
    """sin with a backward `(ctx, g, x)` of its own."""
    class Sine(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x.sin()

        @staticmethod
        def backward(ctx, g):
            return backward(ctx, g, *ctx.saved_tensors)

    return Sine


# memory that is shared
@wrong("returns its input", "aliasing", "the value is the argument itself, and no view is declared", formula="x")
def returns_input():
    return lambda x: x if symgrad.is_tensor(x) else symgrad.tensor(x)


@wrong("value on the input's memory", "aliasing", "the value is an array on the argument's memory", formula="x", pullback=lambda g, x: (g.copy(),))
def on_input():
    return lambda x: np.asarray(x)[...]


@wrong("cotangent given to both", "aliasing", "both gradients are the cotangent's own array", formula="a + b", pullback=lambda g, a, b: (g, g),
       shapes=((3,), (3,)), elementwise=True)
def both_the_cotangent():
    return lambda a, b: np.add(a, b)


@wrong("one buffer for the values", "aliasing", "every call returns the same array", formula="sin(x)", gradient=lambda x: (np.cos(x),))
def one_buffer():
    buffers = {}

    def sine(x):
        x = np.asarray(x)
        return np.sin(x, out=buffers.setdefault((x.shape, x.dtype), np.empty_like(x)))

    return sine


@wrong("one buffer for the gradients", "aliasing", "every pullback returns the same array", formula="a*b",
       shapes=((3,), (3,)), elementwise=True)
def one_gradient_buffer():
    buffers = {}

    class Times(Function):
        @staticmethod
        def forward(ctx, a, b):
            ctx.save_for_backward(a, b)
            return a * b

        @staticmethod
        def backward(ctx, g):
            a, b = ctx.saved_tensors
            if symgrad.is_grad_enabled():
                return g * b, g * a
            out = buffers.setdefault((a.shape, a.dtype), symgrad.empty(a.shape, dtype=a.dtype))
            out.copy_(g * b)
            second = g * a
            return out, second

    return Times


@wrong("gradient is the saved input", "aliasing", "the gradient of a b by b is the array a itself where the cotangent is 1", formula="a*b",
       pullback=lambda g, a, b: (b if np.all(g == 1) else g * b, a if np.all(g == 1) else g * a), shapes=((3,), (3,)), elementwise=True)
def gradient_is_input():
    return lambda a, b: np.multiply(a, b)


# memory that is written
@wrong("clips its input in place", "mutation", "the argument is clipped to -3...3", formula="minimum(maximum(x, -3), 3)", special=((3.0,), (-3.0,)),
       gradient=lambda x: (1.0 * (np.abs(x) < 3),))
def clips_in_place():
    return lambda x: np.clip(x, -3, 3, out=x).copy() if x.flags.writeable else np.clip(x, -3, 3)


@wrong("cotangent scaled in place", "mutation", "the pullback doubles the cotangent where it lies", formula="2*x",
       pullback=lambda g, x: (np.multiply(g, 2, out=g).copy() if g.flags.writeable else 2 * g,))
def scales_cotangent():
    return lambda x: np.multiply(x, 2)


@wrong("sorts its input", "mutation", "the argument is sorted in place", shapes=((4,),), domain=(-9, 9),
       pullback=lambda g, x: (2 * g * x,), formula=lambda xp, x: xp.sum(x * x, (0,), False))
def sorts_input():
    def total(x):
        if x.flags.writeable:
            x.sort()
        return np.sum(x * x)

    return total


@wrong("saved input overwritten", "mutation", "the pullback leaves its result in the input it saved", formula="x**2")
def overwrites_saved():
    class Square(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            if symgrad.is_grad_enabled():
                return 2 * g * x
            out = 2 * g * x
            memory = x.detach().numpy()
            if memory.flags.writeable:
                memory[...] = out.numpy()
            return out

    return Square


# dtypes
def in_dtype(name):
    def sine(x):
        return symgrad.sin(x.to(getattr(symgrad, name))).to(x.dtype)

    return sine


wrong("float32 computed in float16", "dtype", "numbers of less than eight bytes are computed in float16", formula="sin(x)", domain=(-9, 9))(
    lambda: lambda x: in_dtype("float16")(x) if x.element_size() < 8 else symgrad.sin(x))
wrong("rounds through float32", "dtype", "float64 is rounded to float32 on the way", formula="sin(x)")(lambda: in_dtype("float32"))
wrong("returns float64", "dtype", "the value is float64 whatever comes in", formula="exp(-x)", domain=(-9, 9))(
    lambda: lambda x: symgrad.exp(-x.to(symgrad.float64)))
wrong("returns float32", "dtype", "the value is float32 whatever comes in", formula="exp(-x)", domain=(-9, 9))(
    lambda: lambda x: symgrad.exp(-x).to(symgrad.float32))
wrong("NumPy gradient is float64", "dtype", "the gradient of float32 is float64", formula="x**2", pullback=lambda g,
      x: (2.0 * g.astype(np.float64) * x,))(
    lambda: lambda x: np.multiply(x, x))
wrong("gradient rounds through float32", "dtype", "the gradient of float64 has the digits of float32", formula="sin(x)")(
    lambda: of_sine(lambda ctx, g, x: g * x.cos().to(symgrad.float32).to(x.dtype)))
wrong("gradient rounds through float16", "dtype", "the gradient of float32 has the digits of float16", formula="sin(x)", domain=(-9, 9))(
    lambda: of_sine(lambda ctx, g, x: g * (x.cos().to(symgrad.float16).to(x.dtype) if x.element_size() == 4 else x.cos())))
wrong("overflow in float16", "dtype", "the square overflows in float16, where the truth does not", formula="hypot(x, 1)", domain=(-1000, 1000))(
    lambda: lambda x: symgrad.sqrt(x * x + 1))
wrong("float64 only", "dtype", "float32 is refused", formula="cos(x)")(lambda: _float64_only)


def _float64_only(x):
    if x.dtype != symgrad.float64:
        raise TypeError(f"float64 is needed, not {x.dtype}")
    return symgrad.cos(x)


# complex numbers
for _name, _says, _forward, _backward, _formula in (
        ("conjugate forgotten", "2 g z instead of 2 g conj(z)", lambda z: z * z, lambda g, z: 2 * g * z, "z**2"),
        ("conjugate twice", "conj(g) is taken for g", lambda z: z * z * z, lambda g, z: 3 * symgrad.conj(g) * symgrad.conj(z * z), "z**3"),
        ("real part only", "the imaginary part of the gradient is dropped", lambda z: z * z, lambda g,
        z: 2 * g * symgrad.conj(z) if not z.is_complex()
         else (2 * g * symgrad.conj(z)).real.to(z.dtype), "z**2"),
        ("imaginary part negated", "the gradient of exp is conjugated", lambda z: z.exp(), lambda g, z: symgrad.conj(g * symgrad.conj(z.exp())),
        "exp(z)"),
        ("value conjugated", "the value is conj(z)**2, which is not holomorphic", lambda z: symgrad.conj(z * z), lambda g, z: 2 * g * symgrad.conj(z),
         "z**2")):
    wrong(_name, "complex", _says, formula=_formula, domain=(-5, 5), complex=True)(
        lambda forward=_forward, backward=_backward: of_complex(forward, backward))


@wrong("half of the gradient of |z|**2", "complex", "conj(g) z instead of 2 g z", complex=True, domain=(-5, 5))
def half_of_abs2():
    return of_complex(lambda z: (z * symgrad.conj(z)).real, lambda g, z: 2 * g * z if not z.is_complex() else g * z)


# state
@wrong("every third call", "state", "each third call is off by 1e-3", formula="sin(x)")
def every_third():
    calls = []

    def sine(x):
        calls.append(None)
        return symgrad.sin(x) + (1e-3 if len(calls) % 3 == 0 else 0.0)

    return sine


@wrong("remembers the last input", "state", "adds 1e-3 of the last input's mean", formula="cos(x)", domain=(-9, 9))
def remembers():
    last = [0.0]

    def cosine(x):
        y = symgrad.cos(x) + 1e-3 * last[0]
        last[0] = float(np.mean(x.detach()._value)) if x.numel() else 0.0
        return y

    return cosine


@wrong("cache by shape", "state", "what was computed once for a shape is returned for all arrays of it", formula="sin(x)")
def cache_by_shape():
    cache = {}

    def sine(x):
        return cache.setdefault((x.shape, x.dtype), symgrad.sin(x.detach())) + 0 * x

    return sine


@wrong("random", "state", "noise of 1e-7, and randomness is not claimed", formula="exp(-x)", domain=(-9, 9))
def noisy():
    rng = np.random.default_rng(0)
    return lambda x: symgrad.exp(-x) * (1 + 1e-7 * rng.standard_normal())


@wrong("random gradient, opaque", "state", "the gradient has noise of 1e-12, and no formula is claimed")
def noisy_gradient():
    rng = np.random.default_rng(0)
    return of_sine(lambda ctx, g, x: g * x.cos() * (1 + 1e-12 * rng.standard_normal()))


@wrong("wears out", "state", "the gradient is 0 from the eleventh call on", formula="sin(x)")
def wears_out():
    calls = []

    def backward(ctx, g, x):
        calls.append(None)
        return g * x.cos() * (1 if len(calls) <= 10 else 0)

    return of_sine(backward)


# structure
wrong("None for a gradient", "structure", "the gradient of something that depends on x is None",
      formula="sin(x)")(lambda: of_sine(lambda ctx, g, x: None))
wrong("detached value", "structure", "the value has no graph at all", formula="tanh(x)")(lambda: lambda x: symgrad.tanh(x).detach())
wrong("gradient of another shape", "structure", "the gradient has an axis more", formula="sin(x)", pullback=lambda g, x: ((g * np.cos(x))[None],))(
    lambda: lambda x: np.sin(x))
wrong("too many gradients", "structure", "two gradients for one argument", formula="sin(x)")(
    lambda: of_sine(lambda ctx, g, x: (g * x.cos(), symgrad.ones_like(x))))
wrong("gradient is a number", "structure", "the gradient is summed to one number",
      formula="sin(x)")(lambda: of_sine(lambda ctx, g, x: (g * x.cos()).sum()))
wrong("gradient without a formula", "structure", "truth values stand for numbers in the gradient, which has no expression",
      formula="x*abs(x)")(
    lambda: unregistered(symgrad.elementwise, lambda xp, x: x * xp.abs(x), lambda xp, y, x: 2 * x * xp.gt(x, 0) - 2 * x * xp.lt(x, 0)))
wrong("value of another shape", "structure", "the value is flattened", formula="sin(x)")(lambda: lambda x: symgrad.sin(x).reshape(-1))
wrong("too few NumPy gradients", "structure", "one gradient for two arguments", formula="a*b", pullback=lambda g, a, b: (g * b,), shapes=((3,), (3,)),
      elementwise=True)(lambda: lambda a, b: np.multiply(a, b))


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
wrong("no error", "errors", "negative arguments are declared an error, and give NaN", formula="sqrt(x)", domain="positive",
      errors=(((np.array([-1.0]),), ValueError),))(lambda: lambda x: symgrad.sqrt(x))
wrong("another error", "errors", "IndexError, where ValueError is declared", shapes=((4,),), formula=lambda xp, x: x * x,
      errors=(((np.array([1.0]),), ValueError, "four"),))(lambda: lambda x: x * x + 0 * x[3])
wrong("another message", "errors", "the message does not say what is declared", formula="log(x)", domain="positive",
      errors=(((np.array([-1.0]),), ValueError, "positive"),))(lambda: _checked_log)


def _checked_log(x):
    if x.numel() and (x <= 0).any():
        raise ValueError("bad value")
    return symgrad.log(x)
