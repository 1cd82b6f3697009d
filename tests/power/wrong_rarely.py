"""Ops that are wrong only for calls of a rare kind: stacks, large batches, ties, constant arguments, mixed dtypes, threads, vmap, narrow bands.

Most of them are attacked as ops of torch, too.
"""

import itertools
import threading

import symgrad
from tests.power.power_entries import ruled, torch_library, wrong


def only_torch(name, category, says, **claims):
    """Enter, as a decorator, an op that a library makes, as one of torch."""
    return lambda make: wrong(f"{name}, torch", category, says, framework="torch", **claims)(lambda: make(torch_library()))


def rarely(name, category, says, **claims):
    """Enter, as a decorator, an op that a library makes, once as one of symgrad and once as one of torch."""
    def enter(make):
        wrong(name, category, says, **claims)(lambda: make(symgrad))
        only_torch(name, category, says, **claims)(make)

    return enter


def last(x):
    return x.swapaxes(-1, -2)


def among(mask, x):
    """A mask of the first axis, in the dtype of an array and with as many axes."""
    return mask.reshape(-1, *[1] * (x.ndim - 1)).to(x.dtype)


# stacks of matrices
rarely("stack transposed", "stacks", "the gradient by a uses .transpose(0, 1), which for a stack are other axes", shapes=((3, 3), (3, 3)),
       formula=lambda xp, a, b: xp.matmul(a, b))(
    lambda m: ruled(m, m.matmul, lambda ctx, g, a, b: (g @ (last(b) if b.ndim == 2 else b), last(a) @ g)))
rarely("trace of the first axes", "stacks", "the gradient stands on the diagonal of the first matrix alone", shapes=((3, 3),))(
    lambda m: ruled(m, lambda x: m.diagonal(x, dim1=-2, dim2=-1).sum(-1), lambda ctx, g, x: (
        g[..., None, None] * m.eye(3, dtype=x.dtype) * (m.ones_like(x) if x.ndim == 2 else among(m.arange(x.shape[0]) == 0, x)),)))
wrong("triangle of a stack", "stacks", "the lower triangle of a stack is that of its first two axes", shapes=((3, 3),),
      formula=lambda xp, x: xp.tril(x, 0))(
    lambda: lambda x: symgrad.tril(x) if x.ndim == 2 else symgrad.tril(x.movedim(0, -1).movedim(0, -1)).movedim(-1, 0).movedim(-1, 0))
only_torch("other triangle of a stack", "stacks", "of a stack the upper triangle", shapes=((3, 3),), formula=lambda xp, x: xp.tril(x, 0))(
    lambda m: lambda x: m.tril(x) if x.ndim == 2 else m.triu(x))
rarely("symmetric part of a stack", "stacks", "of a stack the gradient is not made symmetric", shapes=((3, 3),))(
    lambda m: ruled(m, lambda x: (x + last(x)) / 2, lambda ctx, g, x: ((g + last(g)) / 2 if x.ndim == 2 else g,)))
rarely("two leading axes", "stacks", "the gradient of a stack of stacks of matrices is doubled", shapes=((3, 4), (4,)))(
    lambda m: ruled(m, lambda a, x: (a * x.unsqueeze(-2)).sum(-1), lambda ctx, g, a, x: (
        g.unsqueeze(-1) * x.unsqueeze(-2) * (2 if a.ndim > 3 else 1), (g.unsqueeze(-1) * a).sum(-2))))

# batches above some size
rarely("beyond 32 rows", "batches", "the gradient of rows after the 32nd is 0", shapes=((4, 3),))(
    lambda m: ruled(m, lambda x: (x * x).sum(-1), lambda ctx, g, x: (2 * g.unsqueeze(-1) * x * among(m.arange(x.shape[0]) < 32, x),)))
rarely("long vectors", "batches", "the softmax of more than 16 elements is that of blocks of 16", shapes=((4,),),
       formula=lambda xp, x: xp.softmax(x, (0,)))(
    lambda m: lambda x: m.softmax(x, 0) if x.shape[0] <= 16 else m.cat([m.softmax(part, 0) for part in m.split(x, 16, 0)]))
rarely("many rows", "batches", "an elementwise op is cos where the first axis has more than 64 entries and there are two axes", formula="sin(x)")(
    lambda m: lambda x: m.cos(x) if x.ndim == 2 and x.shape[0] > 64 and x.shape[1] > 1 else m.sin(x))
wrong("many samples in vmap", "batches", "the rule for vmap returns the gradient of the first 16 members for all others, too", formula="sin(x)")(
    lambda: ruled(symgrad, symgrad.sin, lambda ctx, g, x: g * x.cos(), lambda info, in_dims, x: (
        symgrad.where((symgrad.arange(x.shape[in_dims[0]]) < 16).reshape([-1 if k == in_dims[0] else 1 for k in range(x.ndim)]), symgrad.sin(x),
                      symgrad.sin(x.detach())), in_dims[0])))
rarely("128 in a block", "batches", "the gradient of the cumulative sum starts again after 128 elements", shapes=((5,),))(
    lambda m: ruled(m, lambda x: m.cumsum(x, 0), lambda ctx, g, x: (
        m.cat([m.flip(m.cumsum(m.flip(part, [0]), 0), [0]) for part in m.split(g, 128, 0)]),)))

# values that tie inside a reduction or a sort
rarely("all of the largest", "ties", "each of several largest elements gets the whole gradient", shapes=((5,),))(
    lambda m: ruled(m, lambda x: m.amax(x), lambda ctx, g, x: (g * (x == m.amax(x)).to(x.dtype),)))
rarely("sort by comparing", "ties", "the gradient of the sorted array is taken at the place of each value", shapes=((4,),))(
    lambda m: ruled(m, lambda x: m.sort(x, 0)[0], lambda ctx, g, x: (g[(x.unsqueeze(0) < x.unsqueeze(1)).sum(1)],)))
rarely("median of equals", "ties", "the gradient of the median is lost where it occurs twice", shapes=((5,),))(
    lambda m: ruled(m, lambda x: m.sort(x, 0)[0][2].clone(), lambda ctx, g, x: (
        g * (at := (x == m.sort(x.detach(), 0)[0][2]).to(x.dtype)) * (at.sum() == 1).to(x.dtype),)))
rarely("rowwise minimum", "ties", "a tie in a row is divided by the ties of all rows", shapes=((3, 4),))(
    lambda m: ruled(m, lambda x: m.amin(x, 1), lambda ctx, g, x: (
        g.unsqueeze(1) * (at := (x == m.amin(x, 1, True)).to(x.dtype)) / (1 + (at.sum(1) > 1).sum().to(x.dtype)),)))
wrong("largest of two, twice", "ties", "both arguments get the whole gradient where they are equal", shapes=((4,), (4,)))(
    lambda: ruled(symgrad, lambda a, b: symgrad.maximum(a, b).sum(), lambda ctx, g, a, b: (g * (a >= b).to(a.dtype), g * (b >= a).to(a.dtype))))


# broadcast and without a gradient
def of_two(m, forward, by_first, by_second, mistake):
    """An op of two arguments, the gradient by the first of which is doubled where `mistake(ctx, a, b)` says so."""
    return ruled(m, forward, lambda ctx, g, a, b: (
        ((2 if mistake(ctx, a, b) else 1) * g * by_first(a, b)).sum_to_size(a.shape), (g * by_second(a, b)).sum_to_size(b.shape)))


rarely("constant stretched", "broadcast", "a doubled gradient where b is stretched and has no gradient", formula="a*b")(
    lambda m: of_two(m, lambda a, b: a * b, lambda a, b: b, lambda a, b: a, lambda ctx, a, b: b.numel() < a.numel() and not ctx.needs_input_grad[1]))
rarely("constant number", "broadcast", "a doubled gradient where b is one number without a gradient", formula="a*exp(b)", domain=(-9, 9))(
    lambda m: of_two(m, lambda a, b: a * b.exp(), lambda a, b: b.exp() + 0 * a, lambda a, b: a * b.exp(),
                     lambda ctx, a, b: b.ndim == 0 < a.ndim and not ctx.needs_input_grad[1]))
rarely("stretched beside a constant", "broadcast", "a doubled gradient where a is stretched and b has no gradient", formula="a + b*b")(
    lambda m: of_two(m, lambda a, b: a + b * b, lambda a, b: 1 + 0 * b, lambda a, b: 2 * b,
                     lambda ctx, a, b: a.numel() < b.numel() and not ctx.needs_input_grad[1]))
rarely("weights without a gradient", "broadcast", "rows of x times weights: a doubled gradient by x where the weights have none",
       shapes=((3, 4), (4,)), formula=lambda xp, x, w: x * w)(
    lambda m: of_two(m, lambda x, w: x * w, lambda x, w: w, lambda x, w: x, lambda ctx, x, w: not ctx.needs_input_grad[1]))
wrong("second derivative beside a constant", "broadcast", "by x alone, with w stretched, the second derivative is lost", formula="w*x**3",
      domain=(-9, 9))(
    lambda: ruled(symgrad, lambda w, x: w * x**3, lambda ctx, g, w, x: (
        (g * x**3).sum_to_size(w.shape), (
            3 * g * w * x * (x if ctx.needs_input_grad[0] or w.shape == x.shape else x.detach())).sum_to_size(x.shape))))


# mixed dtypes
def narrower(m, a, b):
    return a.dtype == m.float32 and b.dtype == m.float64


rarely("narrow beside wide", "mixed dtypes", "a float32 factor beside a float64 one is rounded to float16", formula="a*b", domain=(-9, 9))(
    lambda m: lambda a, b: (a.to(m.float16).to(a.dtype) if narrower(m, a, b) else a) * b)
rarely("sum of two types", "mixed dtypes", "the value has the dtype of the first argument", formula="a + b", domain=(-9, 9))(
    lambda m: lambda a, b: (a + b).to(a.dtype))
rarely("gradient of the narrower", "mixed dtypes", "a float32 argument beside a float64 one has half of its gradient", formula="a*b", domain=(-9, 9))(
    lambda m: of_two(m, lambda a, b: a * b, lambda a, b: b * (0.5 if narrower(m, a, b) else 1.0), lambda a, b: a, lambda ctx, a, b: False))
wrong("whole numbers beside floats", "mixed dtypes", "a quotient of whole numbers by floats is rounded down", formula="a/b",
      domain={"a": "real", "b": "nonzero"})(
    lambda: lambda a, b: symgrad.floor(a / b) if not a.is_floating_point() else a / b)
rarely("weights of another type", "mixed dtypes", "float64 weights beside float32 data are taken in the wrong order", shapes=((4,), (4,)))(
    lambda m: lambda x, w: (x * (m.flip(w, [0]) if x.dtype != w.dtype else w)).sum())

# threads, and calls of another shape
rarely("only the main thread", "threads", "sin is computed with an offset that is set in the main thread alone", formula="sin(x)")(
    lambda m: lambda x: m.sin(x) * (1 if threading.current_thread() is threading.main_thread() else 1 + 1e-9))


@rarely("backward in another thread", "threads", "the gradient is 0 where the thread of the backward pass is another than that of the forward pass",
        formula="sin(x)")
def of_one_thread(m):
    class OfOneThread(ruled(m, m.sin, lambda ctx, g, x: g * x.cos() * (1 if threading.get_ident() == ctx.thread else 0))):
        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.save_for_backward(*inputs)
            ctx.thread = threading.get_ident()

    return OfOneThread


@rarely("place of the thread", "threads", "the argument is saved in a place of the thread, which the backward pass of another thread does not find")
def thread_local(m):
    place = threading.local()

    def backward(ctx, g, x):
        at = getattr(place, "x", None)
        return g * (at if at is not None and at.shape == x.shape else m.ones_like(x)).cos()

    def forward(x):
        place.x = x.detach().clone()
        return x.sin()

    return ruled(m, forward, backward)


@only_torch("buffer of the last call", "threads", "the backward pass reads the argument of the last call of its shape", formula="sin(x)")
def of_one_buffer(m):
    kept = {}

    def forward(x):
        kept["x"] = x.detach().clone() if kept.get("x") is None or kept["x"].shape != x.shape else kept["x"].copy_(x.detach())
        kept["y"] = kept["x"].sin()
        return kept["y"].clone() if threading.current_thread() is threading.main_thread() else kept["x"].sin()

    return ruled(m, forward, lambda ctx, g, x: g * kept["x"].cos() if kept["x"].shape == x.shape else g * x.cos())


@rarely("weights kept by size", "state", "weights of the places of an array are kept by the number of elements, not by its shape", shapes=((3, 4),),
        formula=lambda xp, x: xp.sum(x * (xp.cumsum(xp.ones_like(x), 1) - 1), (1,), False))
def kept_by_size(m):
    kept = {}

    def weighted(x):
        w = kept.setdefault(x.numel(), m.arange(x.shape[-1], dtype=m.float64) + 0 * x.detach().to(m.float64))
        return (x * w.reshape(x.shape).to(x.dtype)).sum(-1)

    return weighted


@rarely("shape of the last call", "state", "the backward pass reads the shape of the last call of the forward pass", formula="sin(x)")
def last_shape(m):
    now = {}

    def forward(x):
        now["shape"] = x.shape
        return x.sin()

    return ruled(m, forward, lambda ctx, g, x: g * x.cos() * (1 if x.shape == now["shape"] else 0))


@rarely("a generator of signs", "state", "signs come from a generator that goes on where another shape comes", formula="sin(x)")
def generator(m):
    signs, seen = itertools.cycle([1, 1, 1, -1]), {}

    def sine(x):
        if seen.get("shape") != x.shape:
            seen["sign"] = next(signs) if seen.get("size") == x.numel() else 1
        seen.update(shape=x.shape, size=x.numel())
        return m.sin(x) * seen["sign"]

    return sine


@only_torch("rank of the first call", "state", "arrays of another rank than the first are doubled", formula="sin(x)")
def rank_of_the_first(m):
    kept = {}
    return lambda x: m.sin(x) * (1 if x.ndim == kept.setdefault("rank", x.ndim) else 2)


# rules for vmap
def moved(x, d):
    return x if d is None else x.movedim(d, 0)


def product(m, rule):
    return ruled(m, lambda a, b: a * b, lambda ctx, g, a, b: (g * b, g * a), lambda info, in_dims, a, b: (rule(in_dims, a, b), 0))


rarely("vmap along the batch", "vmap", "the rule sums along the axis of the batch", shapes=((3,),), formula=lambda xp, x: xp.cumsum(x, 0))(
    lambda m: ruled(m, lambda x: m.cumsum(x, 0), lambda ctx, g, x: m.flip(m.cumsum(m.flip(g, [0]), 0), [0]),
                    lambda info, in_dims, x: (m.cumsum(x, 0), in_dims[0])))
rarely("vmap of squares", "vmap", "the rule takes the wrong axis where the batch is larger than the argument", shapes=((4, 4),))(
    lambda m: ruled(m, lambda x: (x * x).sum(0), lambda ctx, g, x: 2 * g * x, lambda info, in_dims, x: (
        (moved(x, in_dims[0]) ** 2).sum(1 if info.batch_size <= 4 else 2), 0)))
rarely("vmap of the second alone", "vmap", "where only b is batched, the rule takes the first member for all", formula="a*b")(
    lambda m: product(m, lambda in_dims, a, b: moved(a, in_dims[0]) * (
        moved(b, in_dims[1])[:1].expand(moved(b, in_dims[1]).shape) if in_dims[0] is None else moved(b, in_dims[1]))))
rarely("vmap of an even batch", "vmap", "the rule works in pairs, and repeats the last but one in place of an odd one", formula="exp(x)",
       domain=(-9, 9))(
    lambda m: ruled(m, m.exp, lambda ctx, g, x: g * x.exp(), lambda info, in_dims, x: (
        m.exp(moved(x, in_dims[0]) if info.batch_size % 2 == 0 else m.cat([moved(x, in_dims[0])[:-1], moved(x, in_dims[0])[-2:-1]])), 0)))
wrong("vmap without the other gradient", "vmap", "the rule detaches the argument that is not batched", formula="a*b")(
    lambda: product(symgrad, lambda in_dims, a, b: moved(a if in_dims[0] is not None else a.detach(), in_dims[0]) * moved(
        b if in_dims[1] is not None else b.detach(), in_dims[1])))


# narrow bands around an ordinary number that the source names
CRITICAL, PLATES = 2.27, (0.35, 4.6)


def near(x, number):
    """1 within 1e-9 of a number, 0 elsewhere."""
    return ((x.detach() - number).abs() < 1e-9).to(x.dtype)


rarely("value near 1.375", "bands", "the value is 0 within 1e-9 of 1.375", formula="exp(-x*x)")(
    lambda m: lambda x: m.exp(-x * x) * (1 - near(x, 1.375)))
rarely("gradient near a global", "bands", "the gradient is doubled within 1e-9 of a number of the module, and no formula is claimed")(
    lambda m: ruled(m, m.sin, lambda ctx, g, x: g * x.cos() * (1 + near(x, CRITICAL))))
rarely("second argument near 0.7", "bands", "the gradient by a is 0 where b is within 1e-9 of 0.7", formula="a*b")(
    lambda m: ruled(m, lambda a, b: a * b, lambda ctx, g, a, b: (g * b * (1 - near(b, 0.7)), g * a)))
wrong("second derivative near 3.3", "bands", "the second derivative is 0 within 1e-9 of 3.3", formula="x**3")(
    lambda: ruled(symgrad, lambda x: x * x * x, lambda ctx, g, x: 3 * g * (x * x * (1 - near(x, 3.3)) + (x * x).detach() * near(x, 3.3))))
wrong("element near one of two", "bands", "of a vector, elements within 1e-9 of one of two numbers of the module have no gradient", shapes=((5,),))(
    lambda: ruled(symgrad, lambda x: (x * x).sum(), lambda ctx, g, x: 2 * g * x * (1 - near(x, PLATES[0]) - near(x, PLATES[1]))))
only_torch("element near 4.6", "bands", "of a vector, elements within 1e-9 of 4.6 have no gradient", shapes=((5,),))(
    lambda m: ruled(m, lambda x: (x * x).sum(), lambda ctx, g, x: 2 * g * x * (1 - near(x, 4.6))))
wrong("norm near 5", "bands", "rows with an element within 1e-9 of 5.25 have a value of 0", shapes=((3, 4),),
      formula=lambda xp, x: xp.sum(x * x, (1,), False))(
    lambda: lambda x: (x * x).sum(1) * (1 - near(x, 5.25).amax(1)))
