"""Random functions of one tensor: an op of the registry or a composition of two to six, with generic parameters, at a point of its domain."""

from __future__ import annotations

import functools
import math
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np

from symgrad.engine.tensor import Tensor
from symgrad.factories.creation import tensor
from symgrad.graph.domains import BOOLEAN, MatrixDomain
from symgrad.testing.claims import silence
from symgrad.testing.strategies.programs import GUARDS, DrawnOperand, guard_for
from tests.support.points import arrays, domain, inside, tails

from .words import WEIGHTS, WORDS, Word, generic

DTYPES = ("float64",) * 14 + ("float32",) * 3 + ("float16", "bfloat16")
SHAPES = ((),) * 4 + ((2,),) * 5 + ((3,),) * 4 + ((1,), (2, 2), (2, 3), (1, 2), (2, 1, 2), (0,))
COUNTS = (1, 1, 1, 2, 2, 3, 3, 4, 5, 6)
LARGEST = {"float64": 1e5, "float32": 1e4, "float16": 100.0, "bfloat16": 100.0}  # of a value on the way
MOST = 16  # elements of a value
COMPLEX_SHARE = 0.12
CONSTANT_AT_TIES = ("sub", "rsub", "div", "floor_divide", "rounded_quotient", "remainder", "fmod_tensor", "atan2", "angle_slope", "angle_turn",
                    "sigmoid_of_difference", "sigmoid2_of_difference", "polygamma_difference", "direction", "dist", "mse_loss", "add_quotient")
"""Whose derivatives are sums that cancel wholly where the arguments are equal: 0 by the reference, and some rounding by any route."""


class Step(NamedTuple):
    """A word, its operands among the values so far, and its parameters."""

    word: str
    operands: tuple[DrawnOperand, ...]
    parameters: tuple[Any, ...] = ()


@dataclass(frozen=True, eq=False)
class Function:
    """A scalar function of a tensor: Σ weights * (the value of the last step), whose values are the argument, constants, and results of steps.

    `tangent` is the direction of its directional derivatives; `seed` has drawn it.
    """

    point: np.ndarray
    constants: tuple[np.ndarray, ...]
    steps: tuple[Step, ...]
    weights: np.ndarray
    tangent: np.ndarray
    seed: int = 0
    __name__ = "function"

    @cached_property
    def vector(self) -> Callable[[Any], Any]:
        """The function of a tensor whose value is that of the last step."""
        steps = tuple((WORDS[s.word].call, tuple((o.value, GUARDS[o.guard].function if o.guard else None) for o in s.operands), s.parameters)
                      for s in self.steps)
        constants = tuple(map(tensor, self.constants))

        def vector(x: Any) -> Any:
            values = [x, *constants]
            for call, operands, parameters in steps:
                values.append(call(*[values[k] if guard is None else guard(values[k]) for k, guard in operands], *parameters))
            return values[-1]

        return vector

    @cached_property
    def scalar(self) -> Callable[[Any], Any]:
        """The function of a tensor. It captures nothing but what it computes with, as a user's function does."""
        vector, weights, ndim = self.vector, tensor(self.weights), self.weights.ndim
        if not ndim:
            factor = self.weights.item()
            return vector if factor == 1 else lambda x: vector(x) * factor
        return lambda x: (vector(x) * weights).sum()

    def formula(self, xp: Any, x: Any) -> Any:
        """The function in a namespace, for the reference."""
        values = [x, *map(xp.box, self.constants)]
        for step in self.steps:
            given = [GUARDS[o.guard].function(values[o.value]) for o in step.operands]
            values.append(WORDS[step.word].read(xp, *given, *step.parameters))
        y = values[-1] * xp.box(self.weights)
        return xp.sum(y, tuple(range(self.weights.ndim)), False) if self.weights.ndim else y

    def lines(self) -> Iterator[str]:
        """The function as a program in the words of symgrad."""
        names = ["x", *(f"c{k}" for k in range(len(self.constants)))]
        yield f"x = {_text(self.point)}"
        yield from (f"{name} = {_text(c)}" for name, c in zip(names[1:], self.constants))
        for k, step in enumerate(self.steps):
            given = [GUARDS[o.guard].text.format(names[o.value]) for o in step.operands]
            given = [f"({text})" if guard.guard else text for text, guard in zip(given, step.operands)]
            names.append("abcdefghijklmnop"[k])
            yield f"{names[-1]} = {WORDS[step.word].said(given, step.parameters)}"
        yield f"f(x) = {names[-1]}" if not self.weights.ndim and self.weights == 1 else f"f(x) = ({names[-1]} * {_text(self.weights)}).sum()"
        yield f"u = {_text(self.tangent)}"

    def __str__(self) -> str:
        return "\n".join("    " + line for line in self.lines())

    def simpler(self) -> Iterator[Function]:
        """The function without one of its steps, with fewer elements, with simpler weights, and with simpler numbers."""
        count = 1 + len(self.constants)
        for k in range(len(self.steps) - 1, -1, -1):
            for instead in dict.fromkeys((0, *(o.value for o in self.steps[k].operands))):
                steps = []
                for n, step in enumerate(self.steps):
                    if n != k:
                        moved = tuple(replace(o, value=instead if o.value == count + k else o.value - (o.value > count + k)) for o in step.operands)
                        steps.append(step._replace(operands=moved))
                if steps:
                    yield from self._fitted(steps=tuple(steps))
            if k < len(self.steps) - 1:
                yield from self._fitted(steps=self.steps[:k + 1])
        if self.point.ndim and self.point.size > 1 and not any(isinstance(p, tuple) for s in self.steps for p in s.parameters):
            for at in range(len(self.point)):
                yield from self._fitted(point=self.point[at:at + 1], tangent=self.tangent[at:at + 1],
                                        constants=tuple(c[at:at + 1] if c.shape == self.point.shape else c for c in self.constants))
        if self.point.shape in ((1,), (1, 1)):
            yield from self._fitted(point=self.point.reshape(()), tangent=self.tangent.reshape(()),
                                    constants=tuple(c.reshape(()) if c.size == 1 else c for c in self.constants))
        if np.any(self.weights != 1):
            yield replace(self, weights=np.ones_like(self.weights))
        if np.any(self.tangent != 1):
            yield replace(self, tangent=np.ones_like(self.tangent))
        for digits in (0, 1, 3):
            for name in ("point", "constants"):
                old = getattr(self, name)
                new = tuple(_rounded(c, digits) for c in old) if name == "constants" else _rounded(old, digits)
                if any(np.any(a != b) for a, b in zip(old, new)) if name == "constants" else np.any(old != new):
                    yield from self._fitted(**{name: new})
        for k, step in enumerate(self.steps):
            for n, o in enumerate(step.operands):
                if o.guard:
                    plain = step._replace(operands=(*step.operands[:n], replace(o, guard=""), *step.operands[n + 1:]))
                    yield from self._fitted(steps=(*self.steps[:k], plain, *self.steps[k + 1:]))

    def _fitted(self, **changes: Any) -> Iterator[Function]:
        """The function with changes and weights of the shape of its value, if it has a real one."""
        changed = replace(self, **changes)
        try:
            with silence():
                y = changed.vector(tensor(changed.point, requires_grad=True))
                if y.requires_grad and not y.is_complex() and bool(y.isfinite().all()):
                    same = tuple(y.shape) == self.weights.shape
                    yield changed if same else replace(changed, weights=np.ones(tuple(y.shape), self.weights.dtype))
        except Exception:  # the shapes do not fit
            return

    @property
    def words(self) -> list[str]:
        """The words of the steps."""
        return [step.word for step in self.steps]


def _rounded(x: np.ndarray, digits: int) -> np.ndarray:
    return x if x.dtype.kind == "b" else np.round(x.astype(np.float64), digits).astype(x.dtype)


def _text(x: np.ndarray) -> str:
    numbers = x.tolist() if x.dtype.kind != "V" else x.astype(np.float64).tolist()
    dtype = "" if x.dtype.name in ("float64", "bool") else f", dtype=symgrad.{x.dtype.name}"
    return f"tensor({numbers}{dtype})"


def draw(seed: int) -> Function:
    """The function of a seed."""
    rng = random.Random(seed)
    while True:
        found = _Drawer(rng).function(seed)
        if found is not None:
            return found


class _Drawer:
    """One function while it is drawn: its values so far, as tensors."""

    def __init__(self, rng: random.Random):
        self.rng, self.numbers = rng, np.random.default_rng(rng.randrange(2**32))
        name = rng.choice(DTYPES)
        self.dtype = np.dtype(ml_dtypes.bfloat16) if name == "bfloat16" else np.dtype(name)
        self.most = LARGEST[name]
        self.constants: list[np.ndarray] = []
        self.values: list[Any] = []
        self.steps: list[Step] = []

    def function(self, seed: int) -> Function | None:
        rng, count = self.rng, self.rng.choice(COUNTS)
        word = self._word()
        with silence():
            if not self._first(word):
                return None
            if count > 1 and rng.random() < COMPLEX_SHARE:
                self._step(WORDS["complex"])
            for _ in range(3 * count):
                if len(self.steps) >= count:
                    break
                self._step(self._word())
            for _ in range(20):
                if not self.values[-1].is_complex():
                    break
                self._step(WORDS[rng.choice(("abs", "real", "imag", "angle", "sum of squares"))])
        y = self.values[-1]
        if y.is_complex() or not y.requires_grad:
            return None
        weights = self._array(tuple(y.shape), self._generic)
        x = self.values[0].detach().numpy()
        tangent = self._array(x.shape, self._generic)
        if x.size > 1 and rng.random() < 0.2:  # a unit vector: single elements of a Hessian
            tangent = np.zeros_like(x)
            tangent.flat[rng.randrange(x.size)] = 1
        if not weights.ndim and rng.random() < 0.5:
            weights = np.ones_like(weights)
        return self._needed(Function(x, tuple(self.constants), tuple(self.steps), weights, tangent, seed))

    def _word(self) -> Word:
        return self.rng.choices(list(WORDS.values()), WEIGHTS)[0]

    def _needed(self, f: Function) -> Function | None:
        """The function without steps and constants that its value does not need; None if it does not need the argument."""
        first = 1 + len(f.constants)
        needed = {first + len(f.steps) - 1}
        for k in range(len(f.steps) - 1, -1, -1):
            if first + k in needed:
                needed |= {o.value for o in f.steps[k].operands}
        places = {old: new for new, old in enumerate(sorted(needed | {0}))}
        steps = tuple(s._replace(operands=tuple(replace(o, value=places[o.value]) for o in s.operands))
                      for k, s in enumerate(f.steps) if first + k in needed)
        return replace(f, constants=tuple(c for k, c in enumerate(f.constants) if k + 1 in needed), steps=steps) if 0 in needed else None

    # Numbers

    def _generic(self) -> float:
        return generic(self.rng)

    def _array(self, shape: tuple[int, ...], number: Callable[[], float]) -> np.ndarray:
        return np.array([number() for _ in range(math.prod(shape))]).reshape(shape).astype(self.dtype)

    def _number(self, d: Any, special: Sequence[float] = ()) -> float:
        """A number of a domain: generic, ordinary, next to an end or in a tail, or special."""
        rng, way = self.rng, self.rng.random()
        if special and way < 0.08:
            return rng.choice(special)
        if 0.08 < way < 0.1 and 0.0 in d:
            return rng.choice((0.0, -0.0))
        if 0.1 < way < 0.16:
            found = [x for x in tails(d, (1e-8, 1.3e-5, 20.3, 40.7, 300.1, 740.3, 1001.3)) if x in d and abs(x) < 2000]
            if found:
                return rng.choice(found)
        if way < 0.85:
            for _ in range(20):
                x = generic(rng)
                if x in d:
                    return x
        return inside(rng.choice(d.intervals), rng.gauss(0, 1))

    def _inside(self, d: Any, x: np.ndarray) -> bool:
        return isinstance(d, MatrixDomain) or all(float(v) in d for v in np.ravel(x.real))

    # Steps

    def _first(self, word: Word) -> bool:
        rng, op = self.rng, word.op
        if word.complex:
            return False
        place = rng.randrange(word.arity)
        if word.shapes:
            of = rng.choice(word.shapes)
            given = [a.astype(self.dtype) if a.dtype.kind == "f" else a for a in arrays(op, self.numbers, of)]
            if not any(isinstance(domain(op, i), MatrixDomain) for i in range(len(given))) and rng.random() < 0.8:
                domains = [domain(op, i) for i in range(len(given))]
                given = [a if a.dtype.kind == "b" else self._array(a.shape, functools.partial(self._number, d)) for a, d in zip(given, domains)]
            place = rng.choice([i for i, a in enumerate(given) if a.dtype.kind != "b"])
        else:
            shape = rng.choice(SHAPES)
            shapes = [shape if i == place or rng.random() < 0.6 else self._part(shape) for i in range(word.arity)]
            given = [self._constant(word, i, s) for i, s in enumerate(shapes)]
            if given[place].dtype.kind == "b":
                return False
        for i, a in enumerate(given):
            if not self._inside(word.domain(i), a):
                return False
        self.values = [tensor(given[place], requires_grad=True), *(tensor(a) for i, a in enumerate(given) if i != place)]
        self.constants = [a for i, a in enumerate(given) if i != place]
        order = iter(range(1, word.arity))
        operands = tuple(DrawnOperand(0 if i == place else next(order)) for i in range(word.arity))
        return self._apply(word, operands)

    def _part(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """A shape that broadcasts to another."""
        return tuple(1 if self.rng.random() < 0.3 else n for n in shape[self.rng.choice((0, 0, len(shape))):])

    def _constant(self, word: Word, i: int, shape: tuple[int, ...]) -> np.ndarray:
        d = word.domain(i)
        if d == BOOLEAN:
            return np.array([self.rng.random() < 0.5 for _ in range(math.prod(shape))], bool).reshape(shape)
        special = [p[i] if isinstance(p, tuple) and isinstance(p[0], float) else p for p in word.op.docs.special] if word.op is not None else []
        return self._array(shape, lambda: self._number(d, [s for s in special if isinstance(s, float)]))

    def _step(self, word: Word) -> bool:
        """Apply a word to the last value, and to others or constants."""
        rng, last = self.rng, len(self.values) - 1
        if word.complex is not None and word.complex != self.values[-1].is_complex():
            return False
        place, operands, added = rng.randrange(word.arity), [], []
        shape = tuple(self.values[last].shape)
        for i in range(word.arity):
            k = last if i == place else None
            if k is None and rng.random() < 0.6:
                k = rng.choice([*range(len(self.constants) * 0, len(self.values)), 0])
            if k is None:
                added.append(self._constant(word, i, rng.choice((shape, shape, self._part(shape)))))
                operands.append((i, -len(added)))
            else:
                operands.append((i, k))
        if added:  # constants come before the results of steps: renumber these
            first, n = 1 + len(self.constants), len(added)
            self.constants += added
            self.values[first:first] = map(tensor, added)
            self.steps = [s._replace(operands=tuple(replace(o, value=o.value + n * (o.value >= first)) for o in s.operands)) for s in self.steps]
            operands = [(i, first - 1 - k if k < 0 else k + n * (k >= first)) for i, k in operands]
        guarded = []
        for i, k in operands:
            d, x = word.domain(i), self.values[k].detach().numpy()
            guard = ""
            if isinstance(d, MatrixDomain) or d == BOOLEAN and x.dtype.kind != "b":
                return False
            if not self.values[k].is_complex() and x.dtype.kind != "b" and (not self._inside(d, x) or rng.random() < 0.1):
                found = guard_for(d)
                if found is None:
                    return False
                guard = found
            guarded.append(DrawnOperand(k, guard))
        if word.name in CONSTANT_AT_TIES and len(set(guarded)) < len(guarded):
            return False
        return self._apply(word, tuple(guarded))

    def _apply(self, word: Word, operands: tuple[DrawnOperand, ...]) -> bool:
        shapes = [tuple(self.values[o.value].shape) for o in operands]
        if not word.fits(*shapes):
            return False
        parameters = word.parameters(self.rng, *shapes)
        try:
            y = word.call(*(GUARDS[o.guard].function(self.values[o.value]) for o in operands), *parameters)
            if not isinstance(y, Tensor) or not y.requires_grad or y.numel() > MOST:
                return False
            size = np.abs(y.detach().numpy())
        except (TypeError, ValueError, RuntimeError, NotImplementedError, IndexError):  # what the word does not take
            return False
        if not np.all(np.isfinite(size)) or float(np.max(size, initial=0.0)) > self.most:
            return False
        self.steps.append(Step(word.name, operands, parameters))
        self.values.append(y)
        return True
