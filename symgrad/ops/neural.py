"""Activations and losses, and sums over the paths of a sequence of states through a sequence of steps, in logarithms."""

import math

from symgrad.arguments import check_kind, check_option
from symgrad.graph.domains import REAL, Domain, Interval
from symgrad.graph.op import composite, elementwise, linear, multilinear, primitive
from symgrad.ops.arithmetic import _is_integer
from symgrad.ops.reduction import sum_over_count
from symgrad.ops.rules import axes, divided_by_count, in_one_dtype, is_complex

elementwise("relu", None, lambda xp, y, x: xp.indicator(xp.gt(x, 0), y),
            kinks=((0.0,),), integers=True, refuses="b", saved=("result",), inverse=lambda xp, y: y,
            special=((0.0,), (-0.0,)),
            doc="max(input, 0); the derivative at 0 is 0.")
@composite("sigmoid_slope", arity=2, public=False)
def sigmoid_slope(xp, output, input):
    """The derivative of the sigmoid, with accurate derivatives of every order; for numbers it is computed from the output."""
    return xp.sech_square(input / 2) / 4


elementwise("sigmoid", None, lambda xp, y, x: xp.sigmoid_slope(y, x), saved=("result",), inverse=lambda xp, y: xp.log(y) - xp.log1p(-y),
            special=((40.0,), (-40.0,)), aliases=("expit",),
            doc="1 / (1 + exp(-input)).")
elementwise("logsigmoid", None, lambda xp, y, x: xp.sigmoid(-x), special=((40.0,), (-40.0,)), node_name="LogSigmoid", layout="rows",
            doc="log(sigmoid(input)), without cancellation.")
elementwise("sigmoid_slope_of_product", lambda xp, input, beta: xp.sigmoid_slope_of_product(input, beta),
            lambda xp, y, x, beta: -beta * y * xp.tanh(beta * x / 2), public=False, refuses="c", examples=((2.0,),),
            doc="sigmoid(beta input) sigmoid(-beta input).")
elementwise("sigmoid_of_product", lambda xp, input, beta: xp.sigmoid_of_product(input, beta),
            lambda xp, y, x, beta: beta * xp.sigmoid_slope_of_product(x, beta), public=False, refuses="c", examples=((2.0,),),
            doc="sigmoid(beta input), accurate where the product is large and rounded.")
elementwise("softplus", lambda xp, input, beta=1.0: xp.softplus(input, beta),
            lambda xp, y, x, beta=1.0: xp.sigmoid(x) if beta == 1 else xp.sigmoid_of_product(x, beta),
            prepare=lambda xp, input, beta=1.0, threshold=20.0: (input, beta), examples=((), (2.0,)), special=((40.0,), (-40.0,)),
            usage="symgrad.softplus(x, beta=2.0)", doc="log(1 + exp(beta input)) / beta. It is exact everywhere, so `threshold` has no effect.")
elementwise("sigmoid_slope_of_difference", None, lambda xp, y, a, b: -y * xp.tanh((a - b) / 2), lambda xp, y, a, b: y * xp.tanh((a - b) / 2),
            public=False, method=False, doc="sigmoid(input - other) sigmoid(other - input).")
elementwise("sigmoid_of_difference", None, lambda xp, y, a, b: xp.sigmoid_slope_of_difference(a, b),
            lambda xp, y, a, b: -xp.sigmoid_slope_of_difference(a, b), public=False, method=False,
            doc="sigmoid(input - other), accurate where the difference is large and rounded.")
elementwise("logaddexp", None, lambda xp, y, a, b: xp.sigmoid_of_difference(a, b), lambda xp, y, a, b: xp.sigmoid_of_difference(b, a),
            kinks=((0.0, -math.inf), (-math.inf, -math.inf)), special=((0.0, 0.0),),
            doc="log(exp(input) + exp(other)), without overflow; equal infinite numbers share the gradient equally.")


def _softmax_arguments(xp, input, dim=None, dtype=None):
    if dim is None:
        raise TypeError("softmax: give the dimension to normalise over, as dim=-1")
    input = input if dtype is None else input.to(dtype)
    check_kind("softmax", input, "fc")
    return input, axes(dim, input.ndim)


primitive("reference", lambda xp, input, weights, dim: xp.reference(input, weights, dim), arity=2, public=False, examples=(((1,),), ((0, 1),)),
          doc="The element of the input at the largest element of `weights` along `dim`; the weights are constants.")


def _softmax_product(xp, t, y, dim):
    """y (t - Σ y t): computed with differences from the t of the largest y, to avoid cancellation where that y is almost 1."""
    t = t - xp.reference(t, y, dim)
    return y * (t - xp.sum(t * y, dim, True))


def _sum_of_others(xp, g, y, dim):
    """Σ g - g, where the g of the largest y is added separately, since the sum of the others would be lost by rounding beside it."""
    if is_complex(y) or not math.prod(y.shape):  # complex numbers are not ordered
        return xp.sum(g, dim, True) - g
    top = g * xp.indicator(xp.eq(y, xp.amax(y, dim, True)), y)
    rest = g - top
    return (xp.sum(rest, dim, True) - rest) + (xp.sum(top, dim, True) - top)


def _log_softmax_vjp(xp, g, y, x, dim):
    """g - softmax(x) Σ g, where the factor of an element's own g is 1 - exp(y), and softmax(x) = softmax(y)."""
    return -xp.expm1(y) * g - xp.softmax(y, dim) * _sum_of_others(xp, g, y, dim)


def _log_softmax_jvp(xp, t, y, x, dim):
    t = t - xp.reference(t, y, dim)
    return t - xp.sum(t * xp.softmax(y, dim), dim, True)


primitive("softmax", lambda xp, input, dim: xp.softmax(input, dim),
          kinks=(([math.inf, 0.0], 0), ([-math.inf, 0.0], 0), ([-math.inf, -math.inf], 0)),
          prepare=_softmax_arguments, examples=(((0,),), ((1,),), ((0, 1),)),
          shapes=((2, 3),), layout="rows",
          vjp=lambda xp, g, y, x, dim: _softmax_product(xp, g, y, dim), jvp=lambda xp, t, y, x, dim: _softmax_product(xp, t, y, dim),
          saved=("result",), usage="symgrad.softmax(a, dim=1)", doc="exp(input) / Σ exp(input) along `dim`.")
primitive("log_softmax", lambda xp, input, dim: xp.log_softmax(input, dim),
          kinks=(([-math.inf, 0.0], 0),), prepare=_softmax_arguments, examples=(((0,),), ((1,),), ((0, 1),)),
          shapes=((2, 3),), layout="rows",
          vjp=_log_softmax_vjp, jvp=_log_softmax_jvp, saved=("result",),
          usage="symgrad.log_softmax(a, dim=1)", doc="log(softmax(input)) along `dim`, without cancellation.")


def _reduce(xp, x, reduction):
    if reduction == "none":
        return x
    dims = tuple(range(x.ndim))
    return xp.sum(x, dims, False) if reduction == "sum" else sum_over_count(xp, x, dims, False, math.prod(x.shape))


def _reduction_cotangent(xp, g, shape, reduction):
    return divided_by_count(xp, g, math.prod(shape) or 1) if reduction == "mean" else g


def _loss_arguments(xp, input, target, reduction="mean"):
    check_option("mse_loss", "reduction", reduction, ("mean", "sum", "none"), ValueError)
    return *in_one_dtype(input, target), reduction


def _mse_arguments(xp, input, target, reduction="mean"):
    """The arguments of a loss; two tensors of integers as floats, before those of few bits wrap around."""
    if _is_integer(input) and _is_integer(target):
        input, target = input / 1, target / 1
    return _loss_arguments(xp, input, target, reduction)


def _mse_vjp(xp, g, y, x, target, reduction):
    difference = x - target
    cotangent = 2 * _reduction_cotangent(xp, g, difference.shape, reduction) * difference
    return cotangent, -cotangent


primitive("mse_loss", lambda xp, input, target, reduction: _reduce(xp, xp.square(input - target), reduction), arity=2, prepare=_mse_arguments,
          method=False, layout="operands", vjp=_mse_vjp, saved=("input target",) * 2, examples=(("mean",), ("sum",), ("none",)),
          jvp=lambda xp, t, s, y, x, target, reduction: _reduce(xp, 2 * (x - target) * (t - s), reduction),
          usage="symgrad.mse_loss(a, 2 * a)", doc="(input - target)², reduced by the mean, the sum, or not.")


PROBABILITY = Domain("PROBABILITY", (Interval(0.0, 1.0),))
REDUCTIONS = (("mean",), ("sum",), ("none",))
LEAST_LOG, LEAST_VARIANCE = -100.0, 9.999999960041972e-13  # torch's limits (the second as float32 has it), so that nothing is infinite at 0


def _entropy_vjp(rule):
    """A pullback, from the rule for functions that compute the loss of each element and its two (or three) partial derivatives."""
    def vjp(xp, g, y, x, target, weight, *rest):
        *positive, reduction = rest
        each, *partials = rule(xp, x, target, *positive)
        found = [partial() for partial in partials]
        if type(weight) is float:  # not a tensor of one number, whose value is a float too
            scaled = _reduction_cotangent(xp, g, found[0].shape, reduction)
            by_x, by_target, *by_positive = (scaled * (weight * partial if weight != 1 else partial) for partial in found)
            return by_x, by_target, None, *by_positive
        scaled = _reduction_cotangent(xp, g, (weight * found[0]).shape, reduction)
        by_x, by_target, *by_positive = (scaled * weight * partial for partial in found)
        return by_x, by_target, scaled * each(), *by_positive

    return vjp


def _entropy_jvp(rule):
    def jvp(xp, *given):
        count = 4 if len(given) > 8 else 3
        tangents, (_, x, target, weight, *positive), reduction = given[:count], given[count:-1], given[-1]
        each, *partials = rule(xp, x, target, *positive)
        along = sum(partial() * t for partial, t in zip(partials, (*tangents[:2], *tangents[3:])))
        return _reduce(xp, weight * along + tangents[2] * each(), reduction)

    return jvp


def _cross_entropy(xp, x, target):
    """-t log(x) - (1 - t) log(1 - x), and its derivatives by x and t."""
    no, yes = xp.maximum(xp.log1p(-x), LEAST_LOG), xp.maximum(xp.log(x), LEAST_LOG)
    return (lambda: (target - 1) * no - target * yes, lambda: (x - target) / xp.maximum((1 - x) * x, LEAST_VARIANCE), lambda: no - yes)


def _logistic_cross_entropy(xp, x, target, positive):
    """-p t log(s(x)) - (1 - t) log(s(-x)), s the sigmoid, and its derivatives by x, t and p: without cancellation in either tail.

    `positive` is p; without one it is the number 1.0, and the derivative by t is -x exactly.
    """
    yes, no = xp.logsigmoid(x), xp.logsigmoid(-x)
    return (lambda: (target - 1) * no - positive * target * yes, lambda: (1 - target) * xp.sigmoid(x) - positive * target * xp.sigmoid(-x),
            lambda: -x if type(positive) is float else no - positive * yes, lambda: -target * yes)


primitive("binary_cross_entropy", lambda xp, input, target, weight, reduction:
          _reduce(xp, weight * _cross_entropy(xp, input, target)[0](), reduction), vjp=_entropy_vjp(_cross_entropy),
          jvp=_entropy_jvp(_cross_entropy), arity=3, domain=(PROBABILITY, PROBABILITY, REAL), examples=REDUCTIONS,
          shapes=((2, 3),) * 3, public=False, saved=("input target weight", "input target weight", "input target"),
          doc="-weight (target log(input) + (1 - target) log(1 - input)), reduced by the mean, the sum, or not.")
primitive("binary_cross_entropy_with_logits", lambda xp, input, target, weight, pos_weight, reduction:
          _reduce(xp, weight * _logistic_cross_entropy(xp, input, target, pos_weight)[0](), reduction), vjp=_entropy_vjp(_logistic_cross_entropy),
          jvp=_entropy_jvp(_logistic_cross_entropy),
          arity=4, domain=(REAL, PROBABILITY, REAL, REAL), examples=REDUCTIONS, shapes=((2, 2),) * 4, public=False,
          saved=("input target weight pos_weight", "input target weight pos_weight", "input target pos_weight", "input target weight"),
          doc="binary_cross_entropy of sigmoid(input), without cancellation; `pos_weight` is the weight of targets that are 1.")


def _zeros_with(xp, values, index, shape):
    return xp.put(xp.zeros_like(values, shape), values, index, False)


def _nll(xp, each, total, at):
    """-Σ each / total; without a total the separate losses, written to zeros at `at` (an index, and the shape)."""
    return sum_over_count(xp, -each, (0,), False, total) if at is None else _zeros_with(xp, -each, *at)


def _nll_transpose(xp, g, index, total, at):
    """The transpose of `_nll`: a cotangent for each of the elements that `index` names."""
    return -(xp.broadcast_to(divided_by_count(xp, g, total), (len(index[0]),)) if at is None else xp.getitem(g, at[0]))


_CLASSES = ([0, 1, 2], [1, 0, 1])
for _name, _node_name in {"nll_loss": "NllLoss", "nll_loss2d": "NllLoss2D"}.items():
    linear(_name, lambda xp, input, index, total, at: _nll(xp, xp.getitem(input, index), total, at),
           lambda xp, g, shape, index, total, at: _zeros_with(xp, _nll_transpose(xp, g, index, total, at), index, shape), node_name=_node_name,
           examples=((_CLASSES, 3.0, None), (_CLASSES, None, ([0, 3, 1], (4,)))), public=False,
           doc="The negative (log-)probabilities of the true classes, reduced by the mean, the sum, or not.")
    multilinear(f"weighted_{_name}", lambda xp, input, weight, index, total, at: _nll(xp, weight * xp.getitem(input, index), total, at),
                lambda xp, g, x, weight, index, total, at: _zeros_with(xp, weight * _nll_transpose(xp, g, index, total, at), index, x.shape),
                lambda xp, g, x, weight, index, total, at: _nll_transpose(xp, g, index, total, at) * xp.getitem(x, index), node_name=_node_name,
                shapes=((3, 4), (3,)), examples=((_CLASSES, 3.0, None), (_CLASSES, None, ([0, 3, 1], (4,)))), public=False,
                doc="As nll_loss, with a weight for each of the true classes.")


def _first(xp, x, count, value):
    """x, with a value in the place of all states but the first ones."""
    if count >= x.shape[-1]:
        return x
    rest = xp.getitem(x, (..., slice(count, None)))
    return xp.cat((xp.getitem(x, (..., slice(0, count))), xp.zeros_like(rest) + value), len(x.shape) - 1)


def _from_before(xp, x, count, value):
    """x of the state `count` places before, and a value where there is none."""
    width = max(x.shape[-1] - count, 0)
    return xp.cat((xp.zeros_like(xp.getitem(x, (..., slice(width, None)))) + value, xp.getitem(x, (..., slice(0, width)))), len(x.shape) - 1)


def _from_after(xp, x, count):
    """x of the state `count` places after, and 0 where there is none: the transpose of `_from_before`."""
    start = min(count, x.shape[-1])
    return xp.cat((xp.getitem(x, (..., slice(start, None))), xp.zeros_like(xp.getitem(x, (..., slice(0, start))))), len(x.shape) - 1)


def _arriving(xp, y, skips, zero):
    """The logarithms with which a state is reached from itself, from the state before, and from the one before that."""
    return y, _from_before(xp, y, 1, zero), _from_before(xp, y, 2, zero) + skips


def _shares(xp, y, skips, zero):
    """The shares of the three in their sums, at all steps but the first."""
    before = xp.getitem(y, slice(0, y.shape[0] - 1))
    return xp.softmax(xp.stack(_arriving(xp, before, skips, zero), 0), (0,))


def _log_path_sums(xp, input, skips, zero):
    rows = []
    for t in range(input.shape[0]):
        each = xp.getitem(input, t)
        if rows:
            stay, step, skip = _arriving(xp, rows[-1], skips, zero)
            each = each + xp.logaddexp(xp.logaddexp(stay, step), skip)
        rows.append(_first(xp, each, 2 * t + 2, zero))
    return xp.stack(rows, 0)


def _log_path_sums_vjp(xp, g, y, input, skips, zero):
    shares, rows, by_skips = _shares(xp, y, skips, zero), [], xp.zeros_like(skips)
    for t in reversed(range(y.shape[0])):
        each = xp.getitem(g, t)
        if rows:
            stay, step, skip = (xp.getitem(shares, (i, t)) * rows[-1] for i in range(3))
            each = each + stay + _from_after(xp, step, 1) + _from_after(xp, skip, 2)
            by_skips = by_skips + skip
        rows.append(_first(xp, each, 2 * t + 2, 0))
    return xp.stack(rows[::-1], 0), by_skips


def _log_path_sums_jvp(xp, t, by_skips, y, input, skips, zero):
    shares, rows = _shares(xp, y, skips, zero), []
    for step in range(y.shape[0]):
        each = xp.getitem(t, step)
        if rows:
            tangents = rows[-1], _from_before(xp, rows[-1], 1, 0), _from_before(xp, rows[-1], 2, 0) + by_skips
            for i, tangent in enumerate(tangents):
                each = each + xp.getitem(shares, (i, step - 1)) * tangent
        rows.append(_first(xp, each, 2 * step + 2, 0))
    return xp.stack(rows, 0)


primitive("log_path_sums", _log_path_sums, vjp=_log_path_sums_vjp, jvp=_log_path_sums_jvp, arity=2, public=False, layout="rows",
          shapes=((2, 1, 3), (1, 3)), examples=((-1e3,),), saved=("result skips",) * 2,
          doc="For logarithms of weights (T, N, S) and factors `skips` (N, S): the logarithm of the sum, over the paths to each state at each step, "
              "of the product of the weights along the path. A path begins at one of the first two states, and at each step stays, goes to the next "
              "state, or with a factor of `skips` to the one after it. Where no path arrives the result is `zero`, which stands for log(0).")
