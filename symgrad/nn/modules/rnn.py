"""Modules of recurrent networks: layers over sequences, and single cells."""

from __future__ import annotations

import math
import warnings
from typing import Any, ClassVar

from symgrad.arguments import check_dims, check_option
from symgrad.engine.refusals import expect_tensors
from symgrad.engine.tensor import Tensor
from symgrad.engine.traced import traced
from symgrad.factories.creation import empty, zeros
from symgrad.nn import init, recurrent
from symgrad.nn.modules.declarations import shown_options
from symgrad.nn.modules.module import Module
from symgrad.nn.parameter import Parameter
from symgrad.nn.recurrent import PackedSequence
from symgrad.nn.validation import check_shape

__all__ = ["GRU", "GRUCell", "LSTM", "LSTMCell", "RNN", "RNNBase", "RNNCell", "RNNCellBase"]


class _Uniform(Module):
    hidden_size: int

    def reset_parameters(self) -> None:
        """Initialize all parameters again, uniform in ±1/√hidden_size."""
        bound = 1 / math.sqrt(self.hidden_size) if self.hidden_size > 0 else 0
        for parameter in self.parameters():
            init.uniform_(parameter, -bound, bound)


class RNNBase(_Uniform):
    """The base of recurrent layers: for layer k the parameters weight_ih_l[k], weight_hh_l[k], bias_ih_l[k], bias_hh_l[k], and weight_hr_l[k] with
    `proj_size`; those of the other direction end in _reverse.

    Raises ValueError and TypeError for sizes and switches that are none.
    """

    nonlinearity: str

    def __init__(self, mode: str, input_size: int, hidden_size: int, num_layers: int = 1, bias: bool = True, batch_first: bool = False,
                 dropout: float = 0.0, bidirectional: bool = False, proj_size: int = 0, device: Any = None, dtype: Any = None):
        super().__init__()
        name = type(self).__name__
        if not isinstance(dropout, (int, float)) or isinstance(dropout, bool) or not 0 <= dropout <= 1:
            raise ValueError(f"{name}: dropout must be a probability between 0 and 1, but it is {dropout!r}")
        if dropout > 0 and num_layers == 1:
            warnings.warn(f"{name}: dropout={dropout} has no effect, since it is between layers and num_layers is 1", stacklevel=2)
        for word, kind, given in (("bias", bool, bias), ("batch_first", bool, batch_first), ("input_size", int, input_size),
                                  ("hidden_size", int, hidden_size)):
            if not isinstance(given, kind):
                raise TypeError(f"{name}: {word} must be of type {kind.__name__}, not {type(given).__name__}")
        if min(input_size, hidden_size, num_layers) <= 0 or not 0 <= proj_size < hidden_size:
            raise ValueError(f"{name}: input_size={input_size}, hidden_size={hidden_size} and num_layers={num_layers} must be positive, and "
                             f"proj_size={proj_size} less than hidden_size")
        check_option(name, "mode", mode, tuple(recurrent.RECURRENCES), ValueError)
        self.mode, self.input_size, self.hidden_size, self.num_layers = mode, input_size, hidden_size, num_layers
        self.bias, self.batch_first, self.dropout, self.bidirectional = bias, batch_first, float(dropout), bidirectional
        self.proj_size = proj_size
        self._all_weights = list[list[str]]()
        gates, out, directions = recurrent.RECURRENCES[mode].gates * hidden_size, proj_size or hidden_size, 1 + bidirectional
        for layer in range(num_layers):
            for suffix in ("", "_reverse")[:directions]:
                shapes: dict[str, Any] = {"weight_ih": (gates, out * directions if layer else input_size), "weight_hh": (gates, out)}
                if bias:
                    shapes |= {"bias_ih": gates, "bias_hh": gates}
                if proj_size:
                    shapes["weight_hr"] = proj_size, hidden_size
                names = {f"{name}_l{layer}{suffix}": shape for name, shape in shapes.items()}
                for name, shape in names.items():
                    self.register_parameter(name, Parameter(empty(shape, device=device, dtype=dtype)))
                self._all_weights.append(list(names))
        self.reset_parameters()

    @property
    def all_weights(self) -> list[list[Parameter]]:
        """The parameters of each layer and direction."""
        return [[getattr(self, name) for name in names] for names in self._all_weights]

    @property
    def _flat_weights(self) -> list[Parameter]:
        return [parameter for parameters in self.all_weights for parameter in parameters]

    def flatten_parameters(self) -> None:
        """Nothing: the parameters need not lie one after the other in memory, as they do for GPUs."""

    def extra_repr(self) -> str:
        """The sizes, and the options that are not the default."""
        return shown_options(self, self.input_size, self.hidden_size, proj_size=0, num_layers=1, bias=True, batch_first=False, dropout=0,
                             bidirectional=False)

    def _sizes(self, count: int) -> list[tuple[int, int, int]]:
        """The sizes of the states for a number of sequences."""
        layers = self.num_layers * (1 + self.bidirectional)
        return [(layers, count, self.proj_size or self.hidden_size), (layers, count, self.hidden_size)][:1 + (self.mode == "LSTM")]

    def _check(self, input: Any, packed: bool, states: tuple[Any, ...], count: int) -> None:
        weight, name = self._flat_weights[0], type(self).__name__
        if input.dtype != weight.dtype:
            raise ValueError(f"{name}: the input has {input.dtype}, but the weights have {weight.dtype}. Convert one of them with .to()")
        check_dims(name, input, 2 if packed else 3)
        check_shape(name, (*input.shape[:-1], self.input_size), input=input)
        for i, (state, size) in enumerate(zip(states, self._sizes(count))):
            check_shape(name, size, **{f"hx[{i}]": state})

    def _states(self, hx: Any) -> tuple[Any, ...]:
        states = tuple(hx) if self.mode == "LSTM" else (hx,)
        if self.mode == "LSTM" and len(states) != 2:
            raise RuntimeError(f"LSTM: there must be 2 hidden states, but there are {len(states)}")
        return states

    def _given_states(self, hx: Any, alone: bool) -> tuple[Any, ...]:
        """The states of a call, with the dimension of the batch."""
        states, name = self._states(hx), type(self).__name__
        expect_tensors(name, **{f"hx[{i}]": s for i, s in enumerate(states)})
        for state in states:
            check_dims(name, state, 3 - alone, word="hx")
        return tuple(traced.unsqueeze(s, 1) for s in states) if alone else states

    def forward(self, input: Any, hx: Any = None) -> Any:
        """The outputs of the last layer at each step, and the last states of all layers. The states start at 0, or at `hx`."""
        packed, alone, order = isinstance(input, PackedSequence), False, None
        if packed:
            data, sizes, order, unorder = input
            count = int(sizes[0])
        else:
            data = input
            expect_tensors(type(self).__name__, input=input)
            check_dims(type(self).__name__, input, 2, 3, error=ValueError)
            alone = input.ndim == 2
            dim = 0 if self.batch_first else 1
            data = traced.unsqueeze(input, dim) if alone else input
            count = data.shape[dim]
        if hx is None:
            states = tuple(zeros(size, dtype=data.dtype) for size in self._sizes(count))
        elif packed:
            states = self._states(hx)
        else:
            states = self._given_states(hx, alone)
        self._check(data, packed, states, count)
        if order is not None:
            states = tuple(traced.index_select(s, 1, order) for s in states)
        start = states if self.mode == "LSTM" else states[0]
        options = (self._flat_weights, self.bias, self.num_layers, self.dropout, self.training, self.bidirectional)
        function = getattr(recurrent, self.mode.lower())
        output, *last = function(data, sizes, start, *options) if packed else function(data, start, *options, self.batch_first)
        if order is not None:
            last = [traced.index_select(s, 1, unorder) for s in last]
        if packed:
            output = PackedSequence(output, *input[1:])
        elif alone:
            output, last = traced.squeeze(output, dim), [traced.squeeze(s, 1) for s in last]
        return output, tuple(last) if self.mode == "LSTM" else last[0]


def _without_projection(name: str, kwargs: dict[str, Any]) -> None:
    if "proj_size" in kwargs:
        raise ValueError(f"{name}: proj_size={kwargs['proj_size']} is for LSTM only")


class RNN(RNNBase):
    """h' = tanh(weight_ih x + bias_ih + weight_hh h + bias_hh) for each step of a sequence.

    (L, N, input_size) gives the h of all steps (L, N, hidden_size), and the last h of all layers (num_layers, N, hidden_size).

    The arguments are input_size, hidden_size, num_layers=1, nonlinearity="tanh" or "relu", bias=True, batch_first=False, dropout=0.0 between
    layers, bidirectional=False. The input may be a `PackedSequence`, (N, L, input_size) with `batch_first`, or (L, input_size).

    Raises ValueError for another nonlinearity, RuntimeError for sizes that do not fit.

    >>> import symgrad
    >>> from symgrad import nn
    >>> output, h = nn.RNN(3, 2, num_layers=2)(symgrad.ones(5, 4, 3))
    >>> output.shape, h.shape
    (torch.Size([5, 4, 2]), torch.Size([2, 4, 2]))
    """

    def __init__(self, *args: Any, **kwargs: Any):
        _without_projection("RNN", kwargs)
        nonlinearity = args[3] if len(args) > 3 else kwargs.pop("nonlinearity", "tanh")
        check_option("RNN", "nonlinearity", nonlinearity, ("tanh", "relu"), ValueError)
        super().__init__(f"RNN_{nonlinearity.upper()}", *args[:3], *args[4:], **kwargs)
        self.nonlinearity = nonlinearity


class LSTM(RNNBase):
    """Long short-term memory over a sequence: (L, N, input_size) gives (L, N, hidden_size) and the last states (h, c).

    The arguments are those of `RNN` without the nonlinearity; with `proj_size` h is projected to that size. (Hochreiter and Schmidhuber 1997.)

    Raises RuntimeError for sizes that do not fit.
    """

    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__("LSTM", *args, **kwargs)


class GRU(RNNBase):
    """Gated recurrent units over a sequence: (L, N, input_size) gives (L, N, hidden_size) and the last h. (Cho et al. 2014.)

    The arguments are those of `RNN` without the nonlinearity. Raises RuntimeError for sizes that do not fit.
    """

    def __init__(self, *args: Any, **kwargs: Any):
        _without_projection("GRU", kwargs)
        super().__init__("GRU", *args, **kwargs)


# Cells


class RNNCellBase(_Uniform):
    """The base of cells, with the parameters weight_ih, weight_hh, bias_ih and bias_hh of `num_chunks` gates."""

    mode: str
    weight_ih: Parameter
    weight_hh: Parameter
    bias_ih: Parameter | None
    bias_hh: Parameter | None
    nonlinearity = "tanh"

    def __init__(self, input_size: int, hidden_size: int, bias: bool, num_chunks: int, device: Any = None, dtype: Any = None):
        super().__init__()
        self.input_size, self.hidden_size, self.bias = input_size, hidden_size, bias
        for name, columns in (("weight_ih", input_size), ("weight_hh", hidden_size)):
            self.register_parameter(name, Parameter(empty(num_chunks * hidden_size, columns, device=device, dtype=dtype)))
        for name in ("bias_ih", "bias_hh"):
            self.register_parameter(name, Parameter(empty(num_chunks * hidden_size, device=device, dtype=dtype)) if bias else None)
        self.reset_parameters()

    def extra_repr(self) -> str:
        """The sizes, and the options that are not the default."""
        return shown_options(self, self.input_size, self.hidden_size, bias=True, nonlinearity="tanh")

    def _run(self, function: Any, input: Tensor, hx: Any) -> tuple[Any, ...]:
        """The new states for one input or a batch of inputs, from the states, or from 0."""
        name, double = type(self).__name__, isinstance(self, LSTMCell)
        expect_tensors(name, input=input)
        check_dims(name, input, 1, 2, error=ValueError)
        states = None if hx is None else tuple(hx) if double else (hx,)
        for i, state in enumerate(states or ()):
            check_dims(name, state, 1, 2, word=f"hx[{i}]", error=ValueError)
        alone = input.ndim == 1
        rows = traced.unsqueeze(input, 0) if alone else input
        if states is None:
            states = (zeros(rows.shape[0], self.hidden_size, dtype=input.dtype),) * (1 + double)
        elif alone:
            states = tuple(traced.unsqueeze(state, 0) for state in states)
        found = function(rows, states if double else states[0], self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh)
        found = found if double else (found,)
        return tuple(traced.squeeze(state, 0) for state in found) if alone else found


class RNNCell(RNNCellBase):
    """tanh(weight_ih x + bias_ih + weight_hh h + bias_hh), or max(·, 0) with nonlinearity "relu": (N, input_size) and (N, hidden_size) give
    (N, hidden_size).

    >>> import symgrad
    >>> from symgrad import nn
    >>> nn.RNNCell(3, 2)(symgrad.ones(5, 3)).shape
    torch.Size([5, 2])
    """

    def __init__(self, input_size: int, hidden_size: int, bias: bool = True, nonlinearity: str = "tanh", device: Any = None, dtype: Any = None):
        super().__init__(input_size, hidden_size, bias, 1, device, dtype)
        self.nonlinearity = nonlinearity

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        """The new hidden state."""
        check_option("RNNCell", "nonlinearity", self.nonlinearity, ("tanh", "relu"), RuntimeError)
        return self._run(recurrent.rnn_tanh_cell if self.nonlinearity == "tanh" else recurrent.rnn_relu_cell, input, hx)[0]


class _Gated(RNNCellBase):
    chunks: ClassVar[int]

    def __init__(self, input_size: int, hidden_size: int, bias: bool = True, device: Any = None, dtype: Any = None):
        super().__init__(input_size, hidden_size, bias, self.chunks, device, dtype)


class LSTMCell(_Gated):
    """A step of long short-term memory: (N, input_size) and the states (h, c) give the new states."""

    chunks = 4

    def forward(self, input: Tensor, hx: tuple[Tensor, Tensor] | None = None) -> tuple[Tensor, Tensor]:
        """The new states."""
        hidden, cell = self._run(recurrent.lstm_cell, input, hx)
        return hidden, cell


class GRUCell(_Gated):
    """A step of gated recurrent units: (N, input_size) and (N, hidden_size) give the new hidden state."""

    chunks = 3

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        """The new hidden state."""
        return self._run(recurrent.gru_cell, input, hx)[0]
