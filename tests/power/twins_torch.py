"""The corpus in torch: ops stated as rules are built from them, the others are written again. What is not here torch cannot say."""

import numpy as np
import torch
from torch.autograd import Function
from torch.autograd.function import once_differentiable

from tests.power.power_entries import BUILD, Entry, Rules

__all__ = ["MAKERS", "torch_twin"]


def built(rules: Rules):
    """The rules as a `Function` of torch."""
    class Twin(Function):
        @staticmethod
        def forward(ctx, *xs):
            y = rules.forward(torch, *xs)
            ctx.save_for_backward(*xs, y)
            return y

        @staticmethod
        def backward(ctx, g):
            *xs, y = ctx.saved_tensors
            if rules.pullback is not None:
                return rules.pullback(torch, g, y, *xs)
            return tuple(None if p is None else g * p(torch, y, *xs) for p in rules.partials)

    return Twin.apply


BUILD["torch"] = built


def function(forward, backward, tangent=None):
    """A `Function` of one or two arguments from a forward and a backward `(g, *xs)`, with a pushforward where there is one."""
    class Twin(Function):
        @staticmethod
        def forward(*xs):
            return forward(*xs)

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.save_for_backward(*inputs)
            ctx.save_for_forward(*inputs)

        @staticmethod
        def backward(ctx, g):
            return backward(g, *ctx.saved_tensors)

    if tangent is not None:
        Twin.jvp = staticmethod(lambda ctx, *ts: tangent(*ts, *ctx.saved_tensors))
    return Twin.apply


def of_sine(backward):
    return lambda: function(torch.sin, backward)


def first_eight(x):
    y = torch.sin(x)
    y.reshape(-1)[8:] = 0
    return y


def repeated(g, x):
    out = torch.zeros_like(x)
    out[[0, 2, 2]] = g
    return out


def from_the_left(a, b):
    return a * b if a.ndim == b.ndim or 0 in (a.ndim, b.ndim) else a + b


def once():
    class Once(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x.sinh()

        @staticmethod
        @once_differentiable
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return g * x.cosh()

    return Once.apply


def hidden():
    class Hidden(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            ctx.inner = x.sin().exp()
            return ctx.inner.clone()

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return g * ctx.inner * x.cos()

    return Hidden.apply


def stale():
    first = {}

    class Stale(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.point = first.setdefault(x.shape, x.detach().clone())
            return x.sin()

        @staticmethod
        def backward(ctx, g):
            return g * ctx.point.cos()

    return Stale.apply


def one_buffer():
    buffers = {}

    class Sine(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return buffers.setdefault(x.shape, torch.empty_like(x)).copy_(x.sin()).detach()

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return g * x.cos()

    return Sine.apply


def one_gradient_buffer():
    buffers = {}

    def backward(g, a, b):
        if torch.is_grad_enabled():
            return g * b, g * a
        return buffers.setdefault(a.shape, torch.empty_like(a)).copy_(g * b), g * a

    return function(torch.mul, backward)


def written(x, values):
    """The tensor's memory, overwritten behind its back."""
    x.data.copy_(values)
    return values


def every_third():
    calls = []

    def sine(x):
        calls.append(None)
        return torch.sin(x) + (1e-3 if len(calls) % 3 == 0 else 0.0)

    return sine


def remembers():
    last = [0.0]

    def cosine(x):
        y = torch.cos(x) + 1e-3 * last[0]
        last[0] = float(x.detach().mean())
        return y

    return cosine


def cache_by_shape():
    cache = {}
    return lambda x: cache.setdefault(x.shape, torch.sin(x.detach())) + 0 * x


def noisy():
    rng = np.random.default_rng(0)
    return lambda x: torch.exp(-x) * (1 + 1e-7 * rng.standard_normal())


def noisy_gradient():
    rng = np.random.default_rng(0)
    return function(torch.sin, lambda g, x: g * x.cos() * (1 + 1e-12 * rng.standard_normal()))


def wears_out():
    calls = []

    def backward(g, x):
        calls.append(None)
        return g * x.cos() * (1 if len(calls) <= 10 else 0)

    return function(torch.sin, backward)


def memory_order(x):
    return torch.as_strided(x, x.shape, torch.empty(x.shape).stride())


def narrow(x, dtype):
    return torch.sin(x.to(dtype)).to(x.dtype)


def memoised():
    cache = {}

    def sine(x):
        cache.setdefault(x.detach().numpy().tobytes(), None)
        return torch.sin(x)

    return sine


MAKERS = {
    # values and shapes
    "first eight only": lambda: function(first_eight, lambda g, x: g * x.cos()),
    "integer buffer": lambda: function(lambda x: (0.75 * x).long().to(x.dtype), lambda g, x: 0.75 * g),
    "empty becomes one": lambda: lambda x: torch.sin(x) if x.numel() else torch.zeros(1, dtype=x.dtype),
    "empty raises": lambda: lambda x: (torch.ravel(x)[0], x * torch.exp(-x))[1],
    "largest of empty": lambda: lambda x: torch.relu(x) if torch.amax(x.detach()).item() > 0 else x * 0,
    "single number becomes a vector": lambda: lambda x: torch.cos(x.reshape(1) if x.ndim == 0 else x),
    "single number raises": lambda: lambda x: torch.cat([torch.sin(x[:1]), torch.sin(x[1:])]),
    # modes
    "pushforward wrong": lambda: function(torch.sin, lambda g, x: g * x.cos(), lambda t, x: 2 * t * x.cos()),
    "pullback wrong": lambda: function(torch.tanh, lambda g, x: g / x.cosh() ** 2 * (1 + 1e-6), lambda t, x: t / x.cosh() ** 2),
    "pushforward not linear": lambda: function(torch.exp, lambda g, x: g * x.exp(), lambda t, x: t.abs() * x.exp()),
    "pushforward of one": lambda: function(torch.mul, lambda g, a, b: (g * b, g * a), lambda s, t, a, b: s * b),
    "custom_vjp wrong": of_sine(lambda g, x: -g * x.sin()),
    "custom_jvp wrong": lambda: function(torch.sin, lambda g, x: g * x.cos(), lambda t, x: t * torch.where(x < -1, 2.0, 1.0) * x.cos()),
    "NumPy gradient wrong": lambda: function(lambda x: torch.exp(-x * x), lambda g, x: -2 * g * torch.exp(-x * x)),
    # orders
    "once differentiable": once,
    "backward in NumPy": lambda: function(lambda x: x * x * x, lambda g, x: torch.from_numpy(g.detach().numpy() * 3 * x.detach().numpy() ** 2)),
    "hidden intermediate detached": hidden,
    # arrays and broadcasting
    "repeated index": lambda: function(lambda x: x[[0, 2, 2]], repeated),
    "argument left out of the sum": lambda: lambda x: torch.sum(x[:, :-1] * x[:, :-1], dim=1),
    "means where it should sum": lambda: function(torch.add, lambda g, a, b: (g.clone(), g.clone())),
    "refuses to broadcast": lambda: lambda a, b: a - b,
    "broadcast from the left": lambda: from_the_left,
    "number by matrix": lambda: lambda a, b: a * b,
    "batch mixed": of_sine(lambda g, x: g * x.cos()),
    "batch in the wrong place": lambda: function(torch.sub, lambda g, a, b: (g.clone(), -g)),
    # memory
    "returns its input": lambda: lambda x: x,
    "value on the input's memory": lambda: function(lambda x: x.view_as(x), lambda g, x: g.clone()),
    "cotangent given to both": lambda: function(torch.add, lambda g, a, b: (g, g)),
    "one buffer for the values": one_buffer,
    "one buffer for the gradients": one_gradient_buffer,
    "gradient is the saved input": lambda: function(torch.mul, lambda g, a, b: (b, a) if bool((g == 1).all()) else (g * b, g * a)),
    "clips its input in place": lambda: function(lambda x: written(x, x.clamp(-3, 3)).clone(), lambda g, x: g * (x.abs() < 3)),
    "cotangent scaled in place": lambda: function(lambda x: 2 * x, lambda g, x: written(g, 2 * g).clone()),
    "sorts its input": lambda: function(lambda x: (written(x, x.sort()[0]) ** 2).sum(), lambda g, x: 2 * g * x),
    "saved input overwritten": lambda: function(lambda x: x * x, lambda g,
          x: 2 * g * x if torch.is_grad_enabled() else written(x, 2 * g * x).clone()),
    # dtypes
    "float32 computed in float16": lambda: lambda x: narrow(x, torch.float16) if x.element_size() < 8 else torch.sin(x),
    "rounds through float32": lambda: lambda x: narrow(x, torch.float32),
    "returns float64": lambda: lambda x: torch.exp(-x.to(torch.float64)),
    "returns float32": lambda: lambda x: torch.exp(-x).to(torch.float32),
    "NumPy gradient is float64": lambda: function(lambda x: x * x, lambda g, x: 2.0 * g.to(torch.float64) * x),
    "gradient rounds through float32": of_sine(lambda g, x: g * x.cos().to(torch.float32).to(x.dtype)),
    "gradient rounds through float16": of_sine(lambda g, x: g * (x.cos().to(torch.float16).to(x.dtype) if x.element_size() == 4 else x.cos())),
    "overflow in float16": lambda: lambda x: torch.sqrt(x * x + 1),
    # complex
    "conjugate forgotten": lambda: function(lambda z: z * z, lambda g, z: 2 * g * z),
    "conjugate twice": lambda: function(lambda z: z * z * z, lambda g, z: 3 * g.conj() * (z * z).conj()),
    "real part only": lambda: function(lambda z: z * z, lambda g, z: (2 * g * z.conj()).real.to(z.dtype)),
    "imaginary part negated": lambda: function(torch.exp, lambda g, z: (g * z.exp().conj()).conj()),
    "value conjugated": lambda: function(lambda z: (z * z).conj().resolve_conj(), lambda g, z: 2 * g * z.conj()),
    "half of the gradient of |z|**2": lambda: function(lambda z: (z * z.conj()).real.clone(), lambda g, z: g * z),
    # state
    "stale saved tensor": stale,
    "every third call": every_third,
    "remembers the last input": remembers,
    "cache by shape": cache_by_shape,
    "random": noisy,
    "random gradient, opaque": noisy_gradient,
    "wears out": wears_out,
    # structure
    "None for a gradient": of_sine(lambda g, x: None),
    "detached value": lambda: lambda x: torch.tanh(x).detach(),
    "too many gradients": of_sine(lambda g, x: (g * x.cos(), torch.ones_like(x))),
    "gradient is a number": of_sine(lambda g, x: (g * x.cos()).sum()),
    "value of another shape": lambda: lambda x: torch.sin(x).reshape(-1),
    "too few NumPy gradients": lambda: function(torch.mul, lambda g, a, b: (g * b,)),
    # layouts
    "memory order": lambda: function(lambda x: torch.sin(memory_order(x)), lambda g, x: g * x.cos()),
    "memory order in the gradient": of_sine(lambda g, x: g * memory_order(x).cos()),
    # right ones
    "saved result": lambda: function(torch.exp, lambda g, x: g * x.exp()),
    "memoised": memoised,
    "checkpointed": lambda: lambda x: torch.utils.checkpoint.checkpoint(lambda x: x.sin().exp() * x, x, use_reentrant=False),
    "prod with zeros": lambda: torch.prod,
    "cumprod": lambda: lambda x: torch.cumprod(x, 0),
    "sort": lambda: lambda x: torch.sort(x)[0],
    "largest": lambda: torch.amax,
    "gather": lambda: lambda x: x[[0, 2, 2]],
    "logsumexp over an axis": lambda: lambda x: torch.logsumexp(x, 1),
    "pairwise distances": lambda: lambda x, y: (x[:, None] - y[None, :]) ** 2,
    "identity that copies": lambda: lambda x: x.clone(),
    "root of a cubic": lambda: lambda x: 2 / 3**0.5 * torch.sinh(torch.asinh(1.5 * 3**0.5 * x) / 3),
    "complex exp": lambda: torch.exp,
    "complex square": lambda: lambda z: z * z,
    "complex quotient": lambda: lambda z: z / (9 + z),
    "|z|**2": lambda: lambda z: (z * z.conj()).real,
    "real part": lambda: lambda z: z.real * 1,
    "conjugate": lambda: lambda z: z.conj() * 1,
}


def torch_twin(entry: Entry):
    """The same op in torch, made afresh; None where torch cannot say it."""
    if entry.claims.get("framework") == "torch":
        made = entry.make()
        return getattr(made, "apply", made)
    if entry.rules is not None:
        return built(entry.rules)
    return MAKERS[entry.name]() if entry.name in MAKERS else None
