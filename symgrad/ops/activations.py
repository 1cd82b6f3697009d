"""Activations: piecewise linear ones, exponential ones, and products with a distribution function."""

from symgrad.graph.op import composite, elementwise
from symgrad.ops.rules import axis
from symgrad.types.domains import Domain, Interval

elementwise("softsign", None, lambda xp, y, x: xp.square(1 / (1 + xp.abs(x))), public=False,
            special=((0.0,), (-0.0,)), doc="input / (1 + |input|).")
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
elementwise("tanhshrink_of_real", None, lambda xp, y, x: xp.square(xp.tanh(x)), public=False, special=((0.0,), (-0.0,)), node_name="Sub",
            doc="input - tanh(input), accurate next to 0.")


@composite("gelu", public=False)
def gelu(xp, input, approximate="none"):
    """input Φ(input), or with 'tanh' the approximation input (1 + tanh(√(2/π) (input + 0.044715 input³))) / 2."""
    if approximate not in ("none", "tanh"):
        raise RuntimeError(f"approximate argument must be either none or tanh, but got {approximate!r}")
    return xp.gelu_exact(input) if approximate == "none" else xp.gelu_tanh(input)


@composite("tanhshrink", public=False)
def tanhshrink(xp, input):
    """input - tanh(input)."""
    return input - xp.tanh(input) if input.is_complex() else xp.tanhshrink_of_real(input)


@composite("silu", public=False, saved=ONE)
def silu(xp, input):
    """input sigmoid(input)."""
    return input * xp.sigmoid(input)


@composite("mish", public=False, saved=ONE)
def mish(xp, input):
    """input tanh(softplus(input))."""
    return input * xp.tanh(xp.softplus(input))


@composite("elu", public=False, saved=ONE)
def elu(xp, input, alpha=1.0, scale=1.0, input_scale=1.0):
    """scale input where it is positive, else scale alpha (exp(input_scale input) - 1); the derivative at 0 is that from below."""
    positive = xp.gt(input, 0)
    below = xp.where(positive, xp.zeros_like(input), input)  # no exponential of a large number, whose derivatives would be infinite
    return xp.where(positive, input if scale == 1 else scale * input, scale * alpha * xp.expm1(below if input_scale == 1 else input_scale * below))


@composite("celu", usage="symgrad.celu(x - 0.5, alpha=2.0)", method=False, saved=ONE)
def celu(xp, input, alpha=1.0):
    """The input where it is positive, else alpha (exp(input / alpha) - 1)."""
    if alpha == 0:
        raise RuntimeError("ZeroDivisionError: alpha cannot be 0 for CELU")
    return elu(xp, input, alpha, 1.0, 1 / alpha)


@composite("selu", usage="symgrad.selu(x - 0.5)", method=False, saved=ONE, node_name="Elu")
def selu(xp, input):
    """elu times a scale with which layers keep mean 0 and variance 1."""
    return elu(xp, input, 1.6732632423543772848170429916717, 1.0507009873554804934193349852946)


@composite("leaky_relu", public=False, saved=ONE)
def leaky_relu(xp, input, negative_slope=0.01):
    """The input where it is positive, else negative_slope times the input; the derivative at 0 is that from below."""
    return xp.where(xp.gt(input, 0), input, negative_slope * input)


@composite("prelu", arity=2, usage="symgrad.prelu(x - 0.5, symgrad.tensor([0.25]))", saved=("input weight",) * 2,
           node_name="PreluKernel")
def prelu(xp, input, weight):
    """The input where it is positive, else the input times a weight: one, or one for each channel, the second dimension of the input."""
    if weight.ndim > 1:
        raise RuntimeError(f"prelu: Expected `weight` to be a scalar or 1D tensor, but got: ndim = {weight.ndim}")
    if weight.numel() != 1:
        channels = input.shape[1] if input.ndim > 1 else 1
        if not input.ndim:
            raise RuntimeError("Not allow zero-dim input tensor.")
        if channels != weight.numel():
            raise RuntimeError(f"Mismatch of parameter numbers and input channel size. Found parameter numbers = {weight.numel()} and channel size = "
                               f"{channels}.")
        weight = xp.reshape(weight, (-1, *(1,) * (input.ndim - 2)) if input.ndim > 1 else (-1,))
    elif weight.ndim:
        weight = xp.reshape(weight, ())
    return xp.where(xp.gt(input, 0), input, weight * input)


@composite("threshold", usage="symgrad.threshold(x, 0.3, 0.0)", method=False, saved=ONE)
def threshold(xp, input, threshold, value):
    """The input where it is above `threshold`, else `value`; the derivative there is 0."""
    return xp.where(xp.le(input, threshold), value, input)


@composite("hardshrink", usage="symgrad.hardshrink(x, 0.3)", saved=ONE)
def hardshrink(xp, input, lambd=0.5):
    """The input, and 0 where its absolute value is at most `lambd`."""
    return xp.where(xp.le(xp.abs(input), lambd), 0.0, input)


@composite("softshrink", public=False, saved=ONE)
def softshrink(xp, input, lambd=0.5):
    """The input moved towards 0 by `lambd`, and 0 where its absolute value is at most `lambd`."""
    if lambd < 0:
        raise RuntimeError(f"lambda must be greater or equal to 0, but found to be {lambd}.")
    return xp.where(xp.le(xp.abs(input), lambd), 0.0, input - xp.sign(input) * lambd)


@composite("hardtanh", public=False, saved=ONE)
def hardtanh(xp, input, min_val=-1.0, max_val=1.0):
    """The input limited to [min_val, max_val]; the derivative is 1 strictly inside and 0 elsewhere."""
    if min_val > max_val:
        raise ValueError("min_val cannot be greater than max_val")
    return xp.clamp_number(input, min_val, max_val)


@composite("hardsigmoid", public=False, saved=ONE)
def hardsigmoid(xp, input):
    """(input + 3) / 6 limited to [0, 1]."""
    return xp.clamp_number(input + 3, 0.0, 6.0) / 6


@composite("hardswish", public=False, saved=ONE)
def hardswish(xp, input):
    """input hardsigmoid(input)."""
    return input * hardsigmoid(xp, input)


@composite("glu", public=False, saved=ONE)
def glu(xp, input, dim=-1):
    """The first half of the input along `dim` times the sigmoid of the second half."""
    if not input.ndim:
        raise RuntimeError("glu does not support 0-dimensional tensors")
    size = input.shape[axis(dim, input.ndim)]
    if size % 2:
        raise RuntimeError(f"Halving dimension must be even, but dimension {axis(dim, input.ndim)} is size {size}")
    first, second = xp.narrow(input, dim, 0, size // 2), xp.narrow(input, dim, size // 2, size // 2)
    return first * xp.sigmoid(second)
