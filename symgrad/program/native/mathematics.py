"""The functions of C programs: texts for vectors of float64 (lane d) and float32 (lane f), and expressions for single elements.

In a text `$` stands for the letter of the lane, `@` for the type of its elements, and SUFFIX for the last letter of its functions.
"""

from __future__ import annotations

import ctypes
import functools
import math
import re
import sys
from collections.abc import Iterable

CALLS = ("exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh", "sech_square",
         "asinh", "acosh", "atanh")
BINARY_CALLS = ("pow", "atan2", "hypot", "fmod", "remainder", "floor_divide")

PRELUDE = """\
#include <math.h>
#include <stdint.h>
#include <string.h>
""" + "".join(f"""\
#{condition}
#define WIDTH {width}
#define SPLATd(x) (Vd){{{",".join("x" * (width // 8))}}}
#define SPLATf(x) (Vf){{{",".join("x" * (width // 4))}}}
#define MVEC1d(name) _ZGV{isa}N{width // 8}v_##name
#define MVEC2d(name) _ZGV{isa}N{width // 8}vv_##name
#define MVEC1f(name) _ZGV{isa}N{width // 4}v_##name##f
#define MVEC2f(name) _ZGV{isa}N{width // 4}vv_##name##f
""" for condition, width, isa in (("if defined __AVX512F__", 64, "e"), ("elif defined __AVX2__", 32, "d"), ("else", 16, "b"))) + """\
#endif
#ifdef __clang__
#define SCALARS static
#else /* statements without loops gain nothing from the optimizations that take the most time */
#define SCALARS static __attribute__((optimize("Og")))
#endif
#define INLINE static inline __attribute__((always_inline, unused))
#define APART static __attribute__((noinline, unused))
typedef double Ed; typedef int64_t Jd; typedef float Ef; typedef int32_t Jf; typedef unsigned char bool8;
"""

LANE = """\
typedef E$ V$ __attribute__((vector_size(WIDTH)));
typedef J$ I$ __attribute__((vector_size(WIDTH)));
typedef E$ U$ __attribute__((vector_size(WIDTH), aligned(1), may_alias));
typedef J$ UI$ __attribute__((vector_size(WIDTH), aligned(1), may_alias));
#define W$ ((long)(WIDTH / sizeof(E$)))
typedef unsigned char B$ __attribute__((vector_size(WIDTH / sizeof(E$)), aligned(1), may_alias));
"""

OPERATORS = {
    "add": "{0} + {1}", "sub": "{0} - {1}", "mul": "{0} * {1}", "div": "{0} / {1}", "neg": "-{0}",
    "eq": "{0} == {1}", "ne": "{0} != {1}", "lt": "{0} < {1}", "le": "{0} <= {1}", "gt": "{0} > {1}", "ge": "{0} >= {1}",
    "and": "{0} & {1}", "or": "{0} | {1}", "isnan": "{0} != {0}",
}
# What the words of the vector loops are written as; a name followed by a bracket is a function below.
VECTOR = OPERATORS | {
    "not": "~{0}",
    "where": "v_select$({0}, {1}, {2})", "maximum": "v_maximum$({0}, {1})", "minimum": "v_minimum$({0}, {1})",
    "abs": "v_abs$({0})", "sign": "v_sign$({0})",
    "isfinite": "v_abs$({0}) < SPLAT$(__builtin_inf())", "isinf": "v_abs$({0}) == SPLAT$(__builtin_inf())", "sqrt": "v_sqrt$({0})",
    "floor": "v_floor$({0})", "ceil": "v_ceil$({0})", "trunc": "v_trunc$({0})", "rint": "v_rint$({0})", "cast": "(V$)((I$)SPLAT$(1) & {0})",
}

FUNCTIONS = {
    "select": "INLINE V$ v_select$(I$ c, V$ a, V$ b) { return (V$)(((I$)a & c) | ((I$)b & ~c)); }",
    "abs": "INLINE V$ v_abs$(V$ a) { return (V$)((I$)a & ~(I$)SPLAT$(-0.0)); }",
    "maximum": "INLINE V$ v_maximum$(V$ a, V$ b) { return v_select$((a > b) | (a != a), a, b); }",
    "minimum": "INLINE V$ v_minimum$(V$ a, V$ b) { return v_select$((a < b) | (a != a), a, b); }",
    "sign": "INLINE V$ v_sign$(V$ a) { return v_select$(a > 0, SPLAT$(1), v_select$(a < 0, SPLAT$(-1), a + SPLAT$(0.0))); }",
    "mask": "INLINE I$ v_mask$(const bool8 *x) { return __builtin_convertvector(*(const B$ *)x, I$) != 0; }",
    "truth": "INLINE void v_truth$(bool8 *y, I$ x) { *(B$ *)y = __builtin_convertvector(-x, B$); }",
    "input": """\
INLINE const @ *v_input$(const @ *x, @ *t, long b) {
  if (b % W$ == 0) return x;
  for (long i = 0; i < b; i++) t[i] = x[i];
  for (long i = b; i % W$; i++) t[i] = x[b - 1];
  return t;
}""",
    "input8": """\
INLINE const bool8 *v_input8$(const bool8 *x, bool8 *t, long b) {
  if (b % W$ == 0) return x;
  memcpy(t, x, b);
  memset(t + b, 0, W$);
  return t;
}""",
    "exponential": """\
INLINE Vd fused_(Vd a, Vd b, Vd c) { Vd r; for (int i = 0; i < Wd; i++) r[i] = __builtin_fma(a[i], b[i], c[i]); return r; }
INLINE Vd power_(Id n) { return (Vd)((n + 1023) << 52); }
INLINE Vd scaled_(Vd x, Id n) { const Id half = n >> 1; return x * power_(half) * power_(n - half); }
/* q = exp(r) - 1 to full relative accuracy, where x = n log(2) + r: the Taylor polynomial of degree 13 for |r| <= log(2) / 2. */
INLINE Vd exponential_(Vd x, Id *n) {
  const Vd shift = SPLATd(0x1.8p52), shifted = fused_(x, SPLATd(0x1.71547652b82fep+0), shift), k = shifted - shift;
  const Vd r = fused_(k, SPLATd(-0x1.abc9e3b39803fp-56), fused_(k, SPLATd(-0x1.62e42fefa39efp-1), x));
  Vd p = SPLATd(0x1.6124613a86d09p-33);
STEPS  *n = (Id)shifted - (Id)shift;
  return fused_(r * r, p, r);
}""".replace("STEPS", "".join(f"  p = fused_(p, r, SPLATd({c}));\n" for c in (
        "0x1.1eed8eff8d898p-29", "0x1.ae64567f544e4p-26", "0x1.27e4fb7789f5cp-22", "0x1.71de3a556c734p-19",
        "0x1.a01a01a01a01ap-16", "0x1.a01a01a01a01ap-13", "0x1.6c16c16c16c17p-10", "0x1.1111111111111p-7",
        "0x1.5555555555555p-5", "0x1.5555555555555p-3", "0.5"))),
    "exp": """\
INLINE Vd exp_(Vd x) {
  Id n;
  x = v_selectd(x > SPLATd(800.0), SPLATd(800.0), v_selectd(x < SPLATd(-800.0), SPLATd(-800.0), x));
  const Vd q = exponential_(x, &n);
  return scaled_(SPLATd(1.0) + q, n);
}""",
    "tanh_sech_square": """\
/* tanh(x) and 1 - tanh(x)^2: with w = 2^n (1 + q) = exp(-2|x|) they are (1 - w) / (1 + w) and 4 w / (1 + w)^2, in which
   1 - w = (1 - 2^n) - 2^n q does not cancel. Both are corrected by the error of the reciprocal. */
INLINE void tanh_pair_(Vd x, Vd *value, Vd *slope) {
  const Vd one = SPLATd(1.0);
  Id n;
  Vd t = v_absd(x) * SPLATd(-2.0);
  t = v_selectd(t < SPLATd(-800.0), SPLATd(-800.0), t);
  const Vd q = exponential_(t, &n);
  const Id far = n < -1000;
  const Vd s = power_((n & ~far) | (-1000 & far)), head = one + s, below = fused_(s, q, head), rest = fused_(s, q, head - below);
  const Vd inverse = one / below, error = fused_(-rest, inverse, fused_(-below, inverse, one));
  const Vd y = fused_(-s, q, one - s) * inverse, z = SPLATd(4.0) * (one + q) * inverse * inverse;
  *value = (Vd)((Id)fused_(y, error, y) | ((Id)x & (Id)SPLATd(-0.0)));
  *slope = scaled_(fused_(z, error + error, z), n);
}""",
}
NEEDS = {"maximum": ("select",), "minimum": ("select",), "sign": ("select",), "exp": ("select", "exponential"),
         "tanh_sech_square": ("select", "abs", "exponential")}
for _name in ("sqrt", "floor", "ceil", "trunc", "rint"):
    FUNCTIONS[_name] = (f"INLINE V$ v_{_name}$(V$ a) {{ V$ r; for (int i = 0; i < W$; i++) r[i] = __builtin_{_name}SUFFIX(a[i]); return r; }}")

OWN = {("exp", "d")}  # more accurate than the function of the platform, and faster
IN_PAIRS = {"tanh", "sech_square"}  # computed by one function of both

SCALAR = OPERATORS | {
    "not": "!{0}", "isfinite": "fabs({0}) < __builtin_inf()",
    "isinf": "fabs({0}) == __builtin_inf()", "where": "{0} ? {1} : {2}",
    "maximum": "{0} > {1} || {0} != {0} ? {0} : {1}", "minimum": "{0} < {1} || {0} != {0} ? {0} : {1}",
    "sign": "{0} > 0 ? 1 : {0} < 0 ? -1 : {0} + 0",
}
SCALAR_FUNCTIONS = {
    "sech_square": """\
INLINE double sech_square_(double x) {
  const double z = exp(-fabs(x)), s = 2 * z / (1 + z * z);
  return s * s;
}""",
    "remainder": """\
INLINE double remainder_(double a, double b) {
  const double r = fmod(a, b);
  return r ? ((b < 0) != (r < 0) ? r + b : r) : copysign(b == b ? r : r + b, b);
}""",
    "floor_divide": """\
INLINE double floor_divide_(double a, double b) {
  if (!b) return a / b;
  double r = fmod(a, b), q = (a - r) / b;
  if (r && (b < 0) != (r < 0)) q -= 1;
  if (!q) return copysign(0, a / b);
  const double f = floor(q);
  return q - f > 0.5 ? f + 1 : f;
}""",
}


def scalar_call(op: str, dtype: str, operands: list[str]) -> str:
    """The expression for a function of single elements."""
    name = f"{op}_" if op in SCALAR_FUNCTIONS else f"{'fabs' if op == 'abs' else op}{'f' if dtype == 'float' else ''}"
    return f"{name}({', '.join(operands)})"


@functools.cache
def _libmvec() -> ctypes.CDLL | None:
    try:
        return ctypes.CDLL("libmvec.so.1") if sys.platform == "linux" else None
    except OSError:
        return None


@functools.cache
def has_vector_function(op: str, lane: str, arguments: int) -> bool:
    """Whether the platform has a function of vectors."""
    return op not in ("fmod", "remainder", "floor_divide") and hasattr(
        _libmvec(), f"_ZGVbN{2 if lane == 'd' else 4}{'v' * arguments}_{op}{'' if lane == 'd' else 'f'}")


def vector_functions() -> list[str]:
    """The platform's functions of vectors that texts may call."""
    return [f"{op}${lane}{n}" for n, ops in ((1, CALLS), (2, BINARY_CALLS)) for op in ops for lane in "df" if has_vector_function(op, lane, n)]


def libraries(source: str) -> tuple[str, ...]:
    """The options of the linker for the functions that a text calls."""
    return ("-lmvec", "-lm") if "Vd MVEC" in source or "Vf MVEC" in source else ("-lm",)


def block_text(op: str, lane: str, arguments: int) -> str:
    """A function that computes a function of every element of a block."""
    parameters = ", ".join(f"const U$ *x{i}" for i in range(arguments))
    if op == "tanh+sech_square":
        return _paired(lane)
    head = f"APART void {op}_block$(U$ *y, {parameters}, long m) {{\n  for (long i = 0; i < m"
    if (op, lane) in OWN:
        return f"{head}; i++) y[i] = {op}_(x0[i]);\n}}"
    if has_vector_function(op, lane, arguments):
        name = f"MVEC{arguments}$({op})"
        return f"V$ {name}({', '.join(['V$'] * arguments)});\n{head}; i++) y[i] = {name}({', '.join(f'x{i}[i]' for i in range(arguments))});\n}}"
    elements = [f"((const @ *)x{i})[i]" for i in range(arguments)]
    return f"{head} * W$; i++) ((@ *)y)[i] = {scalar_call(op, 'double' if lane == 'd' else 'float', elements)};\n}}"


def _paired(lane: str) -> str:
    head = "APART void tanh_pair_block$(U$ *y, U$ *z, const U$ *x, long m) {\n  for (long i = 0; i < m; i++) {\n    "
    if lane == "d":
        return head + "Vd a, b;\n    tanh_pair_(x[i], &a, &b);\n    y[i] = a;\n    z[i] = b;\n  }\n}"
    parts = ("for (int j = 0; j < Wf; j += Wd) {\n      Vd c, a, b;\n      for (int l = 0; l < Wd; l++) c[l] = ((const float *)&x[i])[j + l];\n      "
             "tanh_pair_(c, &a, &b);\n      for (int l = 0; l < Wd; l++) { ((float *)&y[i])[j + l] = a[l]; ((float *)&z[i])[j + l] = b[l]; }\n    }")
    return head + parts + "\n  }\n}"


def function_texts(used: Iterable[str], lanes: Iterable[str]) -> str:
    """The prelude, and the functions of the given names: `abs$d` of a lane, `exp_block$d1` of blocks, `remainder` of single elements.

    Other names are those of the mathematical library.
    """
    lanes, used = set(lanes), set(used)
    if any("tanh+" in name for name in used):
        lanes.add("d")
        used.add("tanh_sech_square$d")
    out = [PRELUDE, *(_in_lane(LANE, lane) for lane in sorted(lanes))]
    done: set[str] = set()

    def write(name: str) -> None:
        base, _, lane = name.partition("$")
        if name in done:
            return
        done.add(name)
        if base.endswith("_block"):
            op = base.removesuffix("_block")
            if op in SCALAR_FUNCTIONS:
                write(op)
            if (op, lane[0]) in OWN:
                write(f"{op}${lane[0]}")
            out.append(_in_lane(block_text(op, lane[0], int(lane[1])), lane[0]))
        elif not lane:
            out.append(SCALAR_FUNCTIONS.get(base, ""))
        else:
            for needed in NEEDS.get(base, ()):
                write(f"{needed}${lane}")
            out.append(_in_lane(FUNCTIONS[base], lane))

    for name in sorted(used, key=lambda name: ("_block" in name, name)):
        write(name)
    return "\n".join(filter(None, out))


def _in_lane(text: str, lane: str) -> str:
    return text.replace("$", lane).replace("@", "double" if lane == "d" else "float").replace("SUFFIX", "" if lane == "d" else "f")


@functools.lru_cache(1024)
def used_functions(text: str, lane: str) -> frozenset[str]:
    """The names of the functions that an expression of `VECTOR` calls."""
    return frozenset(f"{name}${lane}" for name in re.findall(r"v_([a-z0-9]+)\$\(", text) if name in FUNCTIONS)


def number_text(value: float | int | bool, dtype: str) -> str:
    """A number as a literal of C."""
    if dtype not in ("double", "float"):
        return f"(({dtype}){int(value)})"
    if math.isnan(value):
        return f"(({dtype})__builtin_nan(\"\"))"
    if math.isinf(value):
        return f"(({dtype}){'-' if value < 0 else ''}__builtin_inf())"
    text = f"{float(value).hex()}{'f' if dtype == 'float' else ''}"
    return f"({text})" if text.startswith("-") else text
