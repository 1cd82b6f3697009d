"""Ops of torch that are wrong for calls of a rare kind, or right where a check may accuse them; `symgrad.testing` attacks them as ops of torch."""

import itertools
import threading

from tests.power.power_entries import right, wrong

try:
    import torch
    import torch.nn.functional as F

    torch.set_num_threads(1)  # the arrays are small
except ImportError:  # then they stand in the table, and are not attacked
    pass

VECTOR, WIDE, SQUARE, PAIR = ((5,),), ((3, 4),), ((3, 3),), ((3,), (3,))
SINGLE = {"dtypes": ("float32",)}


def of_torch(enter, name, category, says, make, **claims):
    enter(f"{name}, torch", category, says, framework="torch", **claims)(make)


def ruled(forward, backward, vmap=None):
    """A `Function` of a forward `(*xs)`, a backward `(ctx, g, *xs)` and perhaps a rule for vmap."""
    class Ruled(torch.autograd.Function):
        @staticmethod
        def forward(*xs):
            return forward(*xs)

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.save_for_backward(*inputs)
            ctx.thread = threading.get_ident()

        @staticmethod
        def backward(ctx, g):
            return backward(ctx, g, *ctx.saved_tensors)

    if vmap is not None:
        Ruled.vmap = staticmethod(lambda info, in_dims, *xs: vmap(info, in_dims, *xs))
    return Ruled


def stated(name, category, says, *rules, **claims):
    of_torch(wrong, name, category, says, lambda: ruled(*rules), **claims)


def plain(name, category, says, function, **claims):
    of_torch(wrong, name, category, says, lambda: function, **claims)


# stacks of matrices
stated("stack transposed", "stacks", "the gradient by a does not transpose b of a stack", lambda a, b: a @ b, lambda ctx, g, a, b: (
    g @ (b.mT if b.ndim == 2 else b), a.mT @ g), shapes=(*SQUARE, *SQUARE), formula=lambda xp, a, b: xp.matmul(a, b))
stated("symmetric part of a stack", "stacks", "of a stack the gradient is not made symmetric", lambda x: (x + x.mT) / 2, lambda ctx, g, x: (
    (g + g.mT) / 2 if x.ndim == 2 else g), shapes=SQUARE)
stated("trace of the first axes", "stacks", "the gradient stands on the diagonal of the first matrix alone",
       lambda x: torch.diagonal(x, dim1=-2, dim2=-1).sum(-1), lambda ctx, g, x: g[..., None, None] * torch.eye(3, dtype=x.dtype) * (
           1 if x.ndim == 2 else (torch.arange(len(x)) == 0).reshape(-1, *[1] * (x.ndim - 1)).to(x.dtype)), shapes=SQUARE)
plain("other triangle of a stack", "stacks", "of a stack the upper triangle", lambda x: torch.tril(x) if x.ndim == 2 else torch.triu(x),
      shapes=SQUARE, formula=lambda xp, x: xp.tril(x, 0))
stated("two leading axes", "stacks", "the gradient of a stack of stacks of matrices is doubled", lambda a, x: (a * x[..., None, :]).sum(-1),
       lambda ctx, g, a, x: (g[..., None] * x[..., None, :] * (2 if a.ndim > 3 else 1), (g[..., None] * a).sum(-2)), shapes=((3, 4), (4,)))

# batches above some size
stated("beyond 32 rows", "batches", "the gradient of rows after the 32nd is 0", lambda x: (x * x).sum(-1), lambda ctx, g, x: (
    2 * g[..., None] * x * (torch.arange(len(x)) < 32).to(x.dtype).reshape(-1, *[1] * (x.ndim - 1))), shapes=((4, 3),))
plain("long vectors", "batches", "the softmax of more than 16 elements is that of blocks of 16", lambda x: torch.softmax(x, 0) if len(
    x) <= 16 else torch.cat([torch.softmax(part, 0) for part in x.split(16)]), shapes=((4,),), formula=lambda xp, x: xp.softmax(x, (0,)))
plain("many rows", "batches", "cos for sin where the first of two axes has more than 64 entries", lambda x: torch.cos(
    x) if x.ndim == 2 and len(x) > 64 and x.shape[1] > 1 else torch.sin(x), formula="sin(x)")
stated("128 in a block", "batches", "the gradient of the cumulative sum starts again after 128 elements", lambda x: x.cumsum(0), lambda ctx, g, x: (
    torch.cat([part.flip(0).cumsum(0).flip(0) for part in g.split(128)])), shapes=VECTOR)

# values that tie inside a reduction or a sort
stated("all of the largest", "ties", "each of several largest elements gets the whole gradient", lambda x: x.amax(), lambda ctx, g, x: (
    g * (x == x.amax()).to(x.dtype)), shapes=VECTOR)
stated("sort by comparing", "ties", "the gradient of the sorted array is taken at the place of each value", lambda x: x.sort(0)[0],
       lambda ctx, g, x: g[(x[None] < x[:, None]).sum(1)], shapes=((4,),))
stated("median of equals", "ties", "the gradient of the median is lost where it occurs twice", lambda x: x.sort(0)[0][2].clone(), lambda ctx, g, x: (
    g * (x == x.sort(0)[0][2]).to(x.dtype) * ((x == x.sort(0)[0][2]).sum() == 1).to(x.dtype)), shapes=VECTOR)
stated("rowwise minimum", "ties", "a tie in a row is divided by the ties of all rows", lambda x: x.amin(1), lambda ctx, g, x: g[:, None] * (
    x == x.amin(1, True)).to(x.dtype) / (1 + ((x == x.amin(1, True)).sum(1) > 1).sum()), shapes=WIDE)


# broadcast and without a gradient
def of_two(forward, by_first, by_second, mistake):
    """An op of two arguments, whose gradient by the first is doubled where `mistake(ctx, a, b)` says so."""
    return forward, lambda ctx, g, a, b: ((g * by_first(a, b) * (2 if mistake(ctx, a, b) else 1)).sum_to_size(a.shape),
                                          (g * by_second(a, b)).sum_to_size(b.shape))


stated("constant stretched", "broadcast", "a doubled gradient where b is stretched and has no gradient", *of_two(
    lambda a, b: a * b, lambda a, b: b, lambda a, b: a, lambda ctx, a, b: b.numel() < a.numel() and not ctx.needs_input_grad[1]), formula="a*b")
stated("constant number", "broadcast", "a doubled gradient where b is one number without a gradient", *of_two(
    lambda a, b: a * b.exp(), lambda a, b: b.exp() + 0 * a, lambda a, b: a * b.exp(),
    lambda ctx, a, b: b.ndim == 0 < a.ndim and not ctx.needs_input_grad[1]), formula="a*exp(b)", domain=(-9, 9))
stated("stretched beside a constant", "broadcast", "a doubled gradient where a is stretched and b has no gradient", *of_two(
    lambda a, b: a + b * b, lambda a, b: 1 + 0 * b, lambda a, b: 2 * b,
    lambda ctx, a, b: a.numel() < b.numel() and not ctx.needs_input_grad[1]), formula="a + b*b")
stated("weights without a gradient", "broadcast", "a doubled gradient by the rows where the weights have none", *of_two(
    lambda x, w: x * w, lambda x, w: w, lambda x, w: x, lambda ctx, x, w: not ctx.needs_input_grad[1]), shapes=((3, 4), (4,)),
    formula=lambda xp, x, w: x * w)

# mixed dtypes
plain("narrow beside wide", "mixed dtypes", "a float32 factor beside a float64 one is rounded to float16", lambda a, b: (
    a.half().float() if a.dtype == torch.float32 and b.dtype == torch.float64 else a) * b, formula="a*b", domain=(-9, 9))
plain("sum of two types", "mixed dtypes", "the value has the dtype of the first argument", lambda a, b: (a + b).to(a.dtype), formula="a + b",
      domain=(-9, 9))
stated("gradient of the narrower", "mixed dtypes", "a float32 argument beside a float64 one has half of its gradient", *of_two(
    lambda a, b: a * b, lambda a, b: b * (0.5 if a.dtype == torch.float32 and b.dtype == torch.float64 else 1.0), lambda a, b: a,
    lambda ctx, a, b: False), formula="a*b", domain=(-9, 9))
plain("weights of another type", "mixed dtypes", "float64 weights beside float32 data are taken in the wrong order", lambda x, w: (
    x * (w.flip(0) if x.dtype != w.dtype else w)).sum(), shapes=((4,), (4,)))

# threads, and calls of another shape
plain("only the main thread", "threads", "an offset is set in the main thread alone", lambda x: torch.sin(x) * (
    1 if threading.current_thread() is threading.main_thread() else 1 + 1e-9), formula="sin(x)")
stated("backward in another thread", "threads", "the gradient is 0 where the backward pass has another thread than the call", lambda x: x.sin(),
       lambda ctx, g, x: g * x.cos() * (threading.get_ident() == ctx.thread), formula="sin(x)")


def thread_local():
    place = threading.local()

    def forward(x):
        place.x = x.detach().clone()
        return x.sin()

    def backward(ctx, g, x):
        at = getattr(place, "x", None)
        return g * (at if at is not None and at.shape == x.shape else torch.ones_like(x)).cos()

    return ruled(forward, backward)


def of_one_buffer():
    kept = {}

    def forward(x):
        kept["x"] = x.detach().clone() if kept.get("x") is None or kept["x"].shape != x.shape else kept["x"].copy_(x.detach())
        kept["y"] = kept["x"].sin()
        return kept["y"].clone() if threading.current_thread() is threading.main_thread() else kept["x"].sin()

    return ruled(forward, lambda ctx, g, x: g * kept["x"].cos() if kept["x"].shape == x.shape else g * x.cos())


of_torch(wrong, "place of the thread", "threads", "the argument is saved in a place of the thread", thread_local)
of_torch(wrong, "buffer of the last call", "threads", "the backward pass reads the argument of the last call of its shape", of_one_buffer,
         formula="sin(x)")


def last_shape():
    now = {}

    def forward(x):
        now["shape"] = x.shape
        return x.sin()

    return ruled(forward, lambda ctx, g, x: g * x.cos() * (x.shape == now["shape"]))


def kept_by_size():
    kept = {}

    def weighted(x):
        w = kept.setdefault(x.numel(), torch.arange(x.shape[-1], dtype=torch.float64) + torch.zeros(x.shape, dtype=torch.float64))
        return (x * w.reshape(x.shape).to(x.dtype)).sum(-1)

    return weighted


def generator():
    signs, seen = itertools.cycle([1, 1, 1, -1]), {}

    def sine(x):
        if seen.get("shape") != x.shape:
            seen["sign"] = next(signs) if seen.get("size") == x.numel() else 1
        seen.update(shape=x.shape, size=x.numel())
        return torch.sin(x) * seen["sign"]

    return sine


def rank_of_the_first():
    kept = {}
    return lambda x: torch.sin(x) * (1 if x.ndim == kept.setdefault("rank", x.ndim) else 2)


of_torch(wrong, "shape of the last call", "state", "the backward pass reads the shape of the last call", last_shape, formula="sin(x)")
of_torch(wrong, "weights kept by size", "state", "weights are kept by the number of elements, not by the shape", kept_by_size, shapes=WIDE,
         formula=lambda xp, x: xp.sum(x * (xp.cumsum(xp.ones_like(x), 1) - 1), (1,), False))
of_torch(wrong, "a generator of signs", "state", "signs come from a generator that goes on where another shape comes", generator, formula="sin(x)")
of_torch(wrong, "rank of the first call", "state", "arrays of another rank than the first are doubled", rank_of_the_first, formula="sin(x)")


# rules for vmap
def moved(x, d):
    return x if d is None else x.movedim(d, 0)


stated("vmap along the batch", "vmap", "the rule sums along the axis of the batch", lambda x: x.cumsum(0),
       lambda ctx, g, x: g.flip(0).cumsum(0).flip(0),
       lambda info, in_dims, x: (x.cumsum(0), in_dims[0]), shapes=((3,),), formula=lambda xp, x: xp.cumsum(x, 0))
stated("vmap of squares", "vmap", "the rule takes the wrong axis of large batches", lambda x: (x * x).sum(0), lambda ctx, g, x: 2 * g * x,
       lambda info, in_dims, x: ((moved(x, in_dims[0]) ** 2).sum(1 if info.batch_size <= 4 else 2), 0), shapes=((4, 4),))
stated("vmap of the second alone", "vmap", "where only b is batched, the rule takes its first member for all", lambda a, b: a * b,
       lambda ctx, g, a, b: (g * b, g * a), lambda info, in_dims, a, b: (moved(a, in_dims[0]) * (
           moved(b, in_dims[1])[:1].expand(moved(b, in_dims[1]).shape) if in_dims[0] is None else moved(b, in_dims[1])), 0), formula="a*b")
stated("vmap of an even batch", "vmap", "the rule works in pairs, and repeats the last but one in place of an odd one", lambda x: x.exp(),
       lambda ctx, g, x: g * x.exp(), lambda info, in_dims, x: (moved(x if info.batch_size % 2 == 0 else torch.cat(
           [moved(x, in_dims[0])[:-1], moved(x, in_dims[0])[-2:-1]]), in_dims[0] if info.batch_size % 2 == 0 else 0).exp(), 0), formula="exp(x)",
       domain=(-9, 9))

# narrow bands around an ordinary number that the source names
CRITICAL = 2.27


def near(x, number):
    """1 within 1e-9 of a number, 0 elsewhere."""
    return ((x.detach() - number).abs() < 1e-9).to(x.dtype)


plain("value near 1.375", "bands", "the value is 0 within 1e-9 of 1.375", lambda x: torch.exp(-x * x) * (1 - near(x, 1.375)), formula="exp(-x*x)")
stated("gradient near a global", "bands", "the gradient is doubled within 1e-9 of a number of the module; no formula is claimed", lambda x: x.sin(),
       lambda ctx, g, x: g * x.cos() * (1 + near(x, CRITICAL)))
stated("second argument near 0.7", "bands", "the gradient by a is 0 where b is within 1e-9 of 0.7", lambda a, b: a * b, lambda ctx, g, a, b: (
    g * b * (1 - near(b, 0.7)), g * a), formula="a*b")
stated("element near 4.6", "bands", "of a vector, elements within 1e-9 of 4.6 have no gradient", lambda x: (x * x).sum(), lambda ctx, g, x: (
    2 * g * x * (1 - near(x, 4.6))), shapes=VECTOR)


# right ones
def fine(name, category, says, function, **claims):
    of_torch(right, name, category, says, lambda: function, **claims)


def standardised(x):
    return (x - x.mean()) / ((x - x.mean()) ** 2).mean().add(1e-5).sqrt()


fine("Huber loss", "second jumps", "quadratic within 1", lambda x: F.huber_loss(x, torch.zeros_like(x), reduction="none"))
fine("smooth l1 of float32", "second jumps", "quadratic within 1, in float32", lambda x: F.smooth_l1_loss(
    x, torch.zeros_like(x), reduction="none"), **SINGLE)
fine("x times |x|", "second jumps", "the second derivative is 2 sign(x)", lambda x: x * x.abs(), formula="x*abs(x)")
fine("square of relu", "second jumps", "the second derivative is a step", lambda x: torch.relu(x) ** 2)
fine("Tukey's biweight", "second jumps", "constant beyond 2", lambda x: torch.where(x.abs() < 2, 1 - (1 - x * x / 4) ** 3, 1.0), domain=(-9, 9))
fine("torch.softmax", "softmax", "of any size of numbers", lambda x: torch.softmax(x, 0), shapes=VECTOR)
fine("torch.softmax of float32", "softmax", "in float32", lambda x: torch.softmax(x, 0), shapes=VECTOR, **SINGLE)
fine("torch.softmax with its formula", "softmax", "compared with the formula; digits that cancel are claimed", lambda x: torch.softmax(x, 0),
     shapes=VECTOR, formula=lambda xp, x: xp.softmax(x, (0,)), imprecise=True)
fine("log softmax of rows of float32", "softmax", "in float32", lambda x: F.log_softmax(x, 1), shapes=WIDE, **SINGLE)
fine("cross entropy", "softmax", "of three rows", lambda x: F.cross_entropy(x, torch.tensor([1, 0, 2])), shapes=WIDE)
fine("logsumexp", "softmax", "of any size of numbers", lambda x: torch.logsumexp(x, 0), shapes=VECTOR)
fine("cosine similarity", "cancelling", "the gradient has no part along the argument", lambda a, b: F.cosine_similarity(a, b, 0), shapes=PAIR,
     dtypes=("float64", "float32"))  # its eps of 1e-8 is 0 in float16
fine("cosine similarity of float32", "cancelling", "in float32", lambda a, b: F.cosine_similarity(a, b, 0), shapes=PAIR, **SINGLE)
fine("layer norm of float32", "cancelling", "neither mean nor scale matters", lambda x: F.layer_norm(x, (5,)), shapes=VECTOR, **SINGLE)
fine("standardised", "cancelling", "neither mean nor scale matters", standardised, shapes=VECTOR, domain=(-20, 20))
fine("sine and cosine", "cancelling", "sin**2 + cos**2, whose gradient is 0 for exact numbers", lambda x: x.sin() ** 2 + x.cos() ** 2, domain=(-9, 9))
