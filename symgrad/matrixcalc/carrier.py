"""The carrier of matrix calculus: a namespace whose functions return sums of generic products."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import sympy

from symgrad.matrixcalc.labelled import (
    Condition,
    Labelled,
    align,
    apply_function,
    fresh_axes,
    general_power,
    get_item,
    identity,
    indices_of,
    lift,
    number_of,
    one_plus_exp,
    power_of,
    square,
    with_axes,
)
from symgrad.matrixcalc.pairings import reshaped
from symgrad.matrixcalc.rewriting import cholesky_factor, is_factor
from symgrad.matrixcalc.terms import Dimension, Factor, Index, MatrixFunction, NoCompactForm, Sum, Term, constant, plus, times

PUBLIC = {"matrix_exponential": "linalg.matrix_exp", "hermitian_eigenvalues": "linalg.eigvalsh", "hermitian_eigenvectors": "linalg.eigh",
          "singular_values": "linalg.svdvals", "singular_vectors": "linalg.svd", "qr_factors": "linalg.qr", "pseudo_inverse": "linalg.pinv",
          "hermitian_matrix": "one triangle of a matrix"}


def _log(x: Any) -> Labelled:
    """The logarithm; of 1 + exp(z) it is softplus(z)."""
    x = lift(x)
    inside = one_plus_exp(x)
    return apply_function("log", x) if inside is None else apply_function("softplus", inside)


def _is_zero(x: Labelled, negated: bool) -> Condition | bool:
    """Whether a value is 0: a condition, or the answer where the value is the number 0."""
    return Condition("eq", x, negated) if x.total.terms else not negated


class _Carrier:
    """The functions of the carrier; other functions have no compact form."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)

        def refuse(*args: Any, **kwargs: Any) -> Any:
            if name in PUBLIC:
                raise NoCompactForm(f"matrix_expr: {PUBLIC[name]} has no compact form; symgrad.func.grad and symgrad.func.hessian compute its "
                                    f"derivatives")
            raise NoCompactForm(f"matrix_expr: {name} has no compact form; use .expr, which has a formula for every element")

        return refuse

    for _name in ("exp", "sin", "cos", "tan", "sinh", "cosh", "tanh", "asin", "acos", "atan", "asinh", "atanh", "sigmoid", "sign", "abs",
                  "relu"):
        locals()[_name] = staticmethod(lambda x, name=_name: apply_function(name, x))
    del _name

    def __init__(self) -> None:
        self.add: Callable = lambda a, b: a + b
        self.sub: Callable = lambda a, b: a - b
        self.mul: Callable = lambda a, b: a * b
        self.div: Callable = lambda a, b: a / b
        self.neg: Callable = lambda a: -a
        self.expm1: Callable = lambda x: self.exp(x) - 1
        self.exp2: Callable = lambda x: self.exp(x * sympy.log(2))
        self.exp2_derivative: Callable = lambda x, order: self.exp2(x) * number_of(sympy.log(2) ** order)
        self.log: Callable = _log
        self.log1p: Callable = lambda x: self.log(x + 1)
        self.log2: Callable = lambda x: self.log(x) * number_of(1 / sympy.log(2))
        self.log10: Callable = lambda x: self.log(x) * number_of(1 / sympy.log(10))
        self.log_derivative: Callable = lambda x, base: number_of(1 / sympy.log(base)) / x
        self.square: Callable = lambda x: power_of(x, 2)
        self.reciprocal: Callable = lambda x: power_of(x, -1)
        self.sqrt: Callable = lambda x: power_of(x, sympy.Rational(1, 2))
        self.rsqrt: Callable = lambda x: power_of(x, -sympy.Rational(1, 2))
        self.sech: Callable = lambda x: power_of(self.cosh(x), -1)
        self.sech_square: Callable = self._sech_square
        self.sigmoid_slope: Callable = lambda y, x: self.sigmoid(x) * (1 - self.sigmoid(x))
        self.softplus: Callable = lambda x, beta=1.0: apply_function("softplus", x * beta) / beta
        self.logsigmoid: Callable = lambda x: -apply_function("softplus", -x)
        self.logaddexp: Callable = lambda a, b: self.log(self.exp(a) + self.exp(b))
        self.one_minus_square: Callable = lambda x: 1 - power_of(x, 2)
        self.hypot: Callable = lambda a, b: self.sqrt(power_of(lift(a), 2) + power_of(lift(b), 2))
        self.direction: Callable = lambda a, b: a / self.hypot(a, b)
        self.maximum: Callable = lambda a, b: b + self.relu(lift(a) - b)
        self.minimum: Callable = lambda a, b: b - self.relu(lift(b) - a)
        self.eq: Callable = lambda a, b: _is_zero(lift(a) - b, False)
        self.ne: Callable = lambda a, b: _is_zero(lift(a) - b, True)
        self.gt = self.ge = lambda a, b: Condition("gt", lift(a) - b)
        self.lt = self.le = lambda a, b: Condition("gt", lift(b) - a)
        self.copy: Callable = lambda x, order="K": x
        self.astype: Callable = lambda x, dtype: x
        self.view = self.reshape
        self.pow, self.getitem = general_power, get_item

    def _sech_square(self, x: Any) -> Labelled:
        """1 / cosh(x)²; if x has fractional coefficients, as in the slope of a sigmoid, in the form 4 σ(2x) (1 - σ(2x))."""
        if any(t.coefficient.is_Rational and t.coefficient.q != 1 for t in x.total.terms):
            slope = self.sigmoid(x * 2)
            return slope * (1 - slope) * 4
        return power_of(self.cosh(x), -2)

    def logical_and(self, a: Any, b: Any) -> Any:
        """The conjunction of an equality, which holds only on a kink, with another condition."""
        if isinstance(a, bool) or isinstance(b, bool):
            return False if a is False or b is False else b if a is True else a
        if isinstance(a, Condition) and isinstance(b, Condition) and "eq" in (a.kind, b.kind) and not (a.negated or b.negated):
            return a if a.kind == "eq" else b
        raise NoCompactForm("matrix_expr: a selection by several conditions has no compact form; use .expr")

    def logical_or(self, a: Any, b: Any) -> Any:
        """The disjunction of conditions of which one is known."""
        if isinstance(a, bool) or isinstance(b, bool):
            return True if a is True or b is True else b if a is False else a
        raise NoCompactForm("matrix_expr: a selection by several conditions has no compact form; use .expr")

    def indicator(self, condition: Condition, like: Any) -> Labelled:
        """1 where a condition holds."""
        one = self.ones_like(like)
        return self.where(condition, one, one * 0)

    def where(self, condition: Any, a: Any, b: Any) -> Labelled:
        """A selection by the sign of a difference; a value that is selected only where the difference is 0 is ignored."""
        if isinstance(condition, bool):
            return lift(a) + lift(b) * 0 if condition else lift(b) + lift(a) * 0
        if not isinstance(condition, Condition):
            raise NoCompactForm("matrix_expr: where by a given condition has no compact form; use .expr")
        a, b = lift(a), lift(b)
        axes, (first, second) = align([a, b])
        if condition.negated:
            a, b, first, second = b, a, second, first
        if condition.kind == "eq":
            return Labelled(axes, plus(indices_of(axes), [(1, b.total, second)]))
        step = apply_function("step", condition.difference)
        return step * a + (1 - step) * b

    def zeros_like(self, x: Any, shape: Any = None) -> Labelled:
        return self.ones_like(x, shape) * 0

    def ones_like(self, x: Any, shape: Any = None) -> Labelled:
        axes = fresh_axes(x.axes) if shape is None and isinstance(x, Labelled) else tuple(
            None if n == 1 else Index(Dimension(n)) for n in (x.shape if shape is None else shape))
        return Labelled(axes, Sum(indices_of(axes), constant(1).terms))

    def eye_like(self, x: Any, n: int) -> Labelled:
        return identity(n)

    # Axes

    def permute(self, x: Labelled, dims: Sequence[int]) -> Labelled:
        return with_axes(x, tuple(x.axes[d] for d in dims))

    def reshape(self, x: Labelled, shape: Sequence[int]) -> Labelled:
        """Axes of size one inserted or removed, neighbours merged, an axis split."""
        if -1 in shape:
            known = -int(np.prod(shape))
            shape = tuple(int(np.prod(x.shape)) // known if n == -1 else n for n in shape)
        return reshaped(x, shape)

    def broadcast_to(self, x: Labelled, size: Sequence[int]) -> Labelled:
        extra = len(size) - x.ndim
        axes = tuple((x.axes[n - extra] if n >= extra and x.axes[n - extra] is not None else None if m == 1 else Index(Dimension(m)))
                     for n, m in enumerate(size))
        return with_axes(x, axes)

    def sum_to_size(self, x: Labelled, size: Sequence[int]) -> Labelled:
        """The sum over the axes along which `size` would be broadcast."""
        extra = x.ndim - len(size)
        dims = tuple(range(extra)) + tuple(n + extra for n, m in enumerate(size) if m == 1 and x.axes[n + extra] is not None)
        return self.reshape(self.sum(x, dims), tuple(size)) if dims else x

    def sum(self, x: Labelled, dim: Any = None, keepdim: bool = False) -> Labelled:
        dims = tuple(range(x.ndim)) if dim is None else tuple(d % x.ndim for d in (dim if isinstance(dim, tuple) else (dim,)))
        summed = [x.axes[d] for d in dims if x.axes[d] is not None]
        axes = tuple(None if n in dims else i for n, i in enumerate(x.axes) if keepdim or n not in dims)
        parts = [times(indices_of(axes), [(Sum(x.total.out, (t,)), x.total.out)]) for t in x.total.terms]
        out = tuple(i for i in x.total.out if i not in summed)
        return Labelled(axes, Sum(out, tuple(t for part in parts for t in part.rename(out))))

    # Products

    def einsum(self, equation: str, xs: Sequence[Labelled]) -> Labelled:
        """The generic product; letters stand for indices."""
        left, _, right = equation.partition("->")
        letters: dict[str, Index] = {}
        parts = []
        for subscripts, x in zip(left.split(","), xs):
            for letter, index in zip(subscripts, x.axes):
                if index is not None:
                    letters.setdefault(letter, Index(index.dimension)).dimension.join(index.dimension)
        for subscripts, x in zip(left.split(","), xs):
            parts.append((x.total, tuple(letters[c] for c, index in zip(subscripts, x.axes) if index is not None)))
        axes = tuple(letters.get(c) for c in right)
        return Labelled(axes, times(indices_of(axes), parts))

    def matmul(self, a: Labelled, b: Labelled) -> Labelled:
        """Products of vectors and matrices, and of stacks of them."""
        stack = "abcdefg"[:max(a.ndim, b.ndim, 2) - 2]
        one = "z" if a.ndim == 1 else stack[len(stack) - a.ndim + 2:] + "xz"
        two = "z" if b.ndim == 1 else stack[len(stack) - b.ndim + 2:] + "zy"
        out = stack + "x" * (a.ndim > 1) + "y" * (b.ndim > 1)
        return self.einsum(f"{one},{two}->{out}", [a, b])

    mm = mv = dot = matmul

    def trace(self, x: Labelled) -> Labelled:
        return self.einsum("ii->", [x])

    def diag(self, x: Labelled, diagonal: int = 0) -> Labelled:
        """The diagonal of a matrix, or the diagonal matrix of a vector."""
        if diagonal:
            raise NoCompactForm("matrix_expr: a diagonal beside the main one has no compact form; use .expr")
        if x.ndim == 2:
            return self.einsum("ii->i", [x])
        return self.einsum("i,ik->ik", [x, self.eye_like(x, x.shape[0])])

    def diagonal(self, x: Labelled, offset: int, dim1: int, dim2: int) -> Labelled:
        if x.ndim != 2:
            raise NoCompactForm("matrix_expr: diagonals of a stack of matrices have no compact form; use .expr")
        return self.diag(x, offset)

    def diagonal_place(self, x: Labelled, diagonal: int, shape: Any) -> Labelled:
        if shape is not None and shape[0] != shape[1]:
            raise NoCompactForm("matrix_expr: a diagonal of a matrix that is not square has no compact form; use .expr")
        return self.diag(x, diagonal)

    # Reductions and functions of matrices

    def norm(self, x: Labelled, dim: Any = None, keepdim: bool = False) -> Labelled:
        return self.sqrt(self.sum(power_of(x, 2), dim, keepdim))

    def logsumexp(self, x: Labelled, dim: Any = None, keepdim: bool = False) -> Labelled:
        return self.log(self.sum(self.exp(x), dim, keepdim))

    def softmax(self, x: Labelled, dim: Any) -> Labelled:
        return self.exp(x) / self.sum(self.exp(x), dim, True)

    def log_softmax(self, x: Labelled, dim: Any) -> Labelled:
        return x - self.logsumexp(x, dim, True)

    def reference(self, x: Any, weights: Any, dim: Any) -> Labelled:
        """0, since a formula needs no compensation for rounding errors."""
        return lift(0)

    def inverse(self, x: Labelled) -> Labelled:
        return Labelled(x.axes[::-1], Sum(x.indices[::-1], (Term(sympy.S.One, (Factor(MatrixFunction("inverse", square(x)), x.indices[::-1]),)),)))

    def determinant(self, x: Labelled) -> Labelled:
        return Labelled((), Sum((), (Term(sympy.S.One, (Factor(MatrixFunction("det", square(x))),)),)))

    def cofactors(self, x: Labelled) -> Labelled:
        """The derivative of the determinant, for a regular matrix."""
        return self.determinant(x) * self.permute(self.inverse(x), (1, 0))

    def cofactors_along(self, x: Labelled, t: Labelled) -> Labelled:
        """The derivative of the cofactors along a matrix, for a regular matrix."""
        inverse = self.inverse(x)
        turned = self.permute(inverse, (1, 0))
        return self.determinant(x) * (self.trace(self.matmul(inverse, t)) * turned
                                      - self.matmul(turned, self.matmul(self.permute(t, (1, 0)), turned)))

    def log_det_slope(self, x: Labelled) -> Labelled:
        return self.permute(self.inverse(x), (1, 0))

    def sign_of_det(self, x: Labelled) -> Labelled:
        return apply_function("sign", self.determinant(x))

    def cholesky_factor(self, x: Labelled) -> Labelled:
        """The Cholesky factor of the symmetric part of a matrix."""
        return cholesky_factor(x)

    def solve_triangle(self, a: Labelled, b: Labelled, upper: bool, unitriangular: bool) -> Labelled:
        """A⁻¹ B for a Cholesky factor A; of another matrix one triangle is read, for which there is no notation."""
        if unitriangular or not is_factor(a, upper):
            raise NoCompactForm("matrix_expr: linalg.solve_triangular has a compact form only for a Cholesky factor; use linalg.solve")
        return self.solve_system(a, b)

    def solve_system(self, a: Labelled, b: Labelled) -> Labelled:
        return self.matmul(self.inverse(a), b)

    def log_abs_det(self, x: Labelled) -> Labelled:
        return Labelled((), Sum((), (Term(sympy.S.One, (Factor(MatrixFunction("logdet", square(x))),)),)))

    matrix_inverse = inverse


carrier = _Carrier()
