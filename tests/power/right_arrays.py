"""Ops of arrays that are right and difficult, and ops that remember, copy, view or draw and are right: nobody may accuse them."""

import numpy as np

import symgrad
from symgrad.func import checkpoint, custom_jvp, custom_vjp
from tests.power.power_entries import once, right, ruled

VECTOR, WIDE, SQUARE = ((4,),), ((3, 4),), ((3, 3),)


def shifted_logsumexp(xp, x):
    top = xp.amax(x)
    return xp.log(xp.sum(xp.exp(x - top))) + top


def softmax(xp, x):
    e = xp.exp(x - xp.amax(x))
    return e / xp.sum(e)


def transposed(xp, x):
    return xp.swapaxes(x, -1, -2)


# rules for whole arrays
right("logsumexp", "stable", "shifted by the largest", shifted_logsumexp, pullback=lambda xp, g, y, x: g * softmax(xp, x), shapes=VECTOR,
      formula=lambda xp, x: xp.logsumexp(x, (0,), False), domain=(-700, 700))
right("softmax", "stable", "shifted by the largest", softmax, pullback=lambda xp, g, y, x: softmax(xp, x) * (g - xp.sum(g * softmax(xp, x))),
      shapes=VECTOR, formula=lambda xp, x: xp.softmax(x, (0,)), domain=(-3, 3))
right("log softmax", "stable", "x - logsumexp(x)", lambda xp, x: x - shifted_logsumexp(xp, x), pullback=lambda xp, g, y,
      x: g - softmax(xp, x) * xp.sum(g),
      shapes=VECTOR, formula=lambda xp, x: xp.log_softmax(x, (0,)), domain=(-3, 3))
right("matmul", "arrays", "of square matrices", lambda xp, a, b: xp.matmul(a, b),
      pullback=lambda xp, g, y, a, b: (xp.matmul(g, transposed(xp, b)), xp.matmul(transposed(xp, a), g)), shapes=((3, 3), (3, 3)),
      formula=lambda xp, a, b: xp.matmul(a, b))
right("trace", "arrays", "gradient 1 on the diagonal", lambda xp, x: xp.trace(x), pullback=lambda xp, g, y, x: g * xp.eye(3, dtype=x.dtype),
      shapes=SQUARE, formula=lambda xp, x: xp.trace(x))
right("cumsum", "arrays", "the pullback sums from the end", lambda xp, x: xp.cumsum(x, 0),
      pullback=lambda xp, g, y, x: xp.flip(xp.cumsum(xp.flip(g, (0,)), 0), (0,)), shapes=VECTOR, formula=lambda xp, x: xp.cumsum(x, 0))
right("norm", "arrays", "away from 0", lambda xp, x: xp.sqrt(xp.sum(x * x)), pullback=lambda xp, g, y, x: g * x / xp.sqrt(xp.sum(x * x)),
      shapes=VECTOR,
      domain=(1, 5), formula=lambda xp, x: xp.sqrt(xp.sum(x * x, (0,), False)))
right("variance", "arrays", "centred twice", lambda xp, x: xp.sum((x - xp.mean(x)) ** 2) / 3, pullback=lambda xp, g, y,
      x: g * 2 * (x - xp.mean(x)) / 3,
      shapes=VECTOR, domain=(-20, 20))
right("weighted sum", "arrays", "a matrix times a vector", lambda xp, w, x: xp.matmul(w, x),
      pullback=lambda xp, g, y, w, x: (g.reshape(3, 1) * x, xp.matmul(transposed(xp, w), g)), shapes=((3, 4), (4,)), domain=(-50, 50))


# functions of symgrad's own ops
def plain(name, category, says, function, **claims):
    right(name, category, says, **claims)(lambda: function)


right("prod with zeros", "arrays", "the gradient at zeros is the product of the others", shapes=VECTOR, domain=(-3, 3))(lambda m: m.prod)
right("cumprod", "arrays", "with zeros, too", shapes=VECTOR, domain=(-3, 3))(lambda m: lambda x: m.cumprod(x, 0))
plain("einsum", "arrays", "three factors", lambda a, b, c: symgrad.einsum("ij,jk,k->i", a, b, c), shapes=((2, 3), (3, 2), (2,)), domain=(-9, 9))
right("logsumexp over an axis", "stable", "of a matrix", shapes=WIDE, domain=(-500, 500))(lambda m: lambda x: m.logsumexp(x, 1))
right("sort", "selection", "a permutation that depends on the numbers; kinks at ties", shapes=VECTOR, domain=(-9, 9))(
    lambda m: lambda x: m.sort(x)[0])
plain("median", "selection", "the middle one of five", lambda x: symgrad.sort(x)[0][2], shapes=((5,),), domain=(-9, 9))
right("largest", "selection", "ties share", shapes=VECTOR, domain=(-9, 9))(lambda m: m.amax)
right("gather", "selection", "an index twice, its gradients added", shapes=VECTOR)(lambda m: lambda x: x[[0, 2, 2]])
plain("triangle", "arrays", "half of a matrix", lambda x: symgrad.tril(x) * 2, shapes=SQUARE)
plain("reshape and flip", "arrays", "a permutation of the elements", lambda x: symgrad.flip(x.reshape(4, 3), (0,)) * 1, shapes=WIDE)
right("pairwise distances", "arrays", "broadcast inside, away from 0", shapes=((3,), (2,)), domain=(-50, 50))(
    lambda m: lambda x, y: (x[:, None] - y[None, :]) ** 2)
plain("view", "memory", "the value shares memory, as is declared", lambda x: x.reshape(-1)[1:], shapes=WIDE, view=True)
plain("transpose", "memory", "the value shares memory, as is declared", lambda x: x.T, shapes=WIDE, view=True)
right("identity that copies", "memory", "x * 1", formula="x")(lambda m: lambda x: x.clone())
plain("constant array", "constant", "no gradient at all: None", lambda x: symgrad.ones_like(x) * 3, formula="3 + 0*x")
plain("unused argument", "constant", "b does not matter", lambda a, b: symgrad.sin(a), shapes=((3,), (3,)), formula=lambda xp, a, b: xp.sin(a))
plain("power of a parameter", "arguments", "an exponent that is no tensor", lambda x, n: x**n, parameters=(3,), domain=(-9, 9))
plain("scaled by parameters", "arguments", "two of them", lambda x, low, high: low + (high - low) * symgrad.sigmoid(x), parameters=(-1.0, 3.0),
      domain=(-30, 30))
plain("checkpointed", "state", "computed again in the pullback", lambda x: checkpoint(lambda x: x.sin().exp() * x)(x), formula="x*exp(sin(x))")
plain("dropout", "random", "differs from call to call, as is claimed", lambda x: x * (symgrad.rand_like(x) < 0.5).to(x.dtype) * 2, random=True)
plain("noise added", "random", "differs from call to call, as is claimed", lambda x: x + symgrad.randn_like(x), random=True)
plain("checks its input", "errors", "the declared error for negative numbers", lambda x: _checked_root(x), formula="sqrt(x)", domain="positive",
      errors=(((np.array([-1.0]),), ValueError, "negative"),))
plain("in float32 inside", "dtype", "the mean of a mask, computed in float32, multiplies",
      lambda x: x * float(symgrad.ones(3, dtype=symgrad.float32).mean().item()),
      formula="x")


def _checked_root(x):
    if x.numel() and (x < 0).any():
        raise ValueError("sqrt of a negative number")
    return symgrad.sqrt(x)


# Functions
def through_result(m, forward, backward):
    """A `Function` whose derivative `(g, y)` is computed from its result."""
    class ThroughResult(m.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            y = forward(x)
            ctx.save_for_backward(y)
            return y

        @staticmethod
        def backward(ctx, g):
            return backward(g, *ctx.saved_tensors)

    return ThroughResult


@right("root of a cubic", "implicit", "y**3 + y = x by Newton, its derivatives through the saved result", domain=(-50, 50),
       formula="2/sqrt(3)*sinh(asinh(1.5*sqrt(3)*x)/3)")
def cubic(m):
    def root(x):
        y = m.sinh(m.asinh(x.detach() * 1.5 * 3**0.5) / 3) * (2 / 3**0.5)
        for _ in range(4):
            y = y - (y * y * y + y - x.detach()) / (3 * y * y + 1)
        return y

    return through_result(m, root, lambda g, y: g / (3 * y * y + 1))


right("saved result", "orders", "exp through what it saved, to every order", formula="exp(x)", domain=(-20, 20))(
    lambda m: through_result(m, m.exp, lambda g, y: g * y))


@right("memoised", "state", "a cache keyed by the numbers themselves", formula="sin(x)")
def memoised(m):
    cache = {}

    def sine(x):
        key = x.shape, str(x.dtype), x.detach().numpy().tobytes()
        cache.setdefault(key, np.sin(x.detach().numpy()))
        return m.sin(x)

    return sine


@right("counts its calls", "state", "remembers something that does not matter", formula="cos(x)")
def counts():
    calls = []

    def cosine(x):
        calls.append(None)
        return symgrad.cos(x)

    return cosine


@right("custom_vjp", "modes", "a stated pullback and no pushforward", formula="exp(sin(x))")
def stated_pullback():
    f = custom_vjp(lambda x: x.sin().exp())
    f.defvjp(lambda x: (f(x), x), lambda x, g: (g * x.sin().exp() * x.cos(),))
    return f


@right("custom_jvp", "modes", "a stated pushforward, transposed by the engine", formula="exp(sin(x))")
def stated_pushforward():
    f = custom_jvp(lambda x: x.sin().exp())
    f.defjvp(lambda xs, ts: (f(*xs), ts[0] * xs[0].sin().exp() * xs[0].cos()))
    return f


right("once, as declared", "orders", "differentiable once, and no more is claimed", formula="sinh(x)", domain=(-5, 5), order=1)(lambda: once(symgrad))


# complex numbers
def of_complex(name, says, forward, backward, **claims):
    """Enter an op of one complex argument, with a forward `(m, z)` and a backward `(m, g, z)`."""
    right(name, "complex", says, domain=(-5, 5), complex=True, **claims)(
        lambda m: ruled(m, lambda z: forward(m, z), lambda ctx, g, z: backward(m, g, z)))


of_complex("complex exp", "holomorphic", lambda m, z: z.exp(), lambda m, g, z: g * m.conj(z.exp()), formula="exp(z)")
of_complex("complex square", "holomorphic", lambda m, z: z * z, lambda m, g, z: 2 * g * m.conj(z), formula="z**2")
of_complex("complex quotient", "holomorphic but for a pole", lambda m, z: z / (9 + z), lambda m, g, z: 9 * g / m.conj((9 + z) * (9 + z)),
           formula="z/(9 + z)")
of_complex("|z|**2", "not holomorphic, real values", lambda m, z: (z * m.conj(z)).real.clone(), lambda m, g, z: 2 * g * z)
of_complex("real part", "not holomorphic, real values", lambda m, z: z.real * 1, lambda m, g, z: g * m.ones_like(z))
of_complex("conjugate", "not holomorphic", lambda m, z: m.conj(z) * 1, lambda m, g, z: m.conj(g) * 1)


class Power:
    """x**n, which pickles with its n."""

    def __init__(self, n):
        self.n = n

    def __call__(self, x):
        return symgrad.pow(x, self.n)


right("pickles", "pickling", "an object with state", formula="x**3", domain=(-9, 9))(lambda: Power(3))


def _summed(g, like):
    """The sum of a cotangent over what was stretched."""
    g = np.sum(g, axis=tuple(range(np.ndim(g) - np.ndim(like))))
    for axis, size in enumerate(np.shape(like)):
        if size == 1:
            g = np.sum(g, axis=axis, keepdims=True)
    return g


right("NumPy pullback by hand", "broadcast", "sums what was stretched", formula="a*b",
      pullback=lambda g, a, b: (_summed(g * b, a), _summed(g * a, b)))(lambda: lambda a, b: np.multiply(a, b))
