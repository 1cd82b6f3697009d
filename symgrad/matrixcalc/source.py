"""Matrix notation as NumPy source."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import sympy

from symgrad.matrixcalc.form import MatrixForm, transpose
from symgrad.matrixcalc.printing import ATOM, PRODUCT, SUM, TextPrinter

__all__ = ["NumPySource"]


FUNCTIONS = {"inverse": "np.linalg.inv({})", "diag": "np.diag({})", "diagonal": "np.diag({})", "trace": "np.trace({})", "sum": "np.sum({})",
             "det": "np.linalg.det({})", "logdet": "np.linalg.slogdet({})[1]", "cholesky": "np.linalg.cholesky({})",
             "softmax": "np.exp({0} - np.logaddexp.reduce({0}))"}


class NumPySource(TextPrinter):
    """NumPy source; vectors are arrays with one axis. `size` returns the source of the length of an axis."""

    leaves, functions, minus = {}, FUNCTIONS, "-"

    def __init__(self, size: Callable[[Any], str]):
        self.size = size

    def call(self, name: str, inner: str) -> str:
        return name.format(inner)

    def number(self, number: Any) -> str:
        if number.is_Integer:
            return str(number)
        return f"{number.p} / {number.q}" if number.is_Rational and number.q < 10_000 else repr(float(number))

    def _symbol(self, form: MatrixForm) -> tuple[str, int]:
        return form.value, ATOM

    def _number(self, form: MatrixForm) -> tuple[str, int]:
        text = self.number(form.value)
        return text, ATOM if text.isalnum() else SUM

    def _size(self, form: MatrixForm) -> tuple[str, int]:
        return self.size(form.value), ATOM

    def _zero(self, form: MatrixForm) -> tuple[str, int]:
        lengths = [self.size(d) for d in form.value]
        if len(lengths) == 4:
            lengths = [" * ".join(lengths[:2]), " * ".join(lengths[2:])]
        return f"np.zeros(({', '.join(lengths)}{',' * (len(lengths) == 1)}))" if lengths else "0.0", ATOM

    def _ones(self, form: MatrixForm) -> tuple[str, int]:
        return f"np.ones({self.size(form.value)})", ATOM

    def _eye(self, form: MatrixForm) -> tuple[str, int]:
        return f"np.eye({self.size(form.value)})", ATOM

    def _commutation(self, form: MatrixForm) -> tuple[str, int]:
        m, n = map(self.size, form.value)
        return f"np.eye({m} * {n}).reshape({m}, {n}, -1).transpose(1, 0, 2).reshape({m} * {n}, -1).T", ATOM

    def _transpose(self, form: MatrixForm) -> tuple[str, int]:
        (inner,) = form.args
        if inner.kind == "unvec":
            rows, columns = map(self.size, inner.value)
            return f"{self.show(inner.args[0], ATOM)}.reshape({columns}, {rows})", ATOM
        return (self.show(inner, ATOM), ATOM) if abs(inner.rank) == 1 else (f"{self.show(inner, ATOM)}.T", ATOM)

    def _chain(self, chain: Sequence[MatrixForm]) -> str:
        return " @ ".join(self.show(f, PRODUCT + 1) for f in chain)

    def _product(self, form: MatrixForm) -> tuple[str, int]:
        chain = form.args
        for n in range(1, len(chain)):
            if chain[n - 1].rank == 1 and chain[n].rank == -1:
                return f"np.outer({self._chain(chain[:n])}, {self._chain(chain[n:])})", ATOM
        return self._chain(chain), PRODUCT

    def _powers(self, pairs: Sequence[tuple[MatrixForm, Any]]) -> list[str]:
        out = []
        for f, p in pairs:
            inner = self.show(f, PRODUCT + 1 if p == 1 else ATOM)
            out.append(inner if p == 1 else f"np.sqrt({self.show(f)})" if p == sympy.Rational(1, 2) else
                       f"{inner}**{p}" if p.is_Integer else f"{inner}**({self.number(p)})")
        return out

    def _quotient(self, pairs: Sequence[tuple[MatrixForm, Any]], first: Sequence[str], last: Sequence[str]) -> str:
        above = [*first, *self._powers([(f, p) for f, p in pairs if p > 0]), *last]
        return " / ".join([" * ".join(above) or "1", *self._powers([(f, -p) for f, p in pairs if p < 0])])

    def _hadamard(self, form: MatrixForm) -> tuple[str, int]:
        return self._quotient(list(zip(form.args, form.value)), [], []), PRODUCT

    def _scale(self, form: MatrixForm) -> tuple[str, int]:
        number, powers = form.value
        body = [self.show(form.args[-1], PRODUCT + 1)] if len(form.args) > len(powers) else []
        text = self._quotient(list(zip(form.args, powers)), [] if abs(number) == 1 else [self.number(abs(number))], body)
        return ("-" if number < 0 else "") + text, PRODUCT if number > 0 else SUM

    def _apply(self, form: MatrixForm) -> tuple[str, int]:
        text = form.value.numpy.format(self.show(form.args[0]))
        return text, ATOM if text.startswith("np.") else PRODUCT

    def _square(self, form: MatrixForm) -> tuple[str, int]:
        return f"np.sum({self.show(form.args[0], ATOM)}**2)", ATOM

    def _vec(self, form: MatrixForm) -> tuple[str, int]:
        (inner,) = form.args
        return f"{self.show(transpose(inner), ATOM)}.reshape(-1)", ATOM

    def _unvec(self, form: MatrixForm) -> tuple[str, int]:
        return f"{self.show(transpose(form), ATOM)}.T", ATOM

    def _kron(self, form: MatrixForm) -> tuple[str, int]:
        one, two = (f"{self.show(f, ATOM)}[:, None]" if f.rank == 1 and form.rank == 2 else self.show(f) for f in form.args)
        return f"np.kron({one}, {two})", ATOM
