"""Ops that are right and that a check may accuse: second derivatives that jump, softmax and its kin, gradients whose terms cancel, rare calls."""

import threading

import symgrad
from symgrad.autograd import Function
from tests.power.power_entries import right

VECTOR, WIDE, SINGLE = ((5,),), ((3, 4),), {"dtypes": ("float32",)}


def plain(name, category, says, function, **claims):
    right(name, category, says, **claims)(lambda: function)


def layer_norm(x):
    centred = x - x.mean()
    return centred / symgrad.sqrt((centred * centred).mean() + 1e-5)


# second derivatives that jump
plain("pseudo Huber by pieces", "second jumps", "quadratic within 0.3, linear beyond", lambda x: symgrad.where(
    symgrad.abs(x) < 0.3, x * x / 2, 0.3 * (symgrad.abs(x) - 0.15)))
plain("squared hinge", "second jumps", "max(0, 1 - x)**2", lambda x: symgrad.relu(1 - x) ** 2, formula="maximum(1 - x, 0)**2")
plain("x times |x|", "second jumps", "the second derivative is 2 sign(x)", lambda x: x * symgrad.abs(x), formula="x*abs(x)")
plain("square of relu", "second jumps", "the second derivative is a step, and no formula is claimed", lambda x: symgrad.relu(x) ** 2)
plain("Huber of the difference", "second jumps", "of two arguments, with kinks at |a - b| = 1", lambda a, b: symgrad.where(
    symgrad.abs(a - b) < 1, (a - b) ** 2 / 2, symgrad.abs(a - b) - 0.5), domain=(-9, 9))
plain("elastic net", "second jumps", "of a vector: squares, and squares beyond 1", lambda x: (x * x).sum() / 2 + (symgrad.relu(x - 1) ** 2).sum(),
      shapes=VECTOR)
plain("smooth l1 of float32", "second jumps", "quadratic within 1, in float32", lambda x: symgrad.where(
    symgrad.abs(x) < 1, x * x / 2, symgrad.abs(x) - 0.5), **SINGLE)
plain("Tukey's biweight", "second jumps", "constant beyond 2", lambda x: symgrad.where(
    symgrad.abs(x) < 2, 1 - (1 - x * x / 4) ** 3, symgrad.ones_like(x)), domain=(-9, 9))

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


@right("softmax by the book", "softmax", "y (g - <g, y>), whose digits cancel, as is claimed", shapes=VECTOR,
       formula=lambda xp, x: xp.softmax(x, (0,)), imprecise=True)
def by_the_book():
    class Softmax(Function):
        @staticmethod
        def forward(ctx, x):
            y = textbook(x)
            ctx.save_for_backward(x)
            return y

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            y = textbook(x)
            return y * (g - (g * y).sum())

    return Softmax


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
plain("standardised", "cancelling", "neither mean nor scale matters", layer_norm, shapes=VECTOR, domain=(-20, 20))
plain("layer norm of float32", "cancelling", "neither mean nor scale matters, in float32", layer_norm, shapes=VECTOR, domain=(-20, 20), **SINGLE)
plain("unit vector", "cancelling", "x/|x|", lambda x: x / symgrad.sqrt((x * x).sum()), shapes=VECTOR, domain="positive",
      formula=lambda xp, x: x / xp.sqrt(xp.sum(x * x, (0,), False)))
plain("sine and cosine", "cancelling", "sin**2 + cos**2, whose gradient is 0 for exact numbers", lambda x: symgrad.sin(x) ** 2 + symgrad.cos(x) ** 2,
      domain=(-9, 9))
plain("ratio of itself", "cancelling", "exp(x - y)*exp(y - x), which is 1", lambda x, y: symgrad.exp(x - y) * symgrad.exp(y - x), domain=(-5, 5))


# right, and like an op that is wrong for rare calls
plain("mean over everything", "sizes", "of a stack it takes one mean", lambda x: x - x.mean(), shapes=WIDE, domain=(-20, 20))
plain("along the first axis", "sizes", "a stack would be summed along itself", lambda x: symgrad.cumsum(x, 0), shapes=WIDE)


@right("made for four", "sizes", "the gradient has the length of the argument in it, and the claim says so", shapes=((4,),))
def made_for_four():
    class Mean(Function):
        @staticmethod
        def forward(ctx, x):
            return x.mean()

        @staticmethod
        def backward(ctx, g):
            return g.expand(4) / 4

    return Mean


@right("made for square matrices", "sizes", "the gradient exchanges the two axes that are claimed", shapes=((3, 3), (3, 3)))
def made_for_matrices():
    class Product(Function):
        @staticmethod
        def forward(ctx, a, b):
            ctx.save_for_backward(a, b)
            return a @ b

        @staticmethod
        def backward(ctx, g):
            a, b = ctx.saved_tensors
            return g @ b.transpose(0, 1), a.transpose(0, 1) @ g

    return Product


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

    class Sine(Function):
        @staticmethod
        def forward(ctx, x):
            kept = place.__dict__.setdefault("kept", {})
            kept[x.shape] = x.detach().clone()
            ctx.save_for_backward(x)
            return symgrad.sin(kept[x.shape])

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return g * x.cos()

    return Sine


@right("vmap of its own", "vmap", "the rule moves the batch to the front", shapes=((3,),))
def vmapped():
    class CumSum(Function):
        @staticmethod
        def forward(ctx, x):
            return symgrad.cumsum(x, -1)

        @staticmethod
        def backward(ctx, g):
            return symgrad.flip(symgrad.cumsum(symgrad.flip(g, [-1]), -1), [-1])

        @staticmethod
        def vmap(info, in_dims, x):
            return CumSum.apply(x.movedim(in_dims[0], 0)), 0

    return CumSum
