"""The functions of C programs: the texts of `mathematics.c`, for vectors of float64 (lane d) and float32 (lane f), and expressions for elements."""

from __future__ import annotations

import ctypes
import functools
import math
import os
import re
import sys
from collections.abc import Iterable

from symgrad.program.native.internals import integer_bits
from symgrad.system.texts import texts

CALLS = ("exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh", "sech_square",
         "asinh", "acosh", "atanh")
BINARY_CALLS = ("pow", "atan2", "hypot", "fmod", "remainder", "floor_divide")

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


def _texts(file: str) -> dict[str, tuple[tuple[str, ...], str]]:
    """The texts of a C file beside this one by their names, each with the names of those that it needs."""
    return {name: (needs, text) for name, needs, text in texts(os.path.join(os.path.dirname(__file__), file))}


TEXTS = _texts("mathematics.c")
OWN = {("exp", "d")}  # more accurate than the function of the platform, and faster
IN_PAIRS = {"tanh", "sech_square"}  # computed by one function of both

SCALAR = OPERATORS | {
    "not": "!{0}", "isfinite": "fabs({0}) < __builtin_inf()",
    "isinf": "fabs({0}) == __builtin_inf()", "where": "{0} ? {1} : {2}",
    "maximum": "{0} > {1} || {0} != {0} ? {0} : {1}", "minimum": "{0} < {1} || {0} != {0} ? {0} : {1}",
    "sign": "{0} > 0 ? 1 : {0} < 0 ? -1 : {0} + 0",
}
SCALAR_FUNCTIONS = ("sech_square", "remainder", "floor_divide")


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
    out = [TEXTS["PRELUDE"][1] + "\n", *(_in_lane(TEXTS["LANE"][1] + "\n", lane) for lane in sorted(lanes))]
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
            out.append(TEXTS[base][1] if base in SCALAR_FUNCTIONS else "")
        else:
            for needed in TEXTS[base][0]:
                write(f"{needed}${lane}")
            out.append(_in_lane(TEXTS[base][1], lane))

    for name in sorted(used, key=lambda name: ("_block" in name, name)):
        write(name)
    return "\n".join(filter(None, out))


def _in_lane(text: str, lane: str) -> str:
    return text.replace("$", lane).replace("@", "double" if lane == "d" else "float").replace("SUFFIX", "" if lane == "d" else "f")


@functools.lru_cache(1024)
def used_functions(text: str, lane: str) -> frozenset[str]:
    """The names of the functions that an expression of `VECTOR` calls."""
    return frozenset(f"{name}${lane}" for name in re.findall(r"v_([a-z0-9]+)\$\(", text) if name in TEXTS)


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


TYPES = {"d": "double", "f": "float", "b": "unsigned char", "l": "int64_t", "i": "int32_t"}
ROUTINES = _texts("routines.c")


def routine_text(name: str, letter: str) -> str:
    """A routine for the type of a letter."""
    text = ROUTINES[name][1].replace("#", letter)
    text = text.replace("blas_int", f"int{integer_bits()}_t")
    text = text.replace("BLAS_GEMM", "0" if letter == "d" else "2").replace("BLAS_GEMV", "1" if letter == "d" else "3")
    return re.sub(r'\bT\b(?!")', TYPES[letter], text)
