"""What functions are made of: every op of the registry with derivatives, spelled as users call it, and how its parameters are drawn."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import symgrad
from symgrad.engine.recording import core
from symgrad.engine.traced import traced
from symgrad.graph.domains import COMPLEX, FIXED, NONZERO, REAL, Domain, Interval
from symgrad.graph.op import REGISTRY, Op
from symgrad.testing.strategies.programs_fitting import FITS
from tests.support.exemptions import exempt

__all__ = ["LEFT_OUT", "WEIGHTS", "WORDS", "Word", "generic"]

Shape = tuple[int, ...]
IRRATIONAL = (math.pi, math.e, math.sqrt(2), math.sqrt(3), math.log(2), 0.5772156649015329, (1 + math.sqrt(5)) / 2)


def generic(rng: random.Random) -> float:
    """A number as users have them: thirds, decimals, irrational and negative ones, next to integers, small and large; seldom whole or a half."""
    sign = rng.choice((1, 1, -1))
    way = rng.random()
    if way < 0.2:
        return sign * rng.choice([k for k in range(1, 12) if k % 3]) / 3
    if way < 0.5:
        return sign * rng.choice((rng.randrange(1, 40) / 10, rng.randrange(1, 400) / 100, rng.randrange(1, 3000) / 1000))
    if way < 0.7:
        return sign * rng.choice(IRRATIONAL) * rng.choice((1, 0.5, 1 / 3, 0.1, 2))
    if way < 0.8:
        return sign * (rng.randrange(0, 5) + rng.choice((1, -1)) * rng.choice((1e-2, 1e-4, 1e-7)))
    if way < 0.85:
        return sign * rng.choice((12.7, 31.4159, 123.4))
    if way < 0.9:
        return sign * rng.choice((1e-3, 2.7e-4, 0.013))
    if way < 0.96:
        return float(sign * rng.randrange(0, 6))
    return sign * rng.randrange(1, 10) / 2


def positive(rng: random.Random) -> float:
    """A positive number."""
    return abs(generic(rng)) or 1 / 3


class Word:
    """An op as users call it: how it is called and how read in a namespace, which shapes it takes, its domains, and its parameters."""

    def __init__(self, name: str, op: Op | None, call: Callable[..., Any], read: Callable[..., Any], arity: int = 1,
                 parameters: Callable[..., tuple[Any, ...]] = lambda rng, *shapes: (), fits: Callable[..., bool] = lambda *shapes: True,
                 domains: Sequence[Domain] = (), shapes: Sequence[Sequence[Shape]] = (), text: str = ""):
        self.name, self.op, self.call, self.read, self.arity = name, op, call, read, arity
        self.parameters, self.fits, self.domains, self.shapes, self.text = parameters, fits, tuple(domains), tuple(shapes), text
        self.complex: bool | None = None  # whether it takes complex numbers only (True), or real ones only (False)

    def domain(self, i: int) -> Domain:
        """The domain of an argument."""
        found = self.domains[min(i, len(self.domains) - 1)] if self.domains else REAL
        return REAL if found in (COMPLEX, FIXED) else found

    def said(self, given: Sequence[str], parameters: Sequence[Any]) -> str:
        """A call as text."""
        if self.text:
            return self.text.format(*given, *map(repr, parameters))
        if self.op is not None and self.op.arity is None:
            given = [f"[{', '.join(given)}]"]
        return f"{self.name}({', '.join([*given, *map(repr, parameters)])})"


def _first(y: Any) -> Any:
    """The first of several results that is a tensor of floats."""
    while isinstance(y, (tuple, list)):
        y = y[0]
    return y


# Parameters: functions of a random source and of the shapes of the operands


def _dims(rng: random.Random, shape: Shape) -> tuple[int, ...]:
    axes = [k for k in range(len(shape)) if rng.random() < 0.6]
    return tuple(axes or [rng.randrange(len(shape))]) if shape else ()


def _axis(rng: random.Random, shape: Shape) -> int:
    return rng.randrange(len(shape)) if shape else 0


def _reduced(rng: random.Random, shape: Shape, *_: Shape) -> tuple[Any, ...]:
    return _dims(rng, shape), rng.random() < 0.3


def _spread(rng: random.Random, shape: Shape) -> tuple[Any, ...]:
    return _dims(rng, shape), rng.choice((0, 1, 1, 0.5)), rng.random() < 0.3


def _along(rng: random.Random, shape: Shape, *_: Shape) -> tuple[Any, ...]:
    return (_axis(rng, shape),)


def _nonempty(shape: Shape, *_: Shape) -> bool:
    return len(shape) > 0 and math.prod(shape) > 0


def _broadcast(*shapes: Shape) -> bool:
    try:
        np.broadcast_shapes(*shapes)
        return True
    except ValueError:
        return False


def _scales(rng: random.Random, *_: Shape) -> tuple[Any, ...]:
    return generic(rng), generic(rng)


def _ordered(rng: random.Random, *_: Shape) -> tuple[Any, ...]:
    low, high = sorted((generic(rng), generic(rng)))
    return rng.choice(((low, high), (low, high), (None, high), (low, None)))


def _number(rng: random.Random, *_: Shape) -> tuple[Any, ...]:
    return (generic(rng),)


def _positive(rng: random.Random, *_: Shape) -> tuple[Any, ...]:
    return (positive(rng),)


def _reshaped(rng: random.Random, shape: Shape) -> tuple[Any, ...]:
    size = math.prod(shape)
    return (rng.choice([(size,), (1, size), *((n, size // n) for n in range(1, size + 1) if size % n == 0)]),)


def _permuted(rng: random.Random, shape: Shape) -> tuple[Any, ...]:
    order = list(range(len(shape)))
    rng.shuffle(order)
    return (tuple(order),)


def _index(rng: random.Random, shape: Shape) -> tuple[Any, ...]:
    n = shape[0]
    return (rng.choice((0, n - 1, slice(None, None, 2), slice(0, 1), [n - 1, 0, 0], (Ellipsis, 0), (None, 0))),)


NORMS = (1 / 3, 0.7, 1.3, math.e, 2.5, 3.0, 10 / 3, 4.0, 1.0, 2.0)
PARAMETERS: dict[str, Callable[..., tuple[Any, ...]]] = {
    **dict.fromkeys(("sum", "mean", "prod", "amax", "amin", "logsumexp", "vector_norm", "max_of_all", "max_along", "max_of_both", "min_of_all",
                     "min_along", "min_of_both", "sum_without_nan", "mean_with_var", "mean_with_std"), _reduced),
    **dict.fromkeys(("var", "std", "var_of_both", "std_of_both"), _spread),
    **dict.fromkeys(("cumsum", "cumprod", "logcumsumexp"), _along),
    **dict.fromkeys(("softmax", "log_softmax", "flip", "centred"), lambda rng, shape: (_dims(rng, shape),)),
    **dict.fromkeys(("cat", "stack"), _along),
    **dict.fromkeys(("addmm", "addmv", "addr", "baddbmm"), _scales),
    **dict.fromkeys(("clamp_number", "clamp"), _ordered),
    **dict.fromkeys(("clamp_below", "clamp_above", "clamp_min", "clamp_max", "add_product", "add_quotient", "addcmul", "addcdiv", "scaled",
                     "lerp_number", "lerp", "leaky_relu_of_real", "leaky_relu", "fmod_number", "sigmoid_of_product",
                     "sigmoid_slope_of_product", "copysign"), _number),
    **dict.fromkeys(("addcmul", "addcdiv"), lambda rng, *_: (generic(rng),)),
    **dict.fromkeys(("hardshrink_of_real", "softshrink_of_real", "hardshrink", "softshrink", "huber_of_real", "softplus", "celu"), _positive),
    "threshold_of_real": _scales, "threshold": _scales, "hardtanh": lambda rng, shape: tuple(sorted((generic(rng), 7 + positive(rng)))),
    "elu_of_real": lambda rng, shape: (positive(rng), positive(rng), positive(rng)), "elu": lambda rng, shape: (positive(rng),),
    "p_norm": lambda rng, shape: (rng.choice(NORMS), *_reduced(rng, shape)), "norm": lambda rng, shape: (rng.choice(NORMS),),
    "normalized": lambda rng, shape: (_dims(rng, shape), rng.choice((0.0, 1e-12, 1 / 3))),
    "linalg_vector_norm": lambda rng, shape: (rng.choice(NORMS),), "dist": lambda rng, *_: (rng.choice(NORMS),),
    "float_power": _number, "mse_loss": lambda rng, *_: (rng.choice(("mean", "sum", "none")),),
    **dict.fromkeys(("reshape", "view"), _reshaped), **dict.fromkeys(("permute", "transpose", "movedim"), _permuted),
    **dict.fromkeys(("getitem", "select_item", "slice_item"), _index),
    **dict.fromkeys(("expand", "broadcast_to"), lambda rng, shape: ((2, *shape),)), "repeat": lambda rng, shape: ((2, *[1] * (len(shape) - 1)),),
    "unsqueeze": lambda rng, shape: (rng.choice(((1, *shape), (*shape, 1))),),
    "squeeze": lambda rng, shape: (tuple(n for n in shape if n != 1), None),
    "roll": lambda rng, shape: (1, None), "clone": lambda rng, shape: ("K",), "diff": lambda rng, shape: (1,),
    "matrix_power": lambda rng, shape: (rng.choice((0, 1, 2, 3, 5, -1, -2)),), "quantile": lambda rng, shape: (rng.choice((0.1, 1 / 3, 0.77)),),
    "trapezoid": lambda rng, shape: (), "renorm": lambda rng, shape: (rng.choice((1.3, 2.0, 3.0)), 0, positive(rng)),
    "gelu": lambda rng, shape: rng.choice(((), ("tanh",))), "nan_to_num": lambda rng, shape: (), "prelu": lambda rng, *_: (),
    "logit": lambda rng, shape: (), "mvlgamma": lambda rng, shape: (rng.choice((1, 2, 3)),), "tril": lambda rng, shape: (rng.choice((-1, 0, 1)),),
    "triu": lambda rng, shape: (rng.choice((-1, 0, 1)),), "cov": lambda rng, shape: (), "cummax": _along, "cummin": _along,
    "sort": lambda rng, shape: (), "kthvalue": lambda rng, shape: (1,), "topk": lambda rng, shape: (1,), "narrow": lambda rng, shape: (0, 0, 1),
    **dict.fromkeys(("jv", "yv", "iv", "kv"), lambda rng, shape: (rng.choice((0, 1, 2, 1 / 3, 0.46, math.e, 4.25)),)),
    "polygamma": lambda rng, shape: (rng.choice((0, 1, 2, 3, 4)),),
    "orthogonal_polynomial": lambda rng, shape: (rng.randrange(8), rng.randrange(7), 0),
}
FURTHER_FITS: dict[str, Callable[..., bool]] = {
    **dict.fromkeys(("vector_norm", "p_norm", "normalized", "centred", "logcumsumexp", "mean_with_var", "mean_with_std", "max_of_all", "max_along",
                     "max_of_both", "min_of_all", "min_along", "min_of_both", "sum_without_nan", "select_item", "slice_item", "getitem"), _nonempty),
    **dict.fromkeys(("var", "std", "var_of_both", "std_of_both"), lambda a: _nonempty(a) and min(a) > 1),
    **dict.fromkeys(("complex", "polar", "real", "imag", "angle", "conj", "conjugate", "angle_of_complex", "where", "prelu_kernel"), _broadcast),
    "view_as_complex": lambda a: a[-1:] == (2,), "view_as_real": lambda a: True, "positive": lambda a: True, "zero": lambda a: True,
}
NUMBERS = ("chebyshev_polynomial", "hermite_polynomial", "legendre_polynomial", "laguerre_polynomial", "shifted_chebyshev")
ORDER_FIRST = ("polygamma", "jv", "yv", "iv", "kv")  # whose first argument is the order
LEFT_OUT = {
    **{name: "it moves an axis into a batch of `vmap` or out of it" for name in exempt("alone")},
    **{op.name: "it has no derivative" for op in REGISTRY.values() if not op.differentiable},
    "to_copy": "a copy in a type of its own",
}


def _perturbed(rng: random.Random, x: Any) -> Any:
    """Parameters like an example's: with other floats of the same signs."""
    if isinstance(x, tuple):
        return tuple(_perturbed(rng, v) for v in x)
    if type(x) is not float or not math.isfinite(x) or x == 0 or abs(x) > 100 or abs(x) < 1e-6:
        return x
    return math.copysign(positive(rng), x) if rng.random() < 0.8 else x


def _parameters(op: Op) -> Callable[..., tuple[Any, ...]]:
    if op.name in PARAMETERS:
        return PARAMETERS[op.name]
    if op.name.startswith(NUMBERS):
        return lambda rng, *shapes: (rng.randrange(9),)
    if not op.docs.examples:
        return lambda rng, *shapes: ()
    if op.kind == "elementwise" and op.name.endswith(("_derivative", "_slope", "_moment")) or op.kind not in ("elementwise", "composite"):
        return lambda rng, *shapes: rng.choice(op.docs.examples)
    return lambda rng, *shapes: _perturbed(rng, rng.choice(op.docs.examples))


def _word(op: Op) -> Word:
    variadic = op.arity is None
    arity, name = 2 if variadic else op.arity, op.name
    function = getattr(traced, name) if op.kind == "composite" else core(op)

    def call(*args: Any) -> Any:
        if variadic:
            args = (list(args[:arity]), *args[arity:])
        if name in ORDER_FIRST:
            args = (args[1], args[0])
        return _first(function(*args))

    def read(xp: Any, *args: Any) -> Any:
        if variadic:
            args = (list(args[:arity]), *args[arity:])
        if name in ORDER_FIRST:
            args = (args[1], args[0])
        return _first(getattr(xp, name)(*args))

    if name in ORDER_FIRST:
        arity = 1
    fits = FURTHER_FITS.get(name) or (FITS[name].fits if name in FITS else _broadcast if op.kind == "elementwise" else lambda *shapes: True)
    shapes: tuple[Any, ...] = ()
    listed = name in FITS or name in FURTHER_FITS or op.kind == "composite"
    if not listed and (op.docs.shapes or op.kind != "elementwise" and name not in PARAMETERS):
        shapes = (tuple(op.docs.shapes or ((3, 4),) * arity),)
        fits = lambda *given, own=shapes[0]: given == own  # noqa: E731
    elif name in ("mm", "mv", "dot", "addmm", "addmv", "addr", "baddbmm", "cross", "mse_loss") and op.docs.shapes:
        shapes = (tuple(op.docs.shapes), *((((2, 2), (2, 2)),) if name == "mm" else ()))
    domains = op.domain[1:] if name in ORDER_FIRST else op.domain
    return Word(name, op, call, read, arity, _parameters(op), fits, domains, shapes)


def _spelled(name: str, text: str, call: Callable[..., Any], read: Callable[..., Any], parameters: Callable[..., tuple[Any, ...]] = _number,
             *domains: Domain, arity: int = 1, fits: Callable[..., bool] = lambda *shapes: True) -> Word:
    return Word(name, None, call, read, arity, parameters, fits, domains, text=text)


class _Exponents:
    """Exponents for a base of any sign, or of positive numbers."""

    @staticmethod
    def any(rng: random.Random, *_: Shape) -> tuple[Any, ...]:
        return (rng.choice((1 / 3, 0.46, 0.1, -1 / 3, 2 / 3, generic(rng), generic(rng), generic(rng), math.pi, -0.7)),)

    @staticmethod
    def whole(rng: random.Random, *_: Shape) -> tuple[Any, ...]:
        return (rng.choice((0, 1, 2, 3, 4, 5, 2.0, 3.0, 7)),)

    @staticmethod
    def of_norms(rng: random.Random, *_: Shape) -> tuple[Any, ...]:
        return (rng.choice((2, 4, 3, 1.5, 7 / 3)),)


BASES = Domain("BASES", (Interval(0.0, math.inf, open_low=True),))
SPELLED = [
    _spelled("x ** p", "{0} ** {1}", lambda x, p: x**p, lambda xp, x, p: xp.pow(x, p), _Exponents.any, BASES),
    _spelled("pow(x, p)", "symgrad.pow({0}, {1})", lambda x, p: symgrad.pow(x, p), lambda xp, x, p: xp.pow(x, p), _Exponents.any, BASES),
    _spelled("x ** n", "{0} ** {1}", lambda x, n: x**n, lambda xp, x, n: xp.pow(x, n), _Exponents.whole, REAL),
    _spelled("x ** -n", "{0} ** -{1}", lambda x, n: x**-n, lambda xp, x, n: xp.pow(x, -n), _Exponents.whole, NONZERO),
    _spelled("p ** x", "{1} ** {0}", lambda x, p: p**x, lambda xp, x, p: xp.pow(p, x), _positive, REAL),
    _spelled("x + c", "{0} + {1}", lambda x, c: x + c, lambda xp, x, c: x + c),
    _spelled("c - x", "{1} - {0}", lambda x, c: c - x, lambda xp, x, c: c - x),
    _spelled("x * c", "{0} * {1}", lambda x, c: x * c, lambda xp, x, c: x * c),
    _spelled("x / c", "{0} / {1}", lambda x, c: x / c, lambda xp, x, c: x / c, _positive),
    _spelled("c / x", "{1} / {0}", lambda x, c: c / x, lambda xp, x, c: c / x, _number, NONZERO),
    _spelled("power of a norm", "(({0} * {0}).sum().sqrt()) ** {1}", lambda x, p: (x * x).sum().sqrt() ** p,
             lambda xp, x, p: xp.pow(xp.sqrt(xp.sum(x * x, tuple(range(len(x.shape))), False)), p), _Exponents.of_norms),
    _spelled("norm ** p", "{0}.norm() ** {1}", lambda x, p: x.norm() ** p,
             lambda xp, x, p: xp.pow(xp.vector_norm(x, tuple(range(len(x.shape))), False), p), _Exponents.of_norms,
             fits=lambda shape: bool(shape)),
    _spelled("hypot ** p", "symgrad.hypot({0}, {1}) ** {2}", lambda x, y, p: symgrad.hypot(x, y) ** p,
             lambda xp, x, y, p: xp.pow(xp.hypot(x, y), p), _Exponents.of_norms, arity=2, fits=_broadcast),
    _spelled("relu ** p", "symgrad.relu({0}) ** {1}", lambda x, p: symgrad.relu(x) ** p, lambda xp, x, p: xp.pow(xp.relu(x), p),
             lambda rng, *_: (rng.choice((0.5, 1 / 3, 2, 3, 2.5, 1.7)),)),
    _spelled("sum of squares", "({0} * {0}.conj()).real", lambda z: (z * z.conj()).real, lambda xp, z: xp.real(z * xp.conj(z)), lambda rng, *_: ()),
]
COMPLEX_ONLY = ("real", "imag", "angle", "sum of squares", "conj", "conjugate", "sgn", "view_as_real", "angle_of_complex")
WORDS: dict[str, Word] = {op.name: _word(op) for op in REGISTRY.values() if op.name not in LEFT_OUT} | {word.name: word for word in SPELLED}
for _name in COMPLEX_ONLY:
    WORDS[_name].complex = True
for _name in ("complex", "polar", "polar_parts", "view_as_complex", "one_minus_square"):
    WORDS[_name].complex = False
WEIGHTS = [10 if word.op is None else 3 if word.op.surface.public and word.op.kind != "linear" else 1 for word in WORDS.values()]
"""How often each word is drawn: spellings of users most often, then public ops."""
