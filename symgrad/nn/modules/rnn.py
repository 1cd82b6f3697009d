"""Modules of recurrent networks: layers over sequences, and single cells."""

from __future__ import annotations

import math
import warnings
from typing import Any

from symgrad.engine.refusals import expect_tensors
from symgrad.engine.tensor import Tensor
from symgrad.engine.traced import traced
from symgrad.factories.creation import empty, zeros
from symgrad.nn import init, recurrent
from symgrad.nn.modules.module import Module
from symgrad.nn.parameter import Parameter
from symgrad.nn.sequences import PackedSequence

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
        if not isinstance(dropout, (int, float)) or isinstance(dropout, bool) or not 0 <= dropout <= 1:
            raise ValueError(f"dropout should be a number in range [0, 1] representing the probability of an element being zeroed, not {dropout}")
        if dropout > 0 and num_layers == 1:
            warnings.warn(f"dropout option adds dropout after all but last recurrent layer, so non-zero dropout expects num_layers greater than 1, "
                          f"but got dropout={dropout} and num_layers={num_layers}", stacklevel=2)
        for name, switch in (("bias", bias), ("batch_first", batch_first)):
            if not isinstance(switch, bool):
                raise TypeError(f"{name} should be of type bool, got: {type(switch).__name__}")
        for name, size in (("input_size", input_size), ("hidden_size", hidden_size)):
            if not isinstance(size, int):
                raise TypeError(f"{name} should be of type int, got: {type(size).__name__}")
            if size <= 0:
                raise ValueError(f"{name} must be greater than zero")
        if num_layers <= 0:
            raise ValueError("num_layers must be greater than zero")
        if proj_size < 0:
            raise ValueError("proj_size should be a positive integer or zero to disable projections")
        if proj_size >= hidden_size:
            raise ValueError("proj_size has to be smaller than hidden_size")
        if mode not in recurrent.RECURRENCES:
            raise ValueError(f"Unrecognized RNN mode: {mode}")
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
        options = {"proj_size": 0, "num_layers": 1, "bias": True, "batch_first": False, "dropout": 0, "bidirectional": False}
        given = [f", {name}={getattr(self, name)}" for name, default in options.items() if getattr(self, name) != default]
        return f"{self.input_size}, {self.hidden_size}" + "".join(given)

    def _sizes(self, count: int) -> list[tuple[int, int, int]]:
        """The sizes of the states for a number of sequences."""
        layers = self.num_layers * (1 + self.bidirectional)
        return [(layers, count, self.proj_size or self.hidden_size), (layers, count, self.hidden_size)][:1 + (self.mode == "LSTM")]

    def _check(self, input: Any, packed: bool, states: tuple[Any, ...], count: int) -> None:
        weight = self._flat_weights[0]
        if input.dtype != weight.dtype:
            raise ValueError(f"RNN input dtype ({input.dtype}) does not match weight dtype ({weight.dtype}). Convert input: "
                             f"input.to({weight.dtype}), or convert model: model.to({input.dtype})")
        if packed and input.ndim != 2:
            raise RuntimeError(f"input must have 2 dimensions, got {input.ndim}")
        if input.shape[-1] != self.input_size:
            raise RuntimeError(f"input.size(-1) must be equal to input_size. Expected {self.input_size}, got {input.shape[-1]}: "
                               f"{type(self).__name__} got an input of shape {list(input.shape)}")
        for i, (state, size) in enumerate(zip(states, self._sizes(count))):
            if tuple(state.shape) != size:
                which = f"[{i}]" if self.mode == "LSTM" else ""
                raise RuntimeError(f"Expected hidden{which} size {size}, got {list(state.shape)}")

    def _states(self, hx: Any) -> tuple[Any, ...]:
        states = tuple(hx) if self.mode == "LSTM" else (hx,)
        if self.mode == "LSTM" and len(states) != 2:
            raise RuntimeError("lstm expects two hidden states")
        return states

    def _given_states(self, hx: Any, alone: bool) -> tuple[Any, ...]:
        """The states of a call, with the dimension of the batch."""
        states = self._states(hx)
        expect_tensors(type(self).__name__, **{f"hx[{i}]" if len(states) > 1 else "hx": s for i, s in enumerate(states)})
        if any(s.ndim != 3 - alone for s in states):
            kind, want = ("unbatched", 2) if alone else ("batched", 3)
            if self.mode == "LSTM":
                found = ", ".join(f"{s.ndim}-D" for s in states)
                raise RuntimeError(f"For {kind} {want}-D input, hx and cx should also be {want}-D but got ({found}) tensors")
            raise RuntimeError(f"For {kind} {want}-D input, hx should also be {want}-D but got {states[0].ndim}-D tensor")
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
            if input.ndim not in (2, 3):
                kind = "RNN" if self.mode.startswith("RNN") else self.mode
                raise ValueError(f"{kind}: Expected input to be 2D or 3D, got {input.ndim}D{' tensor' * (kind == 'RNN')} instead")
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


def _without_projection(kwargs: dict[str, Any]) -> None:
    if "proj_size" in kwargs:
        raise ValueError("proj_size argument is only supported for LSTM, not RNN or GRU")


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
        _without_projection(kwargs)
        nonlinearity = args[3] if len(args) > 3 else kwargs.pop("nonlinearity", "tanh")
        if nonlinearity not in ("tanh", "relu"):
            raise ValueError(f"Unknown nonlinearity '{nonlinearity}'. Select from 'tanh' or 'relu'.")
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
        _without_projection(kwargs)
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
        options = {"bias": True, "nonlinearity": "tanh"}
        given = [f", {name}={getattr(self, name)}" for name, default in options.items() if getattr(self, name) != default]
        return f"{self.input_size}, {self.hidden_size}" + "".join(given)

    def _run(self, function: Any, input: Tensor, hx: Any) -> tuple[Any, ...]:
        """The new states for one input or a batch of inputs, from the states, or from 0."""
        name, double = type(self).__name__, isinstance(self, LSTMCell)
        expect_tensors(name, input=input)
        if input.ndim not in (1, 2):
            raise ValueError(f"{name}: Expected input to be 1D or 2D, got {input.ndim}D instead")
        states = None if hx is None else tuple(hx) if double else (hx,)
        for i, state in enumerate(states or ()):
            if state.ndim not in (1, 2):
                raise ValueError(f"{name}: Expected {f'hx[{i}]' if double else 'hidden'} to be 1D or 2D, got {state.ndim}D instead")
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
        if self.nonlinearity not in ("tanh", "relu"):
            raise RuntimeError(f"Unknown nonlinearity: {self.nonlinearity}")
        return self._run(recurrent.rnn_tanh_cell if self.nonlinearity == "tanh" else recurrent.rnn_relu_cell, input, hx)[0]


class LSTMCell(RNNCellBase):
    """A step of long short-term memory: (N, input_size) and the states (h, c) give the new states."""

    def __init__(self, input_size: int, hidden_size: int, bias: bool = True, device: Any = None, dtype: Any = None):
        super().__init__(input_size, hidden_size, bias, 4, device, dtype)

    def forward(self, input: Tensor, hx: tuple[Tensor, Tensor] | None = None) -> tuple[Tensor, Tensor]:
        """The new states."""
        hidden, cell = self._run(recurrent.lstm_cell, input, hx)
        return hidden, cell


class GRUCell(RNNCellBase):
    """A step of gated recurrent units: (N, input_size) and (N, hidden_size) give the new hidden state."""

    def __init__(self, input_size: int, hidden_size: int, bias: bool = True, device: Any = None, dtype: Any = None):
        super().__init__(input_size, hidden_size, bias, 3, device, dtype)

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        """The new hidden state."""
        return self._run(recurrent.gru_cell, input, hx)[0]
