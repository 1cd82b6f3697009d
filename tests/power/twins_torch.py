"""The corpus in torch: what a library makes or rules state is made from that, and what is made with NumPy or with names of symgrad is written again.

What is none of these torch cannot say.
"""

import torch

from tests.power.power_entries import Entry, ruled, sine


def of_tangent(forward, backward, tangent):
    """A `Function` of a forward `(*xs)`, a backward `(g, *xs)` and a pushforward `(*tangents, *xs)`."""
    class Twin(ruled(torch, forward, lambda ctx, g, *xs: backward(g, *xs))):
        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.save_for_backward(*inputs)
            ctx.save_for_forward(*inputs)

        @staticmethod
        def jvp(ctx, *tangents):
            return tangent(*tangents, *ctx.saved_tensors)

    return Twin


def stated(forward, backward):
    return lambda: ruled(torch, forward, lambda ctx, g, *xs: backward(g, *xs))


def written(x, values):
    """The tensor's memory, overwritten behind its back."""
    x.data.copy_(values)
    return values


def one_buffer():
    buffers = {}
    return ruled(torch, lambda x: buffers.setdefault(x.shape, torch.empty_like(x)).copy_(x.sin()).detach(), lambda ctx, g, x: g * x.cos())


def memory_order(x):
    return torch.as_strided(x, x.shape, torch.empty(x.shape).stride())


MAKERS = {
    "gradient of a single number": stated(lambda x: x * x, lambda g, x: (2 * g * x).reshape(-1) if g.ndim == 0 else 2 * g * x),
    "pushforward wrong": lambda: of_tangent(torch.sin, lambda g, x: g * x.cos(), lambda t, x: 2 * t * x.cos()),
    "pullback wrong": lambda: of_tangent(torch.tanh, lambda g, x: g / x.cosh() ** 2 * (1 + 1e-6), lambda t, x: t / x.cosh() ** 2),
    "pushforward not linear": lambda: of_tangent(torch.exp, lambda g, x: g * x.exp(), lambda t, x: t.abs() * x.exp()),
    "pushforward of one": lambda: of_tangent(torch.mul, lambda g, a, b: (g * b, g * a), lambda s, t, a, b: s * b),
    "custom_vjp wrong": lambda: sine(torch, lambda g, x: -g * x.sin()),
    "custom_jvp wrong": lambda: of_tangent(torch.sin, lambda g, x: g * x.cos(), lambda t, x: t * torch.where(x < -1, 2.0, 1.0) * x.cos()),
    "NumPy gradient wrong": stated(lambda x: torch.exp(-x * x), lambda g, x: -2 * g * torch.exp(-x * x)),
    "value on the input's memory": stated(lambda x: x.view_as(x), lambda g, x: g.clone()),
    "cotangent given to both": stated(torch.add, lambda g, a, b: (g, g)),
    "one buffer for the values": one_buffer,
    "gradient is the saved input": stated(torch.mul, lambda g, a, b: (b, a) if bool((g == 1).all()) else (g * b, g * a)),
    "clips its input in place": stated(lambda x: written(x, x.clamp(-3, 3)).clone(), lambda g, x: g * (x.abs() < 3)),
    "cotangent scaled in place": stated(lambda x: 2 * x, lambda g, x: written(g, 2 * g).clone()),
    "sorts its input": stated(lambda x: (written(x, x.sort()[0]) ** 2).sum(), lambda g, x: 2 * g * x),
    "NumPy gradient is float64": stated(lambda x: x * x, lambda g, x: 2.0 * g.to(torch.float64) * x),
    "too few NumPy gradients": stated(torch.mul, lambda g, a, b: (g * b,)),
    "memory order": stated(lambda x: torch.sin(memory_order(x)), lambda g, x: g * x.cos()),
    "memory order in the gradient": lambda: sine(torch, lambda g, x: g * memory_order(x).cos()),
    "checkpointed": lambda: lambda x: torch.utils.checkpoint.checkpoint(lambda x: x.sin().exp() * x, x, use_reentrant=False),
}


def torch_twin(entry: Entry):
    """The same op in torch, made afresh; None where torch cannot say it."""
    if entry.rules is not None:
        return entry.rules.made(torch)
    if entry.claims.get("framework") == "torch":
        made = entry.make()
    elif entry.library is not None:
        made = entry.library(torch)
    elif entry.name in MAKERS:
        made = MAKERS[entry.name]()
    else:
        return None
    return getattr(made, "apply", made)
