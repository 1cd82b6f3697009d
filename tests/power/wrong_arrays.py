"""Ops of whole arrays with wrong gradients, and ops that broadcast wrongly."""

import numpy as np

from tests.power.power_entries import ruled, wrong

SQUARE, WIDE, VECTOR = ((3, 3),), ((3, 4),), ((4,),)


def transposed(xp, x):
    return xp.swapaxes(x, -1, -2)


def softmax(xp, x):
    e = xp.exp(x - xp.amax(x))
    return e / xp.sum(e)


wrong("gradient transposed", "arrays", "the gradient has its axes exchanged, which shows only in its numbers", lambda xp, x: x * x * x,
      pullback=lambda xp, g, y, x: transposed(xp, g * 3 * x * x), shapes=SQUARE, formula=lambda xp, x: x * x * x)
wrong("matmul without transpose", "arrays", "g b instead of g b^T, for square matrices", lambda xp, a, b: xp.matmul(a, b),
      pullback=lambda xp, g, y, a, b: (xp.matmul(g, b), xp.matmul(transposed(xp, a), g)), shapes=((3, 3), (3, 3)),
      formula=lambda xp, a, b: xp.matmul(a, b))
wrong("matmul in the other order", "arrays", "g a^T instead of a^T g", lambda xp, a, b: xp.matmul(a, b),
      pullback=lambda xp, g, y, a, b: (xp.matmul(g, transposed(xp, b)), xp.matmul(g, transposed(xp, a))), shapes=((3, 3), (3, 3)),
      formula=lambda xp, a, b: xp.matmul(a, b))
wrong("mean for sum", "arrays", "the gradient is that of the mean", lambda xp, x: xp.sum(x * x), pullback=lambda xp, g, y, x: g * 2 * x / 12,
      shapes=WIDE,
      formula=lambda xp, x: xp.sum(x * x, (0, 1), False))
wrong("sum over the wrong axis", "arrays", "the pullback spreads along the other axis", lambda xp, x: xp.sum(x, 0),
      pullback=lambda xp, g, y, x: g.reshape(3, 1) * xp.ones_like(x), shapes=SQUARE, formula=lambda xp, x: xp.sum(x, (0,), False))
wrong("cumsum off by one", "arrays", "the pullback sums from the next element on", lambda xp, x: xp.cumsum(x, 0),
      pullback=lambda xp, g, y, x: xp.flip(xp.cumsum(xp.flip(g, (0,)), 0), (0,)) - g, shapes=VECTOR, formula=lambda xp, x: xp.cumsum(x, 0))
wrong("cumsum forwards", "arrays", "the pullback sums from the front instead of from the end", lambda xp, x: xp.cumsum(x, 0),
      pullback=lambda xp, g, y, x: xp.cumsum(g, 0), shapes=VECTOR)
wrong("softmax without coupling", "arrays", "y (1 - y) on the diagonal, and nothing beside it", softmax, pullback=lambda xp, g, y, x: g * y * (1 - y),
      shapes=VECTOR, formula=lambda xp, x: xp.softmax(x, (0,)))
wrong("softmax coupled wrongly", "arrays", "the sum of g instead of that of g y", softmax, pullback=lambda xp, g, y, x: y * (g - xp.sum(g) / 4),
      shapes=VECTOR)
wrong("logsumexp without shift", "tail", "log(sum(exp(x))) overflows where the truth is finite", lambda xp, x: xp.log(xp.sum(xp.exp(x))),
      pullback=lambda xp, g, y, x: g * xp.exp(x - y), shapes=VECTOR, formula=lambda xp, x: xp.logsumexp(x, (0,), False))
wrong("logsumexp not normalised", "arrays", "exp(x - max) instead of exp(x - y)", lambda xp, x: xp.log(xp.sum(xp.exp(x - xp.amax(x)))) + xp.amax(x),
      pullback=lambda xp, g, y, x: g * xp.exp(x - xp.amax(x)), shapes=VECTOR, formula=lambda xp, x: xp.logsumexp(x, (0,), False))
wrong("product by division", "arrays", "y/x is NaN where an element is 0", lambda xp, x: xp.prod(x), pullback=lambda xp, g, y, x: g * y / x,
      shapes=VECTOR, formula=lambda xp, x: x[0] * x[1] * x[2] * x[3])
wrong("norm is squared", "arrays", "2x instead of x/norm", lambda xp, x: xp.sqrt(xp.sum(x * x)), pullback=lambda xp, g, y, x: g * 2 * x,
      shapes=VECTOR,
      domain=(1, 5), formula=lambda xp, x: xp.sqrt(xp.sum(x * x, (0,), False)))
wrong("variance by n", "arrays", "the gradient divides by n, the value by n - 1", lambda xp, x: xp.sum((x - xp.mean(x)) ** 2) / 3,
      pullback=lambda xp, g, y, x: g * 2 * (x - xp.mean(x)) / 4, shapes=VECTOR, domain=(-20, 20))
wrong("mean's gradient dropped", "arrays", "the gradient does not go through the mean that is subtracted", lambda xp, x: x - xp.mean(x),
      pullback=lambda xp, g, y, x: g, shapes=VECTOR)
wrong("trace of everything", "arrays", "the gradient of the trace is 1 off the diagonal, too", lambda xp, x: xp.trace(x),
      pullback=lambda xp, g, y, x: g * xp.ones_like(x), shapes=SQUARE, formula=lambda xp, x: xp.trace(x))
wrong("outer exchanged", "arrays", "the gradients of the two vectors change places", lambda xp, a, b: a.reshape(3, 1) * b.reshape(1, 3),
      pullback=lambda xp, g, y, a, b: (xp.sum(g * b, 0), xp.sum(g * b, 1)), shapes=((3,), (3,)), domain=(-50, 50))
wrong("second of two wrong", "arrays", "the gradient by the weights is off by 1e-6", lambda xp, w, x: xp.matmul(w, x),
      pullback=lambda xp, g, y, w, x: (g.reshape(3, 1) * x * (1 + 1e-6), xp.matmul(transposed(xp, w), g)), shapes=((3, 4), (4,)),
      domain=(-50, 50))


@wrong("repeated index", "arrays", "the pullback of indexing writes where it should add", shapes=((4,),),
       formula=lambda xp, x: xp.stack([x[0], x[2], x[2]], 0))
def repeated_index(m):
    def backward(ctx, g, x):
        out = m.zeros_like(x)
        out[[0, 2, 2]] = g
        return out

    return ruled(m, lambda x: x[[0, 2, 2]], backward)


wrong("argument left out of the sum", "arrays", "the value of row i lacks its last element", shapes=((3, 4),),
      formula=lambda xp, x: xp.sum(x * x, (1,), False))(lambda m: lambda x: m.sum(x[:, :-1] * x[:, :-1], dim=1))


# broadcasting
def summed_leading(g, shape):
    return g.sum(tuple(range(g.ndim - len(shape)))) if g.ndim > len(shape) else g


wrong("forgets to sum", "broadcast", "the gradient of a broadcast argument has the shape of the value", formula="a*b",
      pullback=lambda g, a, b: (g * b, g * a))(lambda: lambda a, b: np.multiply(a, b))
wrong("sums leading axes only", "broadcast", "stretched axes of length 1 are not summed", formula="a + 2*b",
      pullback=lambda g, a, b: (summed_leading(g, np.shape(a)), 2 * summed_leading(g, np.shape(b))))(lambda: lambda a, b: np.add(a, 2 * b))
wrong("means where it should sum", "broadcast", "a broadcast argument gets the mean of the cotangents", formula="a + b")(
    lambda m: ruled(m, lambda a, b: a + b, lambda ctx, g, *xs: tuple(
        g.clone() if x.shape == g.shape else g.sum_to_size(x.shape) * (max(x.numel(), 1) / max(g.numel(), 1)) for x in xs)))


@wrong("refuses to broadcast", "broadcast", "arguments of different shapes are refused", formula="a - b")
def refuses(m):
    def minus(a, b):
        if a.shape != b.shape:
            raise ValueError(f"shapes differ: {a.shape}, {b.shape}")
        return a - b

    return minus


@wrong("broadcast from the left", "broadcast", "a vector is taken for a column where the other argument is a matrix", formula="a*b")
def from_the_left(m):
    def times(a, b):
        if a.ndim == 1 and b.ndim == 2 and a.shape[0] == b.shape[0]:
            a = a.reshape(-1, 1)
        if b.ndim == 1 and a.ndim == 2 and a.shape[0] == b.shape[0]:
            b = b.reshape(-1, 1)
        return a * b if a.ndim == b.ndim or 0 in (a.ndim, b.ndim) else a + b

    return times


wrong("number by matrix", "broadcast", "a number times an array is right only for the first element", formula="a*b")(
    lambda m: lambda a, b: a * b if a.ndim == b.ndim else (y := a * b) + m.where(m.arange(y.numel()).reshape(y.shape) > 0, 1.0, 0.0))
wrong("batch mixed", "batching", "inside vmap the batch is averaged", formula="sin(x)", batched=True)(
    lambda m: ruled(m, lambda x: x.sin(), lambda ctx, g, x: g * x.cos(), lambda info, in_dims, x: (
        x.sin().mean(in_dims[0], keepdim=True).expand(x.shape), in_dims[0])))
wrong("batch in the wrong place", "batching", "inside vmap the second argument counts as batched, always", formula="a - b", batched=True)(
    lambda m: ruled(m, lambda a, b: a - b, lambda ctx, g, a, b: (g.clone(), -g), lambda info, in_dims, a, b: (a - b[:info.batch_size], 0)))
