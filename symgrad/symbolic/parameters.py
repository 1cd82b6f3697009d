"""The formulas and parameters of a call: symbols, arrays of symbols, matrices and indexed bases; and formulas from text, which is never evaluated."""

from __future__ import annotations

import keyword
import re
import unicodedata
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import sympy
from sympy.matrices.expressions.matexpr import MatrixElement
from sympy.tensor.indexed import Indexed, IndexedBase

from symgrad.carriers import symbolic
from symgrad.carriers.sizes import check_number, tree_size
from symgrad.carriers.symbolic import readable_number
from symgrad.factories.creation import tensor
from symgrad.formulas.parsing import ParseError, parse
from symgrad.formulas.programs import Instruction, NamedNumber, apply_step, functions
from symgrad.reference.recorder import Box, RecordingCarrier
from symgrad.system.limits import COMPARED, NODES, PIECES, within

# Parameters


class Parameter:
    """A parameter of formulas: its name as a Python identifier, the given object, and the symbol of each element by index.

    The `shape` of an IndexedBase without one has -1 for each of its dimensions.
    """

    def __init__(self, name: str, given: Any, cells: Mapping[tuple[int, ...], Any], shape: tuple[int, ...]):
        self.name, self.given, self.cells, self.shape = name, given, cells, shape

    @property
    def shape_text(self) -> str:
        """The shape as text; "" for a number."""
        return "(" + ", ".join("..." if n < 0 else str(n) for n in self.shape) + ("," if len(self.shape) == 1 else "") + ")" if self.shape else ""

    @property
    def least(self) -> tuple[int, ...]:
        """The shape, or the smallest shape with all elements that are used."""
        return tuple(max([index[k] + 1 for index in self.cells], default=1) if n < 0 else n for k, n in enumerate(self.shape))

    def batch(self, shape: Sequence[int]) -> tuple[int, ...]:
        """The leading dimensions of a value of a shape, which broadcast.

        Raises ValueError unless the parameter's dimensions come last.
        """
        n = len(self.shape)
        own = tuple(shape[len(shape) - n:]) if n else ()
        fits = len(own) == n and all(a < 0 or a == b for a, b in zip(self.shape, own))
        if not fits or any(i >= size for index in self.cells for i, size in zip(index, own)):
            last = max(self.cells, default=()) if fits else ()
            reason = f"has no element {list(last)}" if fits else f"does not end in its shape {self.shape_text}"
            raise ValueError(f"the value of {self.name} has the shape {list(shape)}, which {reason}")
        return tuple(shape[:len(shape) - n])


def identifiers(names: Sequence[str]) -> list[str]:
    """The names as distinct identifiers; Greek letters are spelled out.

    >>> identifiers(["x", "x'", "lambda", "2y", "α_1"])
    ['x', 'x_', 'lambda_', '_2y', 'alpha_1']
    """
    out: list[str] = []
    for name in names:
        words = re.sub(r"[Α-ω]", lambda m: unicodedata.name(m[0]).rpartition(" ")[2].lower(), name)
        plain = re.sub(r"\W", "_", words, flags=re.ASCII) or "x"
        plain = "_" + plain if plain[0].isdigit() else plain
        while keyword.iskeyword(plain) or keyword.issoftkeyword(plain) or plain in out:
            plain += "_"
        out.append(plain)
    return out


def _cells(given: Any, expressions: Sequence[Any]) -> tuple[str, dict[tuple[int, ...], Any], tuple[int, ...]]:
    if isinstance(given, Parameter):
        return given.name, dict(given.cells), given.shape
    if isinstance(given, sympy.Symbol):
        return given.name, {(): given}, ()
    if isinstance(given, sympy.MatrixSymbol):
        if not all(n.is_Integer for n in given.shape):
            raise ValueError(f"from_sympy: the matrix {given} has the shape {given.shape}; give one with numbers for its shape")
        shape = tuple(map(int, given.shape))
        return str(given), {index: given[index] for index in np.ndindex(shape)}, shape
    if isinstance(given, IndexedBase):
        used = {e for expression in expressions for e in expression.atoms(Indexed) if e.base == given}
        bad = [e for e in used if not all(i.is_Integer and i >= 0 for i in e.indices)]
        if bad:
            raise ValueError(f"from_sympy: {bad[0]} has an index that is not a number from 0 on; write sums out with .doit()")
        if given.shape is None:
            return str(given), {tuple(map(int, e.indices)): e for e in used}, (-1,) * max((len(e.indices) for e in used), default=1)
        shape = tuple(map(int, given.shape))
        return str(given), {index: given[index] for index in np.ndindex(shape)}, shape
    array = np.array(given.tolist() if hasattr(given, "tolist") else given, dtype=object)
    if not all(isinstance(s, sympy.Symbol) for s in array.ravel()):
        raise TypeError(f"from_sympy: {given!r} is neither a symbol nor an array of symbols")
    stems = {re.sub(r"(_\d+)+$|\d+$", "", s.name) for s in array.ravel()}
    return stems.pop() if len(stems) == 1 and "" not in stems else "xs", {i: array[i] for i in np.ndindex(array.shape)}, array.shape


def owner_of(element: Any) -> Any:
    """The matrix or indexed base of an element, or the symbol itself."""
    return element.base if isinstance(element, Indexed) else element.parent if isinstance(element, MatrixElement) else element


def elements_of(e: Any) -> set[Any]:
    """The atoms of an expression that need a value: its symbols, and elements of matrices and indexed bases."""
    inner = e.atoms(Indexed) | e.atoms(MatrixElement)
    hidden = {s for x in inner for s in (x, owner_of(x), getattr(owner_of(x), "label", None))}
    return inner | {s for s in e.free_symbols if s not in hidden}


def parameters_of(expressions: Sequence[Any], symbols: Any = None) -> list[Parameter]:
    """The parameters of formulas: the symbols given, or all of them by name.

    Raises ValueError for symbols without a parameter, and for different symbols of one name.
    """
    if symbols is None:
        given = sorted({owner_of(x) for e in expressions for x in elements_of(e)}, key=str)
    else:
        given = [symbols] if isinstance(symbols, sympy.Basic) and not isinstance(symbols, sympy.Tuple) else list(symbols)
    parts = [_cells(s, expressions) for s in given]
    owned: dict[str, Any] = {}
    for _, cells, _ in parts:
        for cell in cells.values():
            other = owned.setdefault(str(cell), cell)
            if other != cell:
                raise ValueError(f"from_sympy: there are two symbols {cell} with different assumptions; use one of them")
    known = set(owned.values())
    missing = sorted({str(s) for e in expressions for s in elements_of(e) - known})
    if missing:
        named = [name for name in missing if name in owned]
        if named:
            raise ValueError(f"from_sympy: the symbol {named[0]} that was given has other assumptions than the one in the formula; give the same")
        raise ValueError(f"from_sympy: no parameter gives {', '.join(missing)}; the symbols are {', '.join(map(str, given)) or 'none'}")
    names = identifiers([name for name, _, _ in parts])
    return [Parameter(name, one, cells, shape) for name, one, (_, cells, shape) in zip(names, given, parts)]


# Formulas


def formulas_of(given: Any, name: str) -> tuple[list[Any], tuple[int, ...]]:
    """An expression, or an array of them, as a list of expressions and a shape.

    Raises TypeError for text, which is never evaluated, and for an object that is not a formula.
    """
    if isinstance(given, (str, bytes)):
        raise TypeError(f"{name}: text is not evaluated; symgrad.formulas.parsing.parse reads a formula from text, and symgrad.to_sympy takes what "
                        f"it gives")
    if isinstance(given, sympy.MatrixExpr):
        given = given.as_explicit()
    if isinstance(given, sympy.Expr) and given.has(sympy.Trace, sympy.Determinant):
        given = given.replace(sympy.Trace, lambda a: a.as_explicit().trace()).replace(sympy.Determinant, lambda a: a.as_explicit().det())
    if isinstance(given, (sympy.MatrixBase, sympy.NDimArray)):
        return list(given.flat() if isinstance(given, sympy.MatrixBase) else given.reshape(len(given))), tuple(map(int, given.shape))
    if isinstance(given, (list, tuple, sympy.Tuple, np.ndarray)):
        array = np.array(given, dtype=object)
        return [formulas_of(e, name)[0][0] for e in array.ravel()], array.shape
    if isinstance(given, (int, float, complex, np.generic)):
        return [readable_number(given.item() if isinstance(given, np.generic) else given)], ()
    if isinstance(given, (sympy.Expr, sympy.logic.boolalg.Boolean)):
        return [given], ()
    raise TypeError(f"{name}: expected a SymPy expression, an Array or a Matrix, not {type(given).__name__}")


CONSTANTS = {"pi": sympy.pi, "e": sympy.E}
FAILURES = (TypeError, ValueError, ArithmeticError, AttributeError, RuntimeError)  # of rules that have no exact value for such arguments


def parse_formula(text: str, decimals: bool = False) -> tuple[sympy.Expr, tuple[str, ...]]:
    """A formula from text: its exact expression over real symbols, and the names in it in order; x[0] is the element x_0.

    Numbers are the floats they are in code, or with `decimals` the decimals they are written as; pi and e are exact. Raises ParseError, which
    shows the place, also for numbers and powers that SymPy would write out with too many digits.

    >>> parse_formula("log(1 + exp(-y*x))/2")
    (log(1 + exp(-x*y))/2, ('y', 'x'))
    >>> parse_formula("x[0]**2 + pi*x[1]")
    (x_0**2 + pi*x_1, ('x_0', 'x_1'))
    >>> parse_formula("x**0.1", decimals=True)
    (x**(1/10), ('x',))
    """
    formula = parse(text)
    formula(**{name: tensor(1.0) for name in formula.names})  # refuses constants that are not finite, and powers of them that would not end
    known, sizes = functions(), dict[sympy.Basic, int]()
    recorder = RecordingCarrier(symbolic, lambda x: symbolic.lift_value(x, True))

    def box(e: Any) -> Box:
        return Box(recorder, symbolic.ExactExpressions.fill([e], ()))

    def number(x: float) -> Box:
        return box(CONSTANTS[x.name] if isinstance(x, NamedNumber) else sympy.Rational(repr(x)) if decimals else symbolic.exact_number(x))

    def apply(step: Instruction, operands: list[Any]) -> Any:
        try:
            for x in operands if step.kind == "call" and step.value != "where" else ():
                e = x.value.item()
                if isinstance(e, sympy.Basic) and e.has(sympy.Piecewise, sympy.Mod, sympy.floor, sympy.ceiling):
                    within(tree_size(e, sizes), PIECES, "an argument with cases has {} parts")
            out = apply_step(step, operands, recorder, known)
            e = check_number(sympy.sympify(out.value.item()))
            if step.kind == "call":
                within(len(e.args) if isinstance(e, (sympy.Max, sympy.Min)) else 0, COMPARED, "a maximum or minimum has {} arguments")
            within(tree_size(e, sizes), NODES, "written out, the formula has {} parts")
        except RecursionError:
            raise ParseError("this formula is nested too deeply for SymPy", text, step.at) from None
        except FAILURES as error:
            raise ParseError(f"there is no exact formula here: {error}", text, step.at) from None
        return out

    e = sympy.sympify(formula.evaluate_with(number, {name: box(sympy.Symbol(name, real=True)) for name in formula.names}, apply).value.item())
    if not isinstance(e, sympy.Expr):
        raise ParseError("this is a comparison, not a number; write where(a < b, 1, 0)", text, 0)
    return e, formula.names
