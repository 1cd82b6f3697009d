"""Activations: piecewise linear ones, exponential ones, and products with a distribution function."""

from symgrad.arguments import check_dims, check_kind, check_least_rank, check_option, check_range
from symgrad.graph.domains import Domain, Interval
from symgrad.graph.op import composite, elementwise, primitive
from symgrad.layouts.strides import is_plain
from symgrad.ops.arithmetic import _is_integer
from symgrad.ops.rules import as_floats, axis

elementwise("softsign_of_real", None, lambda xp, y, x: xp.square(1 / (1 + xp.abs(x))), public=False,
            special=((0.0,), (-0.0,)), node_name="Softsign", doc="input / (1 + |input|).")
ONE = ("input",)  # saved by an op of one tensor
NEAR = Domain("NEAR", (Interval(-5.0, 5.0),))  # where exp(-x²/2) keeps its digits as a formula; the rules are accurate everywhere
elementwise("gelu_derivative", lambda xp, input, order: xp.gelu_derivative(input, order), lambda xp, y, x, order: xp.gelu_derivative(x, order + 1),
            domain=NEAR, public=False, examples=((2,),), node_name="Gelu", doc="The derivatives of input Φ(input) of order 2 and more.")
elementwise("gelu_slope", None, lambda xp, y, x: xp.gelu_derivative(x, 2), domain=NEAR, public=False, node_name="Gelu",
            doc="The derivative of input Φ(input), accurate in the left tail and next to its root.")
elementwise("gelu_exact", None, lambda xp, y, x: xp.gelu_slope(x), public=False, special=((0.0,), (-0.0,)), node_name="Gelu",
            doc="input Φ(input), Φ the distribution function of the standard normal distribution, accurate in the left tail.")
BESIDE_0 = Domain("BESIDE_0", (Interval(-1.0, 1.0),))  # where there is no other root of a derivative, next to which a formula loses digits
elementwise("gelu_tanh_derivative", lambda xp, input, order: xp.gelu_tanh_derivative(input, order),
            lambda xp, y, x, order: xp.gelu_tanh_derivative(x, order + 1), domain=BESIDE_0, public=False, examples=((2,),), node_name="Gelu",
            doc="The derivatives of the approximation of input Φ(input) by tanh of order 2 and more.")
elementwise("gelu_tanh_slope", None, lambda xp, y, x: xp.gelu_tanh_derivative(x, 2), domain=NEAR, public=False, node_name="Gelu",
            doc="The derivative of the approximation of input Φ(input) by tanh, accurate in the left tail and next to its root.")
elementwise("gelu_tanh", None, lambda xp, y, x: xp.gelu_tanh_slope(x), public=False, special=((0.0,), (-0.0,)), node_name="Gelu",
            doc="input (1 + tanh(√(2/π) (input + 0.044715 input³))) / 2, accurate in the left tail.")
BETWEEN_ROOTS = Domain("BETWEEN_ROOTS", (Interval(0.25, 1.25),))  # of derivatives, as above


def _define_gated(name, what):
    derivative = f"{name}_derivative"
    elementwise(derivative, lambda xp, input, order: getattr(xp, derivative)(input, order),
                lambda xp, y, x, order: getattr(xp, derivative)(x, order + 1), domain=BETWEEN_ROOTS, public=False, examples=((2,),),
                node_name=name.capitalize(), doc=f"The derivatives of {what} of order 2 and more.")
    elementwise(f"{name}_slope", None, lambda xp, y, x: getattr(xp, derivative)(x, 2), domain=BETWEEN_ROOTS, public=False,
                node_name=name.capitalize(), doc=f"The derivative of {what}, accurate in the left tail and next to its root.")
    elementwise(f"{name}_of_real", None, lambda xp, y, x: getattr(xp, f"{name}_slope")(x), public=False, special=((0.0,), (-0.0,)),
                node_name=name.capitalize(), saved=ONE, doc=f"{what}, accurate in the left tail.")


_define_gated("silu", "input sigmoid(input)")
_define_gated("mish", "input tanh(softplus(input))")
elementwise("tanhshrink_of_real", None, lambda xp, y, x: xp.square(xp.tanh(x)), public=False, special=((0.0,), (-0.0,)), node_name="Sub",
            doc="input - tanh(input), accurate next to 0.")


@composite("gelu", elementwise=True, public=False, examples=((), ("tanh",)))
def gelu(xp, input, approximate="none"):
    """input Φ(input), or with 'tanh' the approximation input (1 + tanh(√(2/π) (input + 0.044715 input³))) / 2."""
    check_option("gelu", "approximate", approximate, ("none", "tanh"))
    return xp.gelu_exact(input) if approximate == "none" else xp.gelu_tanh(input)


@composite("softsign", elementwise=True, public=False)
def softsign(xp, input):
    """input / (1 + |input|)."""
    return input / (1 + xp.abs(input)) if input.is_complex() else xp.softsign_of_real(input)


@composite("tanhshrink", elementwise=True, public=False)
def tanhshrink(xp, input):
    """input - tanh(input)."""
    return input - xp.tanh(input) if input.is_complex() else xp.tanhshrink_of_real(input)


@composite("silu", elementwise=True, public=False)
def silu(xp, input):
    """input sigmoid(input)."""
    return input * xp.sigmoid(input) if input.is_complex() else xp.silu_of_real(input)


@composite("mish", elementwise=True, public=False)
def mish(xp, input):
    """input tanh(softplus(input))."""
    return xp.mish_of_real(input)


def _up_to_0(xp, x):
    """x where it is negative, else 0, so that no exponential of a large number is computed, whose derivatives would be infinite."""
    return xp.where(xp.gt(x, 0), 0.0, x)


FEW = 1000  # numbers of which a choice takes as long as the arithmetic


def _times(number, x):
    return x if number == 1 else number * x


def _elu(xp, input, alpha, scale, input_scale):
    if is_plain(input) and input.size <= FEW:  # a sum, one of whose terms is 0; of two equal zeros NumPy takes the second
        return _times(scale * alpha, xp.expm1(_times(input_scale, xp.minimum(0.0, input)))) + _times(scale, xp.maximum(-0.0, input))
    return xp.where(xp.gt(input, 0), scale * input, scale * alpha * xp.expm1(input_scale * _up_to_0(xp, input)))


def _elu_slope(xp, y, x, alpha, scale, input_scale):
    if is_plain(x) and alpha * input_scale == 1:
        return _times(scale, xp.exp(_times(input_scale, xp.minimum(x, 0.0))))
    return xp.where(xp.gt(x, 0), scale, scale * alpha * input_scale * xp.exp(input_scale * _up_to_0(xp, x)))


ALPHAS = ((1.0, 1.0, 1.0), (0.75, 1.5, 2.0))
elementwise("elu_of_real", _elu, _elu_slope, public=False, special=((0.0,), (-0.0,)), refuses="c", examples=ALPHAS, saved=ONE,
            node_name="Elu",
            doc="scale input where it is positive, else scale alpha (exp(input_scale input) - 1); the derivative at 0 is that from below. "
                "An `input_scale` below 1 takes digits of subnormal numbers.")
elementwise("leaky_relu_of_real", lambda xp, input, slope: xp.where(xp.gt(input, 0), input, slope * input),
            lambda xp, y, x, slope: xp.where(xp.gt(x, 0), 1.0, slope * xp.ones_like(x)), public=False, special=((0.0,), (-0.0,)),
            refuses="c", examples=((0.25,), (0.0,)), saved=ONE, node_name="LeakyRelu",
            doc="The input where it is positive, else slope times the input; the derivative at 0 is that from below.")
elementwise("threshold_of_real", lambda xp, input, threshold, value: xp.where(xp.le(input, threshold), value, input),
            lambda xp, y, x, threshold, value: xp.indicator(xp.gt(x, threshold), x), public=False, refuses="c", integers=True,
            examples=((0.5, 2.0),), saved=ONE, node_name="Threshold",
            doc="The input where it is above `threshold`, else `value`; the derivative there is 0.")
elementwise("hardshrink_of_real", lambda xp, input, lambd: xp.where(xp.le(xp.abs(input), lambd), 0.0, input),
            lambda xp, y, x, lambd: xp.indicator(xp.gt(xp.abs(x), lambd), x), public=False, refuses="c", examples=((0.5,),),
            saved=ONE, node_name="Hardshrink", doc="The input, and 0 where its absolute value is at most `lambd`.")
elementwise("softshrink_of_real", lambda xp, input, lambd: xp.where(xp.le(xp.abs(input), lambd), 0.0, input - xp.sign(input) * lambd),
            lambda xp, y, x, lambd: xp.indicator(xp.gt(xp.abs(x), lambd), x), public=False, refuses="c", examples=((0.5,),),
            saved=ONE, node_name="Softshrink", doc="The input moved towards 0 by `lambd`, and 0 where its absolute value is at most `lambd`.")


def _huber(error, limited):
    """The loss of an error, from the error limited to [-delta, delta]."""
    return limited * (error - 0.5 * limited)


THREE = ((3.0,), (-3.0,))
elementwise("hardsigmoid_of_real", lambda xp, input: xp.minimum(xp.maximum(input + 3, 0), 6) / 6,
            lambda xp, y, x: xp.indicator(xp.lt(xp.abs(x), 3), x) / 6, public=False, special=THREE, saved=ONE,
            node_name="Hardsigmoid", doc="(input + 3) / 6 limited to [0, 1].")
elementwise("hardswish_of_real", lambda xp, input: input * (xp.minimum(xp.maximum(input + 3, 0), 6) / 6),
            lambda xp, y, x: xp.where(xp.lt(xp.abs(x), 3), (2 * x + 3) / 6, xp.indicator(xp.gt(x, 0), x)), public=False, special=THREE, saved=ONE,
            node_name="Hardswish", doc="input hardsigmoid(input).")
elementwise("huber_of_real", lambda xp, input, delta: _huber(input, xp.minimum(xp.maximum(input, -delta), delta)),
            lambda xp, y, x, delta: xp.where(xp.lt(xp.abs(x), delta), x, delta * xp.sign(x)), public=False, refuses="c", examples=((1.0,), (0.25,)),
            special=((1.0,), (-1.0,), (0.25,), (-0.25,)), doc="input² / 2 where |input| is below delta, else delta (|input| - delta / 2).")


@composite("elu", elementwise=True, kinks=((0.0,),), public=False, examples=((), (0.75, 1.5, 2.0)))
def elu(xp, input, alpha=1.0, scale=1.0, input_scale=1.0):
    """scale input where it is positive, else scale alpha (exp(input_scale input) - 1); the derivative at 0 is that from below."""
    return xp.elu_of_real(input, alpha, scale, input_scale)


@composite("celu", elementwise=True, kinks=((0.0,),), examples=((), (2.0,)), usage="symgrad.celu(x - 0.5, alpha=2.0)", method=False, saved=ONE)
def celu(xp, input, alpha=1.0):
    """The input where it is positive, else alpha (exp(input / alpha) - 1)."""
    if alpha == 0:
        raise RuntimeError("celu: alpha must not be 0")
    return elu(xp, input, alpha, 1.0, 1 / alpha)


@composite("selu", elementwise=True, kinks=((0.0,),), usage="symgrad.selu(x - 0.5)", method=False, node_name="Elu")
def selu(xp, input):
    """elu times a scale with which layers keep mean 0 and variance 1."""
    return elu(xp, input, 1.6732632423543772848170429916717, 1.0507009873554804934193349852946)


@composite("leaky_relu", elementwise=True, kinks=((0.0,),), public=False)
def leaky_relu(xp, input, negative_slope=0.01):
    """The input where it is positive, else negative_slope times the input; the derivative at 0 is that from below."""
    return xp.leaky_relu_of_real(input, negative_slope)


elementwise("prelu_kernel", lambda xp, input, weight: xp.where(xp.gt(input, 0), input, weight * input),
            lambda xp, y, x, weight: xp.where(xp.gt(x, 0), xp.ones_like(x), weight),
            lambda xp, y, x, weight: xp.where(xp.gt(x, 0), xp.zeros_like(x), x),
            public=False, saved=("input weight",) * 2, refuses="c", special=((0.0, 0.25),),
            doc="The input where it is positive, else the input times the weight.")


@composite("prelu", kinks=((0.0, 0.25),), arity=2, usage="symgrad.prelu(x - 0.5, symgrad.tensor([0.25]))")
def prelu(xp, input, weight):
    """The input where it is positive, else the input times a weight: one, or one for each channel, the second dimension of the input."""
    check_dims("prelu", weight, 0, 1, word="weight")
    if weight.numel() != 1:
        channels = input.shape[1] if input.ndim > 1 else 1
        if not input.ndim or channels != weight.numel():
            raise RuntimeError(f"prelu: {weight.numel()} weights are given for an input of shape {list(input.shape)}, which has {channels} channels")
        weight = xp.reshape(weight, (-1, *(1,) * (input.ndim - 2)) if input.ndim > 1 else (-1,))
    elif weight.ndim:
        weight = xp.reshape(weight, ())
    return xp.prelu_kernel(input, weight)


def _check_number(name, word, number):
    """Refuse what is not one real number."""
    if isinstance(number, (list, tuple)):
        raise TypeError(f"{name}: {word} must be a number, not {number!r}")
    if isinstance(number, complex):
        raise RuntimeError(f"{name}: {word} must be a real number, not {number}")


@composite("threshold", elementwise=True, kinks=((1.0, 1, 5),), examples=((0.5, 2.0),), usage="symgrad.threshold(x, 0.3, 0.0)", method=False)
def threshold(xp, input, threshold, value):
    """The input where it is above `threshold`, else `value`; the derivative there is 0."""
    _check_number("threshold", "threshold", threshold)
    _check_number("threshold", "value", value)
    return xp.threshold_of_real(input, threshold, value)


@composite("hardshrink", elementwise=True, kinks=((0.5,),), usage="symgrad.hardshrink(x, 0.3)")
def hardshrink(xp, input, lambd=0.5):
    """The input, and 0 where its absolute value is at most `lambd`."""
    _check_number("hardshrink", "lambd", lambd)
    return xp.hardshrink_of_real(input, lambd)


@composite("softshrink", elementwise=True, kinks=((0.5,),), public=False)
def softshrink(xp, input, lambd=0.5):
    """The input moved towards 0 by `lambd`, and 0 where its absolute value is at most `lambd`."""
    check_range("softshrink", "lambd", lambd, 0)
    return xp.softshrink_of_real(input, lambd)


@composite("hardtanh", elementwise=True, kinks=((-1.0,), (1.0,)), public=False, examples=((), (0.0, 6.0)), saved=ONE)
def hardtanh(xp, input, min_val=-1.0, max_val=1.0):
    """The input limited to [min_val, max_val]; the derivative is 1 strictly inside and 0 elsewhere."""
    if min_val > max_val:  # a bound that is NaN makes the results NaN
        raise ValueError(f"hardtanh: min_val must be at most {max_val}, not {min_val}")
    check_kind("hardtanh", input, "fciu")
    if not input.is_floating_point() and _is_integer(input):
        min_val, max_val = int(min_val), int(max_val)
    return xp.clamp_number(input, min_val, max_val)


@composite("hardsigmoid", elementwise=True, kinks=((-3.0,), (3.0,)), public=False)
def hardsigmoid(xp, input):
    """(input + 3) / 6 limited to [0, 1]."""
    return xp.hardsigmoid_of_real(input)


@composite("hardswish", elementwise=True, kinks=((-3.0,), (3.0,)), public=False)
def hardswish(xp, input):
    """input hardsigmoid(input)."""
    return xp.hardswish_of_real(input)


def _halves(xp, x, dim):
    half, before = x.shape[dim] // 2, (slice(None),) * dim
    return xp.getitem(x, (*before, slice(0, half))), xp.getitem(x, (*before, slice(half, None)))


def _gated_halves(xp, input, dim):
    first, second = _halves(xp, input, dim)
    return first * xp.sigmoid(second)


def _gated_halves_vjp(xp, g, y, x, dim):
    first, second = _halves(xp, x, dim)
    gate = xp.sigmoid(second)
    return xp.cat([g * gate, g * first * xp.sigmoid_slope(gate, second)], dim)


def _gated_halves_jvp(xp, t, y, x, dim):
    (first, second), (along, beside) = _halves(xp, x, dim), _halves(xp, t, dim)
    gate = xp.sigmoid(second)
    return along * gate + beside * first * xp.sigmoid_slope(gate, second)


primitive("gated_halves", _gated_halves, vjp=_gated_halves_vjp, jvp=_gated_halves_jvp, public=False, saved=ONE, examples=((0,), (1,)),
          shapes=((2, 4),), layout="operands", node_name="Glu", doc="The first half along `dim` times the sigmoid of the second half.")


@composite("glu", public=False)
def glu(xp, input, dim=-1):
    """The first half of the input along `dim` times the sigmoid of the second half."""
    check_least_rank("glu", input, 1)
    if input.shape[axis(dim, input.ndim)] % 2:
        raise RuntimeError(f"glu: the size of dimension {axis(dim, input.ndim)} must be even, but the shape is {list(input.shape)}")
    return xp.gated_halves(as_floats(input), axis(dim, input.ndim))
