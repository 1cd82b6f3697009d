"""Recurrent networks: sequences of different lengths packed into one, and the recurrences over them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, Self

import numpy as np

from symgrad.arguments import check_option
from symgrad.dtypes.dtype import DTYPES
from symgrad.engine.refusals import expect_tensors, taking_tensors
from symgrad.engine.tensor import Tensor, wrap
from symgrad.engine.traced import traced
from symgrad.factories.creation import as_tensor, full
from symgrad.nn.activations import dropout as random_zeros
from symgrad.nn.padding import constant_pad_nd
from symgrad.nn.products import linear
from symgrad.nn.validation import check_shape, named

__all__ = ["PackedSequence", "RECURRENCES", "Recurrence", "gru", "gru_cell", "invert_permutation", "lstm", "lstm_cell", "pack_padded_sequence",
           "pack_sequence", "pad_packed_sequence", "pad_sequence", "rnn_relu", "rnn_relu_cell", "rnn_tanh", "rnn_tanh_cell", "unpack_sequence",
           "unpad_sequence"]

State = tuple[Any, ...]  # the hidden state, and the state of the cell of an LSTM


class Recurrence(NamedTuple):
    """One step: step(terms, state, weight, bias) for the terms of the input, where the weight and the bias are those of the hidden state."""

    gates: int
    states: int
    step: Callable[[Any, State, Any, Any], State]


def _simple(activation: str) -> Recurrence:
    def step(terms: Any, state: State, weight: Any, bias: Any) -> State:
        return (getattr(traced, activation)(terms + linear(state[0], weight, bias)),)

    return Recurrence(1, 1, step)


def _lstm_step(terms: Any, state: State, weight: Any, bias: Any) -> State:
    i, f, g, o = traced.chunk(terms + linear(state[0], weight, bias), 4, -1)
    cell = traced.sigmoid(f) * state[1] + traced.sigmoid(i) * traced.tanh(g)
    return traced.sigmoid(o) * traced.tanh(cell), cell


def _gru_step(terms: Any, state: State, weight: Any, bias: Any) -> State:
    (r, z, n), (hr, hz, hn) = traced.chunk(terms, 3, -1), traced.chunk(linear(state[0], weight, bias), 3, -1)
    new = traced.tanh(n + traced.sigmoid(r + hr) * hn)
    return (new + traced.sigmoid(z + hz) * (state[0] - new),)


RECURRENCES = {"RNN_TANH": _simple("tanh"), "RNN_RELU": _simple("relu"), "LSTM": Recurrence(4, 2, _lstm_step), "GRU": Recurrence(3, 1, _gru_step)}


def _cell(name: str, mode: str, text: str) -> Callable[..., Any]:
    """The function of one step."""
    kind = RECURRENCES[mode]

    def cell(input: Tensor, hx: Any, w_ih: Tensor, w_hh: Tensor, b_ih: Tensor | None = None, b_hh: Tensor | None = None) -> Any:
        state = tuple(hx) if kind.states == 2 else (hx,)
        if len(state) != kind.states:
            raise RuntimeError(f"{name}: there must be {kind.states} hidden states, but there are {len(state)}")
        count, features, size = input.shape[0], input.shape[1], w_hh.shape[1]
        rows = kind.gates * size
        if any(hidden.shape != (count, size) for hidden in state) or w_ih.shape != (rows, features) or w_hh.shape[0] != rows:
            raise RuntimeError(f"{name}: hx {[list(hidden.shape) for hidden in state]}, w_ih {list(w_ih.shape)} and w_hh {list(w_hh.shape)} do not "
                               f"fit an input of shape {list(input.shape)}")
        out = kind.step(linear(input, w_ih, b_ih), state, w_hh, b_hh)
        return out if kind.states == 2 else out[0]

    return named(cell, name, text + """

    The input is (N, I) and each state (N, H). Raises RuntimeError for sizes that do not fit.
    """)


rnn_tanh_cell = _cell("rnn_tanh_cell", "RNN_TANH", "tanh(w_ih x + b_ih + w_hh h + b_hh): (N, I) and (N, H) give (N, H).")
rnn_relu_cell = _cell("rnn_relu_cell", "RNN_RELU", "`rnn_tanh_cell` with max(·, 0) in place of tanh.")
gru_cell = _cell("gru_cell", "GRU", """A step of a gated recurrent unit: n + z (h - n), n = tanh(xₙ + r hₙ), with gates r and z.

    The gates are sigmoids of linear maps of x and h. (Cho et al., Learning phrase representations using RNN encoder-decoder, 2014.)""")
lstm_cell = _cell("lstm_cell", "LSTM", """A step of a long short-term memory with state (h, c): c' = f c + i g and h' = o tanh(c').

    The gates are i, f, g, o in this order. (Hochreiter and Schmidhuber, Long short-term memory, 1997.)""")


# Layers over sequences


def _split(data: Any, sizes: list[int]) -> list[Any]:
    """`split`, by way of larger parts: the gradient of a part of an array has zeros for all others, which are fewer so."""
    each = math.isqrt(len(sizes))
    parts = [sizes[i:i + each] for i in range(0, len(sizes), each)]
    return [step for part, counts in zip(traced.split(data, list(map(sum, parts))), parts) for step in traced.split(part, counts)]


def _direction(kind: Recurrence, data: Any, sizes: list[int], start: State, weights: Sequence[Any], biased: bool,
               backwards: bool) -> tuple[Any, State]:
    """The outputs of all steps, in the order of the data, and the states after each sequence's last step.

    The data has the rows of all steps one after the other: `sizes[t]` rows at step t, of the sequences that are at least so long.
    """
    w_ih, w_hh, b_ih, b_hh = weights[:4] if biased else (*weights[:2], None, None)
    projection = weights[4 if biased else 2] if len(weights) in (3, 5) else None
    steps = _split(linear(data, w_ih, b_ih), sizes)
    count = sizes[-1] if backwards else sizes[0]
    state: State = tuple(traced.narrow(s, 0, 0, count) for s in start)
    outputs, ended = [], list[State]()
    for t in reversed(range(len(sizes))) if backwards else range(len(sizes)):
        if sizes[t] < count:
            ended.append(tuple(traced.narrow(s, 0, sizes[t], count - sizes[t]) for s in state))
            state = tuple(traced.narrow(s, 0, 0, sizes[t]) for s in state)
        elif sizes[t] > count:
            state = tuple(traced.cat([s, traced.narrow(first, 0, count, sizes[t] - count)]) for s, first in zip(state, start))
        count = sizes[t]
        state = kind.step(steps[t], state, w_hh, b_hh)
        if projection is not None:
            state = (linear(state[0], projection), *state[1:])
        outputs.append(state[0])
    last = tuple(traced.cat(parts) for parts in zip(state, *reversed(ended))) if ended else state
    return traced.cat(outputs[::-1] if backwards else outputs), last


def _layers(kind: Recurrence, data: Any, sizes: list[int], start: State, params: Sequence[Any], biased: bool, num_layers: int, dropout: float,
            train: bool, bidirectional: bool) -> tuple[Any, ...]:
    directions = 2 if bidirectional else 1
    each, left = divmod(len(params), num_layers * directions)
    if left or each not in ((4, 5) if biased else (2, 3)):
        raise RuntimeError(f"rnn: {len(params)} parameters do not fit {num_layers} layers in {directions} directions; each takes two weights, with "
                           f"biases two of them, and may have a projection")
    for i, state in enumerate(start):
        check_shape("rnn", (num_layers * directions, max(sizes), state.shape[-1]), **{f"hidden state {i}": state})
    states = list[State]()
    for layer in range(num_layers):
        outputs = []
        for i in range(layer * directions, (layer + 1) * directions):
            own = tuple(traced.select(s, 0, i) for s in start)
            output, last = _direction(kind, data, sizes, own, params[i * each:(i + 1) * each], biased, i % 2 == 1 and bidirectional)
            outputs.append(output)
            states.append(last)
        data = traced.cat(outputs, -1) if bidirectional else outputs[0]
        if dropout and layer < num_layers - 1:
            data = random_zeros(data, dropout, train)
    return data, *(traced.stack(parts) for parts in zip(*states))


PADDED = ("input", "hx", "params", "has_biases", "num_layers", "dropout", "train", "bidirectional", "batch_first")
PACKED = ("data", "batch_sizes", "hx", "params", "has_biases", "num_layers", "dropout", "train", "bidirectional")


def _function(name: str, mode: str) -> Callable[..., Any]:
    kind = RECURRENCES[mode]

    def run(*args: Any, **kwargs: Any) -> tuple[Any, ...]:
        packed = "batch_sizes" in kwargs or len(args) > 3 and isinstance(args[3], (list, tuple))
        order = PACKED if packed else PADDED
        given = {**dict(zip(order, args)), **kwargs}
        if len(args) > len(order) or set(given) != set(order):
            raise TypeError(f"{name}: the arguments are {', '.join(PADDED)}, or {', '.join(PACKED)}, not {len(args)} and {sorted(kwargs)}")
        hx = given["hx"]
        start = tuple(hx) if isinstance(hx, (tuple, list)) else (hx,)
        tensors = {key: given[key] for key in (PACKED[:2] if packed else PADDED[:1])} | {f"hx[{i}]": x for i, x in enumerate(start)}
        expect_tensors(name, **tensors)
        if len(start) != kind.states:
            raise RuntimeError(f"{name}: there must be {kind.states} hidden states, but there are {len(start)}")
        rest = [given[key] for key in PACKED[3:]]
        if packed:
            return _layers(kind, given["data"], given["batch_sizes"].tolist(), start, *rest)
        input = traced.transpose(given["input"], 0, 1) if given["batch_first"] else given["input"]
        steps, count, *features = input.shape
        if not steps:
            raise RuntimeError(f"{name}: the sequences must not be empty, but the shape of the input is {list(given['input'].shape)}")
        data, *last = _layers(kind, traced.reshape(input, (steps * count, *features)), [count] * steps, start, *rest)
        output = traced.reshape(data, (steps, count, data.shape[-1]))
        return traced.transpose(output, 0, 1) if given["batch_first"] else output, *last

    run.__name__ = run.__qualname__ = name
    run.__doc__ = f"""The outputs of `{name.partition('_')[0]}` layers over a sequence, and the last states.

    Called with {', '.join(PADDED)} for (L, N, I), or (N, L, I) if batch_first; or with {', '.join(PACKED)} for the
    data and sizes of a `PackedSequence`. The parameters are those of `nn.{'RNN' if kind.gates == 1 else name.upper()}`, in its order.

    Raises RuntimeError for numbers of parameters and sizes that do not fit.
    """
    return run


rnn_tanh, rnn_relu = _function("rnn_tanh", "RNN_TANH"), _function("rnn_relu", "RNN_RELU")
lstm, gru = _function("lstm", "LSTM"), _function("gru", "GRU")


def invert_permutation(permutation: Tensor | None) -> Tensor | None:
    """The inverse of a permutation of the indices, and None for None.

    >>> import symgrad
    >>> invert_permutation(symgrad.tensor([2, 0, 1]))
    tensor([1, 2, 0])
    """
    return None if permutation is None else traced.argsort(permutation).to(permutation.dtype)


class _Parts(NamedTuple):
    data: Any
    batch_sizes: Any
    sorted_indices: Any
    unsorted_indices: Any


def _conversion(name: str, dtype: str) -> Any:
    def convert(self: PackedSequence) -> PackedSequence:
        return self.to(DTYPES[dtype])

    convert.__name__, convert.__qualname__, convert.__doc__ = name, f"PackedSequence.{name}", f"The data as {dtype}."
    return convert


class PackedSequence(_Parts):
    """Sequences of different lengths, longest first: the data has the first elements of all, then the second elements of those that have one, etc.

    `batch_sizes` counts the sequences at each step. `sorted_indices` are the places of the sequences before they were sorted by length.
    Made by `pack_sequence` and `pack_padded_sequence`.
    """

    def __new__(cls, data: Any, batch_sizes: Any = None, sorted_indices: Tensor | None = None, unsorted_indices: Tensor | None = None) -> Self:
        if batch_sizes is None:
            if not isinstance(data, (list, tuple)) or len(data) != 2:
                raise AssertionError(f"PackedSequence: give the data and batch_sizes, or a pair of both, not {type(data).__name__}")
            data, batch_sizes = data
        if unsorted_indices is None:
            unsorted_indices = invert_permutation(sorted_indices)
        return super().__new__(cls, data, batch_sizes, sorted_indices, unsorted_indices)

    def to(self, *args: Any, **kwargs: Any) -> Self:
        """The sequences with the data in another dtype, as `Tensor.to`; the indices stay as they are."""
        data = self.data.to(*args, **kwargs)
        return self if data is self.data else type(self)(data, *self[1:])

    def cpu(self, *args: Any, **kwargs: Any) -> Self:
        """As `to`: the sequences are on the CPU already."""
        return self.to(*args, **kwargs) if args or kwargs else self

    def cuda(self, *args: Any, **kwargs: Any) -> Self:
        """Raises what `Tensor.cuda` raises: the only device is the CPU."""
        return type(self)(self.data.cuda(*args, **kwargs), *self[1:])

    def pin_memory(self) -> Self:
        """As `Tensor.pin_memory`."""
        return type(self)(self.data.pin_memory(), *self[1:])

    def is_pinned(self) -> bool:
        """As `Tensor.is_pinned`."""
        return self.data.is_pinned()

    @property
    def is_cuda(self) -> bool:
        """False: the only device is the CPU."""
        return self.data.is_cuda

    double, half, long = _conversion("double", "float64"), _conversion("half", "float16"), _conversion("long", "int64")
    short, char, byte = _conversion("short", "int16"), _conversion("char", "int8"), _conversion("byte", "uint8")
    float, int = _conversion("float", "float32"), _conversion("int", "int32")

def _steps(sizes: Sequence[int]) -> tuple[np.ndarray, np.ndarray]:
    """The step and the sequence of each row of packed data."""
    return np.repeat(np.arange(len(sizes)), sizes), np.concatenate([np.arange(n) for n in sizes])


def pack_padded_sequence(input: Tensor, lengths: Any, batch_first: bool = False, enforce_sorted: bool = True) -> PackedSequence:
    """The `PackedSequence` of padded sequences (L, N, ...), or (N, L, ...) if batch_first, with their lengths; differentiable.

    Unless `enforce_sorted` they may have any order. Raises RuntimeError for lengths that do not fit.

    >>> import symgrad
    >>> pack_padded_sequence(symgrad.tensor([[1, 3], [2, 0]]), [2, 1])
    PackedSequence(data=tensor([1, 3, 2]), batch_sizes=tensor([2, 1]), sorted_indices=None, unsorted_indices=None)
    """
    lengths = as_tensor(lengths, dtype=DTYPES["int64"])
    order, dim = None, 0 if batch_first else 1
    if not input.numel() or tuple(lengths.shape) != (input.shape[dim],):
        raise RuntimeError(f"pack_padded_sequence: lengths must be a vector with one number for each sequence, but they are {lengths.tolist()} for "
                           f"an input of shape {list(input.shape)}")
    if not enforce_sorted:
        lengths, order = traced.sort(lengths, descending=True)
        input = traced.index_select(input, dim, order)
    given = lengths.tolist()
    if given[-1] <= 0 or given[0] > input.shape[1 - dim] or any(a < b for a, b in zip(given, given[1:])):
        raise RuntimeError(f"pack_padded_sequence: lengths must lie between 1 and {input.shape[1 - dim]} and not increase, but they are {given}. "
                           f"Pass enforce_sorted=False for another order")
    sizes = [sum(n > step for n in given) for step in range(given[0])]
    step, at = _steps(sizes)
    where = at * input.shape[1] + step if batch_first else step * input.shape[1] + at
    rows = traced.reshape(input, (input.shape[0] * input.shape[1], *input.shape[2:]))
    return PackedSequence(traced.index_select(rows, 0, wrap(where)), as_tensor(sizes), order)


def pad_packed_sequence(sequence: PackedSequence, batch_first: bool = False, padding_value: float = 0.0,
                        total_length: int | None = None) -> tuple[Tensor, Tensor]:
    """The padded sequences (L, N, ...), or (N, L, ...) if batch_first, of a `PackedSequence`, and their lengths; the inverse of packing them.

    L is the `total_length` or the longest. Raises ValueError for a total length that is less.

    >>> import symgrad
    >>> pad_packed_sequence(pack_sequence([symgrad.tensor([1, 2]), symgrad.tensor([3])]))
    (tensor([[1, 3],
            [2, 0]]), tensor([2, 1]))
    """
    sizes = sequence.batch_sizes.tolist()
    if total_length is not None and total_length < len(sizes):
        raise ValueError(f"pad_packed_sequence: total_length={total_length} is less than the longest sequence, {len(sizes)}")
    steps, data = len(sizes) if total_length is None else total_length, sequence.data
    step, at = _steps(sizes)
    where = at * steps + step if batch_first else step * sizes[0] + at
    shape = (sizes[0], steps) if batch_first else (steps, sizes[0])
    rows = full((sizes[0] * steps, *data.shape[1:]), padding_value, dtype=data.dtype)
    padded = traced.reshape(traced.index_copy(rows, 0, wrap(where), data), (*shape, *data.shape[1:]))
    lengths = as_tensor([sum(i < n for n in sizes) for i in range(sizes[0])])
    order = sequence.unsorted_indices
    if order is None:
        return padded, lengths
    return traced.index_select(padded, 0 if batch_first else 1, order), traced.index_select(lengths, 0, order)


def pad_sequence(sequences: Iterable[Tensor], batch_first: bool = False, padding_value: float = 0.0, padding_side: str = "right") -> Tensor:
    """Tensors (Lᵢ, ...) side by side: (L, N, ...), or (N, L, ...) if batch_first, L the longest, with padding after them, or before ("left").

    Raises RuntimeError for no sequence, for trailing sizes that differ and for another side.

    >>> import symgrad
    >>> pad_sequence([symgrad.tensor([1, 2]), symgrad.tensor([3])], batch_first=True)
    tensor([[1, 2],
            [3, 0]])
    """
    given: tuple[Any, ...] = tuple(sequences) if isinstance(sequences, Iterable) else ()
    if not given:
        raise RuntimeError(f"pad_sequence: there must be at least one sequence, in an iterable, not {type(sequences).__name__} {sequences!r}")
    check_option("pad_sequence", "padding_side", padding_side, ("left", "right"), RuntimeError)
    for i, each in enumerate(given):
        if not each.ndim or each.shape[1:] != given[0].shape[1:]:
            raise RuntimeError(f"pad_sequence: all dimensions after the first must be equal, but sequence {i} has shape {list(each.shape)} and the "
                               f"first {list(given[0].shape)}")
    longest = max(len(each) for each in given)
    padded = []
    for each in given:
        missing = longest - len(each)
        ends = (missing, 0) if padding_side == "left" else (0, missing)
        padded.append(constant_pad_nd(each, (*(0,) * (2 * each.ndim - 2), *ends), padding_value) if missing else each)
    return traced.stack(padded, 0 if batch_first else 1)


@taking_tensors
def unpad_sequence(padded_sequences: Tensor, lengths: Tensor, batch_first: bool = False) -> list[Tensor]:
    """The list of the sequences of given lengths in a padded tensor, the inverse of `pad_sequence`."""
    rows = padded_sequences if batch_first else traced.transpose(padded_sequences, 0, 1)
    return [traced.narrow(row, 0, 0, min(n, row.shape[0])) for row, n in zip(traced.unbind(rows), lengths.tolist(), strict=True)]


def pack_sequence(sequences: Sequence[Tensor], enforce_sorted: bool = True) -> PackedSequence:
    """The `PackedSequence` of tensors (Lᵢ, ...), which have decreasing lengths, or any lengths unless `enforce_sorted`."""
    return pack_padded_sequence(pad_sequence(sequences), [len(each) for each in sequences], enforce_sorted=enforce_sorted)


def unpack_sequence(packed_sequences: PackedSequence) -> list[Tensor]:
    """The list of the sequences of a `PackedSequence`, the inverse of `pack_sequence`."""
    return unpad_sequence(*pad_packed_sequence(packed_sequences, batch_first=True), batch_first=True)
