"""Ops of arrays that are right and difficult, and ops that remember, copy, view or draw and are right: nobody may accuse them."""

import numpy as np

import symgrad
from symgrad.autograd import Function
from symgrad.func import checkpoint, custom_jvp, custom_vjp
from tests.power.power_entries import of_complex, right

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


plain("prod with zeros", "arrays", "the gradient at zeros is the product of the others", lambda x: symgrad.prod(x), shapes=VECTOR, domain=(-3, 3))
plain("cumprod", "arrays", "with zeros, too", lambda x: symgrad.cumprod(x, 0), shapes=VECTOR, domain=(-3, 3))
plain("einsum", "arrays", "three factors", lambda a, b, c: symgrad.einsum("ij,jk,k->i", a, b, c), shapes=((2, 3), (3, 2), (2,)), domain=(-9, 9))
plain("logsumexp over an axis", "stable", "of a matrix", lambda x: symgrad.logsumexp(x, 1), shapes=WIDE, domain=(-500, 500))
plain("sort", "selection", "a permutation that depends on the numbers; kinks at ties", lambda x: symgrad.sort(x)[0], shapes=VECTOR, domain=(-9, 9))
plain("median", "selection", "the middle one of five", lambda x: symgrad.sort(x)[0][2], shapes=((5,),), domain=(-9, 9))
plain("largest", "selection", "ties share", lambda x: symgrad.amax(x), shapes=VECTOR, domain=(-9, 9))
plain("gather", "selection", "an index twice, its gradients added", lambda x: x[[0, 2, 2]], shapes=VECTOR)
plain("triangle", "arrays", "half of a matrix", lambda x: symgrad.tril(x) * 2, shapes=SQUARE)
plain("reshape and flip", "arrays", "a permutation of the elements", lambda x: symgrad.flip(x.reshape(4, 3), (0,)) * 1, shapes=WIDE)
plain("pairwise distances", "arrays", "broadcast inside, away from 0", lambda x, y: (x[:, None] - y[None, :]) ** 2, shapes=((3,), (2,)),
      domain=(-50, 50))
plain("view", "memory", "the value shares memory, as is declared", lambda x: x.reshape(-1)[1:], shapes=WIDE, view=True)
plain("transpose", "memory", "the value shares memory, as is declared", lambda x: x.T, shapes=WIDE, view=True)
plain("identity that copies", "memory", "x * 1", lambda x: x.clone(), formula="x")
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
@right("root of a cubic", "implicit", "y**3 + y = x by Newton, its derivatives through the saved result", domain=(-50, 50),
       formula="2/sqrt(3)*sinh(asinh(1.5*sqrt(3)*x)/3)")
def cubic():
    class Root(Function):
        @staticmethod
        def forward(ctx, x):
            y = symgrad.sinh(symgrad.asinh(x.detach() * 1.5 * 3**0.5) / 3) * (2 / 3**0.5)
            for _ in range(4):
                y = y - (y * y * y + y - x.detach()) / (3 * y * y + 1)
            ctx.save_for_backward(y)
            return y

        @staticmethod
        def backward(ctx, g):
            (y,) = ctx.saved_tensors
            return g / (3 * y * y + 1)

    return Root


@right("saved result", "orders", "exp through what it saved, to every order", formula="exp(x)", domain=(-20, 20))
def saved_result():
    class Exp(Function):
        @staticmethod
        def forward(ctx, x):
            y = x.exp()
            ctx.save_for_backward(y)
            return y

        @staticmethod
        def backward(ctx, g):
            (y,) = ctx.saved_tensors
            return g * y

    return Exp


@right("memoised", "state", "a cache keyed by the numbers themselves", formula="sin(x)")
def memoised():
    cache = {}

    def sine(x):
        key = x.shape, str(x.dtype), x.detach().numpy().tobytes()
        cache.setdefault(key, np.sin(x.detach().numpy()))
        return symgrad.sin(x)

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

    @f.defjvp
    def rule(primals, tangents):
        (x,), (t,) = primals, tangents
        return f(x), t * x.sin().exp() * x.cos()

    return f


@right("once, as declared", "orders", "differentiable once, and no more is claimed", formula="sinh(x)", domain=(-5, 5), order=1)
def declared_once():
    class Once(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x.sinh()

        @staticmethod
        @symgrad.autograd.function.once_differentiable
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return g * x.cosh()

    return Once


# complex numbers
for _name, _says, _forward, _backward, _claims in (
        ("complex exp", "holomorphic", lambda z: z.exp(), lambda g, z: g * symgrad.conj(z.exp()), {"formula": "exp(z)"}),
        ("complex square", "holomorphic", lambda z: z * z, lambda g, z: 2 * g * symgrad.conj(z), {"formula": "z**2"}),
        ("complex quotient", "holomorphic but for a pole", lambda z: z / (9 + z), lambda g, z: 9 * g / symgrad.conj((9 + z) * (9 + z)),
         {"formula": "z/(9 + z)"}),
        ("|z|**2", "not holomorphic, real values", lambda z: (z * symgrad.conj(z)).real, lambda g, z: 2 * g * z, {}),
        ("real part", "not holomorphic, real values", lambda z: z.real * 1, lambda g, z: g * symgrad.ones_like(z), {}),
        ("conjugate", "not holomorphic", lambda z: symgrad.conj(z) * 1, lambda g, z: symgrad.conj(g) * 1, {})):
    right(_name, "complex", _says, domain=(-5, 5), complex=True, **_claims)(
        lambda forward=_forward, backward=_backward: of_complex(forward, backward))


class Power:
    """x**n, which pickles with its n."""

    def __init__(self, n):
        self.n = n

    def __call__(self, x):
        return symgrad.pow(x, self.n)


right("pickles", "pickling", "an object with state", formula="x**3", domain=(-9, 9))(lambda: Power(3))


@right("NumPy pullback by hand", "broadcast", "sums what was stretched", formula="a*b", pullback=lambda g, a,
      b: (_summed(g * b, a), _summed(g * a, b)))
def numpy_pullback():
    return lambda a, b: np.multiply(a, b)


def _summed(g, like):
    """The sum of a cotangent over what was stretched."""
    g = np.sum(g, axis=tuple(range(np.ndim(g) - np.ndim(like))))
    for axis, size in enumerate(np.shape(like)):
        if size == 1:
            g = np.sum(g, axis=axis, keepdims=True)
    return g
