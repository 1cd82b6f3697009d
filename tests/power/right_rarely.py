"""Ops that are right and that a check may accuse: second derivatives that jump, softmax and its kin, gradients whose terms cancel, rare calls."""

import threading

import symgrad
from tests.power.power_entries import right, ruled, torch_library

VECTOR, WIDE, SINGLE = ((5,),), ((3, 4),), {"dtypes": ("float32",)}


def plain(name, category, says, function, **claims):
    right(name, category, says, **claims)(lambda: function)


def of_torch(name, category, says, make, **claims):
    """Enter a function that torch makes."""
    right(f"{name}, torch", category, says, framework="torch", **claims)(lambda: make(torch_library()))


def both(name, category, says, make, **claims):
    """Enter a function that a library makes, once as one of symgrad and once as one of torch."""
    right(name, category, says, **claims)(lambda: make(symgrad))
    of_torch(name, category, says, make, **claims)


def layer_norm(x):
    centred = x - x.mean()
    return centred / ((centred * centred).mean() + 1e-5).sqrt()


# second derivatives that jump
plain("pseudo Huber by pieces", "second jumps", "quadratic within 0.3, linear beyond", lambda x: symgrad.where(
    symgrad.abs(x) < 0.3, x * x / 2, 0.3 * (symgrad.abs(x) - 0.15)))
plain("squared hinge", "second jumps", "max(0, 1 - x)**2", lambda x: symgrad.relu(1 - x) ** 2, formula="maximum(1 - x, 0)**2")
both("x times |x|", "second jumps", "the second derivative is 2 sign(x)", lambda m: lambda x: x * m.abs(x), formula="x*abs(x)")
both("square of relu", "second jumps", "the second derivative is a step, and no formula is claimed", lambda m: lambda x: m.relu(x) ** 2)
plain("Huber of the difference", "second jumps", "of two arguments, with kinks at |a - b| = 1", lambda a, b: symgrad.where(
    symgrad.abs(a - b) < 1, (a - b) ** 2 / 2, symgrad.abs(a - b) - 0.5), domain=(-9, 9))
plain("elastic net", "second jumps", "of a vector: squares, and squares beyond 1", lambda x: (x * x).sum() / 2 + (symgrad.relu(x - 1) ** 2).sum(),
      shapes=VECTOR)
plain("smooth l1 of float32", "second jumps", "quadratic within 1, in float32", lambda x: symgrad.where(
    symgrad.abs(x) < 1, x * x / 2, symgrad.abs(x) - 0.5), **SINGLE)
both("Tukey's biweight", "second jumps", "constant beyond 2", lambda m: lambda x: m.where(
    m.abs(x) < 2, 1 - (1 - x * x / 4) ** 3, m.ones_like(x)), domain=(-9, 9))

# the family of softmax
for _suffix, _claims in (("", {}), (" of float32", SINGLE)):
    plain(f"softmax of reals{_suffix}", "softmax", "of any size of numbers", lambda x: symgrad.softmax(x, 0), shapes=VECTOR,
          formula=lambda xp, x: xp.softmax(x, (0,)), **_claims)
    plain(f"log softmax of rows{_suffix}", "softmax", "of any size of numbers", lambda x: symgrad.log_softmax(x, 1), shapes=WIDE,
          formula=lambda xp, x: xp.log_softmax(x, (1,)), **_claims)
    plain(f"softmin{_suffix}", "softmax", "no formula is claimed", lambda x: symgrad.softmax(-x, 0), shapes=VECTOR, **_claims)
    plain(f"logsumexp of reals{_suffix}", "softmax", "of any size of numbers", lambda x: symgrad.logsumexp(x, 0), shapes=VECTOR,
          formula=lambda xp, x: xp.logsumexp(x, (0,), False), **_claims)
    plain(f"cross entropy{_suffix}", "softmax", "of the third class", lambda x: symgrad.logsumexp(x, 0) - x[2], shapes=VECTOR, **_claims)
    plain(f"attention{_suffix}", "softmax", "a softmax of products, times values", lambda q, k, v: symgrad.softmax(q @ k.T, 1) @ v,
          shapes=((2, 3), (4, 3), (4, 2)), domain=(-5, 5), **_claims)


def textbook(x):
    e = symgrad.exp(x - symgrad.amax(x).detach())
    return e / symgrad.sum(e)


plain("softmax by quotient", "softmax", "exp(x - max) over its sum, differentiated as it stands", textbook, shapes=VECTOR, domain=(-30, 30))


right("softmax by the book", "softmax", "y (g - <g, y>), whose digits cancel, as is claimed", shapes=VECTOR,
      formula=lambda xp, x: xp.softmax(x, (0,)), imprecise=True)(
    lambda: ruled(symgrad, textbook, lambda ctx, g, x: textbook(x) * (g - (g * textbook(x)).sum())))

# gradients whose terms cancel, for some cotangents to zero
plain("cosine similarity", "cancelling", "the gradient has no part along the argument", lambda a, b: (a * b).sum() / (
    symgrad.sqrt((a * a).sum()) * symgrad.sqrt((b * b).sum())), shapes=((3,), (3,)), domain=(0.5, 20))
plain("cosine similarity, whole", "cancelling", "by one root, of moderate numbers of both signs", lambda a, b: (a * b).sum() / symgrad.sqrt(
    (a * a).sum() * (b * b).sum()), shapes=((3,), (3,)), domain=(-20, 20), dtypes=("float64", "float32"))
plain("cosine similarity of one number", "cancelling", "is a sign: its gradient is 0", lambda a, b: (a * b).sum() / symgrad.sqrt(
    (a * a).sum() * (b * b).sum()),
      shapes=((1,), (1,)), domain=(0.5, 10))
plain("shares of a sum", "cancelling", "x/sum(x), whose sum is 1", lambda x: x / x.sum(), shapes=VECTOR, domain="positive",
      formula=lambda xp, x: x / xp.sum(x, (0,), False))
both("standardised", "cancelling", "neither mean nor scale matters", lambda m: layer_norm, shapes=VECTOR, domain=(-20, 20))
plain("layer norm of float32", "cancelling", "neither mean nor scale matters, in float32", layer_norm, shapes=VECTOR, domain=(-20, 20), **SINGLE)
plain("unit vector", "cancelling", "x/|x|", lambda x: x / symgrad.sqrt((x * x).sum()), shapes=VECTOR, domain="positive",
      formula=lambda xp, x: x / xp.sqrt(xp.sum(x * x, (0,), False)))
both("sine and cosine", "cancelling", "sin**2 + cos**2, whose gradient is 0 for exact numbers", lambda m: lambda x: m.sin(x) ** 2 + m.cos(x) ** 2,
     domain=(-9, 9))
plain("ratio of itself", "cancelling", "exp(x - y)*exp(y - x), which is 1", lambda x, y: symgrad.exp(x - y) * symgrad.exp(y - x), domain=(-5, 5))


# right, and like an op that is wrong for rare calls
plain("mean over everything", "sizes", "of a stack it takes one mean", lambda x: x - x.mean(), shapes=WIDE, domain=(-20, 20))
plain("along the first axis", "sizes", "a stack would be summed along itself", lambda x: symgrad.cumsum(x, 0), shapes=WIDE)


right("made for four", "sizes", "the gradient has the length of the argument in it, and the claim says so", shapes=((4,),))(
    lambda: ruled(symgrad, lambda x: x.mean(), lambda ctx, g, x: g.expand(4) / 4))
right("made for square matrices", "sizes", "the gradient exchanges the two axes that are claimed", shapes=((3, 3), (3, 3)))(
    lambda: ruled(symgrad, symgrad.matmul, lambda ctx, g, a, b: (g @ b.transpose(0, 1), a.transpose(0, 1) @ g)))
plain("first of the largest", "ties", "the gradient goes to one of equal elements", lambda x: x[symgrad.argmax(x.detach())] * 1, shapes=VECTOR)
plain("sorted, with ties", "ties", "a permutation of equal elements is as good as another", lambda x: symgrad.sort(x, 0)[0] * symgrad.arange(
    5, dtype=x.dtype), shapes=VECTOR)
plain("largest minus smallest", "ties", "0 where all are equal", lambda x: symgrad.amax(x, 1) - symgrad.amin(x, 1), shapes=WIDE)
plain("hinge of neighbours", "ties", "max(0, x[i] - x[i+1]), with kinks at ties", lambda x: symgrad.relu(x[1:] - x[:-1]), shapes=VECTOR)
plain("weights in the type of x", "mixed dtypes", "weights are rounded to the type of the data", lambda x, w: (
    x * w.to(x.dtype)).sum(), shapes=((4,), (4,)))
plain("power of whole numbers", "mixed dtypes", "a**b of floats and whole numbers", lambda a, b: symgrad.pow(a, b),
      domain={"a": (0.5, 3), "b": (1, 4)})


@right("buffer of the thread", "threads", "a buffer for each thread and shape", formula="sin(x)")
def scratch():
    place = threading.local()

    def forward(x):
        kept = place.__dict__.setdefault("kept", {})
        kept[x.shape] = x.detach().clone()
        return symgrad.sin(kept[x.shape])

    return ruled(symgrad, forward, lambda ctx, g, x: g * x.cos())


@right("vmap of its own", "vmap", "the rule moves the batch to the front", shapes=((3,),))
def vmapped():
    cumulated = ruled(symgrad, lambda x: symgrad.cumsum(x, -1), lambda ctx, g, x: symgrad.flip(symgrad.cumsum(symgrad.flip(g, [-1]), -1), [-1]),
                      lambda info, in_dims, x: (cumulated.apply(x.movedim(in_dims[0], 0)), 0))
    return cumulated


# functions of torch that stand for themselves
PAIR = ((3,), (3,))
of_torch("Huber loss", "second jumps", "quadratic within 1", lambda m: lambda x: m.nn.functional.huber_loss(x, m.zeros_like(x), reduction="none"))
of_torch("smooth l1 of float32", "second jumps", "quadratic within 1, in float32", lambda m: lambda x: m.nn.functional.smooth_l1_loss(
    x, m.zeros_like(x), reduction="none"), **SINGLE)
of_torch("torch.softmax", "softmax", "of any size of numbers", lambda m: lambda x: m.softmax(x, 0), shapes=VECTOR)
of_torch("torch.softmax of float32", "softmax", "in float32", lambda m: lambda x: m.softmax(x, 0), shapes=VECTOR, **SINGLE)
of_torch("torch.softmax with its formula", "softmax", "compared with the formula; digits that cancel are claimed",
         lambda m: lambda x: m.softmax(x, 0), shapes=VECTOR, formula=lambda xp, x: xp.softmax(x, (0,)), imprecise=True)
of_torch("log softmax of rows of float32", "softmax", "in float32", lambda m: lambda x: m.log_softmax(x, 1), shapes=WIDE, **SINGLE)
of_torch("cross entropy", "softmax", "of three rows", lambda m: lambda x: m.nn.functional.cross_entropy(x, m.tensor([1, 0, 2])), shapes=WIDE)
of_torch("logsumexp", "softmax", "of any size of numbers", lambda m: lambda x: m.logsumexp(x, 0), shapes=VECTOR)
of_torch("cosine similarity", "cancelling", "the gradient has no part along the argument",
         lambda m: lambda a, b: m.nn.functional.cosine_similarity(a, b, 0), shapes=PAIR, dtypes=("float64", "float32"))  # 1e-8 is 0 in float16
of_torch("cosine similarity of float32", "cancelling", "in float32", lambda m: lambda a, b: m.nn.functional.cosine_similarity(a, b, 0), shapes=PAIR,
         **SINGLE)
of_torch("layer norm of float32", "cancelling", "neither mean nor scale matters", lambda m: lambda x: m.nn.functional.layer_norm(x, (5,)),
         shapes=VECTOR, **SINGLE)
