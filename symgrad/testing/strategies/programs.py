"""Random programs of ops: functions of tensors that read as text, stay inside every domain, and shrink to a single op."""

from __future__ import annotations

import functools
import inspect
import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from symgrad.diagnose.kinks.switches import switches
from symgrad.engine.recording import core
from symgrad.engine.tensor import Tensor
from symgrad.factories.creation import tensor
from symgrad.graph.domains import REAL
from symgrad.graph.op import REGISTRY, Op
from symgrad.testing.strategies.arrays import require_hypothesis
from symgrad.testing.strategies.programs_fitting import GUARDS, Shape, default_ops, fits, guard_for, op_named, parameters

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

NAMES = ("x", "y", "z", "u", "v", "w")
SHAPES: tuple[Shape, ...] = ((2,), (), (2, 2), (3,), (2, 3), (3, 2))
MAX_VALUE = 30.0  # the size beyond which values are scaled down
MIN_KINK_DISTANCE = 1e-3  # the least distance of every op from a kink, a tie or a jump at the program's point


@dataclass(frozen=True)
class DrawnOperand:
    """A value of the program by its number (the inputs come first), mapped into a domain by one of `GUARDS`."""

    value: int
    guard: str = ""


@dataclass(frozen=True)
class DrawnStep:
    """One line: an op of the registry by its name, its operands, and its further arguments."""

    op: str
    operands: tuple[DrawnOperand, ...]
    parameters: tuple[Any, ...] = ()

    def __call__(self, values: Sequence[Tensor]) -> Tensor:
        """The op's result, from all values so far."""
        op = REGISTRY[self.op]
        given = [GUARDS[o.guard].function(values[o.value]) for o in self.operands]
        return core(op)(*((given,) if op.arity is None else given), *self.parameters)


@dataclass(frozen=True, eq=False)
class DrawnProgram:
    """A function of tensors, made of ops of the registry: `program(*tensors)` is the value of its last line.

    `point` has a value for each input by name, at which no op is near a kink, a tie or a jump, and no value is large. Domains are met at every
    point: an op that is not defined everywhere gets its argument through a smooth function with values inside, as in log(1 + x*x).
    It can be pickled, and its repr is the text of its lines.

    >>> step = DrawnStep("sin", (DrawnOperand(0),))
    >>> program = DrawnProgram({"x": np.array([0.5, 1.0])}, (step, DrawnStep("log", (DrawnOperand(1, "positive"),))))
    >>> program
    def program(x):
        a = sin(x)
        b = log(1 + a*a)
        return b
    # x = [0.5, 1.0]
    >>> program(*program.arguments()).shape, program.shapes
    (torch.Size([2]), ((2,),))
    """

    point: dict[str, np.ndarray]
    steps: tuple[DrawnStep, ...]
    __name__ = "program"

    @property
    def shapes(self) -> tuple[Shape, ...]:
        """The shapes of the inputs."""
        return tuple(x.shape for x in self.point.values())

    @property
    def __signature__(self) -> inspect.Signature:
        return inspect.Signature([inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD) for name in self.point])

    def arguments(self) -> list[Tensor]:
        """The point as tensors that require grad."""
        return [tensor(x, requires_grad=True) for x in self.point.values()]

    def __call__(self, *tensors: Any) -> Tensor:
        """The value of the last line, for one tensor (or array, or number) per input.

        Raises TypeError for another number of inputs.
        """
        if len(tensors) != len(self.point):
            raise TypeError(f"program takes {len(self.point)} inputs ({', '.join(self.point)}), not {len(tensors)}")
        values = [t if isinstance(t, Tensor) else tensor(t) for t in tensors]
        for step in self.steps:
            values.append(step(values))
        return values[-1]

    def needed(self) -> DrawnProgram:
        """The program without the inputs that no line reads."""
        read = {o.value for step in self.steps for o in step.operands}
        names = list(self.point)
        kept = [k for k, _ in enumerate(names) if k in read]
        places = {k: n for n, k in enumerate([*kept, *range(len(names), len(names) + len(self.steps))])}
        steps = tuple(replace(step, operands=tuple(replace(o, value=places[o.value]) for o in step.operands)) for step in self.steps)
        return DrawnProgram({new: self.point[names[k]] for new, k in zip(names, kept)}, steps)

    @property
    def expr(self) -> Any:
        """The formula of the result over the inputs: a SymPy expression, or an Array of them."""
        return self(*(tensor(x, requires_grad=True, symbol=name) for name, x in self.point.items())).expr

    def lines(self) -> Iterator[str]:
        """The steps as text, such as "a = sin(x)"."""
        names = list(self.point)
        for step, name in zip(self.steps, _letters()):
            given = [GUARDS[o.guard].text.format(names[o.value]) for o in step.operands]
            if REGISTRY[step.op].arity is None:
                given = [f"[{', '.join(given)}]"]
            yield f"{name} = {step.op}({', '.join([*given, *map(repr, step.parameters)])})"
            names.append(name)

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(repr(self))

    def __repr__(self) -> str:
        lines = list(self.lines())
        last = lines[-1].partition(" = ")[0] if lines else list(self.point)[-1]
        return "\n".join([f"def program({', '.join(self.point)}):", *(f"    {line}" for line in [*lines, f"return {last}"]),
                          *(f"# {name} = {x.tolist()}" for name, x in self.point.items())])


def _letters() -> Iterator[str]:
    """a, b, c, ..., t, a1, b1, ...: the names of lines, none of which is an input's."""
    for k in itertools.count():
        yield from (f"{letter}{k or ''}" for letter in "abcdefghijklmnopqrst")


def programs(depth: int | SearchStrategy[int] = 4, ops: Sequence[Any] | None = None,
             inputs: Sequence[Shape] | SearchStrategy[Sequence[Shape]] | None = None) -> SearchStrategy[DrawnProgram]:
    """Random programs of up to `depth` ops, each applied to inputs and to results of the ops before it.

    `ops` are names, ops or public functions; without it all public ops that are elementwise with a slope, reductions, linear or of
    matrices, as far as shapes fit. `inputs` are the shapes of the inputs, or a strategy for them; without it one to three small ones are
    drawn. Their values are different multiples of 1/8. Every program is evaluated while it is drawn, so that none is rejected: if a
    value becomes large, or an op comes close to a kink, its argument is scaled down first, and if this does not help the op is left out.

    Programs shrink to one op and to small numbers. Raises ValueError and TypeError for ops that are not in the registry, have no derivative or are
    composite; ValueError, when drawn, if no op fits the inputs.

    >>> from hypothesis import find
    >>> find(programs(ops=["log", "mul"], inputs=[()]), lambda program: "log" in repr(program))
    def program(x):
        a = log(1 + x*x)
        return a
    # x = 0.125
    """
    st = require_hypothesis().strategies
    chosen = default_ops() if ops is None else [op_named(op) for op in ops]
    given: Any = inputs  # mypy cannot infer the type, since hypothesis may be missing
    if given is None:
        shapes = st.lists(st.sampled_from(SHAPES), min_size=1, max_size=3)
    else:
        shapes = given if isinstance(given, st.SearchStrategy) else st.just(tuple(map(tuple, given)))

    @st.composite
    def drawn(draw: Any) -> DrawnProgram:
        sizes = [tuple(s) for s in draw(shapes)]
        count = sum(map(math.prod, sizes))
        left = list(range(max(40, count)))
        found = [left.pop(draw(st.integers(0, len(left) - 1))) for _ in range(count)]
        point, at = {}, 0
        for name, shape in zip([*NAMES, *(f"x{k}" for k in range(len(sizes)))], sizes):
            point[name] = np.array([(k // 2 + 1) / 8 * (-1) ** k for k in found[at:at + math.prod(shape)]]).reshape(shape)
            at += math.prod(shape)
        program = _build(draw, point, chosen, depth if isinstance(depth, int) else draw(depth), isinstance(depth, int))
        return program if inputs is not None else program.needed()

    return drawn()


def _build(draw: Any, point: dict[str, np.ndarray], ops: Sequence[Op], depth: int, fewer: bool) -> DrawnProgram:
    """A program of so many steps, or fewer, each drawn among the ops that fit the values so far.

    Every step draws the same: an op by a number that does not depend on the values, whether it reads the latest value, its operands, and whether a
    step follows, which the last one draws, too. So what is drawn for one step can be left out, and the rest is a program.
    """
    st = require_hypothesis().strategies
    values = [tensor(x, requires_grad=True) for x in point.values()]
    steps: list[DrawnStep] = []
    usable: list[Op] = []
    for _ in range(depth):
        shapes = tuple(tuple(v.shape) for v in values)
        usable = [op for op in ops if _operands(op, shapes)]
        if not usable:
            raise ValueError(f"programs: none of the ops fits inputs of the shapes {', '.join(map(str, shapes))}")
        at = draw(st.integers(0, len(ops) - 1))
        op = next(op for op in (*ops[at:], *ops) if op in usable)
        every = _operands(op, shapes)
        latest = [operands for operands in every if len(values) - 1 in operands] if draw(st.integers(0, 7)) < 7 and steps else []
        step, value = _draw_step(draw, op, draw(st.sampled_from(latest or every)), values)
        if value is not None:
            steps.append(step)
            values.append(value)
        if fewer and not draw(st.integers(0, 3)):
            break
    if not steps:  # for instance if every op has a kink at every input
        for op, operands in ((each, operands) for each in usable for operands in _operands(each, shapes)):
            step, value = _draw_step(draw, op, operands, values)
            if value is not None:
                break
        steps = [step]
    return DrawnProgram(point, _live_steps(steps, len(point)))


@functools.lru_cache(10000)
def _operands(op: Op, shapes: tuple[Shape, ...]) -> tuple[tuple[int, ...], ...]:
    return tuple(chosen for chosen in itertools.product(range(len(shapes)), repeat=op.arity or 2) if fits(op, [shapes[i] for i in chosen]))


def _draw_step(draw: Any, op: Op, operands: Sequence[int], values: Sequence[Tensor]) -> tuple[DrawnStep, Tensor | None]:
    """An op with drawn parameters, applied to values mapped into its domains, and once more to small ones if the result cannot be used.

    The value is None if neither can be used.
    """
    further, domains = draw(parameters(op, [tuple(values[i].shape) for i in operands])), op.domain or (REAL,)
    guards = [guard_for(domains[min(k, len(domains) - 1)]) or "" for k in range(len(operands))]
    for small in (False, True):
        step = DrawnStep(op.name, tuple(DrawnOperand(i, guard or ("small" if small else "")) for i, guard in zip(operands, guards)), further)
        with np.errstate(all="ignore"):
            value = step(values)
            found, node = value._value, value._node
            finite = np.isfinite(found).all() and np.max(np.abs(found), initial=0.0) <= MAX_VALUE
            if finite and node is not None and next(switches(node, MIN_KINK_DISTANCE), None) is None:
                return step, value
    return step, None


def _live_steps(steps: Sequence[DrawnStep], inputs: int) -> tuple[DrawnStep, ...]:
    needed = {len(steps) - 1}
    for k in range(len(steps) - 1, -1, -1):
        if k in needed:
            needed |= {o.value - inputs for o in steps[k].operands if o.value >= inputs}
    places = {k: inputs + n for n, k in enumerate(sorted(needed))}

    def moved(step: DrawnStep) -> DrawnStep:
        operands = [DrawnOperand(places[o.value - inputs] if o.value >= inputs else o.value, o.guard) for o in step.operands]
        return DrawnStep(step.op, tuple(operands), step.parameters)

    return tuple(moved(steps[k]) for k in sorted(needed))
