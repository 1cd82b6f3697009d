"""Recurrent networks as functions, with the names and arguments of torch's top module: cells, and layers over whole sequences."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from symgrad.engine.refusals import expect_tensors
from symgrad.engine.tensor import Tensor
from symgrad.engine.traced import traced
from symgrad.nn.dropout import dropout as random_zeros
from symgrad.nn.products import linear
from symgrad.nn.validation import check_shape, named

__all__ = ["RECURRENCES", "Recurrence", "gru", "gru_cell", "lstm", "lstm_cell", "rnn_relu", "rnn_relu_cell", "rnn_tanh", "rnn_tanh_cell"]

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
