"""Functions that follow from methods and other functions: in-place functions, copies of views, and pieces under other names."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from symgrad.arguments import check_kind, check_least_rank, check_one_dtype, check_positive, check_range
from symgrad.carriers.batched import Batched
from symgrad.engine.method_table import MethodTable
from symgrad.engine.recording import core
from symgrad.engine.refusals import expect_tensors, taking_tensors
from symgrad.engine.storage.versions import Alias
from symgrad.engine.storage.views import UnrecordedLeaf, unregister_view
from symgrad.engine.storage.writes import into, taking_out
from symgrad.engine.tensor import Tensor, wrap
from symgrad.engine.traced import FUNCTIONS
from symgrad.graph.classes import become, renamed
from symgrad.graph.common import join, name_call
from symgrad.graph.node import node_class
from symgrad.graph.op import REGISTRY
from symgrad.layouts.indices import check_bounds, integer_index
from symgrad.methods.counting import nonzero
from symgrad.methods.filling import hash_tensor, slice_inverse
from symgrad.methods.histograms import histogram, histogramdd, segment_reduce
from symgrad.methods.inplace import in_place
from symgrad.methods.reshaping import member_geometry
from symgrad.methods.spectrograms import istft, stft
from symgrad.ops.rules import axis
from symgrad.ops.scatter import check_size

METHODS = MethodTable()

# Methods that are functions of the module, too: those in place, and some others
METHODS_AS_FUNCTIONS = frozenset("""
abs_ acos_ acosh_ addmv_ arccos_ arccosh_ arcsin_ arcsinh_ arctan_ arctanh_ as_strided_ asin_ asinh_ atan_ atanh_ ceil_ clamp_ clamp_max_
clamp_min_ clip_ conj_physical_ cos_ cosh_ deg2rad_ detach_ erf_ erfc_ exp2_ exp_ expm1_ fill_ fix_ floor_ frac_ gcd_ i0_ index_put_
lcm_ ldexp_ log10_ log1p_ log2_ log_ logit_ nan_to_num_ neg_ negative_ rad2deg_ reciprocal_ relu_ resize_as_ round_ rsqrt_
sigmoid_ sin_ sinc_ sinh_ sqrt_ square_ tan_ tanh_ trunc_ xlogy_ zero_
as_strided get_device is_neg is_signed
""".split())
COPIED = ("as_strided", "detach", "diagonal", "expand", "permute", "select", "split", "split_with_sizes", "squeeze", "t", "transpose", "unbind",
          "unfold", "unsqueeze", "view", "view_as_complex", "view_as_real")


def method_as_function(name: str) -> Callable[..., Any]:
    """The function of the public module that is a method; pickle looks up there those that no module defines by name."""
    function = getattr(Tensor, name)
    if getattr(sys.modules[function.__module__], name, None) is not function:
        function.__module__ = "symgrad"
    return function


clone, index_put, masked_fill = FUNCTIONS["clone"], FUNCTIONS["index_put"], FUNCTIONS["masked_fill"]
CLONE: Any = node_class(REGISTRY["clone"])
_copy = core(REGISTRY["clone"])
_strided_put = core(REGISTRY["strided_put"])


def _copies(name: str) -> Callable[..., Any]:
    """The function of a view, with copies as results."""
    def copied(input: Tensor, *args: Any, out: Any = None, **kwargs: Any) -> Any:
        if out is not None:
            return into(out, f"{name}_copy", copied, input, *args, **kwargs)
        if len(args) == 1 and name in ("expand", "permute", "view") and isinstance(args[0], (tuple, list)):
            args = tuple(args[0])
        for word in ("size", "dims"):
            if word in kwargs and name in ("expand", "permute", "view"):
                args = tuple(kwargs.pop(word))
        if name not in FUNCTIONS:
            expect_tensors(f"{name}_copy", input=input)
        view = FUNCTIONS[name] if name in FUNCTIONS else getattr(Tensor, name)
        if name == "view" and args and all(isinstance(n, int) for n in args):
            view = FUNCTIONS["reshape"]  # the result is a copy in any case
            args = (args,)
        found = view(input, *args, **kwargs)
        if not isinstance(found, tuple):
            return _copy_of_view(found)
        copies = tuple(map(_copy_of_view, found))
        if copies and (node := found[0]._node_slot) is not None:
            join(f"{type(node.origin).__name__}_copy", [copy._node_slot for copy in copies])
        return copies

    return _named(copied, f"{name}_copy", f"As `{name}`, with a contiguous copy of the elements in place of a view.")


def _copy_of_view(view: Tensor, name: str = "") -> Tensor:
    """A copy of a view, whose node has torch's name of both steps; `name` is that of the view, if it is not the node's."""
    out = _copy(view, "C")
    node, of_view = out._node_slot, view._node_slot
    if type(node) is CLONE and of_view is not None and getattr(of_view, "args", None):  # a node of forward mode alone has none
        become(node, renamed(CLONE, f"{name or type(of_view.public_node).__name__}_copy"))  # type: ignore[arg-type]
    return out


def _named(function: Callable[..., Any], name: str, doc: str) -> Callable[..., Any]:
    function.__name__ = function.__qualname__ = name
    function.__doc__, function.__module__ = doc, "symgrad"
    return function


def _pieces(name: str) -> Callable[..., Any]:
    function = FUNCTIONS[name]

    @functools.wraps(function)
    def pieces(*args: Any, **kwargs: Any) -> Any:
        found = function(*args, **kwargs)
        if found and (node := found[0]._node_slot) is not None:
            name_call(node, f"Unsafe{type(node.origin).__name__}")
        for piece in found:
            if piece._view is not None:
                unregister_view(piece)
                piece._value = Alias.of(piece._value)
                if isinstance(piece._node_slot, UnrecordedLeaf):
                    piece._node_slot = None
        return found

    return _named(pieces, f"unsafe_{name}", f"As `{name}`, with pieces that share the memory of the input but are no views: a write to a piece is "
                                            f"recorded for that piece alone, and no saved value is checked for it.")


@taking_tensors
def detach(input: Tensor) -> Tensor:
    """The tensor without its history."""
    return input.detach()


@taking_tensors
def fill(input: Tensor, value: Any) -> Tensor:
    """A copy of the input with one number, or the element of a tensor without dimensions, everywhere. Raises TypeError for None."""
    if value is None:
        raise TypeError("fill: value must be a number or a Tensor, not None")
    if Batched in (type(input._value), type(getattr(value, "_value", None))):  # nothing is written in place inside vmap
        return masked_fill(input, wrap(np.ones(tuple(input.shape), bool)), value)
    return clone(input).fill_(value)


@taking_out
def alias_copy(input: Tensor) -> Tensor:
    """A contiguous copy of the input."""
    out = _copy(input, "C")
    if type(out._node_slot) is CLONE:
        become(out._node_slot, renamed(CLONE, "AliasBackward0_copy"))  # type: ignore[arg-type]
    return out


@taking_out
@taking_tensors
def slice_copy(input: Tensor, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1) -> Tensor:
    """A copy of every `step`-th slice along `dim` from `start` to `end`.

    Raises IndexError for a dimension out of range, RuntimeError for a step that is not positive.
    """
    check_positive("slice_copy", "step", step)
    check_least_rank("slice_copy", input, 1, kind=IndexError)
    return _copy_of_view(input[(slice(None),) * axis(dim, input.ndim) + (slice(start, end, step),)], "SliceBackward0")


@METHODS.define
@taking_tensors
def argwhere(input: Tensor) -> Tensor:
    """The indices of the nonzero elements, as rows."""
    return nonzero(input)


@METHODS.define
@taking_tensors
def nonzero_static(input: Tensor, *, size: int, fill_value: int = -1) -> Tensor:
    """The indices of the first `size` nonzero elements, as rows; rows of `fill_value` stand for those that do not exist.

    Raises RuntimeError for a negative size.
    """
    check_range("nonzero_static", "size", size, 0)
    rows = nonzero(input)._value[:size]
    return wrap(np.concatenate([rows, np.full((size - len(rows), input.ndim), fill_value)]))


@METHODS.define
@taking_tensors
def as_strided_scatter(input: Tensor, src: Tensor, size: Any, stride: Any, storage_offset: int | None = None) -> Tensor:
    """A copy of the input with `src` written to the elements that `as_strided` selects.

    Raises RuntimeError unless `src` has the shape `size`.
    """
    if type(input._value) is Batched or type(src._value) is Batched:
        geometry = member_geometry(input, size, stride, storage_offset)
        check_size(src, geometry.shape)
        return _strided_put(input, src, geometry)
    out = clone(input)
    part = out.as_strided(size, stride, storage_offset)
    check_size(src, part.shape)
    part.copy_(src)
    return out


@METHODS.define
@taking_tensors
def put(input: Tensor, index: Tensor, source: Tensor, accumulate: bool = False) -> Tensor:
    """A copy of the input with the elements of `source` written, or added, at positions in the flattened input.

    Raises RuntimeError for positions that are not int64, IndexError for a position out of range and for another number of sources.
    """
    integer_index(index, "put", ("int64",))
    check_one_dtype("put", input, source)
    check_range("put", "the number of elements of source", source.numel(), index.numel(), index.numel(), IndexError)
    check_bounds(index._value, input.numel(), 0, IndexError, -input.numel())
    if input.ndim < 2 or not input.numel():
        return index_put(input.reshape(-1), (index.reshape(-1),), source.reshape(-1), accumulate).reshape(input.shape)
    return index_put(input, unravel_index(index % input.numel(), tuple(input.shape)), source.reshape(index.shape), accumulate)


def unravel_index(indices: Tensor, shape: int | Sequence[int]) -> tuple[Tensor, ...]:
    """The coordinates of elements that are given by their positions in the flattened tensor: one tensor for each dimension.

    Raises TypeError unless the positions are integers, ValueError for negative sizes.
    """
    expect_tensors("unravel_index", indices=indices)
    check_kind("unravel_index", indices, "iu", "indices")
    sizes = tuple(shape) if isinstance(shape, Sequence) else (shape,)
    if not all(isinstance(n, int) for n in sizes):
        raise TypeError(f"unravel_index: shape must be an integer or a sequence of integers, not {shape!r}")
    check_range("unravel_index", "the least size", min(sizes, default=0), 0, kind=ValueError)
    flat, out = indices._value.astype(np.int64), []
    for n in reversed(sizes):
        out.append(wrap(np.asarray(flat % n)))
        flat = flat // n
    return tuple(reversed(out))


SURFACE: dict[str, Callable[..., Any]] = {
    "alias_copy": alias_copy, "slice_copy": slice_copy, "argwhere": argwhere, "nonzero_static": nonzero_static, "unravel_index": unravel_index,
    "segment_reduce": segment_reduce, "hash_tensor": hash_tensor, "slice_inverse": slice_inverse,
    "stft": stft, "istft": istft, "_conj": FUNCTIONS["conj"], "_conj_physical": FUNCTIONS["conj"], "_neg_view": FUNCTIONS["neg"],
    "as_strided_scatter": as_strided_scatter, "detach": detach, "fill": fill, "put": put, "histogram": histogram, "histogramdd": histogramdd,
    **{f"{name}_copy": _copies(name) for name in COPIED}, **{f"unsafe_{name}": _pieces(name) for name in ("chunk", "split", "split_with_sizes")},
}
METHODS.update({name: SURFACE[name] for name in ("unsafe_chunk", "unsafe_split", "unsafe_split_with_sizes")}, put_=in_place("put_", put))
