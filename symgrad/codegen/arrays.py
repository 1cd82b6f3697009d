"""Recorded programs as source: functions of arrays for NumPy, PyTorch and JAX, with one line per step.

A short value that is used once is written inside the line that uses it. Elementwise words are those of `languages`; every other word is one
entry of a table, whose `{0}`, `{1}` and so on are the operands and parameters of the word.
"""

from __future__ import annotations

import inspect
import math
import os
import re
from collections.abc import Sequence
from itertools import count
from typing import Any

import numpy as np

from symgrad.carriers import MATRIX_WORDS, numeric
from symgrad.carriers.special.table import SPECIAL
from symgrad.codegen.languages import Jax, NumPy, SourcePrinter, Torch, short_name
from symgrad.codegen.texts import LONGEST, Text, helpers_called
from symgrad.program.program import LISTS, Operand, Program, Step, arguments
from symgrad.system.texts import texts

INLINE = 4  # elements of an array up to which it is written where it is used
REDUCTIONS = ("sum", "prod", "amax", "amin", "all", "any", "argmax", "argmin", "norm", "logsumexp")
LARGEST = 100_000  # elements of a constant that is written at all


def _by_name(language: str) -> dict[str, str]:
    """The functions of `helpers.txt` that written programs call, by their names, each as it stands in a module."""
    text = next(text for name, _, text in texts(os.path.join(os.path.dirname(__file__), "helpers.txt")) if name == language) + "\n"
    return {re.match(r"def (\w+)", source)[1]: f"\n\n{source.rstrip()}\n"  # type: ignore[index]  # as all begin
            for source in re.findall(r"^def .*?(?=^def |\Z)", text, re.DOTALL | re.MULTILINE)}


HELPERS = _by_name("numpy")


def in_torch(text: str) -> str:
    """Source of NumPy as source of PyTorch."""
    return text.replace("np.", "torch.").replace("axis=", "dim=").replace("keepdims=", "keepdim=")


TORCH_HELPERS = _by_name("torch") | {"_centred": HELPERS["_centred"].replace("np.", "torch."),
                                     **{name: in_torch(HELPERS[name]) for name in ("_cofactors", "_cofactors_along")}}
JAX_HELPERS = {name: text.replace("np.", "jnp.") for name, text in HELPERS.items()} | _by_name("jax")


# In NumPy's words: for PyTorch and JAX the module and the names of arguments are replaced
COMMON = {
    **{name: f"9 np.{name}({{0}}, axis={{1}}, keepdims={{2}})" for name in ("sum", "all", "any", "argmax", "argmin", "prod")},
    **{name: f"9 np.{name}({{0}}, axis={{1}})" for name in ("cumsum", "cumprod")},
    **{name: f"9 np.{name}({{0}}, {{1}})" for name in ("broadcast_to", "tril", "triu", "flip", "diag")},
    **{name: f"9 np.{name}({{0}})" for name in ("trace", "isfinite", "isnan", "isinf")},
    **dict.fromkeys(("reshape", "view"), "9 np.reshape({0}, {1})"), **dict.fromkeys(("matmul", "mm", "mv", "dot"), "5 {0:5} @ {1:6}"),
    "amax": "9 np.amax({0}, axis={1}, keepdims={2})", "amin": "9 np.amin({0}, axis={1}, keepdims={2})", "fmod": "9 np.fmod({0}, {1})",
    "permute": "9 np.permute({0}, {1})", "roll": "9 np.roll({0}, {1}, {2})", "diagonal": "9 np.diagonal({0}, {1}, {2}, {3})",
    "cat": "9 np.concatenate([{0}], axis={1})", "stack": "9 np.stack([{0}], axis={1})", "einsum": "9 np.einsum({0}, {1})",
    "getitem": "9 {0:9}[{1}]", "place": "9 _place({0}, {1}, {2})", "put": "9 _put({0}, {1}, {2})", "put_add": "9 _put_add({0}, {1}, {2})",
    "strided": "9 np.reshape({0}, (-1,))[{1}]", "strided_add": "9 np.reshape(_place({0}, {1}, ({3},)), {2})",
    "strided_put": "9 np.reshape(_put(np.reshape({0}, (-1,)), {1}, {2}), {3})", "sum_to_size": "9 _sum_to_size({0}, {1})",
    "diagonal_place": "9 _place({0}, ({1}, {2}), {3})", "centred": "9 _centred({0}, {1})", "norm": "9 _norm({0}, {1}, {2})",
    "softmax": "9 _softmax({0}, {1})", "log_softmax": "9 _log_softmax({0}, {1})", "logsumexp": "9 _logsumexp({0}, {1}, {2})",
    "one_minus_square": "5 (1 - {0:5}) * (1 + {0:5})", "exp2_derivative": "5 np.exp2({0}) * {1}",
    "log_derivative": "5 1 / ({0:5} * {1})", "reciprocal": "5 1 / {0:6}", "copy": "9 np.copy({0})", "astype": "9 {0:9}.astype({1})",
    "real_astype": "9 np.real({0}).astype({1})",
    "complex_sech": "5 1 / np.cosh({0})", "complex_sech_square": "5 1 / np.cosh({0})**2", "complex_sigmoid": "5 1 / (1 + np.exp(-{0:7}))",
    "view_as_real": "9 np.stack([np.real({0}), np.imag({0})], axis=-1)", "view_as_complex": "4 {0:9}[..., 0] + 1j * {0:9}[..., 1]",
    "dft": "9 np.fft.fft({0}, axis={1})", "inverse_dft": "9 np.fft.ifft({0}, axis={1}, norm='forward')",
    "matrix_inverse": "9 np.linalg.inv({0})", "determinant": "9 np.linalg.det({0})", "log_abs_det": "9 np.linalg.slogdet({0})[1]",
    "sign_of_det": "9 np.linalg.slogdet({0})[0]", "log_det_slope": "9 np.swapaxes(np.linalg.inv({0}), -1, -2)",
    "cofactors": "9 _cofactors({0})", "cofactors_along": "9 _cofactors_along({0}, {1})",
    "unfold": "9 np.moveaxis({0:9}[{1}], {2}, -1)", "same": "9 {0}",
}

# By language: the words, the helpers that they call, the module, the function that makes arrays
LANGUAGES: dict[type[SourcePrinter], tuple[dict[str, str], dict[str, str], str, str]] = {
    NumPy: (NumPy.ops | COMMON | {"permute": "9 np.transpose({0}, {1})"}, NumPy.helpers | HELPERS, "np", "array"),
    Torch: (Torch.ops | {name: in_torch(text) for name, text in COMMON.items()} | {
        "cat": "9 torch.cat([{0}], dim={1})", "copy": "9 {0:9}.clone()", "astype": "9 {0:9}.to({1})", "real_astype": "9 torch.real({0}).to({1})",
        "sum_to_size": "9 {0:9}.sum_to_size({1})",
        "norm": "9 torch.linalg.vector_norm({0}, dim={1}, keepdim={2})", "logsumexp": "9 torch.logsumexp({0}, dim={1}, keepdim={2})",
        "softmax": "9 torch.exp({0} - torch.logsumexp({0}, dim={1}, keepdim=True))", "single_softmax": "9 torch.softmax({0}, dim={1})",
        "log_softmax": "4 {0:4} - torch.logsumexp({0}, dim={1}, keepdim=True)", "single_log_softmax": "9 torch.log_softmax({0}, dim={1})",
        "view_as_complex": "9 torch.complex({0:9}[..., 0], {0:9}[..., 1])", "view_as_real": "9 torch.view_as_real({0})"},
        Torch.helpers | TORCH_HELPERS, "torch", "tensor"),
    Jax: (Jax.ops | {name: text.replace("np.", "jnp.") for name, text in COMMON.items()} | {
        "permute": "9 jnp.transpose({0}, {1})", "logsumexp": "9 jax.nn.logsumexp({0}, axis={1}, keepdims={2})",
        "softmax": "9 jax.nn.softmax({0}, axis={1})", "log_softmax": "9 jax.nn.log_softmax({0}, axis={1})"},
        Jax.helpers | JAX_HELPERS, "jnp", "array"),
}
for ops, *_ in LANGUAGES.values():
    ops["scaled_softplus"] = f"5 {ops['softplus'][2:].replace('{0}', '{0:5} * {1}')} / {{1}}"


class ArraySource:
    """The lines of a program in a language, and the texts of its outputs; `header` is what stands before the function."""

    def __init__(self, language: type[SourcePrinter], program: Program, names: Sequence[str]):
        self.program, self.language, self.names = program, language, names
        self.ops, self.helpers, self.module, self.maker = LANGUAGES[language]
        self.arrays: dict[Any, str] = {}
        self.globals: list[str] = []
        self.lines: list[str] = []
        entries = [self._entry(step) for step in program.steps]
        uses = program.uses([max(1, self.ops[name].count("{0")) for name, _ in entries])
        self.texts: list[Any] = [*map(Text, names), *program.constants]
        new_names = (name for name in (f"v{i}" for i in count(1)) if name not in names)
        for slot, step, (name, args) in zip(count(program.first_step), program.steps, entries):
            text = self._text(step, name, args) if uses[slot] else Text("")
            if uses[slot] > 1 or len(text) > LONGEST and slot not in program.outputs:
                variable = next(new_names)
                self.lines.append(f"{variable} = {text}")
                text = Text(variable)
            self.texts.append(text)
        self.outputs = [text if isinstance(text := self.texts[i], Text) else self._array(np.asarray(text)) for i in program.outputs]

    def called(self, code: str) -> str:
        """The helpers that a text calls, and those that these call; then the constants."""
        return helpers_called(code, self.helpers) + "".join(["\n\n", *self.globals] if self.globals else [])

    def _entry(self, step: Step) -> tuple[str, list[Any]]:
        """The name of a step's entry in the table, and the arguments for it: slots as `Operand`, and parameters."""
        given = arguments(step, [Operand(i) for i in step.ins])
        function = getattr(numeric, step.name, None)
        if inspect.isfunction(function) and step.name not in SPECIAL and step.name not in MATRIX_WORDS:
            bound = inspect.signature(function).bind(*given)
            bound.apply_defaults()
            given = list(bound.arguments.values())
        shape = self.program.spec(step.ins[0]).shape
        name, given = (self._reduced if step.name in REDUCTIONS else self._by_parameters)(given, shape, step)
        if name not in self.ops:
            raise TypeError(f"the word {step.name!r} with the parameters {step.params} cannot be written in {self.language.__doc__}")
        return name, given

    def _reduced(self, given: list[Any], shape: tuple[int, ...], step: Step) -> tuple[str, list[Any]]:
        name, (x, dim, keepdim) = step.name, given
        axes = tuple(range(len(shape))) if dim is None else tuple(i % len(shape) for i in dim) if isinstance(dim, (tuple, list)) else (dim,)
        if not axes and name in ("sum", "prod", "amax", "amin") and self.program.spec(step.ins[0]) == (step.shape, step.dtype):
            return "same", [x]
        if len(axes) == len(shape) and not keepdim and (name != "logsumexp" or self.language is not Torch):
            return name, [x, None, False]
        if name == "prod" and self.language is Torch and len(axes) > 1:
            name = "prod of several dimensions"
        return name, [x, axes[0] if len(axes) == 1 else axes, keepdim]

    def _by_parameters(self, given: list[Any], shape: tuple[int, ...], step: Step) -> tuple[str, list[Any]]:
        """The entry of a word that depends on its parameters; that with the word's name for the others."""
        name, (x, *rest) = step.name, given
        match name:
            case "dft":
                return "inverse_dft" if rest[1] else "dft", [x, rest[0]]
            case "softmax" | "log_softmax":
                dim = rest[0][0] if isinstance(rest[0], (tuple, list)) and len(rest[0]) == 1 else rest[0]
                return f"single_{name}" if type(dim) is int and f"single_{name}" in self.ops else name, [x, dim]
            case "put":
                return "put_add" if rest[2] else "put", [x, *rest[:2]]
            case "strided":
                return name, [x, rest[0].positions]
            case "strided_put":
                return name, [x, rest[0], rest[1].positions, shape]
            case "strided_add":
                return name, [x, rest[0].positions, tuple(rest[1]), rest[0].size]
            case "diagonal_place":
                rows = np.arange(shape[0]) + max(-rest[0], 0)
                return name, [x, rows, rows + rest[0], step.shape]
            case "unfold":
                dimension, size, stride = rest
                at = np.arange(0, shape[dimension] - size + 1, stride)[:, None] + np.arange(size)
                return name, [x, (*[slice(None)] * dimension, at), dimension + 1]
            case "sinc_derivative":
                return f"sinc{rest[0] or ''}", [x]
            case "exp2_derivative":
                return name, [x, math.log(2.0) ** rest[0]]
            case "log_derivative":
                return name, [x, math.log(rest[0])]
            case "softplus":
                return (name, [x]) if rest[0] == 1 else ("scaled_softplus", [x, float(rest[0])])
        if name in ("sech", "sech_square", "sigmoid") and step.dtype.kind == "c":
            name = f"complex_{name}"
        elif name in ("cumsum", "cumprod") and not shape:
            name = "same"
        elif name == "astype" and self.program.spec(step.ins[0]).dtype.kind == "c" != step.dtype.kind:
            name = "real_astype"
        return name if name in self.ops else short_name(name, step.params), given

    # Texts

    def _text(self, step: Step, name: str, args: Sequence[Any]) -> Text:
        precedence, _, text = self.ops[name].partition(" ")
        place = LISTS.get(step.name)
        parts = [None if f"{{{i}" not in text else self._joined(step, x) if i == place else
                 self._parameter(step, x, i == 1 and name in ("getitem", "strided", "unfold")) for i, x in enumerate(args)]
        out = text.format(*parts)
        for default in (", axis=None", ", dim=None", ", keepdims=False", ", keepdim=False"):
            out = out.replace(default, "")
        return Text(out, int(precedence))

    def _joined(self, step: Step, xs: Sequence[Any]) -> Text:
        return Text(", ".join(self._parameter(step, x) for x in xs))

    def _parameter(self, step: Step, x: Any, bracketed: bool = False) -> Text:
        """An argument of a word: an operand, or data; an index as it stands between brackets."""
        if type(x) is Operand:
            return self._operand(step, x.number)
        if type(x) is slice:
            parts = [x.start, x.stop] + [x.step] * (x.step is not None)
            return Text(":".join("" if i is None else str(i) for i in parts) if bracketed else f"slice({', '.join(map(str, parts))})")
        if x is Ellipsis:
            return Text("...")
        if type(x) is tuple:
            if self.language is Torch and any(isinstance(i, np.ndarray) and i.ndim or type(i) is Operand for i in x):
                # NumPy treats a number beside an index array as an index array, and PyTorch selects by it first
                x = tuple([np.array([i]) if type(i) is int else i for i in x])
            texts = [self._parameter(step, i, bracketed) for i in x]
            return Text(", ".join(texts) if bracketed and texts else f"({', '.join(texts)}{',' * (len(x) == 1)})")
        if isinstance(x, (np.ndarray, list)):
            return self._array(np.asarray(x))
        if isinstance(x, (np.dtype, type)):
            return Text(self._dtype(np.dtype(x)))
        if x is None or type(x) in (bool, int, float, complex):
            return self._number(x)
        if step.name == "einsum" and type(x) is str and re.fullmatch(r"[A-Za-z,.\->]*", x):
            return Text(f'"{x}"')
        raise TypeError(f"the word {step.name!r} with the parameter {x!r} cannot be written in {self.language.__doc__}")

    def _operand(self, step: Step, slot: int) -> Text:
        """The text of a value. A number is written as one of Python's if this does not change the dtype of the result."""
        found = self.texts[slot]
        if isinstance(found, Text):
            return found
        if np.ndim(found):
            return self._array(found)
        needs_array = step.name in self.language.tensors or step.name in ("cat", "stack", "einsum", "place")
        others = [i for i in step.ins[step.name == "where":] if i != slot and not self.program.is_number(i)]
        python = type(found) in (bool, int, float, complex)
        value = np.asarray(found)
        if not needs_array and (others if python else any(self.program.spec(i).dtype == value.dtype for i in others)):
            return self._number(value.item())
        return self._array(value.astype(step.dtype) if python and step.dtype.kind in "fc" else value)

    def _number(self, x: Any) -> Text:
        if type(x) is complex:
            return Text(f"complex({self._number(x.real)}, {self._number(x.imag)})")
        text = repr(x) if type(x) is not float or math.isfinite(x) else f"{self.module}.nan" if math.isnan(x) else f"{'-' * (x < 0)}{self.module}.inf"
        return Text(text, 6 if text.startswith("-") else 9)

    def _dtype(self, dtype: np.dtype) -> str:
        if dtype.kind == "V" and self.language is NumPy:
            raise TypeError(f"the dtype {dtype} cannot be written in NumPy")
        return f"{self.module}.{'bool_' if dtype.kind == 'b' and self.language is not Torch else dtype}"

    def _array(self, x: np.ndarray) -> Text:
        """An array: small ones and those of equal elements where they are used, others as a constant of the module."""
        key = x.shape, x.dtype, x.tobytes()
        if key in self.arrays:
            return Text(self.arrays[key])
        default = x.dtype.kind == "b" or x.dtype == np.int64 or x.dtype == np.float64 and self.language is not Torch
        dtype = "" if default and x.size else f", dtype={self._dtype(x.dtype)}"
        plain = x.astype(np.float32) if x.dtype.kind == "V" else x
        if x.size == 0 or x.ndim and x.size > 1 and bool((plain == plain.flat[0]).all()) and len({y.tobytes() for y in x.flat}) == 1:
            value = self._number(plain.flat[0].item()) if x.size else "0"
            return Text(f"{self.module}.full({x.shape}, {value}{dtype})")
        if x.size > LARGEST:
            raise ValueError(f"the program has a constant of shape {x.shape}, which is too large for source; make it an argument of the function, "
                             f"or a tensor that the function captures, which becomes an argument")
        text = f"{self.module}.{self.maker}({self._nested(plain.tolist())}{dtype})"
        if x.size <= INLINE:
            return Text(text)
        taken = (*self.names, *self.arrays.values())
        name = self.arrays[key] = next(name for name in (f"C{i}" for i in count(1)) if name not in taken)
        self.globals.append(f"{name} = {text}\n")
        return Text(name)

    def _nested(self, x: Any) -> str:
        return f"[{', '.join(map(self._nested, x))}]" if type(x) is list else str(self._number(x))
