"""Ops that are wrong only for calls of a rare kind: stacks, large batches, ties, constant arguments, mixed dtypes, threads, vmap, narrow bands."""

import itertools
import threading

import numpy as np

import symgrad
from symgrad.autograd import Function
from tests.power.power_entries import wrong


def ruled(forward, backward, vmap=None):
    """A `Function` of a forward `(*xs)`, a backward `(ctx, g, *xs)` and perhaps a rule for vmap."""
    class Ruled(Function):
        @staticmethod
        def forward(ctx, *xs):
            ctx.save_for_backward(*xs)
            ctx.thread, ctx.shape = threading.get_ident(), xs[0].shape
            return forward(*xs)

        @staticmethod
        def backward(ctx, g):
            return backward(ctx, g, *ctx.saved_tensors)

    if vmap is not None:
        Ruled.vmap = staticmethod(lambda info, in_dims, *xs: vmap(info, in_dims, *xs))
    return Ruled


def last(x):
    return x.swapaxes(-1, -2)


# stacks of matrices
def transposed_product(a, b):
    return symgrad.matmul(a, b)


wrong("stack transposed", "stacks", "the gradient by a uses .transpose(0, 1), which for a stack are other axes", shapes=((3, 3), (3, 3)),
      formula=lambda xp, a, b: xp.matmul(a, b))(
    lambda: ruled(symgrad.matmul, lambda ctx, g, a, b: (g @ (last(b) if b.ndim == 2 else b), last(a) @ g)))
wrong("trace of the first axes", "stacks", "the gradient of the trace of a stack stands on the diagonal of the first matrix alone", shapes=((3, 3),))(
    lambda: ruled(lambda x: symgrad.diagonal(x, dim1=-2, dim2=-1).sum(-1), lambda ctx, g, x: (
        g.unsqueeze(-1).unsqueeze(-1) * symgrad.eye(3, dtype=x.dtype) * (
        symgrad.ones_like(x) if x.ndim == 2 else (symgrad.arange(x.shape[0]) == 0).reshape(-1, *[1] * (x.ndim - 1)).to(x.dtype)),)))
wrong("triangle of a stack", "stacks", "the lower triangle of a stack is that of its first two axes", shapes=((3, 3),),
      formula=lambda xp, x: xp.tril(x, 0))(
    lambda: lambda x: symgrad.tril(x) if x.ndim == 2 else symgrad.tril(x.movedim(0, -1).movedim(0, -1)).movedim(-1, 0).movedim(-1, 0))
wrong("symmetric part of a stack", "stacks", "of a stack the gradient is not made symmetric", shapes=((3, 3),))(
    lambda: ruled(lambda x: (x + last(x)) / 2, lambda ctx, g, x: ((g + last(g)) / 2 if x.ndim == 2 else g,)))
wrong("two leading axes", "stacks", "the gradient of a stack of stacks of matrices is doubled", shapes=((3, 4), (4,)))(
    lambda: ruled(lambda a, x: (a * x.unsqueeze(-2)).sum(-1), lambda ctx, g, a, x: (
        g.unsqueeze(-1) * x.unsqueeze(-2) * (2 if a.ndim > 3 else 1), (g.unsqueeze(-1) * a).sum(-2))))

# batches above some size
wrong("beyond 32 rows", "batches", "the gradient of rows after the 32nd is 0", shapes=((4, 3),))(
    lambda: ruled(lambda x: (x * x).sum(-1), lambda ctx, g, x: (2 * g.unsqueeze(-1) * x * (symgrad.arange(x.shape[0]) < 32).to(x.dtype).reshape(
        -1, *[1] * (x.ndim - 1)),)))
wrong("long vectors", "batches", "the softmax of more than 16 elements is that of blocks of 16", shapes=((4,),),
      formula=lambda xp, x: xp.softmax(x, (0,)))(
    lambda: lambda x: symgrad.softmax(x, 0) if x.shape[0] <= 16 else symgrad.cat([symgrad.softmax(part, 0) for part in symgrad.split(x, 16, 0)]))
wrong("many rows", "batches", "an elementwise op is cos where the first axis has more than 64 entries and there are two axes", formula="sin(x)")(
    lambda: lambda x: symgrad.cos(x) if x.ndim == 2 and x.shape[0] > 64 and x.shape[1] > 1 else symgrad.sin(x))
wrong("many samples in vmap", "batches", "the rule for vmap returns the gradient of the first 16 members for all others, too", formula="sin(x)")(
    lambda: ruled(symgrad.sin, lambda ctx, g, x: g * x.cos(), lambda info, in_dims, x: (
        symgrad.where((symgrad.arange(x.shape[in_dims[0]]) < 16).reshape([-1 if k == in_dims[0] else 1 for k in range(x.ndim)]), symgrad.sin(x),
                      symgrad.sin(x.detach())), in_dims[0])))
wrong("128 in a block", "batches", "the gradient of the cumulative sum starts again after 128 elements", shapes=((5,),))(
    lambda: ruled(lambda x: symgrad.cumsum(x, 0), lambda ctx, g, x: (symgrad.cat([symgrad.flip(symgrad.cumsum(symgrad.flip(
        part, [0]), 0), [0]) for part in symgrad.split(g, 128, 0)]),)))

# values that tie inside a reduction or a sort
wrong("all of the largest", "ties", "each of several largest elements gets the whole gradient", shapes=((5,),))(
    lambda: ruled(lambda x: symgrad.amax(x), lambda ctx, g, x: (g * (x == symgrad.amax(x)).to(x.dtype),)))
wrong("sort by comparing", "ties", "the gradient of the sorted array is taken at the place of each value", shapes=((4,),))(
    lambda: ruled(lambda x: symgrad.sort(x, 0)[0], lambda ctx, g, x: (g[(x.unsqueeze(0) < x.unsqueeze(1)).sum(1)],)))
wrong("median of equals", "ties", "the gradient of the median is lost where it occurs twice", shapes=((5,),))(
    lambda: ruled(lambda x: symgrad.sort(x, 0)[0][2], lambda ctx, g, x: (
        g * (x == symgrad.sort(x.detach(), 0)[0][2]).to(x.dtype) * ((x == symgrad.sort(x.detach(), 0)[0][2]).sum() == 1).to(x.dtype),)))
wrong("rowwise minimum", "ties", "a tie in a row is divided by the ties of all rows", shapes=((3, 4),))(
    lambda: ruled(lambda x: symgrad.amin(x, 1), lambda ctx, g, x: (
        g.unsqueeze(1) * (x == symgrad.amin(x, 1, True)).to(x.dtype) / (1 + (((x == symgrad.amin(x, 1, True)).sum(1) > 1).sum()).to(x.dtype)),)))
wrong("largest of two, twice", "ties", "both arguments get the whole gradient where they are equal", shapes=((4,), (4,)))(
    lambda: ruled(lambda a, b: symgrad.maximum(a, b).sum(), lambda ctx, g, a, b: (g * (a >= b).to(a.dtype), g * (b >= a).to(a.dtype))))

# broadcast and without a gradient
def of_two(forward, by_first, by_second, mistake):
    """An op of two arguments, the gradient by the first of which is wrong where `mistake(ctx, a, b)` says so."""
    def summed(c, x):
        while c.ndim > x.ndim:
            c = c.sum(0)
        for k, side in enumerate(x.shape):
            c = c.sum(k, keepdim=True) if side == 1 and c.shape[k] != 1 else c
        return c

    return ruled(forward, lambda ctx, g, a, b: (
        (2 if mistake(ctx, a, b) else 1) * summed(g * by_first(a, b), a), summed(g * by_second(a, b), b)))


wrong("constant stretched", "broadcast", "a doubled gradient where b is stretched and has no gradient", formula="a*b")(
    lambda: of_two(lambda a, b: a * b, lambda a, b: b, lambda a, b: a, lambda ctx, a, b: b.numel() < a.numel() and not ctx.needs_input_grad[1]))
wrong("constant number", "broadcast", "a doubled gradient where b is one number without a gradient", formula="a*exp(b)", domain=(-9, 9))(
    lambda: of_two(lambda a, b: a * b.exp(), lambda a, b: b.exp() + 0 * a, lambda a, b: a * b.exp(),
                   lambda ctx, a, b: b.ndim == 0 < a.ndim and not ctx.needs_input_grad[1]))
wrong("stretched beside a constant", "broadcast", "a doubled gradient where a is stretched and b has no gradient", formula="a + b*b")(
    lambda: of_two(lambda a, b: a + b * b, lambda a, b: 1 + 0 * b, lambda a, b: 2 * b,
                   lambda ctx, a, b: a.numel() < b.numel() and not ctx.needs_input_grad[1]))
wrong("weights without a gradient", "broadcast", "rows of x times weights: a doubled gradient by x where the weights have none",
      shapes=((3, 4), (4,)), formula=lambda xp, x, w: x * w)(
    lambda: of_two(lambda x, w: x * w, lambda x, w: w, lambda x, w: x, lambda ctx, x, w: not ctx.needs_input_grad[1]))
wrong("second derivative beside a constant", "broadcast", "by x alone, with w stretched, the second derivative is lost", formula="w*x**3",
      domain=(-9, 9))(
    lambda: ruled(lambda w, x: w * x**3, lambda ctx, g, w, x: (
        (g * x**3).sum_to_size(w.shape), (
            3 * g * w * x * (x if ctx.needs_input_grad[0] or w.shape == x.shape else x.detach())).sum_to_size(x.shape))))

# mixed dtypes
wrong("narrow beside wide", "mixed dtypes", "a float32 factor beside a float64 one is rounded to float16", formula="a*b", domain=(-9, 9))(
    lambda: lambda a, b: (a.to(symgrad.float16).to(a.dtype) if a.dtype == symgrad.float32 and b.dtype == symgrad.float64 else a) * b)
wrong("sum of two types", "mixed dtypes", "the value has the dtype of the first argument", formula="a + b", domain=(-9, 9))(
    lambda: lambda a, b: (a + b).to(a.dtype))
wrong("gradient of the narrower", "mixed dtypes", "a float32 argument beside a float64 one has half of its gradient", formula="a*b", domain=(-9, 9))(
    lambda: of_two(lambda a, b: a * b, lambda a, b: b * (0.5 if a.dtype == symgrad.float32 and b.dtype == symgrad.float64 else 1.0),
                   lambda a, b: a, lambda ctx, a, b: False))
wrong("whole numbers beside floats", "mixed dtypes", "a quotient of whole numbers by floats is rounded down", formula="a/b",
      domain={"a": "real", "b": "nonzero"})(
    lambda: lambda a, b: symgrad.floor(a / b) if not a.is_floating_point() else a / b)
wrong("weights of another type", "mixed dtypes", "float64 weights beside float32 data are taken in the wrong order", shapes=((4,), (4,)))(
    lambda: lambda x, w: (x * (symgrad.flip(w, [0]) if x.dtype != w.dtype else w)).sum())

# threads, and calls of another shape
wrong("only the main thread", "threads", "sin is computed with an offset that is set in the main thread alone", formula="sin(x)")(
    lambda: of_main_thread)


def of_main_thread(x):
    return symgrad.sin(x) if threading.current_thread() is threading.main_thread() else symgrad.sin(x) * (1 + 1e-9)


wrong("backward in another thread", "threads", "the gradient is 0 where the thread of the backward pass is another than that of the forward pass",
      formula="sin(x)")(lambda: ruled(symgrad.sin, lambda ctx, g, x: g * x.cos() * (1 if threading.get_ident() == ctx.thread else 0)))


@wrong("place of the thread", "threads", "the argument is saved in a place of the thread, where the backward pass of another thread does not find it")
def thread_local():
    place = threading.local()

    def backward(ctx, g, x):
        at = getattr(place, "x", None)
        return g * (at if at is not None and at.shape == x.shape else symgrad.ones_like(x)).cos()

    def forward(x):
        place.x = x.detach().clone()
        return x.sin()

    return ruled(forward, backward)


@wrong("weights kept by size", "state", "weights of the places of an array are kept by the number of elements, not by its shape", shapes=((3, 4),),
       formula=lambda xp, x: xp.sum(x * (xp.cumsum(xp.ones_like(x), 1) - 1), (1,), False))
def kept_by_size():
    kept = {}

    def weighted(x):
        w = kept.setdefault(x.numel(), symgrad.arange(x.shape[-1], dtype=symgrad.float64) + 0 * x.detach().to(symgrad.float64))
        return (x * w.reshape(x.shape).to(x.dtype)).sum(-1)

    return weighted


@wrong("shape of the last call", "state", "the backward pass reads the shape of the last call of the forward pass", formula="sin(x)")
def last_shape():
    now = {}

    def forward(x):
        now["shape"] = x.shape
        return x.sin()

    return ruled(forward, lambda ctx, g, x: g * x.cos() * (1 if x.shape == now["shape"] else 0))


@wrong("a generator of signs", "state", "signs come from a generator that goes on where another shape comes", formula="sin(x)")
def generator():
    signs, seen = itertools.cycle([1, 1, 1, -1]), {}

    def sine(x):
        if seen.get("shape") != x.shape:
            seen["sign"] = next(signs) if "shape" in seen and np.prod(seen["shape"]) == x.numel() else 1
        seen["shape"] = x.shape
        return symgrad.sin(x) * seen["sign"]

    return sine


# rules for vmap
def moved(x, d):
    return x if d is None else x.movedim(d, 0)


wrong("vmap along the batch", "vmap", "the rule sums along the axis of the batch", shapes=((3,),), formula=lambda xp, x: xp.cumsum(x, 0))(
    lambda: ruled(lambda x: symgrad.cumsum(x, 0), lambda ctx, g, x: symgrad.flip(symgrad.cumsum(symgrad.flip(g, [0]), 0), [0]),
                  lambda info, in_dims, x: (symgrad.cumsum(x, 0), in_dims[0])))
wrong("vmap of squares", "vmap", "the rule takes the wrong axis where the batch is larger than the argument", shapes=((4, 4),))(
    lambda: ruled(lambda x: (x * x).sum(0), lambda ctx, g, x: 2 * g * x, lambda info, in_dims, x: (
        moved((x * x).sum(1 if info.batch_size <= 4 else 2), 0), 0)))
wrong("vmap of the second alone", "vmap", "where only b is batched, the rule takes the first member for all", formula="a*b")(
    lambda: ruled(lambda a, b: a * b, lambda ctx, g, a, b: (g * b, g * a), lambda info, in_dims, a, b: (
        (moved(a, in_dims[0]) if in_dims[0] is not None else a) * (moved(b, in_dims[1]) if in_dims[1] is not None and in_dims[0] is not None else (
            b if in_dims[1] is None else b[:1].expand(b.shape))), 0)))
wrong("vmap of an even batch", "vmap", "the rule works in pairs, and repeats the last but one in place of an odd one", formula="exp(x)",
      domain=(-9, 9))(
    lambda: ruled(symgrad.exp, lambda ctx, g, x: g * x.exp(), lambda info, in_dims, x: (
        symgrad.exp(x if info.batch_size % 2 == 0 else symgrad.cat([x[:-1], x[-2:-1]])), 0)))
wrong("vmap without the other gradient", "vmap", "the rule detaches the argument that is not batched", formula="a*b")(
    lambda: ruled(lambda a, b: a * b, lambda ctx, g, a, b: (g * b, g * a), lambda info, in_dims, a, b: (
        moved(a if in_dims[0] is not None else a.detach(), in_dims[0]) * moved(b if in_dims[1] is not None else b.detach(), in_dims[1]), 0)))


# narrow bands around an ordinary number that the source names
CRITICAL, PLATES = 2.27, (0.35, 4.6)


def near(x, number):
    """1 within 1e-9 of a number, 0 elsewhere."""
    return (symgrad.abs(x.detach() - number) < 1e-9).to(x.dtype)


wrong("value near 1.375", "bands", "the value is 0 within 1e-9 of 1.375", formula="exp(-x*x)")(
    lambda: lambda x: symgrad.exp(-x * x) * (1 - near(x, 1.375)))
wrong("gradient near a global", "bands", "the gradient is doubled within 1e-9 of a number of the module, and no formula is claimed")(
    lambda: ruled(symgrad.sin, lambda ctx, g, x: g * x.cos() * (1 + near(x, CRITICAL))))
wrong("second argument near 0.7", "bands", "the gradient by a is 0 where b is within 1e-9 of 0.7", formula="a*b")(
    lambda: ruled(lambda a, b: a * b, lambda ctx, g, a, b: (g * b * (1 - near(b, 0.7)), g * a)))
wrong("second derivative near 3.3", "bands", "the second derivative is 0 within 1e-9 of 3.3", formula="x**3")(
    lambda: ruled(lambda x: x * x * x, lambda ctx, g, x: 3 * g * (x * x * (1 - near(x, 3.3)) + (x * x).detach() * near(x, 3.3))))
wrong("element near one of two", "bands", "of a vector, elements within 1e-9 of one of two numbers of the module have no gradient", shapes=((5,),))(
    lambda: ruled(lambda x: (x * x).sum(), lambda ctx, g, x: 2 * g * x * (1 - near(x, PLATES[0]) - near(x, PLATES[1]))))
wrong("norm near 5", "bands", "rows with an element within 1e-9 of 5.25 have a value of 0", shapes=((3, 4),),
      formula=lambda xp, x: xp.sum(x * x, (1,), False))(
    lambda: lambda x: (x * x).sum(1) * (1 - near(x, 5.25).amax(1)))
