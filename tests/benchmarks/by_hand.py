"""Values and gradients of elementwise ops and reductions as a person writes them with NumPy and SciPy, one line for each op.

Each is a function of the arguments and of the cotangent that returns the value and the gradients. What is used twice is computed once. They are as
short as the formulas of a textbook: digits in the tails, NaN, kinks and ties are not looked after.
"""


import numpy as np
import scipy.special as sp

e, pi = np.exp, np.pi
LOG2, LOG10, C = np.log(2.0), np.log(10.0), 2 / np.sqrt(pi)
ROOT_2_PI = np.sqrt(2 * pi)


def _one(value, slope):
    """From the value at x, and the derivative from x and the value."""
    def both(x, g):
        y = value(x)
        return y, g * slope(x, y)

    return both


def _zero(value):
    return lambda x, g: (value(x), np.zeros_like(x))


def _product(y, x, g, *slopes):
    return (y, *(g * slope for slope in slopes))


def _normal(x):
    return e(-x * x / 2) / ROOT_2_PI


def _gelu_tanh(x, g):
    t = np.tanh(0.7978845608028654 * (x + 0.044715 * x**3))
    return x * (1 + t) / 2, g * ((1 + t) / 2 + x * (1 - t * t) / 2 * 0.7978845608028654 * (1 + 0.134145 * x * x))


def _mish(x, g):
    t = np.tanh(np.log1p(e(x)))
    return x * t, g * (t + x * (1 - t * t) * sp.expit(x))


def _gelu(x, g):
    p = sp.ndtr(x)
    return x * p, g * (p + x * _normal(x))


def _silu(x, g):
    s = sp.expit(x)
    return x * s, g * (s + x * s * (1 - s))


def _tail(x, g, kept, value, slope=0.0):
    """x where it is kept, else another value, with its derivative."""
    return np.where(kept, x, value), np.where(kept, g, g * slope)


def _elu(a, scale, rate):
    def both(x, g):
        low = a * np.expm1(rate * np.minimum(x, 0))
        return scale * np.where(x > 0, x, low), scale * g * np.where(x > 0, 1.0, rate * (low + a))

    return both


def _sinc(x, g):
    u = pi * x
    s = np.sinc(x)
    return s, g * (np.cos(u) - s) / x


def _hypot(x, y, g):
    r = np.hypot(x, y)
    return r, g * (x / r), g * (y / r)


def _atan2(x, y, g):
    square = x * x + y * y
    return np.arctan2(x, y), g * y / square, -g * x / square


def _pow(x, y, g):
    z = x**y
    return z, g * y * z / x, g * z * np.log(x)


def _chosen(x, y, g, first):
    return np.where(first, x, y), np.where(first, g, 0.0), np.where(first, 0.0, g)


def _logaddexp(x, y, g):
    s = sp.expit(x - y)
    return np.logaddexp(x, y), g * s, g * (1 - s)


def _at(x, g, i):
    out = np.zeros_like(x)
    out[i] = g
    return x[i], out


def _prod(x, g):
    y = x.prod()
    return y, g * y / x


def _var(x, g):
    d = x - x.mean()
    return (d @ d) / (x.size - 1), d * (2 * g / (x.size - 1))


def _std(x, g):
    d = x - x.mean()
    s = np.sqrt((d @ d) / (x.size - 1))
    return s, d * (g / (s * (x.size - 1)))


def _norm(x, g):
    n = np.sqrt(x @ x)
    return n, x * (g / n)


def _logsumexp(x, g):
    top = x.max()
    p = e(x - top)
    total = p.sum()
    return top + np.log(total), p * (g / total)


def _softmax(x, g):
    p = e(x - x.max())
    p /= p.sum()
    return p, p * (g - (p @ g))


def _log_softmax(x, g):
    z = x - x.max()
    p = e(z)
    total = p.sum()
    return z - np.log(total), g - p * (g.sum() / total)


def _mean_of(f):
    """A mean loss, from the value and the derivatives of each element."""
    def both(x, y, g):
        each, *slopes = f(x, y)
        return each.mean(), *(slope * (g / x.size) for slope in slopes)

    return both


def _smooth(d):
    size = np.abs(d)
    slope = np.clip(d, -1, 1)
    return np.where(size < 1, d * d / 2, size - 0.5), slope, -slope


def _cross_entropy(x, t):
    no, yes = np.log1p(-x), np.log(x)
    return -(t * yes + (1 - t) * no), (x - t) / (x * (1 - x)), no - yes


def _with_logits(x, t):
    return np.logaddexp(0, x) - t * x, sp.expit(x) - t, -x


def _square_error(x, y):
    d = x - y
    return d * d, 2 * d, -2 * d


def _absolute_error(x, y):
    d = x - y
    s = np.sign(d)
    return np.abs(d), s, -s


def _bessel(value, slope):
    return lambda x, g: (value(x), g * slope(x))


def _i1_slope(x, y):
    return sp.i0(x) - y / x


BY_HAND = {
    "neg(x)": lambda x, g: (-x, -g),
    "reciprocal(x)": _one(lambda x: 1 / x, lambda x, y: -y * y), "square(x)": _one(lambda x: x * x, lambda x, y: 2 * x),
    "exp(x)": _one(e, lambda x, y: y), "exp2(x)": _one(np.exp2, lambda x, y: y * LOG2), "expm1(x)": _one(np.expm1, lambda x, y: y + 1),
    "log(x)": _one(np.log, lambda x, y: 1 / x), "log2(x)": _one(np.log2, lambda x, y: (1 / LOG2) / x),
    "log10(x)": _one(np.log10, lambda x, y: (1 / LOG10) / x), "log1p(x)": _one(np.log1p, lambda x, y: 1 / (1 + x)),
    "sqrt(x)": _one(np.sqrt, lambda x, y: 0.5 / y), "rsqrt(x)": _one(lambda x: 1 / np.sqrt(x), lambda x, y: -0.5 * y / x),
    "sin(x)": _one(np.sin, lambda x, y: np.cos(x)), "cos(x)": _one(np.cos, lambda x, y: -np.sin(x)), "tan(x)": _one(np.tan, lambda x, y: 1 + y * y),
    "asin(x)": _one(np.arcsin, lambda x, y: 1 / np.sqrt(1 - x * x)), "acos(x)": _one(np.arccos, lambda x, y: -1 / np.sqrt(1 - x * x)),
    "atan(x)": _one(np.arctan, lambda x, y: 1 / (1 + x * x)), "sinh(x)": _one(np.sinh, lambda x, y: np.cosh(x)),
    "cosh(x)": _one(np.cosh, lambda x, y: np.sinh(x)), "tanh(x)": _one(np.tanh, lambda x, y: 1 - y * y),
    "sech(x)": _one(lambda x: 1 / np.cosh(x), lambda x, y: -y * np.tanh(x)), "asinh(x)": _one(np.arcsinh, lambda x, y: 1 / np.sqrt(1 + x * x)),
    "acosh(x)": _one(np.arccosh, lambda x, y: 1 / np.sqrt(x * x - 1)), "atanh(x)": _one(np.arctanh, lambda x, y: 1 / (1 - x * x)),
    "abs(x)": _one(np.abs, lambda x, y: np.sign(x)), "sign(x)": _zero(np.sign), "floor(x)": _zero(np.floor), "ceil(x)": _zero(np.ceil),
    "round(x)": _zero(np.rint), "trunc(x)": _zero(np.trunc), "frac(x)": lambda x, g: (x - np.trunc(x), g.copy()), "sinc(x)": _sinc,
    "deg2rad(x)": lambda x, g: (x * (pi / 180), g * (pi / 180)), "rad2deg(x)": lambda x, g: (x * (180 / pi), g * (180 / pi)),
    "add(x, y)": lambda x, y, g: (x + y, g.copy(), g.copy()), "sub(x, y)": lambda x, y, g: (x - y, g.copy(), -g),
    "mul(x, y)": lambda x, y, g: (x * y, g * y, g * x), "div(x, y)": lambda x, y, g: _product(z := x / y, x, g, 1 / y, -z / y), "pow(x, y)": _pow,
    "pow(x, 3)": _one(lambda x: x**3, lambda x, y: 3 * x**2), "pow(x,2)": _one(lambda x: x**2, lambda x, y: 2 * x),
    "float_power(x, 2)": _one(lambda x: np.float_power(x, 2), lambda x, y: 2 * x), "remainder(x, y)": lambda x, y, g: (
        np.remainder(x, y), g.copy(), -g * np.floor(x / y)), "fmod(x, 0.5)": lambda x, g: (np.fmod(x, 0.5), g.copy()),
    "maximum(x, y)": lambda x, y, g: (np.maximum(x, y), np.where(x > y, g, 0.0), np.where(x > y, 0.0, g)),
    "minimum(x, y)": lambda x, y, g: (np.minimum(x, y), np.where(x < y, g, 0.0), np.where(x < y, 0.0, g)),
    "fmax(x, 1 - x)": lambda x, y, g: (np.fmax(x, y), np.where(x > y, g, 0.0), np.where(x > y, 0.0, g)),
    "fmin(x, 1 - x)": lambda x, y, g: (np.fmin(x, y), np.where(x < y, g, 0.0), np.where(x < y, 0.0, g)),
    "atan2(x, y)": _atan2, "hypot(x, y)": _hypot, "logaddexp(x, y)": _logaddexp,
    "logaddexp2(x, x)": lambda x, y, g: (np.logaddexp2(x, y), g * (s := sp.expit(LOG2 * (x - y))), g * (1 - s)),
    "xlogy(x, x)": lambda x, y, g: (sp.xlogy(x, y), g * np.log(y), g * x / y),
    "xlog1py(x, x)": lambda x, y, g: (sp.xlog1py(x, y), g * np.log1p(y), g * x / (1 + y)), "where(x>0,x,y)": None,
    "lerp(x, x + 1, 0.25)": lambda x, y, g: (x + 0.25 * (y - x), 0.75 * g, 0.25 * g),
    "addcmul(x, x, x, value=2)": lambda x, y, z, g: (x + 2 * y * z, g.copy(), 2 * g * z, 2 * g * y),
    "addcdiv(x, x, x, value=2)": lambda x, y, z, g: (x + 2 * y / z, g.copy(), (s := 2 * g / z), -s * y / z),
    "copysign(x, -1.0)": lambda x, g: (np.copysign(x, -1.0), -g * np.sign(x)), "clamp(x, 0.3, 0.6)": lambda x, g: (
        np.clip(x, 0.3, 0.6), g * ((x > 0.3) & (x < 0.6))), "clamp_min(x, 0.3)": lambda x, g: (np.maximum(x, 0.3), g * (x > 0.3)),
    "clamp_max(x, 0.6)": lambda x, g: (np.minimum(x, 0.6), g * (x < 0.6)), "nan_to_num(x)": lambda x, g: (np.nan_to_num(x), g * np.isfinite(x)),
    "erf(x)": _one(sp.erf, lambda x, y: C * e(-x * x)), "erfc(x)": _one(sp.erfc, lambda x, y: -C * e(-x * x)),
    "erfcx(x)": _one(sp.erfcx, lambda x, y: 2 * x * y - C), "erfinv(x)": _one(sp.erfinv, lambda x, y: e(y * y) / C),
    "ndtr(x)": _one(sp.ndtr, lambda x, y: _normal(x)), "ndtri(x)": _one(sp.ndtri, lambda x, y: ROOT_2_PI * e(y * y / 2)),
    "log_ndtr(x)": _one(sp.log_ndtr, lambda x, y: e(-x * x / 2 - y) / ROOT_2_PI), "logit(x)": _one(sp.logit, lambda x, y: 1 / (x * (1 - x))),
    "entr(x)": _one(sp.entr, lambda x, y: -np.log(x) - 1), "lgamma(x)": _one(sp.gammaln, lambda x, y: sp.psi(x)),
    "digamma(x)": _one(sp.psi, lambda x, y: sp.zeta(2, x)), "polygamma(1, x)": _one(lambda x: sp.zeta(2, x), lambda x, y: -2 * sp.zeta(3, x)),
    "mvlgamma(x + 2, 2)": _one(lambda x: np.log(pi) / 2 + sp.gammaln(x) + sp.gammaln(x - 0.5), lambda x, y: sp.psi(x) + sp.psi(x - 0.5)),
    "betaln(x, x)": lambda x, y, g: (sp.betaln(x, y), g * (sp.psi(x) - (s := sp.psi(x + y))), g * (sp.psi(y) - s)),
    "beta(x, x)": lambda x, y, g: (b := sp.beta(x, y), g * b * (sp.psi(x) - (s := sp.psi(x + y))), g * b * (sp.psi(y) - s)),
    "bessel_j0(x)": _bessel(sp.j0, lambda x: -sp.j1(x)), "bessel_y0(x)": _bessel(sp.y0, lambda x: -sp.y1(x)),
    "bessel_j1(x)": _one(sp.j1, lambda x, y: sp.j0(x) - y / x), "bessel_y1(x)": _one(sp.y1, lambda x, y: sp.y0(x) - y / x),
    "i0(x)": _bessel(sp.i0, sp.i1), "i1(x)": _one(sp.i1, _i1_slope), "i0e(x)": _one(sp.i0e, lambda x, y: sp.i1e(x) - np.sign(x) * y),
    "i1e(x)": _one(sp.i1e, lambda x, y: sp.i0e(x) - y * (np.sign(x) + 1 / x)), "modified_bessel_k0(x)": _bessel(sp.k0, lambda x: -sp.k1(x)),
    "modified_bessel_k1(x)": _one(sp.k1, lambda x, y: -sp.k0(x) - y / x),
    "scaled_modified_bessel_k0(x)": _one(sp.k0e, lambda x, y: y - sp.k1e(x)),
    "scaled_modified_bessel_k1(x)": _one(sp.k1e, lambda x, y: y - sp.k0e(x) - y / x),
    "spherical_bessel_j0(x)": _one(lambda x: np.sin(x) / x, lambda x, y: (np.cos(x) - y) / x), "airy_ai(x)": lambda x, g: (
        (a := sp.airy(x))[0], g * a[1]), "expi(x)": _one(sp.expi, lambda x, y: e(x) / x), "exp1(x)": _one(sp.exp1, lambda x, y: -e(-x) / x),
    "lambertw(x)": _one(lambda x: sp.lambertw(x).real, lambda x, y: y / (x * (1 + y))),
    "jv(0.5, x)": _one(lambda x: sp.jv(0.5, x), lambda x, y: sp.jvp(0.5, x)),
    "yv(0.5, x)": _one(lambda x: sp.yv(0.5, x), lambda x, y: sp.yvp(0.5, x)),
    "iv(0.5, x)": _one(lambda x: sp.iv(0.5, x), lambda x, y: sp.ivp(0.5, x)),
    "kv(0.5, x)": _one(lambda x: sp.kv(0.5, x), lambda x, y: sp.kvp(0.5, x)),
    "sigmoid(x)": _one(sp.expit, lambda x, y: y * (1 - y)), "logsigmoid(x)": _one(sp.log_expit, lambda x, y: sp.expit(-x)),
    "softplus(x)": _one(lambda x: np.logaddexp(0, x), lambda x, y: sp.expit(x)), "relu(x)": _one(lambda x: np.maximum(x, 0), lambda x, y: x > 0),
    "relu6(x)": lambda x, g: (np.clip(x, 0, 6), g * ((x > 0) & (x < 6))), "leaky_relu(x)": lambda x, g: _tail(x, g, x > 0, 0.01 * x, 0.01),
    "elu(x)": _elu(1.0, 1.0, 1.0), "celu(x)": _elu(1.0, 1.0, 1.0), "selu(x)": _elu(1.6732632423543772, 1.0507009873554805, 1.0),
    "gelu(x)": _gelu, "gelu(x,approximate='tanh')": _gelu_tanh, "silu(x)": _silu, "mish(x)": _mish,
    "softsign(x)": lambda x, g: (x / (d := 1 + np.abs(x)), g / (d * d)), "softshrink(x)": lambda x, g: (
        np.where(k := np.abs(x) > 0.5, x - 0.5 * np.sign(x), 0.0), g * k), "hardshrink(x)": lambda x, g: _tail(x, g, np.abs(x) > 0.5, 0.0),
    "hardtanh(x)": lambda x, g: (np.clip(x, -1, 1), g * ((x > -1) & (x < 1))),
    "hardsigmoid(x)": lambda x, g: (np.clip(x + 3, 0, 6) / 6, g * ((x > -3) & (x < 3)) / 6),
    "hardswish(x)": lambda x, g: (x * (c := np.clip(x + 3, 0, 6) / 6), g * (c + x * ((x > -3) & (x < 3)) / 6)),
    "tanhshrink(x)": lambda x, g: (x - (t := np.tanh(x)), g * (t * t)), "threshold(x,0.1,2.0)": lambda x, g: _tail(x, g, x > 0.1, 2.0),
    "sum(x)": lambda x, g: (x.sum(), np.full(x.shape, g)), "mean(x)": lambda x, g: (x.mean(), np.full(x.shape, g / x.size)), "prod(x)": _prod,
    "std(x)": _std, "var(x)": _var, "norm(x)": _norm, "logsumexp(x,0)": _logsumexp, "amax(x,0)": lambda x, g: _at(x, g, x.argmax()),
    "max(x)": lambda x, g: _at(x, g, x.argmax()), "softmax(x,dim=0)": _softmax, "log_softmax(x,dim=0)": _log_softmax,
    "dot(x, x)": lambda x, y, g: (x @ y, g * y, g * x), "cumsum(x,0)": lambda x, g: (np.cumsum(x), np.cumsum(g[::-1])[::-1].copy()),
    "cumprod(x,0)": lambda x, g: (y := np.cumprod(x), np.cumsum((g * y)[::-1])[::-1] / x), "median(x)": lambda x, g: _at(
        x, g, np.argpartition(x, (x.size - 1) // 2)[(x.size - 1) // 2]), "sort(x).values":
    lambda x, g: (x[i := np.argsort(x, kind="stable")], _at(x, g, i)[1]),
    "nansum(x)": lambda x, g: (np.nansum(x), g * ~np.isnan(x)), "mse_loss(x,y)": _mean_of(_square_error), "l1_loss(x,y)": _mean_of(_absolute_error),
    "smooth_l1_loss(x,y)": _mean_of(lambda x, y: _smooth(x - y)), "huber_loss(x,y)": _mean_of(lambda x, y: _smooth(x - y)),
    "binary_cross_entropy(x.sigmoid(),y.sigmoid())": _mean_of(_cross_entropy),
    "binary_cross_entropy_with_logits(x,y.sigmoid())": _mean_of(_with_logits)}
BY_HAND["where(x>0,x,y)"] = lambda c, x, y, g: _chosen(x, y, g, c)
