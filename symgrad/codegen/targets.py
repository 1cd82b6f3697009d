"""Target languages: the source of each op, with helpers where the language has no stable function.

An op is one entry, "precedence text": `{0:5}` in the text is an operand that is put in parentheses if it binds less tightly than 5.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

__all__ = ["C", "JAX", "NUMPY", "TORCH", "Target"]

# Precedences: 1 selection, 2 comparison, 4 sum, 5 product, 6 sign, 7 power, 9 call or name
PYTHON = {
    "add": "4 {0:4} + {1:5}", "sub": "4 {0:4} - {1:5}", "mul": "5 {0:5} * {1:6}", "div": "5 {0:5} / {1:6}", "neg": "6 -{0:7}",
    "pow": "7 {0:8}**{1:7}", "square": "7 {0:8}**2",
    "eq": "2 {0:4} == {1:4}", "ne": "2 {0:4} != {1:4}", "lt": "2 {0:4} < {1:4}", "le": "2 {0:4} <= {1:4}", "gt": "2 {0:4} > {1:4}",
    "ge": "2 {0:4} >= {1:4}",
}


@dataclass(frozen=True)
class Target:
    """A language: its ops, the helpers some of them call, its numbers, and the text before a function."""

    name: str
    ops: dict[str, str]
    helpers: dict[str, str] = field(default_factory=dict)
    header: str = ""
    constants: dict[str, str] = field(default_factory=dict)
    tensors: frozenset[str] = frozenset()  # ops whose operands must not be plain numbers

    def __contains__(self, op: object) -> bool:
        return op in self.ops


def _calls(module: str, names: str, **others: str) -> dict[str, str]:
    """Ops as calls of functions of one argument, in the order of the names; `others` have their own names and numbers of arguments."""
    return {name: f"9 {module}{name}({{0}})" for name in names.split()} | {name: "9 " + text for name, text in others.items()}


SINCS = {f"sinc{n}": f"9 _sinc{n}({{0}})" for n in (1, 2, 3)}
SHARED = "exp exp2 expm1 log log2 log10 log1p sqrt sin cos tan sinh cosh tanh floor ceil trunc sign sinc"

SIGMOID = '''
def _sigmoid(x):
    return {m}.exp({least}) / (1 + {m}.exp(-{m}.abs(x)))
'''
SECH = '''
def _sech(x):
    z = {m}.exp(-{m}.abs(x))
    return 2 * z / (1 + z * z)
'''
DIRECTION = '''
def _direction(x, y):
    h = {m}.hypot(x, y)
    return {m}.where(h == 0, 0.0, x / {m}.where(h == 0, 1.0, h))
'''
HEAD = '''
def _array(shape, *elements):
    out = {m}.stack({broadcast}(*elements), {axis}=-1)
    return out.reshape((*out.shape[:-1], *shape))
'''


def _sinc(n: int) -> tuple[str, str, str]:
    """The derivative of sin(πx)/(πx) of order n as three texts: the series near 0, the formula elsewhere, and the condition to be near 0.

    They are written with u = πx, s = sin(u), c = cos(u). With S = s/u,
    u S⁽ⁿ⁾ + n S⁽ⁿ⁻¹⁾ = sin⁽ⁿ⁾(u); the power series has the coefficients (-1)ᵏ / ((2k + 1) (2k - n)!) of u²ᵏ⁻ⁿ.
    """
    far = "s / u"
    for k in range(1, n + 1):
        far = f"({('s', 'c', '-s', '-c')[k % 4]} - {f'{float(k)} * ' * (k > 1)}{far}) / u"
    terms = [(-1) ** k / ((2 * k + 1) * math.factorial(2 * k - n)) for k in range((n + 1) // 2, 15)]
    near = repr(terms[-1])
    for term in reversed(terms[:-1]):
        near = f"{term!r} + u * u * ({near})"
    scale = repr(math.pi**n)
    return f"{scale} * " + ("u * " if n % 2 else "") + f"({near})", f"{scale} * {far}", "(u > -2.0) & (u < 2.0)"


def _sincs(m: str) -> dict[str, str]:
    """Helpers in Python for the derivatives of sinc."""
    out = {}
    for n in (1, 2, 3):
        near, far, small = _sinc(n)
        out[f"_sinc{n}"] = (f"\ndef _sinc{n}(x):\n    u = {math.pi!r} * x\n    small = {small}\n    near = {near}\n    u = {m}.where(small, 1.0, u)\n"
                            f"    s, c = {m}.sin(u), {m}.cos(u)\n    return {m}.where(small, near, {far})\n")
    return out


NUMPY = Target("numpy", PYTHON | SINCS | _calls(
    "np.", SHARED, abs="np.abs({0})", asin="np.arcsin({0})", acos="np.arccos({0})", atan="np.arctan({0})", asinh="np.arcsinh({0})",
    acosh="np.arccosh({0})", atanh="np.arctanh({0})", atan2="np.arctan2({0}, {1})", hypot="np.hypot({0}, {1})", round="np.rint({0})",
    maximum="np.maximum({0}, {1})", minimum="np.minimum({0}, {1})", relu="np.maximum({0}, 0)", where="np.where({0}, {1}, {2})",
    logical_and="np.logical_and({0}, {1})", logical_or="np.logical_or({0}, {1})", logical_not="np.logical_not({0})",
    remainder="np.remainder({0}, {1})", fmod_tensor="np.fmod({0}, {1})", floor_divide="np.floor_divide({0}, {1})",
    logaddexp="np.logaddexp({0}, {1})", softplus="np.logaddexp(0, {0})", sigmoid="_sigmoid({0})", sech="_sech({0})",
    direction="_direction({0}, {1})", conj="np.conj({0})", real="np.real({0})", imag="np.imag({0})", angle="np.angle({0})",
) | {"rsqrt": "5 1 / np.sqrt({0})", "logsigmoid": "6 -np.logaddexp(0, -{0:7})", "sech_square": "7 _sech({0})**2"},
    {"_sigmoid": SIGMOID.format(m="np", least="np.minimum(x, 0)"), "_sech": SECH.format(m="np"), "_direction": DIRECTION.format(m="np"),
     **_sincs("np"), "_array": HEAD.format(m="np", broadcast="np.broadcast_arrays", axis="axis")},
    "import numpy as np\n", {"pi": "np.pi", "E": "np.e", "oo": "np.inf", "nan": "np.nan"})

TORCH = Target("torch", PYTHON | SINCS | _calls(
    "torch.", SHARED + " abs asin acos atan asinh acosh atanh round rsqrt relu sigmoid", atan2="torch.atan2({0}, {1})",
    hypot="torch.hypot({0}, {1})", maximum="torch.maximum({0}, {1})", minimum="torch.minimum({0}, {1})", where="torch.where({0}, {1}, {2})",
    logical_and="torch.logical_and({0}, {1})", logical_or="torch.logical_or({0}, {1})", logical_not="torch.logical_not({0})",
    remainder="torch.remainder({0}, {1})", fmod_tensor="torch.fmod({0}, {1})", floor_divide="torch.floor_divide({0}, {1})",
    logaddexp="torch.logaddexp({0}, {1})", softplus="_softplus({0})", logsigmoid="torch.nn.functional.logsigmoid({0})", sech="_sech({0})",
    direction="_direction({0}, {1})", conj="torch.conj({0})", real="torch.real({0})", imag="torch.imag({0})", angle="torch.angle({0})",
) | {"sech_square": "7 _sech({0})**2"},
    {"_sech": SECH.format(m="torch"), "_direction": DIRECTION.format(m="torch"), **_sincs("torch"),
     "_softplus": "\ndef _softplus(x):\n    return torch.logaddexp(x, torch.zeros_like(x))\n",
     "_array": HEAD.format(m="torch", broadcast="torch.broadcast_tensors", axis="dim")},
    "import math\n\nimport torch\n", {"pi": "math.pi", "E": "math.e", "oo": "math.inf", "nan": "math.nan"},
    frozenset("atan2 hypot maximum minimum logaddexp where direction _array".split()))

JAX = Target("jax", PYTHON | {op: text.replace("np.", "jnp.") for op, text in NUMPY.ops.items() if op not in PYTHON} | _calls(
    "jax.nn.", "relu sigmoid softplus", logsigmoid="jax.nn.log_sigmoid({0})"),
    {"_sech": SECH.format(m="jnp"), "_direction": DIRECTION.format(m="jnp"), **_sincs("jnp"),
     "_array": HEAD.format(m="jnp", broadcast="jnp.broadcast_arrays", axis="axis")},
    "import jax\nimport jax.numpy as jnp\n", {"pi": "jnp.pi", "E": "jnp.e", "oo": "jnp.inf", "nan": "jnp.nan"})



def _static(declared: str, *statements: str) -> str:
    """A helper in C."""
    body = "".join(f"    {statement}\n" for statement in statements)
    return f"\nstatic double symgrad_{declared}\n{{\n{body}}}\n"


C = Target("c", {
    **{op: text for op, text in PYTHON.items() if op not in ("pow", "square")},
    "pow": "9 pow({0}, {1})", "square": "5 {0:6} * {0:6}", "where": "1 {0:2} ? {1:2} : {2:1}",
    "logical_and": "1 {0:2} && {1:2}", "logical_or": "1 {0:2} || {1:2}", "logical_not": "6 !{0:6}",
    "relu": "9 fmax({0}, 0.0)", "maximum": "9 fmax({0}, {1})", "minimum": "9 fmin({0}, {1})", "abs": "9 fabs({0})", "round": "9 rint({0})",
    "rsqrt": "5 1.0 / sqrt({0})", "sign": "9 symgrad_sign({0})", "atan2": "9 atan2({0}, {1})", "hypot": "9 hypot({0}, {1})",
    "fmod_tensor": "9 fmod({0}, {1})", "remainder": "9 symgrad_mod({0}, {1})", "floor_divide": "9 floor({0:5} / {1:6})",
    "softplus": "4 fmax({0}, 0.0) + log1p(exp(-fabs({0})))", "logsigmoid": "4 fmin({0}, 0.0) - log1p(exp(-fabs({0})))",
    "logaddexp": "4 fmax({0}, {1}) + log1p(exp(-fabs({0:4} - {1:5})))", "sigmoid": "5 1.0 / (1.0 + exp(-{0:7}))",
    **{f"sinc{n}": f"9 symgrad_sinc{n}({{0}})" for n in (1, 2, 3)}, "sech": "9 symgrad_sech({0})",
    "sech_square": "9 symgrad_square(symgrad_sech({0}))", "sinc": "9 symgrad_sinc({0})",
    "direction": "9 symgrad_direction({0}, {1})",
    **_calls("", "exp exp2 expm1 log log2 log10 log1p sqrt sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh floor ceil trunc"),
}, {
    "symgrad_mod": _static("mod(double a, double b)", "double r = fmod(a, b);", "return r != 0.0 && (r < 0.0) != (b < 0.0) ? r + b : r;"),
    "symgrad_sign": _static("sign(double x)", "return (double)((x > 0.0) - (x < 0.0));"),
    "symgrad_square": _static("square(double x)", "return x * x;"),
    "symgrad_sech": _static("sech(double x)", "double z = exp(-fabs(x));", "return 2.0 * z / (1.0 + z * z);"),
    "symgrad_sinc": _static("sinc(double x)", "double u = 3.141592653589793 * x;", "return u == 0.0 ? 1.0 : sin(u) / u;"),
    **{f"symgrad_sinc{n}": _static(f"sinc{n}(double x)", f"double u = {math.pi!r} * x;", "double s = sin(u);", "double c = cos(u);",
                                   f"return u > -2.0 && u < 2.0 ? {_sinc(n)[0]} : {_sinc(n)[1]};") for n in (1, 2, 3)},
    "symgrad_direction": _static("direction(double x, double y)", "double h = hypot(x, y);", "return h == 0.0 ? 0.0 : x / h;"),
}, "#include <math.h>\n", {"oo": "INFINITY", "nan": "NAN"})
