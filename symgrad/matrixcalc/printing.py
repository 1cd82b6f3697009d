"""Matrix notation: `MatrixForm`, a node of it, and its texts in Unicode and LaTeX."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import sympy


@dataclass(frozen=True)
class MatrixForm:
    """A node of matrix notation: its kind, its arguments, and its rank: 0, 1 (a column), -1 (a row) or 2."""

    kind: str
    args: tuple[MatrixForm, ...] = ()
    value: Any = None
    rank: int = 2
    symmetric: bool = False


def transpose(form: MatrixForm) -> MatrixForm:
    """The transpose, with products reversed; a symmetric form is its own transpose."""
    if form.rank == 0 or form.symmetric and form.rank == 2:
        return form
    if form.kind == "transpose":
        return form.args[0]
    if form.kind == "product":
        return MatrixForm("product", tuple(map(transpose, reversed(form.args))), rank=-form.rank if abs(form.rank) == 1 else 2)
    if form.kind == "kron":
        return MatrixForm("kron", tuple(map(transpose, form.args)), rank=-form.rank if abs(form.rank) == 1 else 2)
    return MatrixForm("transpose", (form,), rank=-form.rank if abs(form.rank) == 1 else 2)


SUM, PRODUCT, ATOM = 1, 2, 4
SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def number_text(number: Any) -> str:
    """A number as a short fraction, otherwise as a decimal."""
    if number.is_Rational and (number.q == 1 or max(abs(number.p), number.q) < 10_000):
        return str(number)
    return repr(float(number)) if number.is_Rational else str(number)


def _scaled(form: MatrixForm, number: Any) -> MatrixForm:
    """A number times a form."""
    if form.kind == "scale":
        return MatrixForm("scale", form.args, (form.value[0] * number, form.value[1]), form.rank)
    if form.kind == "number":
        return MatrixForm("number", value=form.value * number, rank=0)
    return form if number == 1 else MatrixForm("scale", (form,), (number, ()), form.rank)


def _ordered_terms(form: MatrixForm) -> list[tuple[MatrixForm, Any]]:
    """The terms of a sum with their coefficients, starting with a nonnegative one if possible."""
    pairs = list(zip(form.args, form.value))
    first = next((n for n, (_, number) in enumerate(pairs) if not number < 0), 0)
    return [pairs[first], *pairs[:first], *pairs[first + 1:]]


class TextPrinter:
    """Unicode text."""

    times, hadamard, divided, tensor, minus, open, close = " ", " ∘ ", " ⊘ ", " ⊗ ", "−", "(", ")"
    notation = "text"
    leaves = {"zero": "0", "ones": "𝟏", "eye": "I", "commutation": "K"}
    functions = {"diag": "diag", "diagonal": "diag", "trace": "tr", "det": "det", "logdet": "log det", "sum": "sum", "softmax": "softmax",
                 "vec": "vec", "unvec": "unvec", "cholesky": "chol"}

    def show(self, form: MatrixForm, level: int = 0) -> str:
        """A form, in brackets if its precedence is lower than `level`."""
        if form.kind in self.leaves:
            return self.leaves[form.kind]
        if form.kind in self.functions:
            return self.call(self.functions[form.kind], self.show(form.args[0]))
        text, precedence = getattr(self, f"_{form.kind}")(form)
        return text if precedence >= level else self.brackets(text)

    def brackets(self, text: str) -> str:
        return f"{self.open}{text}{self.close}"

    def superscript(self, text: str, exponent: str) -> str:
        """The text with an exponent such as "2", "-1" or "T"."""
        return text + exponent.translate(SUPERSCRIPTS).replace("-T", "⁻ᵀ").replace("⁻T", "⁻ᵀ").replace("T", "ᵀ")

    def call(self, name: str, inner: str) -> str:
        return f"{name}({inner})"

    def name(self, name: str) -> str:
        return name

    def fraction(self, above: str, below: Sequence[str]) -> str:
        return f"{above} / {below[0] if len(below) == 1 else self.brackets(' '.join(below))}"

    def norm(self, inner: str, power: int, rank: int) -> str:
        """A power of a Euclidean or Frobenius norm."""
        text = f"‖{inner}‖" + ("_F" if rank == 2 else "")
        return text if power == 1 else self.superscript(text, str(power))

    def root(self, inner: str) -> str:
        return f"√({inner})"

    def elementwise_power(self, base: str, power: Any) -> str:
        return f"{base}^∘{power if power.is_Integer and power > 0 else f'({power})'}"

    # Leaves

    def _symbol(self, form: MatrixForm) -> tuple[str, int]:
        return self.name(form.value), ATOM

    def _number(self, form: MatrixForm) -> tuple[str, int]:
        return number_text(form.value), ATOM if form.value >= 0 else SUM

    def _size(self, form: MatrixForm) -> tuple[str, int]:
        return form.value.name or str(form.value.size), ATOM

    # Trees

    def _transpose(self, form: MatrixForm) -> tuple[str, int]:
        (inner,) = form.args
        if inner.kind == "inverse":
            return self.superscript(self.show(inner.args[0], ATOM), "-T"), ATOM
        return self.superscript(self.show(inner, ATOM), "T"), ATOM

    def _inverse(self, form: MatrixForm) -> tuple[str, int]:
        return self.superscript(self.show(form.args[0], ATOM), "-1"), ATOM

    def _power(self, form: MatrixForm, count: int) -> str:
        if count == 1 or abs(form.rank) == 1:
            return self.join([self.show(form, PRODUCT + 1)] * count)
        if form.kind == "transpose":
            return self.superscript(self.brackets(self._power(form.args[0], count)), "T")
        if form.kind == "inverse":
            return self.superscript(self.show(form.args[0], ATOM), str(-count))
        return self.superscript(self.show(form, ATOM), str(count))

    def join(self, parts: Sequence[str]) -> str:
        """The factors of a matrix product."""
        out = last = parts[0]
        for part in parts[1:]:
            close = last[-1] in "ᵀ⁻⁰¹²³⁴⁵⁶⁷⁸⁹" and (part[0] == "(" or re.match(r"(?:[^\W\d_]|𝟏)(?![0-9A-Za-z_(])", part))
            out += ("" if close or last[0] + part[0] == "((" else self.times) + part
            last = part
        return out

    def _product(self, form: MatrixForm) -> tuple[str, int]:
        return self.join([self._power(f, len(list(several))) for f, several in groupby(form.args)]), PRODUCT

    def _hadamard(self, form: MatrixForm) -> tuple[str, int]:
        above: list[str] = []
        below: list[str] = []
        for f, p in zip(form.args, form.value):
            target = above if p > 0 else below
            size = abs(p)
            if size == sympy.Rational(1, 2):
                target.append(self.root(self.show(f)))
            elif size == 1:
                target.append(self.show(f, PRODUCT + 1))
            else:
                target.append(self.elementwise_power(self.show(f, ATOM), size))
        text = self.hadamard.join(above) or "1"
        text = self.divided.join([text, *below])
        return text, ATOM if len(form.args) == 1 and not below else PRODUCT

    def _scalar(self, form: MatrixForm, power: Any) -> str:
        """A positive power of a scalar."""
        if form.kind == "square" and (2 * power).is_Integer:
            return self.norm(self.show(form.args[0]), int(2 * power), abs(form.args[0].rank))
        if power == sympy.Rational(1, 2):
            return self.root(self.show(form))
        if power.is_Integer:
            return self.show(form, PRODUCT + 1) if power == 1 else self.superscript(self.show(form, ATOM), str(power))
        return self.rational_power(self.show(form, ATOM), power)

    def rational_power(self, base: str, power: Any) -> str:
        return f"{base}^({power})"

    def parts(self, form: MatrixForm) -> tuple[Any, list[str], list[str]]:
        """The sign, numerator and denominator."""
        number, powers = form.value
        above = [self._scalar(f, p) for f, p in zip(form.args, powers) if p > 0]
        below = [self._scalar(f, -p) for f, p in zip(form.args, powers) if p < 0]
        p, q = (number.p, number.q) if number.is_Rational and max(abs(number.p), number.q) < 10_000 else (number, 1)
        sign, p = (-1, -p) if p < 0 else (1, p)
        if len(form.args) > len(powers):
            body = form.args[-1]
            alone = not above and p == 1 and q == 1 and not below
            above.append(self.show(body, PRODUCT if alone or body.kind in ("product", "kron") else PRODUCT + 1))
        if p != 1 or not above:
            above.insert(0, number_text(sympy.sympify(p)))
        if q != 1:
            below.insert(0, str(q))
        return sign, above, below

    def _scale(self, form: MatrixForm) -> tuple[str, int]:
        sign, above, below = self.parts(form)
        text = self.join(above)
        text = self.fraction(text, below) if below else text
        return ("-" if sign < 0 else "") + text, PRODUCT if sign > 0 else SUM

    def _add(self, form: MatrixForm) -> tuple[str, int]:
        text = ""
        for f, number in _ordered_terms(form):
            part = self.show(_scaled(f, number))
            negative = part.startswith("-")
            if text:
                text += f" {self.minus if negative else '+'} {part[1:] if negative else part}"
            else:
                text = part
        return text, SUM

    def _apply(self, form: MatrixForm) -> tuple[str, int]:
        return self.call(getattr(form.value, self.notation), self.show(form.args[0])), ATOM

    def _kron(self, form: MatrixForm) -> tuple[str, int]:
        return self.tensor.join(self.show(f, PRODUCT) for f in form.args), PRODUCT

    def _square(self, form: MatrixForm) -> tuple[str, int]:
        return self.norm(self.show(form.args[0]), 2, abs(form.args[0].rank)), ATOM


class Latex(TextPrinter):
    """LaTeX."""

    times, hadamard, divided, tensor, minus, open, close = r" \, ", r" \circ ", r" \oslash ", r" \otimes ", "-", r"\left(", r"\right)"
    notation = "latex"
    leaves = TextPrinter.leaves | {"ones": r"\mathbf{1}"}
    NAMES = {name: "\\" + name for name in
             "alpha beta gamma delta epsilon zeta eta theta kappa lambda mu nu xi pi rho sigma tau phi chi psi omega Gamma Delta Theta Lambda "
             "Sigma Phi Psi Omega".split()}

    def superscript(self, text: str, exponent: str) -> str:
        return f"{text}^{{{exponent.replace('T', chr(92) + 'top')}}}"

    def call(self, name: str, inner: str) -> str:
        known = {"det": r"\det", "log det": r"\log\det"}
        shown = known.get(name, rf"\operatorname{{{name}}}" if name.isalpha() else name)
        return f"{shown}{self.brackets(inner)}"

    def name(self, name: str) -> str:
        base, _, tail = name.partition("_")
        base = self.NAMES.get(base, base if len(base) == 1 else rf"\mathrm{{{base}}}")
        return f"{base}_{{{tail.replace('_', ' ')}}}" if tail else base

    def fraction(self, above: str, below: Sequence[str]) -> str:
        return rf"\frac{{{above}}}{{{self.times.join(below)}}}"

    def norm(self, inner: str, power: int, rank: int) -> str:
        text = rf"\left\lVert {inner} \right\rVert" + ("_F" if rank == 2 else "")
        return text if power == 1 else f"{text}^{{{power}}}"

    def root(self, inner: str) -> str:
        return rf"\sqrt{{{inner}}}"

    def elementwise_power(self, base: str, power: Any) -> str:
        return rf"{base}^{{\circ {power}}}"

    def rational_power(self, base: str, power: Any) -> str:
        return f"{base}^{{{power}}}"

    def join(self, parts: Sequence[str]) -> str:
        return self.times.join(parts)

    def _number(self, form: MatrixForm) -> tuple[str, int]:
        return sympy.latex(sympy.nsimplify(number_text(form.value))) if form.value.is_Rational else sympy.latex(form.value), \
            ATOM if form.value >= 0 else SUM
