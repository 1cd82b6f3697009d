"""Activations and losses."""

import math

from symgrad.op import elementwise, primitive
from symgrad.ops.rules import axes

elementwise("relu", None, lambda xp, y, x: xp.indicator(xp.gt(x, 0), y), integers=True, chooses=True, special=((0.0,), (-0.0,)),
            doc="max(input, 0); the derivative at 0 is 0.")
elementwise("sigmoid", None, lambda xp, y, x: xp.sech_square(x / 2) / 4, special=((40.0,), (-40.0,)), aliases=("expit",),
            doc="1 / (1 + exp(-input)).")
elementwise("logsigmoid", None, lambda xp, y, x: xp.sigmoid(-x), special=((40.0,), (-40.0,)), node_name="LogSigmoid",
            doc="log(sigmoid(input)), without cancellation.")
elementwise("softplus", lambda xp, input, beta=1.0: xp.softplus(input, beta), lambda xp, y, x, beta=1.0: xp.sigmoid(x if beta == 1 else beta * x),
            prepare=lambda xp, input, beta=1.0, threshold=20.0: (input, beta), examples=((), (2.0,)), special=((40.0,), (-40.0,)),
            usage="symgrad.softplus(x, beta=2.0)", doc="log(1 + exp(beta input)) / beta. It is exact everywhere, so `threshold` has no effect.")
elementwise("logaddexp", None, lambda xp, y, a, b: xp.sigmoid(a - b), lambda xp, y, a, b: xp.sigmoid(b - a),
            special=((0.0, 0.0),), doc="log(exp(input) + exp(other)), without overflow.")


def _along(xp, input, dim=None, dtype=None):
    if dim is None:
        raise TypeError("softmax: give the dimension to normalise over, as dim=-1")
    input = input if dtype is None else input.to(dtype)
    return input, axes(dim, input.ndim)


primitive("reference", lambda xp, input, weights, dim: xp.reference(input, weights, dim), arity=2, public=False, examples=(((1,),), ((0, 1),)),
          doc="The element of the input that stands where `weights` is largest along `dim`, taken as a constant.")


def _softmax_product(xp, t, y, dim):
    """y (t - Σ y t): without cancellation where one y is almost 1, by what differs from the t that stands there."""
    t = t - xp.reference(t, y, dim)
    return y * (t - xp.sum(t * y, dim, True))


def _log_softmax_vjp(xp, g, y, x, dim):
    """g - softmax(x) Σ g, where what an element takes from itself is 1 - exp(y)."""
    return -xp.expm1(y) * g - xp.softmax(x, dim) * (xp.sum(g, dim, True) - g)


def _log_softmax_jvp(xp, t, y, x, dim):
    t = t - xp.reference(t, y, dim)
    return t - xp.sum(t * xp.softmax(x, dim), dim, True)


primitive("softmax", lambda xp, input, dim: xp.softmax(input, dim), prepare=_along, examples=(((0,),), ((1,),), ((0, 1),)), shapes=((2, 3),),
          vjp=lambda xp, g, y, x, dim: _softmax_product(xp, g, y, dim), jvp=lambda xp, t, y, x, dim: _softmax_product(xp, t, y, dim),
          usage="symgrad.softmax(a, dim=1)", doc="exp(input) / Σ exp(input) along `dim`.")
primitive("log_softmax", lambda xp, input, dim: xp.log_softmax(input, dim), prepare=_along, examples=(((0,),), ((1,),), ((0, 1),)), shapes=((2, 3),),
          vjp=_log_softmax_vjp, jvp=_log_softmax_jvp,
          usage="symgrad.log_softmax(a, dim=1)", doc="log(softmax(input)) along `dim`, without cancellation.")


def _reduced(xp, x, reduction):
    if reduction == "none":
        return x
    total = xp.sum(x, tuple(range(x.ndim)), False)
    return total if reduction == "sum" else total / math.prod(x.shape)


def _weight(g, shape, reduction):
    return g / math.prod(shape) if reduction == "mean" else g


def _losses(xp, input, target, reduction="mean"):
    if reduction not in ("mean", "sum", "none"):
        raise ValueError(f"{reduction} is not a valid value for reduction; use 'mean', 'sum' or 'none'")
    return input, target, reduction


def _mse_vjp(xp, g, y, x, target, reduction):
    difference = x - target
    cotangent = 2 * _weight(g, difference.shape, reduction) * difference
    return cotangent, -cotangent


primitive("mse_loss", lambda xp, input, target, reduction: _reduced(xp, xp.square(input - target), reduction), arity=2, prepare=_losses,
          method=False, vjp=_mse_vjp, examples=(("mean",), ("sum",), ("none",)),
          jvp=lambda xp, t, s, y, x, target, reduction: _reduced(xp, 2 * (x - target) * (t - s), reduction),
          usage="symgrad.mse_loss(a, 2 * a)", doc="The mean (or sum, or each) of (input - target)².")
