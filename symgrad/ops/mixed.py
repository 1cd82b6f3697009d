"""Arithmetic of three tensors, remainders, and matrix products added to another tensor."""

import functools
import math
import warnings

from symgrad.arguments import check_dims, check_kind, check_least_rank, check_one_dtype, check_range, check_shapes
from symgrad.graph.domains import NONZERO, POSITIVE, REAL
from symgrad.graph.op import composite, elementwise, linear, multilinear, primitive
from symgrad.layouts.indices import largest_of_dtype
from symgrad.ops.arithmetic import _is_integer, _sub_arguments
from symgrad.ops.linalg import check_product, cross_product, matrix_transpose, outer_product, second_cotangent
from symgrad.ops.rules import axis, check_expandable, is_complex, reduced_count, whole_factors

elementwise("add_product", lambda xp, input, tensor1, tensor2, value: input + value * (tensor1 * tensor2), 1,
            lambda xp, y, a, b, c, value: value * c, lambda xp, y, a, b, c, value: value * b, public=False, node_name="Addcmul", integers=True,
            saved=("", "tensor2", "tensor1"), examples=((1,), (-2.5,)), doc="input + value * tensor1 * tensor2.")
elementwise("add_quotient", lambda xp, input, tensor1, tensor2, value: input + value * (tensor1 / tensor2), 1,
            lambda xp, y, a, b, c, value: value / c, lambda xp, y, a, b, c, value: -value * (b / c) / c, domain=(REAL, REAL, NONZERO), public=False,
            node_name="Addcdiv", saved=("", "tensor2", "tensor1 tensor2"), examples=((1,), (-2.5,)), doc="input + value * tensor1 / tensor2.")


@composite("addcmul", elementwise=True, arity=3, usage="symgrad.addcmul(x, x, x, value=2)")
def addcmul(xp, input, tensor1, tensor2, *, value=1):
    """input + value * tensor1 * tensor2."""
    return xp.add_product(input, tensor1, tensor2, value)


@composite("addcdiv", elementwise=True, arity=3, domain=(REAL, REAL, NONZERO), usage="symgrad.addcdiv(x, x, x, value=2)")
def addcdiv(xp, input, tensor1, tensor2, *, value=1):
    """input + value * tensor1 / tensor2."""
    if _is_integer(tensor1) and _is_integer(tensor2):
        raise RuntimeError("addcdiv: tensor1 and tensor2 are integers, whose quotient is ambiguous. Convert one of them with .to(float64)")
    return xp.add_quotient(input, tensor1, tensor2, value)


linear("lerp_number", lambda xp, input, end, weight: (1 - weight) * input + weight * end, lambda xp, g, shape, weight: (1 - weight) * g,
       lambda xp, g, shape, weight: weight * g, public=False, node_name="Lerp", examples=((0.25,), (1.0,)), shapes=((3, 4), (4,)), layout="operands",
       doc="input + weight (end - input).")
elementwise("lerp_tensor", lambda xp, input, end, weight: (1 - weight) * input + weight * end, lambda xp, y, a, b, w: 1 - w, lambda xp, y, a, b, w: w,
            lambda xp, y, a, b, w: b - a, public=False, node_name="LerpBackward1", doc="input + weight (end - input).")


@composite("lerp", elementwise=True, arity=2, examples=((0.25,), (1.0,)), usage="symgrad.lerp(x, x + 1, 0.25)")
def lerp(xp, input, end, weight):
    """input + weight (end - input): the input where the weight is 0, `end` where it is 1."""
    check_one_dtype("lerp", input, end, *[weight] * (hasattr(weight, "shape") and weight.ndim > 0))
    if not hasattr(weight, "shape") or _is_integer(weight):
        check_kind("lerp", input, "fc")
    if isinstance(weight, complex):
        check_kind("lerp", input, "c", "input of a complex weight")
    return (xp.lerp_tensor if hasattr(weight, "shape") else xp.lerp_number)(input, end, weight)


@composite("float_power", elementwise=True, domain=POSITIVE, examples=((2,), (-2.5,)), usage="symgrad.float_power(x, 2)")
def float_power(xp, input, exponent):
    """input ** exponent, computed in double precision for every dtype."""
    wide = [(x.cdouble() if x.is_complex() else x.double()) if hasattr(x, "dtype") else x for x in (input, exponent)]
    return xp.pow(*wide)


def _integer_quotient(xp, y, a, b):
    """The integer quotient of a and b for which y is the remainder."""
    return -xp.round((a - y) / b)


elementwise("fmod_tensor", lambda xp, input, other: xp.fmod(input, other), 1, _integer_quotient, domain=(REAL, NONZERO), integers=True, public=False,
            refuses="bc", node_name="FmodBackward1", saved=("", "input other"), doc="input - trunc(input / other) * other.")
elementwise("fmod_number", lambda xp, input, other: xp.fmod(input, other), 1, integers=True, refuses="bc", public=False, node_name="Fmod",
            examples=((2.0,), (-1.5,)), doc="input - trunc(input / other) * other.")


@composite("fmod", elementwise=True, kinks=((2.0, 1.0),), examples=((2.0,), (-1.5,)), usage="symgrad.fmod(x, 0.5)")
def fmod(xp, input, other):
    """input - trunc(input / other) * other: it has the sign of the input."""
    return (xp.fmod_tensor if hasattr(other, "shape") else xp.fmod_number)(input, other)


def _frac_arguments(xp, input):
    check_kind("frac", input, "f")
    return (input,)


elementwise("frac", lambda xp, input: input - xp.trunc(input), 1,
            kinks=((1.0,),), prepare=_frac_arguments, doc="input - trunc(input): the fractional part.")


elementwise("floor_divide", None, 0, 0, kinks=((2.0, 1.0),), domain=(REAL, NONZERO), integers=True, refuses="bc",
            usage="symgrad.floor_divide(x, 0.5)", doc="The quotient rounded down; its derivative is 0. Integers raise RuntimeError if `other` is 0.")
elementwise("rounded_quotient", lambda xp, input, other, rounding_mode: xp.floor_divide(input, other) if rounding_mode == "floor" else
            xp.trunc(input / other), 0, 0, domain=(REAL, NONZERO), integers=True, public=False, node_name="DivBackward2",
            examples=(("floor",), ("trunc",)), doc="The quotient rounded down, or towards zero; its derivative is zero.")


elementwise("rsub", lambda xp, input, other: other - input, -1, 1, integers=True, refuses="B", layout="last", usage="symgrad.rsub(x, 1.0)",
            doc="other - alpha * input.",
            prepare=lambda xp, input, other, *, alpha=1: _sub_arguments(xp, other, input, alpha=alpha)[::-1])


@composite("positive", elementwise=True, view=True, usage="symgrad.positive(x)")
def positive(xp, input):
    """The input itself."""
    check_kind("positive", input, "fciu")
    return input


elementwise("logical_xor", lambda xp, input, other: xp.logical_and(xp.logical_or(input, other), xp.logical_not(xp.logical_and(input, other))),
            None, None, usage="symgrad.logical_xor(x > 0, x < 1)", doc="Whether exactly one of two values is true (nonzero).")


elementwise("clamp_below", lambda xp, input, min: xp.maximum(input, min), lambda xp, y, x, min: xp.indicator(xp.gt(x, min), y), public=False,
            node_name="ClampMin", integers=True, examples=((0.25,),), special=((0.25,),), doc="The larger of the input and a number.")
elementwise("clamp_above", lambda xp, input, max: xp.minimum(input, max), lambda xp, y, x, max: xp.indicator(xp.lt(x, max), y), public=False,
            node_name="ClampMax", integers=True, examples=((0.25,),), special=((0.25,),), doc="The smaller of the input and a number.")


@composite("clamp_min", elementwise=True, examples=((0.25,),), kinks=((1.0, 1),), usage="symgrad.clamp_min(x, 0.3)")
def clamp_min(xp, input, min):
    """The larger of the input and `min`; the derivative where `min` is larger is 0."""
    return xp.maximum(input, min) if hasattr(min, "shape") else xp.clamp_below(input, min)


@composite("clamp_max", elementwise=True, examples=((0.25,),), kinks=((1.0, 1),), usage="symgrad.clamp_max(x, 0.6)")
def clamp_max(xp, input, max):
    """The smaller of the input and `max`; the derivative where `max` is smaller is 0."""
    return xp.minimum(input, max) if hasattr(max, "shape") else xp.clamp_above(input, max)


def _with_numbers(xp, input, nan, posinf, neginf):
    out = input if nan is None else xp.where(xp.isnan(input), nan, input)
    for infinity, replacement in ((math.inf, posinf), (-math.inf, neginf)):
        out = out if replacement is None else xp.where(xp.eq(input, infinity), replacement, out)
    return out


def _is_kept(xp, y, x, nan, posinf, neginf):
    replaced = [] if nan is None else [xp.isnan(x)]
    replaced += [xp.eq(x, infinity) for infinity, number in ((math.inf, posinf), (-math.inf, neginf)) if number is not None]
    return xp.indicator(xp.logical_not(functools.reduce(xp.logical_or, replaced)), x)


elementwise("with_numbers", _with_numbers, _is_kept, public=False, refuses="c", examples=((0.0, 9.0, -9.0), (0.0, None, None)),
            saved=("input",), node_name="NanToNum",
            doc="The input with numbers in place of NaN, inf and -inf, except for those that are None; the derivative there is 0.")


@composite("nan_to_num", elementwise=True, kinks=((math.nan,),), usage="symgrad.nan_to_num(x)")
def nan_to_num(xp, input, nan=None, posinf=None, neginf=None):
    """The input with numbers in place of NaN (0), inf and -inf (the largest numbers of either sign); the derivative there is 0."""
    if input.is_complex():
        return xp.view_as_complex(nan_to_num(xp, xp.view_as_real(input), nan, posinf, neginf))
    if not input.is_floating_point():
        return xp.clone(input)
    largest = largest_of_dtype(input)
    return xp.with_numbers(input, 0.0 if nan is None else nan, largest if posinf is None else posinf, -largest if neginf is None else neginf)


@composite("diff", usage="symgrad.diff(a)")
def diff(xp, input, n=1, dim=-1, prepend=None, append=None):
    """The `n`-th differences along `dim`, of the input joined with `prepend` and `append`."""
    dim = axis(dim, input.ndim)
    check_least_rank("diff", input, 1)
    check_range("diff", "n", n, 0)
    for part in (prepend, append):
        if part is not None:
            check_dims("diff", part, input.ndim, word="prepend or append")
    if n == 0:
        return xp.clone(input)  # without the other parts, as in torch
    x = xp.cat([part for part in (prepend, input, append) if part is not None], dim) if prepend is not None or append is not None else input
    for _ in range(n):
        before = (slice(None),) * dim
        x = xp.ne(x[(*before, slice(1, None))], x[(*before, slice(None, -1))]) if str(x.dtype) == "torch.bool" else (
            x[(*before, slice(1, None))] - x[(*before, slice(None, -1))])
    return x


# Products


def _scale(number, x):
    return x if number == 1 else number * x


def _added(xp, number, x):
    """A number times a term; with the number 0 the term is not read, not even NaN, as in torch."""
    return _scale(number, x) if number != 0 else xp.zeros_like(x)


def _checked_product(name, core, input, a, b, beta, alpha):
    """The arguments of an added product of operands of the shapes `core`, to whose result the input must expand."""
    check_product(name, core, a, b)
    check_one_dtype(name, input, a, b)
    check_expandable(name, input, (*a.shape[:-1], *b.shape[a.ndim - 1:]))
    return input, a, b, *whole_factors(name, input, beta, alpha)


def _addmm_arguments(xp, input, mat1, mat2, *, beta=1, alpha=1):
    return _checked_product("addmm", "(n,k),(k,m)", input, mat1, mat2, beta, alpha)


primitive("addmm", lambda xp, input, mat1, mat2, beta, alpha: _scale(alpha, xp.mm(mat1, mat2)) + _added(xp, beta, input), arity=3,
          prepare=_addmm_arguments, integers=True, examples=((1, 1), (0.5, 2.0)), shapes=((2,), (3, 4), (4, 2)), saved=("", "mat2", "mat1"),
          vjp=(lambda xp, g, y, input, a, b, beta, alpha: _scale(beta, g),
               lambda xp, g, y, input, a, b, beta, alpha: xp.mm(_scale(alpha, g), matrix_transpose(xp, b)),
               lambda xp, g, y, input, a, b, beta, alpha: second_cotangent(xp, _scale(alpha, g), a, b)),
          jvp=lambda xp, t, ta, tb, y, input, a, b, beta, alpha: _scale(alpha, xp.mm(ta, b) + xp.mm(a, tb)) + _scale(beta, t),
          usage="symgrad.addmm(x, a, symgrad.ones(3, 3))", doc="beta * input + alpha * (mat1 @ mat2), the input broadcast.")


def _addr_arguments(xp, input, vec1, vec2, *, beta=1, alpha=1):
    check_shapes("addr", "(n),(m)", vec1, vec2)
    for number in (beta, alpha):
        if isinstance(number, complex if not any(is_complex(x) for x in (input, vec1, vec2)) else ()) or (
                isinstance(number, float) and all(_is_integer(x) for x in (input, vec1, vec2))):
            raise RuntimeError(f"addr: the factor {number} is not of the kind of the tensors, which have the dtype {vec1.dtype}")
    check_expandable("addr", input, (vec1.shape[0], vec2.shape[0]))
    if all(str(x.dtype) == "torch.bool" for x in (input, vec1, vec2)):
        return xp.logical_or(xp.logical_and(input, bool(beta)), xp.logical_and(outer_product(xp, vec1, vec2), bool(alpha)))
    return input, vec1, vec2, beta, alpha


def _define_added_product(name, product, transpose_first, transpose_second, **rest):
    """Declare beta * input + alpha * product(a, b), where the product is linear in a and in b and has the given transposes."""
    vjp = (lambda xp, g, y, input, a, b, beta, alpha: _scale(beta, g),
           lambda xp, g, y, input, a, b, beta, alpha: transpose_first(xp, _scale(alpha, g), b),
           lambda xp, g, y, input, a, b, beta, alpha: transpose_second(xp, _scale(alpha, g), a))

    def jvp(xp, t, ta, tb, y, input, a, b, beta, alpha):
        return _scale(alpha, product(xp, ta, b) + product(xp, a, tb)) + _scale(beta, t)

    primitive(name, lambda xp, input, first, second, beta, alpha: _scale(alpha, product(xp, first, second)) + _added(xp, beta, input),
              vjp=vjp, jvp=jvp, arity=3, integers=True, saved=("", "second", "first"), examples=((1, 1), (0.5, 2.0)), **rest)


_define_added_product("addmv", lambda xp, a, b: xp.mv(a, b), outer_product, lambda xp, g, a: xp.mv(matrix_transpose(xp, a), g),
                      prepare=lambda xp, input, mat, vec, *, beta=1, alpha=1: _checked_product("addmv", "(n,k),(k)", input, mat, vec, beta, alpha),
                      shapes=((3,), (3, 4), (4,)), usage="symgrad.addmv(symgrad.ones(2), a, x)",
                      doc="beta * input + alpha * (mat @ vec), the input broadcast.")
_define_added_product("addr", outer_product, lambda xp, g, b: xp.mv(g, b), lambda xp, g, a: xp.mv(matrix_transpose(xp, g), a),
                      prepare=_addr_arguments, layout="first", shapes=((3, 4), (3,), (4,)), usage="symgrad.addr(symgrad.ones(3, 3), x, x)",
                      doc="beta * input + alpha * outer(vec1, vec2), the input broadcast.")
_define_added_product("baddbmm", lambda xp, a, b: xp.matmul(a, b), lambda xp, g, b: xp.matmul(g, matrix_transpose(xp, b)),
                      lambda xp, g, a: xp.matmul(matrix_transpose(xp, a), g), shapes=((2, 1, 2), (2, 2, 3), (2, 3, 2)),
                      prepare=lambda xp, input, batch1, batch2, *, beta=1, alpha=1:
                      _checked_product("baddbmm", "(b,n,k),(b,k,m)", input, batch1, batch2, beta, alpha),
                      usage="symgrad.baddbmm(symgrad.zeros(1, 2, 2), a[None], a.t()[None])",
                      doc="beta * input + alpha * (batch1 @ batch2), a batch of matrix products, the input broadcast.")


@composite("bmm", arity=2, usage="symgrad.bmm(a[None], a.t()[None])")
def bmm(xp, input, mat2):
    """A batch of matrix products."""
    check_shapes("bmm", "(b,n,k),(b,k,m)", input, mat2)
    check_one_dtype("bmm", input, mat2)
    return xp.batched_matmul(input, mat2)


def _cross_arguments(xp, input, other, dim=None):
    if dim is None:
        warnings.warn("cross: without `dim` the first dimension of size 3 is taken, as in PyTorch, where that is deprecated. Give `dim`",
                      UserWarning, stacklevel=4)
        dim = next((i for i, n in enumerate(input.shape) if n == 3), 0)
    dim = axis(dim, input.ndim)
    if input.ndim != other.ndim or input.shape[dim] != 3 or other.shape[dim] != 3:
        raise RuntimeError(f"cross: dimension {dim} of both tensors must have size 3, but the shapes are {list(input.shape)} and {list(other.shape)}")
    if input.shape == other.shape:
        return input, other, dim
    shape = xp.add(input, other).shape
    return xp.broadcast_to(input, tuple(shape)), xp.broadcast_to(other, tuple(shape)), dim


multilinear("cross", lambda xp, input, other, dim: cross_product(xp, input, other, dim), lambda xp, g, a, b, dim: cross_product(xp, b, g, dim),
            lambda xp, g, a, b, dim: cross_product(xp, g, a, dim), prepare=_cross_arguments, integers=True, layout="rows", node_name="LinalgCross",
            shapes=((2, 3), (2, 3)), examples=((1,),), usage="symgrad.cross(x, x + 1, dim=0)", doc="The cross product along a dimension of size 3.")


@composite("tensordot", arity=2, usage="symgrad.tensordot(a, a, ([0, 1], [0, 1]))")
def tensordot(xp, a, b, dims=2):
    """The product of two tensors summed over pairs of dimensions: the last `dims` of `a` and the first of `b`, or two lists of dimensions."""
    check_one_dtype("tensordot", a, b)
    dims = dims.tolist() if hasattr(dims, "tolist") else dims
    if isinstance(dims, int):
        check_range("tensordot", "dims", dims, 0)
        dims = list(range(a.ndim - dims, a.ndim)), list(range(dims))
    first, second = ([axis(d, x.ndim) for d in (given if isinstance(given, (list, tuple)) else [given])] for given, x in zip(dims, (a, b)))
    if len(first) != len(second):
        raise RuntimeError(f"tensordot: both lists of dimensions must have one length, not {len(first)} and {len(second)}")
    for i, k in zip(first, second):
        if a.shape[i] == 1 != b.shape[k]:  # one element goes with all of the other side
            b = xp.sum(b, k, True, dtype=b.dtype)
        elif b.shape[k] == 1 != a.shape[i]:
            a = xp.sum(a, i, True, dtype=a.dtype)
        if a.shape[i] != b.shape[k]:
            raise RuntimeError(f"tensordot: dim {i} of the first has size {a.shape[i]}, dim {k} of the second {b.shape[k]}; they must be equal")
    left, right = [i for i in range(a.ndim) if i not in first], [i for i in range(b.ndim) if i not in second]
    inner = 1
    for i in first:
        inner *= a.shape[i]
    product = xp.mm(xp.reshape(xp.permute(a, (*left, *first)), (-1 if a.numel() else reduced_count(a.shape, left), inner)),
                    xp.reshape(xp.permute(b, (*second, *right)), (inner, -1 if b.numel() else reduced_count(b.shape, right))))
    return xp.reshape(product, (*(a.shape[i] for i in left), *(b.shape[i] for i in right)))


@composite("inner", arity=2, usage="symgrad.inner(a, a)")
def inner(xp, input, other):
    """The sums of products over the last dimensions of both."""
    if not input.ndim or not other.ndim:
        return input * other
    check_shapes("inner", "(...,k),(...,k)", input, other)
    return tensordot(xp, input, other, ([input.ndim - 1], [other.ndim - 1]))


@composite("kron", arity=2, usage="symgrad.kron(a, a)")
def kron(xp, input, other):
    """The Kronecker product: each element of the input times `other`."""
    n = max(input.ndim, other.ndim)
    a, b = ((1,) * (n - x.ndim) + tuple(x.shape) for x in (input, other))
    left = xp.reshape(input, tuple(size for m in a for size in (m, 1)))
    right = xp.reshape(other, tuple(size for m in b for size in (1, m)))
    return xp.unsafe_view(left * right, tuple(m * k for m, k in zip(a, b)))
