"""Matrix notation as NumPy source; and index notation for formulas without it, `Y[i,k] = Σ_j A[i,j] B[j,k]`, as text, LaTeX and NumPy source."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import sympy

from symgrad.matrixcalc.printing import ATOM, PRODUCT, SUM, Latex, MatrixForm, TextPrinter, number_text, transpose
from symgrad.matrixcalc.terms import Applied, AxisLength, Delta, Factor, Index, Pairing, Sum, Symbol

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


LETTERS = "ijklmnpqrstuvwxyzabcdefgh"


class _Names(dict):
    """Letters for indices in the order of their first use; names of arrays are not used."""

    def __init__(self, used: Collection[str] = (), known: Mapping[Index, str] | None = None):
        super().__init__(known or {})
        self.letters = [letter for letter in LETTERS if letter not in used]

    def __missing__(self, index: Index) -> str:
        self[index] = self.letters[len(self)] if len(self) < len(self.letters) else f"i{len(self)}"
        return self[index]


def _arrays(total: Sum) -> set[str]:
    found: set[str] = set()
    for f in (f for t in total.terms for f in t.factors):
        found |= {f.head.name} if isinstance(f.head, Symbol) else set() if f.head.argument is None else _arrays(f.head.argument)
    return found


def index_text(total: Sum, name: str = "Y") -> str:
    """A sum in index notation, as text."""
    names = _Names(_arrays(total))
    left = _at(name, [names[i] for i in total.out])
    return f"{left} = {_sum(total, names, TextPrinter())}"


def index_latex(total: Sum, name: str = "Y") -> str:
    """A sum in index notation, as LaTeX."""
    names = _Names(_arrays(total))
    letters = "".join(names[i] for i in total.out)
    left = f"{name}_{{{letters}}}" if letters else name
    return f"{left} = {_sum(total, names, Latex())}"


def _at(name: str, letters: Sequence[str]) -> str:
    return f"{name}[{','.join(letters)}]" if letters else name


def _sum(total: Sum, names: _Names, style: TextPrinter) -> str:
    out = ""
    for term in total.terms:
        part = _term(term, total.out, names, style)
        negative = part.startswith("-")
        out += part if not out else f" {style.minus if negative else '+'} {part[negative:]}"
    return out or "0"


def _term(term: Any, out: Sequence[Index], names: _Names, style: TextPrinter) -> str:
    bound = [i for i in dict.fromkeys(i for f in term.factors for i in f.indices) if i not in out]
    latex = isinstance(style, Latex)
    letters = [names[i] for i in bound]
    sign = "-" if term.coefficient.is_Rational and term.coefficient < 0 else ""
    number = -term.coefficient if sign else term.coefficient
    parts = [] if number == 1 and term.factors else [number_text(number)]
    if bound:
        parts.append(rf"\sum_{{{','.join(letters)}}}" if latex else f"Σ_{','.join(letters)}")
    return sign + (r" \, " if latex else " ").join([*parts, *(_factor(f, names, style) for f in term.factors)])


def _factor(f: Factor, names: _Names, style: TextPrinter) -> str:
    head, letters, latex = f.head, [names[i] for i in f.indices], isinstance(style, Latex)

    def subscript(base: str) -> str:
        return (f"{base}_{{{''.join(letters)}}}" if latex else _at(base, letters)) if letters else base

    if isinstance(head, Symbol):
        text = subscript(style.name(head.name))
    elif isinstance(head, Delta):
        text = subscript(r"\delta" if latex else "δ")
    elif isinstance(head, Pairing):
        text = rf"\delta_{{{letters[0]},({letters[1]}{letters[2]})}}" if latex else f"δ[{letters[0]},({letters[1]},{letters[2]})]"
    elif isinstance(head, AxisLength):
        text = head.dimension.name or str(head.dimension.size)
    else:
        inside = {o: names[i] for o, i in zip(head.argument.out, f.indices)} if isinstance(head, Applied) else {}
        within = _Names(known=names | inside)
        within.letters = names.letters
        inner = _sum(head.argument, within, style)
        if isinstance(head, Applied):
            name = "" if head.function is None else head.function.latex if latex else head.function.text
            text = f"{name}({inner})"
        elif head.kind == "inverse":
            text = subscript(f"({inner})" + ("^{-1}" if latex else "⁻¹"))
        else:
            text = subscript(f"{TextPrinter.functions[head.kind]}({inner})")
    if f.power == 1:
        return text
    return f"{text}^{{{f.power}}}" if latex else f"{text}^{f.power}" if f.power.is_Integer and f.power > 0 else f"{text}^({f.power})"


def index_numpy(total: Sum, size: Callable[[Any], str]) -> str:
    """A sum as NumPy source, one einsum per term."""
    show = NumPySource(size).number
    parts = []
    for term in total.terms:
        names = _Names()
        out = [i for i in total.out if any(i in f.indices for f in term.factors)]
        arrays, subscripts = [], []
        for f in term.factors:
            source = _source(f, size)
            arrays.append(source if f.power == 1 else f"{source}**({f.power})")
            subscripts.append("".join(names[i] for i in f.indices))
        source = f"np.einsum(\"{','.join(subscripts)}->{''.join(names[i] for i in out)}\", {', '.join(arrays)})" if arrays else "1.0"
        if len(out) < len(total.out):
            spread = ", ".join(":" if i in out else "None" for i in total.out)
            lengths = ", ".join(size(i.dimension) for i in total.out)
            source = f"np.broadcast_to(np.asarray({source})[{spread}], ({lengths},))"
        parts.append(f"({show(term.coefficient)}) * {source}" if term.coefficient != 1 else source)
    if not parts and total.out:
        return f"np.zeros(({', '.join(size(i.dimension) for i in total.out)},))"
    return " + ".join(parts) or "0.0"


def _source(f: Factor, size: Callable[[Any], str]) -> str:
    head = f.head
    if isinstance(head, Symbol):
        return head.name
    if isinstance(head, Delta):
        return f"np.eye({size(head.dimensions[0].root())})"
    if isinstance(head, Pairing):
        first, second = (size(d.root()) for d in head.dimensions[1:])
        return f"np.eye({first} * {second}).reshape(-1, {first}, {second})"
    if isinstance(head, AxisLength):
        return size(head.dimension.root())
    inner = index_numpy(head.argument, size)
    if isinstance(head, Applied):
        return f"({inner})" if head.function is None else f"({head.function.numpy.format(inner)})"
    return FUNCTIONS[head.kind].format(inner)
