"""`Declared`: an optimizer that states its options, the state of a parameter and the update rule; its constructor follows from these."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from inspect import Parameter, Signature
from typing import Any

import numpy as np

from symgrad.dtypes.dtype import DTYPES, get_default_dtype
from symgrad.engine.tensor import Tensor
from symgrad.optim.optimizer import Group, Optimizer, required

IGNORED = ("foreach", "fused", "capturable")  # they choose among kernels of torch; here there is one implementation
SWITCHES: Group = {"foreach": None, "fused": None, "capturable": False, "maximize": False, "differentiable": False, "decoupled_weight_decay": False}
SENTENCES = {
    "weight_decay": "`weight_decay` adds weight_decay p to the gradient.",
    "decoupled_weight_decay": "With `decoupled_weight_decay` p is multiplied by 1 - lr weight_decay instead.",
    "maximize": "With `maximize` the gradient changes its sign.",
    "differentiable": "With `differentiable` the step is recorded, and can be differentiated.",
}
EXAMPLE = """
    >>> import symgrad
    >>> x = symgrad.tensor(3.0, requires_grad=True)
    >>> optimizer = symgrad.optim.{}([x], {})
    >>> (x * x).backward()
    >>> optimizer.step()
    >>> x
    tensor({}, requires_grad=True)
"""
NOT_NEGATIVE: tuple[Callable[[Any], bool], str] = (lambda v: v >= 0, "not negative")
# What an option must be, by its name; a tuple must have it in each place
RANGES = {
    **dict.fromkeys("lr weight_decay eps momentum lr_decay initial_accumulator_value momentum_decay max_backtracks max_trials max_cg".split(),
                    NOT_NEGATIVE),
    "betas": (lambda v: 0 <= v < 1, "in [0, 1)"), "rho": (lambda v: 0 <= v <= 1, "in [0, 1]"), "beta2_decay": (lambda v: v <= 0, "not positive"),
    "d": (lambda v: v >= 1, "at least 1"),
}


class Declared(Optimizer):
    """An optimizer whose constructor and state follow from its declaration.

    `_options` has the options with their defaults in order, and `_switches` the names of further ones, after `*` only by name. `_numbers` has
    the scalars of the state with their first values, a number or the name of an option; `_arrays` its arrays in the shape of the parameter, zeros or
    full of an option; those in `_used_by` exist only if the option named there is on. The rule is `_rule(xp, p, g, state, group, n)` for step n.
    """

    _options: Group
    _switches = ""
    _example: tuple[str, str]  # options of a call for the documentation, and where a step on x² from 3 leads
    _numbers = {"step": 0}
    _arrays: dict[str, str | None] = {}
    _used_by: dict[str, str] = {}
    _signature: Signature

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "_options" in vars(cls):
            plain, _, named = cls._switches.partition("*")
            options = cls._options | {name: SWITCHES[name] for name in (plain + named).split()}
            cls._signature = cls.__signature__ = signature_of("params", options, named.split())  # type: ignore[attr-defined]
            sentences = [text for name, text in SENTENCES.items() if name in options and "_rule" in vars(cls)]
            if unused := [f"`{name}`" for name in options if name in IGNORED]:
                sentences.append(f"Without effect: {', '.join(unused)}.")
            if "Raises" not in (cls.__doc__ or ""):
                sentences.append("Raises ValueError for options out of their range.")
            example = EXAMPLE.format(cls.__name__, *cls._example) if "_example" in vars(cls) else ""
            cls.__doc__ = "\n    ".join([cls.__doc__ or "", *sentences, ""]) + example
        elif "__init__" in vars(cls):
            cls.__signature__ = None  # type: ignore[attr-defined]  # of the constructor, for `inspect`

    def __init__(self, params: Any, *args: Any, **kwargs: Any):
        options = options_given(self, params, args, kwargs)
        params = options.pop("params")
        self._prepare(options)
        super().__init__(params, options)

    def _prepare(self, options: Group) -> None:
        """Check the options, and complete them."""
        for name, value in options.items():
            if isinstance(self._options.get(name), tuple):
                self._check_length(name, value, len(self._options[name]))
            if isinstance(value, Tensor):
                self._require(name, value, value.numel() == 1, "one number")
            if name in RANGES:
                self._check_range(name, value, self._options.get(name))
        if options.get("fused") and (options["foreach"] or options["differentiable"]):
            raise RuntimeError(f"{type(self).__name__}: fused=True excludes foreach=True and differentiable=True. Leave fused out: it has no effect")

    def _check_length(self, name: str, value: Any, length: int) -> None:
        if isinstance(value, (int, float)):
            raise TypeError(f"{type(self).__name__}: {name} is {value}; give {length} numbers")
        if len(value) != length:
            raise IndexError(f"{type(self).__name__}: {name} is {value}; give {length} numbers")

    def _check_range(self, name: str, value: Any, default: Any) -> None:
        """Check a number, or the numbers of an option that is a tuple; None is right where it is the default."""
        right, text = RANGES[name]
        for v, start in zip(value, default) if isinstance(default, tuple) else ((value, default),):
            if v is not None or start is not None:
                try:
                    holds = bool(right(v))
                except TypeError:
                    raise TypeError(f"{type(self).__name__}: {name} is {value!r}; give a number") from None
                self._require(name, value, holds, text)

    def _require(self, name: str, value: Any, condition: bool, text: str) -> None:
        if not condition:
            raise ValueError(f"{type(self).__name__}: {name} is {value}; it must be {text}")

    def _update(self, xp: Any, p: Any, g: Any, state: dict[str, Any], group: Group) -> None:
        if not state:
            state.update({name: scalar(xp, group.get(start, start)) for name, start in self._numbers.items()})
            for name, start in self._arrays.items():
                if name not in self._used_by or group[self._used_by[name]]:
                    state[name] = xp.zeros_like(p)
                    if start is not None:
                        state[name] += group[start]
        if "step" in self._numbers:
            state["step"] += 1
        if group["maximize"]:
            g = -g
        decay = group.get("weight_decay", 0)
        if decay != 0:
            if group.get("decoupled_weight_decay"):
                p *= 1 - group["lr"] * decay
            else:
                g = g + decay * p
        self._rule(xp, p, g, state, group, float(state.get("step", 0)))

    def _rule(self, xp: Any, p: Any, g: Any, state: dict[str, Any], group: Group, n: float) -> None:
        raise NotImplementedError


def signature_of(first: str, options: Group, named: Sequence[str] = ()) -> Signature:
    """The signature of a constructor with options and their defaults, of which some are given only by name."""
    kinds = Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY
    return Signature([Parameter(first, kinds[0]), *[Parameter(name, kinds[name in named], default=Parameter.empty if x is required else x)
                                                    for name, x in options.items()]])


def options_given(self: Any, first: Any, args: tuple, kwargs: dict[str, Any]) -> dict[str, Any]:
    """The arguments of a constructor by name, with their defaults."""
    try:
        bound = self._signature.bind(first, *args, **kwargs)
    except TypeError as error:
        raise TypeError(f"{type(self).__name__}: {error}. Its options are {', '.join(list(self._signature.parameters)[1:])}") from None
    bound.apply_defaults()
    return dict(bound.arguments)


def scalar(xp: Any, value: Any) -> Any:
    """A number of the state: float64 if that is the default dtype, else float32."""
    kind = DTYPES["float64" if get_default_dtype() is DTYPES["float64"] else "float32"]
    return xp.zeros_like(np.zeros((), kind.numpy)) + value


def number(value: Any) -> Any:
    """A number of the state: a Tensor, which may have a graph, or a float, which does not promote the dtype of a parameter."""
    return value if isinstance(value, Tensor) else float(value)


def lerp(start: Any, end: Any, weight: float) -> None:
    """Interpolate from one array to another, in place, exact for weights near 0 and near 1."""
    if weight < 0.5:
        start += weight * (end - start)
    else:
        start[...] = end - (end - start) * (1 - weight)
