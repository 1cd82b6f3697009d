"""SymPy's formulas as functions of Tensors, `from_sympy`, and as data, `tensor(x**2 + 1, {x: 3.0})`."""

from __future__ import annotations

import inspect
import math
import operator
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np
import sympy
from sympy.core.traversal import bottom_up

from symgrad.algebra.values import Unknown
from symgrad.dtypes.dtype import dtype_of, get_default_dtype
from symgrad.engine.data import as_value
from symgrad.engine.recording import core
from symgrad.engine.tensor import Tensor
from symgrad.engine.traced import traced
from symgrad.factories.creation import _as_float, as_tensor, has_formula, read_data, tensor
from symgrad.factories.factory import new_leaf
from symgrad.formulas.expressions import ElementSymbols, keep_alive
from symgrad.graph.node import NAMED, Leaf
from symgrad.graph.op import REGISTRY
from symgrad.symbolic.catalogue import WITH_PARAMETERS
from symgrad.symbolic.parameters import Parameter, elements_of, formulas_of, identifiers, owner_of, parameters_of
from symgrad.symbolic.programs import OpProgram, Writer, places_of

LARGEST = 2**53


# Numbers


@cache
def number_of(constant: Any) -> Any:
    """The Python number closest to a SymPy number or boolean.

    >>> number_of(sympy.pi), number_of(sympy.Integer(2)), number_of(1 + sympy.I)
    (3.141592653589793, 2, (1+1j))
    """
    if constant in (sympy.true, sympy.false):
        return bool(constant)
    if constant.is_Integer and abs(constant) <= LARGEST:
        return int(constant)
    if constant is sympy.nan:
        return math.nan
    value = constant if constant.is_Float else constant.evalf(30)
    try:
        if value is sympy.zoo:
            raise TypeError
        return float(value) if value.is_extended_real else complex(value)
    except TypeError:
        raise Unknown(f"{constant} has no numeric value") from None


def _is_exact(constant: Any) -> bool:
    """Whether a Python number equals the SymPy number exactly and converts back to it."""
    integer = isinstance(constant, sympy.Integer) and abs(constant) <= LARGEST
    return not isinstance(constant, sympy.Expr) or integer or constant.is_Float or constant in (sympy.oo, -sympy.oo, sympy.nan)


def _exact(constant: Any, dtype: Any) -> Tensor:
    """A number as a tensor with the exact number as its formula."""
    number = number_of(constant)
    out = tensor(number, dtype=dtype.to_complex() if isinstance(number, complex) else dtype)
    out._node = Leaf(out, out._value, False, ElementSymbols.as_("constant", [constant], constant=True))
    return out


# Execution of programs


def _extreme(op: str) -> Callable[..., Any]:
    """The largest (or smallest) of several values; ties of tensors share the gradient equally, ties with a number have the gradient 0."""
    along, bound = {"maximum": ("amax", "min"), "minimum": ("amin", "max")}[op]

    def extreme(*values: Any) -> Any:
        tensors = [v for v in values if isinstance(v, Tensor)]
        numbers = [v for v in values if not isinstance(v, Tensor)]
        if len(tensors) > 2:
            shape = np.broadcast_shapes(*[v.shape for v in tensors])
            out = getattr(traced, along)(traced.stack([traced.broadcast_to(v, shape) for v in tensors]), 0)
        else:
            out = tensors[0] if len(tensors) == 1 else getattr(traced, op)(*tensors)
        return traced.clamp(out, **{bound: numbers[0]}) if numbers else out

    return extreme


def _where(condition: Any, a: Any, b: Any) -> Any:
    if isinstance(condition, bool):
        return a if condition else b
    return traced.where(condition, *[float(v) if isinstance(v, int) else v for v in (a, b)])


def _part(op: str) -> Callable[..., Any]:
    of_real = {"real": lambda x: x, "imag": lambda x: 0 * x}[op]
    return lambda x: getattr(traced, op)(x) if x.is_complex() else of_real(x)


SPECIAL: dict[str, Callable[..., Any]] = {
    "maximum": _extreme("maximum"), "minimum": _extreme("minimum"), "where": _where, "neg": operator.neg, "add": operator.add,
    "sub": operator.sub, "mul": operator.mul, "div": operator.truediv, "pow": operator.pow, "real": _part("real"), "imag": _part("imag"),
    **{name: lambda *xs, op=op, given=given: core(REGISTRY[op])(*xs, *given)
       for op, names in WITH_PARAMETERS.items() for name, given in names.items()}}


def _with_integer_exponents(e: Any) -> Any:
    """An expression with integers for integer-valued floats as exponents, so that SymPy knows the square of a modulus, which has no kink."""
    def changed(p: Any) -> Any:
        return p.base ** int(p.exp) if isinstance(p, sympy.Pow) and p.exp.is_Float and float(p.exp).is_integer() else p

    return bottom_up(e, changed) if e.has(sympy.Float) else e


class FormulaFunction:
    """A formula, or an array of formulas, as a differentiable function of its symbols; the result of `from_sympy`.

    `expr` is the given formula, `symbols` are its symbols in the order of the arguments.
    """

    def __init__(self, given: Any, symbols: Any = None):
        if isinstance(given, sympy.Lambda) and symbols is None:
            symbols = given.signature
        expressions, self._shape = formulas_of(given.expr if isinstance(given, sympy.Lambda) else given, "from_sympy")
        self._expressions = list(map(_with_integer_exponents, expressions))
        self.parameters = parameters_of(self._expressions, symbols)
        self.expr = given
        self.symbols = tuple(p.given for p in self.parameters)
        self._programs: dict[bool, OpProgram] = {}
        self._program(stable=True)  # raises for a function without an op
        kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
        self.__signature__ = inspect.Signature([inspect.Parameter(p.name, kind) for p in self.parameters])
        self.__name__ = self.__qualname__ = "formula"
        takes = ", ".join(p.name + (f" of shape {p.shape_text}" if p.shape_text else "") for p in self.parameters)
        self.__doc__ = f"{_shorten(given)}\n\nA differentiable function of {takes or 'nothing'}; shapes broadcast."

    def _program(self, stable: bool) -> OpProgram:
        if stable not in self._programs:
            inputs = places_of(self.parameters)
            writer = Writer(inputs, stable=stable and not any(e.has(sympy.I) for e in self._expressions), differentiable=True)
            writer.program.outputs = [writer.add(e) for e in self._expressions]
            for step in writer.program.steps:
                if step.name == "constant":
                    number_of(step.value)  # raises for a constant without a numeric value
            self._programs[stable] = writer.program
        return self._programs[stable]

    def __call__(self, *args: Any, **kwargs: Any) -> Tensor:
        """The value at Tensors, arrays or numbers. Its shape is their broadcast shape followed by that of the formula."""
        try:
            bound = self.__signature__.bind(*args, **kwargs)
        except TypeError as error:
            raise TypeError(f"{self.__name__}{self.__signature__}: {error}") from None
        given = [bound.arguments[p.name] for p in self.parameters]
        tensors = [x if isinstance(x, Tensor) else as_tensor(x) for x in given]
        values = [t.to(get_default_dtype()) if t._value.dtype.kind in "iu" else t for t in tensors]
        batches = [p.batch(v.shape) for p, v in zip(self.parameters, values)]
        try:
            batch = np.broadcast_shapes(*batches)
        except ValueError:
            shown = ", ".join(f"{p.name} {list(v.shape)}" for p, v in zip(self.parameters, values))
            raise ValueError(f"{self.__name__}{self.__signature__}: the shapes do not broadcast: {shown}") from None
        outputs = self._outputs(values)
        if batch or not self._shape:
            outputs = [out if out.shape == batch else traced.broadcast_to(out, batch) for out in outputs]
        if not self._shape:
            return outputs[0]
        if not outputs:
            return tensor(np.zeros((*batch, *self._shape)))
        return traced.reshape(traced.stack(outputs, len(batch)), (*batch, *self._shape))

    def _outputs(self, values: Sequence[Tensor]) -> list[Tensor]:
        real = not any(v.is_complex() for v in values)
        program = self._program(stable=real)
        floats = [v._value.dtype for v in values if v._value.dtype.kind in "fcV"]
        dtype = dtype_of(np.result_type(*floats)) if floats and all(d.kind != "V" for d in floats) else dtype_of(floats[0]) if floats \
            else get_default_dtype()
        dtype = dtype_of(np.dtype(f"f{dtype.numpy.itemsize // 2}")) if dtype.is_complex else dtype
        named = any(v._node is not None and v._node.flags & NAMED for v in values)
        results: list[Any] = []
        with np.errstate(all="ignore"):
            for step in program.steps:
                if step.name == "input":
                    x = values[step.value.parameter]
                    results.append(traced.getitem(x, (..., *step.value.at)) if step.value.at else x)
                elif step.name == "constant":
                    results.append(_exact(step.value, dtype) if named and not _is_exact(step.value) else number_of(step.value))
                else:
                    results.append((SPECIAL.get(step.name) or getattr(traced, step.name))(*[results[i] for i in step.inputs]))
        ends = [results[i] for i in program.outputs]
        return [x if isinstance(x, Tensor) else tensor(x if isinstance(x, (bool, complex)) else float(x)) for x in ends]

    def __repr__(self) -> str:
        return f"<formula {_shorten(self.expr)} of {', '.join(p.name for p in self.parameters) or 'nothing'}>"


def _shorten(given: Any) -> str:
    try:
        text = str(given)
    except RecursionError:
        return "a deeply nested formula"
    return text if len(text) < 200 else text[:197] + "..."


def from_sympy(expr: Any, symbols: Any = None) -> FormulaFunction:
    """A SymPy formula as a differentiable function of its symbols.

    Its arguments are the values of the symbols in the given order (by default sorted by name) or by keyword: Tensors, arrays and numbers, which
    broadcast. Each of `symbols` is a Symbol; an array of Symbols (an Array, a Matrix, a list), whose value is an array; a MatrixSymbol or an
    IndexedBase. The value of an Array or a Matrix of formulas is an array, with its dimensions last. Common subexpressions are computed once, in
    stable forms: `log(1 + exp(x))` does not overflow.

    Raises TypeError for text, which is never evaluated, and for functions without an op; ValueError for symbols that are not among
    `symbols`, and for invalid shapes.

    >>> import symgrad, sympy
    >>> x, y = sympy.symbols("x y")
    >>> f = from_sympy(x * sympy.exp(-(y**2)))
    >>> f(2.0, symgrad.tensor([0.0, 1.0]))
    tensor([2.0000, 0.7358])
    >>> symgrad.func.grad(f)(symgrad.tensor(2.0), y=0.0)
    tensor(1.)
    >>> f.expr, f.symbols
    (x*exp(-y**2), (x, y))
    """
    return FormulaFunction(expr, symbols)


def tensor_of(data: Any, values: Any = None, dtype: Any = None, requires_grad: bool = False, symbol: str | None = None) -> Tensor:
    """A tensor of SymPy formulas at the values of their symbols: `tensor` for data with SymPy objects.

    The keys of `values` are symbols, matrices and indexed bases, or their names. Tensors among the values are part of the graph; numbers and
    arrays become leaves with the symbols as formulas, which are listed by name in `leaves` of the result.

    Raises ValueError for symbols without a value, TypeError if the values are not a mapping, and for functions without an op.

    >>> import symgrad, sympy
    >>> x = sympy.Symbol("x")
    >>> t = tensor_of(x**2 + 1, {x: 3.0})
    >>> t.backward()
    >>> t.item(), t.expr, t.leaves["x"].grad
    (10.0, x**2 + 1, tensor(6.))
    """
    expressions, shape = formulas_of(data, "tensor")
    if values is not None and not isinstance(values, Mapping):
        raise TypeError(f"tensor(): the values of symbols are a mapping such as {{x: 3.0}}, not {type(values).__name__}")
    given = {str(key): value for key, value in (values or {}).items()}
    wanted = sorted({owner_of(x) for e in expressions for x in elements_of(e)}, key=str)
    missing = [str(s) for s in wanted if str(s) not in given]
    if missing:
        raise ValueError(f"tensor: {', '.join(missing)} {'has' if len(missing) == 1 else 'have'} no value; give one, as in "
                         f"tensor({_shorten(data)}, {{{missing[0]}: 1.0}})")
    if not wanted:
        numbers = np.array([number_of(e) for e in expressions]).reshape(shape)
        return new_leaf(read_data(numbers if shape else numbers[()].item(), dtype), requires_grad, symbol)
    if symbol is not None:
        raise ValueError(f"tensor: a formula has its own symbols, {', '.join(map(str, wanted))}; symbol={symbol!r} names data")
    parameters = parameters_of(expressions, wanted)
    operands = [_leaf(p, given[str(p.given)], dtype) for p in parameters]
    out = FormulaFunction(data, wanted)(*operands)
    keep_alive(out, operands)
    return out


def _leaf(parameter: Parameter, value: Any, dtype: Any) -> Tensor:
    """The value of a parameter as a tensor: itself, or a leaf with the parameter's symbols as its formula."""
    if isinstance(value, Tensor):
        return value
    if has_formula(value):
        return tensor_of(value, None, dtype)
    array = np.asarray(as_value(value))
    if array.dtype.kind in "biu":
        array = _as_float(array)
    base = parameter.given
    if parameter.shape:
        elements = [base[index] for index in np.ndindex(array.shape)]
    elif array.ndim:
        elements = [sympy.Symbol("_".join([base.name, *map(str, index)]), **base.assumptions0) for index in np.ndindex(array.shape)]
    else:
        elements = [base]
    out = tensor(array if array.ndim else array[()], dtype=dtype, requires_grad=True)
    out._make_leaf(True, ElementSymbols.as_(identifiers([str(base)])[0], elements))
    return out
