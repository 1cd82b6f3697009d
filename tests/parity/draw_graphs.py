"""Drawn steps about graphs: hooks, passes, gradients of gradients, and custom Functions."""

from __future__ import annotations

from typing import Any

from .asked import dtype_name, memory, size
from .choices import Choices, plain
from .step_hooks import NODE_HOOKS, TENSOR_HOOKS
from .steps import PASSES, Array, Edge, Ref, Step, watches

GOOD = ["", "", "double", "double", "post", "sine", "cut", "once", "more"]
ONE = ["Triple", "Triple", "Squared", "Exponential", "Dirty", "Same", "Viewed", "Once", "Nothing"]
BAD = ["WrongCount", "WrongShape", "WrongObject", "Fails", "NoTensor"]
TWO = ["Two", "TwoUndefined", "Constant"]


class Graphs(Choices):
    """Steps that make, use and change graphs."""

    def weighted(self) -> Step:
        """A step of a family, which is drawn by its weight."""
        while True:
            at = self.random.randrange(self.total)
            for weight, draw in self.families:
                at -= weight
                if at < 0:
                    step = draw()
                    break
            if step is not None and step.word not in self.without and not self.shows_slopes(step):
                return step

    def shows_slopes(self, step: Step) -> bool:
        """Whether cotangents of results of ops in SLOPED are shown in a second pass."""
        world = self.world
        twice = world.twice or step.form == "second" or bool(dict(step.options).get("create_graph"))
        watched = world.watched | watches(step)
        if world.twice and step.form in PASSES:
            watched |= Step("", "", (step.args[1:], dict(step.options).get("inputs"))).needs()
        return twice and not watched.isdisjoint(world.sloped | world.slopes(step))

    def hook(self) -> Step | None:
        word = self.random.choice(GOOD if self.chance(0.9) else list(TENSOR_HOOKS))
        a = self.tracked()
        if a.name in self.world.turned:
            return None  # torch keeps hooks at the former node, the new ones, too
        return Step("hook", word, (a,), (), (("name", f"h{next(self.hooks)}"),))

    def node_hook(self) -> Step | None:
        # Not of one operation in both libraries: a write with its operation, a product of a vector, a source without gaps, a copy of a view.
        # Of a list of tensors torch computes the gradients that nobody receives, too.
        apart = ("CopySlices", "SqueezeBackward4", "MaskedScatterBackward0", "CatBackward0", "StackBackward0")
        a, _ = self.any(lambda t: not t._is_view() and t.grad_fn is not None and not self.piece(t) and (
            type(t.grad_fn).__name__ not in apart and not type(t.grad_fn).__name__.endswith("_copy")))
        word = self.random.choice(["", "double", "pre", "pre double"] if self.chance(0.7) else list(NODE_HOOKS))
        return None if a is None else Step("node", word, (a,), (), (("name", f"h{next(self.hooks)}"),))

    def hook_of_several(self) -> Step | None:
        """A hook on several results; of leaves torch supports it in `backward` only, and of outputs of one call the first that comes may be None."""
        found = [self.any(lambda t: not t._is_view() and t.grad_fn is not None and not self.piece(t))[0] for _ in range(1 + self.random.randrange(3))]
        refs = tuple(dict.fromkeys(a for a in found if a is not None))
        return None if not refs else Step("several", self.random.choice(["all", "any"]), refs, (), (("name", f"h{next(self.hooks)}"),))

    def custom(self) -> Step | None:
        def fair(t: Any) -> bool:
            """Torch's process ends in a pass to a leaf that a Function wrote after it had left the graph."""
            return plain(t) and (t._is_view() or t.grad_fn is not None or memory(t) not in self.world.recorded)

        mode = self.mode().removesuffix(" + enable_grad").removesuffix(" + grad on")  # recording in inference mode is no use
        if self.chance(0.2):
            a, t = self.written(lambda t: fair(t) and not t._is_view())
            b, _ = self.any(lambda s: t is not None and s.shape == t.shape and s.dtype == t.dtype and s is not t)
            if b is None:
                return None
            return Step("custom", "DirtyOfTwo", (a, b), self.fresh(2), mode=mode)
        if self.chance(0.1):
            a, t = self.any(plain)
            b, _ = self.any(lambda s: t is not None and s.shape == t.shape and s.dtype == t.dtype)
            return None if b is None else Step("custom", "NoGradient", (a, b), self.fresh(), mode=mode)
        word = self.random.choice(TWO if self.chance(0.25) else ONE if self.chance(0.92) else BAD)
        a, t = (self.written if word == "Dirty" else self.any)(
            lambda t: (fair(t) if word == "Dirty" else plain(t)) and t.numel() and size(t) < 3)
        if a is None:
            return None
        if self.chance(0.05):
            return Step("custom", "Scaled", (a, self.number()), self.fresh(), mode=mode)
        return Step("custom", word, (a,), self.fresh(2 if word in TWO else 1), mode=mode)

    def pass_mode(self) -> str:
        """The modes around a pass; in inference mode torch's gradients are inference tensors, to which it cannot add later."""
        mode = self.mode() if self.chance(0.3) else ""
        return "" if "inference" in mode else mode

    def backward(self) -> Step:
        a = self.tracked()
        options: tuple = (("retain_graph", True),) if self.chance(0.5) else ()
        if self.chance(0.08):
            options += (("create_graph", True),)
        if self.chance(0.08) and not self.world.several:
            options += (("inputs", ends),) if (ends := self.ends()) else ()
        if self.chance(0.5) or self.world.several:  # torch does not call a hook of several tensors if one of them is an end of the pass
            return Step("backward", "sum", (a,), (), options, self.pass_mode())
        return Step("backward", "", (a,) if self.chance(0.1) else (a, self.weights(a)), (), options, self.pass_mode())

    def weights(self, a: Ref) -> Array:
        """A gradient for a tensor, now and then of another shape or dtype."""
        t = self.world.tensors[a.name]
        shape = (2, *t.shape) if self.chance(0.02) else tuple(t.shape)
        dtype = self.dtype() if self.chance(0.05) else dtype_name(t)
        return self.constant(shape, dtype)

    def ends(self) -> list[Ref]:
        """Leaves, or results of simple operations: torch calls the backward of an input itself, too, which only hooks and saved tensors show."""
        simple = () if self.world.handles else ("AddBackward0", "SubBackward0", "CloneBackward0", "CatBackward0", "NegBackward0")
        found = [self.any(lambda t: not t._is_view() and t.requires_grad and (t.is_leaf or type(t.grad_fn).__name__ in simple))[0] for _ in range(2)]
        return list(dict.fromkeys(a for a in found if a is not None))

    def inputs(self) -> list[Ref]:
        """One or two tensors that are the only outputs of their operations: torch takes a path to one output for a path to all."""
        found = [self.any(lambda t: t.requires_grad and not self.piece(t))[0] for _ in range(1 + self.random.randrange(2))]
        return list(dict.fromkeys(a for a in found if a is not None)) or [self.tracked()]

    def piece(self, t: Any) -> bool:
        return any(self.world.tensors.get(name) is t for name in self.world.pieces)

    def grad(self) -> Step | None:
        a, _ = self.any(lambda t: t.requires_grad)
        b, _ = self.any(lambda t: t.requires_grad and not self.piece(t))
        options = (("retain_graph", True),) if self.chance(0.5) else ()
        return None if a is None or b is None or self.world.several else Step("grad", "", (a, b), self.fresh(), options, self.pass_mode())

    def grads(self) -> Step | None:
        """Gradients of several outputs by several inputs or edges, with any of the options; torch forgets the inputs among the tensors of a hook."""
        if self.world.several:
            return None
        outputs, inputs = self.inputs(), self.inputs()
        options: tuple = (("grad_outputs", [self.weights(a) for a in outputs]),) if self.chance(0.8) else ()
        for word, value, p in (("retain_graph", True, 0.5), ("create_graph", True, 0.3), ("materialize_grads", True, 0.2),
                               ("allow_unused", False, 0.1)):
            if self.chance(p):
                options += ((word, value),)
        by = [Edge(b.name) if self.chance(0.15) else b for b in inputs]
        return Step("grad", "grads", (outputs, by), self.fresh(len(inputs)), options, self.pass_mode())

    def grad_batched(self) -> Step | None:
        if self.world.handles or any(t.retains_grad for t in self.world.tensors.values()):
            return None  # torch shows its batched tensors to hooks, and leaves them in `.grad`
        a, t = self.any(lambda t: t.requires_grad and t.dim() < 3)
        b, _ = self.any(lambda t: t.requires_grad and not self.piece(t))
        if a is None or b is None:
            return None
        weights = self.constant((2, *t.shape), dtype_name(t))
        options = (("grad_outputs", weights), ("is_grads_batched", True)) + ((("retain_graph", True),) if self.chance(0.7) else ())
        return Step("grad", "batched", (a, b), self.fresh(), options)

    def edge(self) -> Step | None:
        if self.world.several:
            return None
        a = self.tracked()
        return Step("edge", "", (Edge(a.name), self.weights(a)), (), (("retain_graph", True),) if self.chance(0.5) else ())
