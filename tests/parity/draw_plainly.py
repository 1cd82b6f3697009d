"""Draws the next step of an eager program as a careless programmer writes it: any tensor for any step, and arguments that do not fit.

Where `draw` keeps away from what the libraries do differently, this does not: `.data` is set after tensors were saved, sizes change in place below
views, scatters have wrong indices, and variances are those of one element. What may differ stands in `aliases`.
"""

from __future__ import annotations

import math
from typing import Any

from .asked import fills, least, memory, nested, size
from .draw import Drawer
from .steps import Array, Ref, Step

UNARY = ["exp", "sin", "tanh", "sigmoid", "neg", "square", "sqrt", "reciprocal", "clone", "abs", "log"]
BINARY = ["add", "sub", "mul", "div"]
SHAPES = [(), (1,), (2,), (3,), (2, 2), (2, 3), (3, 1), (1, 3), (1, 1), (2, 1, 2)]
MODES = ["no_grad", "enable_grad", "inference_mode", "inference_mode + enable_grad", "grad off", "inference off"]
MOST = 10


class Plainly(Drawer):
    """A source of careless steps; what is not drawn in another way here is drawn as by `Drawer`."""

    def __init__(self, random: Any, world: Any, without: frozenset[str] = frozenset(), start: int = 0):
        super().__init__(random, world, without, start)
        self.mixed = self.chance(0.15) and "types" not in without
        families = [(7, self.leaf), (10, self.unary), (10, self.binary), (5, self.reduction), (4, self.variance), (3, self.product), (14, self.view),
                    (9, self.written_to), (4, self.assigned), (5, self.turned), (3, self.requires_grad_), (2, self.detached_), (3, self.retain_grad),
                    (3, self.data), (2, self.set_data), (9, self.scattered), (8, self.backward), (5, self.grad), (5, self.second), (2, self.clear),
                    (2, self.grad_of), (2, self.delete)]
        self.families = [(weight, draw) for weight, draw in families if draw.__name__ not in without]
        self.total = sum(weight for weight, _ in self.families)

    def step(self) -> Step:
        if len(self.world.tensors) < 2:
            return self.leaf()
        large, _ = self.any(lambda t: size(t) > 30)
        if (large is not None or len(self.world.tensors) > MOST) and (step := self.delete(large)) is not None:
            return step
        return self.weighted()

    def some(self, test: Any = None) -> tuple[Any, Any]:
        """A tensor, whatever it is: one that passes the test if there is one."""
        a, t = self.any(test)
        return self.any() if a is None else (a, t)

    def mode(self) -> str:
        """A mode around a step, or none."""
        return self.random.choice(MODES) if self.moded and self.chance(0.25) else "no_grad" if self.chance(0.05) else ""

    def saving(self, t: Any, b: Any = None) -> str:
        return self.mode()

    def axis(self, t: Any) -> int:
        """A dimension, now and then one too many."""
        return self.random.randrange(-t.dim(), t.dim() + self.chance(0.03)) if t.dim() else self.random.choice([0, -1])

    # Steps

    def beside(self, t: Any) -> Any:
        """A number or a tensor, mostly one of a shape that goes with that of `t`."""
        if self.chance(0.3):
            return self.number()
        return self.some(lambda s: s.shape == t.shape or not s.dim() or self.chance(0.1))[0]

    def by(self, word: str, a: Any, b: Any) -> tuple[str, tuple]:
        """The word and its operands; a division by nearly nothing is a product."""
        small = isinstance(b, Ref) and least(self.world.tensors[b.name]) < 0.1
        return word.replace("div", "mul") if small else word, (a, b)

    def reduction(self) -> Step:
        a, t = self.some()
        args = (a, self.axis(t)) if self.chance(0.5) else (a,)
        options = (("keepdim", True),) if len(args) > 1 and self.chance(0.3) else ()
        return Step("call", self.random.choice(["sum", "mean", "prod", "amax"]), args, self.fresh(), options, self.mode())

    def variance(self) -> Step:
        """Mostly along dimensions of one element, whose variance is that of nothing."""
        a, t = self.some(lambda t: t.numel() == 1 or 1 in t.shape)
        args = (a, next((i for i, n in enumerate(t.shape) if n == 1), 0)) if t.dim() and self.chance(0.6) else (a,)
        options: tuple = (("correction", 2 if self.chance(0.05) else 0),)
        return Step("call", "var", args, self.fresh(), options, self.mode())

    def view(self) -> Step:
        a, t = self.some()
        word = self.random.choice(["unsqueeze", "squeeze", "t", "transpose", "select", "narrow", "expand", "reshape", "view", "detach", "diagonal",
                                   "item", "flatten", "view_as", "unbind"])
        dim = self.axis(t)
        if word == "item":
            return Step("item", "", (a, self.random.choice([0, -1, None, Ellipsis, slice(0, 1), (Ellipsis, 0), slice(None, None, 2)])), self.fresh(),
                        mode=self.mode())
        args: tuple = {"unsqueeze": (self.random.choice([0, -1]),), "transpose": (dim, self.axis(t)), "select": (dim, self.random.choice([0, -1])),
                       "narrow": (dim, 0, 1), "expand": ((2, *t.shape),), "reshape": ((-1,),), "view": (self.shape_of(t.numel()),),
                       "squeeze": (dim,) if self.chance(0.5) else (), "view_as": (self.some(lambda s: s.numel() == t.numel())[0],),
                       "unbind": (dim,)}.get(word, ())
        return Step("call", word, (a, *args), self.fresh(2 if word == "unbind" else 1), mode=self.mode())

    def shape_of(self, count: int) -> tuple[int, ...]:
        first = self.random.choice([n for n in range(1, max(count, 1) + 1) if not count % n])
        return self.random.choice([(count,), (-1,), (first, count // first), (first, -1), (1, count)])

    def written_to(self) -> Step:
        word = self.random.choice(["add_", "mul_", "sub_", "copy_", "zero_", "exp_", "fill_", "tanh_", "neg_", "square_", "div_", "clamp_"])
        a, t = self.some(lambda t: size(t) < 3)
        args: tuple = (self.beside(t),) if word in ("add_", "mul_", "sub_", "copy_", "div_") else ()
        args = (self.number(),) if word == "fill_" else self.bounds() if word == "clamp_" else args
        if word == "copy_" and not isinstance(args[0], Ref):
            args = (self.some()[0],)
        if args and isinstance(args[0], Ref) and not fills(t, self.world.tensors[args[0].name]):
            args = (self.number(),) if word != "copy_" else (a,)
        word, args = (word, (a, *args)) if word != "div_" else self.by(word, a, args[0])
        return Step("call", word, args, mode=self.mode())

    def assigned(self) -> Step:
        a, t = self.some()
        index = self.random.choice([0, -1, Ellipsis, slice(0, 1), (Ellipsis, 0), slice(None)])
        b, s = self.some(lambda s: s.dim() < t.dim() or s.shape == t.shape)
        value = self.number() if self.chance(0.5) or not fills(t, s) else b
        return Step("assign", "", (a, index, value), mode=self.mode())

    def turned(self) -> Step:
        """A change of sizes in place, of bases and views alike."""
        a, t = self.some()
        word = self.random.choice(["t_", "transpose_", "unsqueeze_", "squeeze_", "swapaxes_"])
        args: tuple = {"transpose_": (self.axis(t), self.axis(t)), "swapaxes_": (self.axis(t), self.axis(t)),
                       "unsqueeze_": (self.random.choice([0, -1]),), "squeeze_": (self.axis(t),) if self.chance(0.5) else ()}.get(word, ())
        return Step("call", word, (a, *args), mode=self.mode())

    def requires_grad_(self) -> Step:
        return Step("call", "requires_grad_", (self.some()[0], *((False,) if self.chance(0.3) else ())), mode=self.mode())

    def detached_(self) -> Step:
        return Step("call", "detach_", (self.some()[0],), mode=self.mode())

    def data(self) -> Step | None:
        a, _ = self.any(lambda t: not t.is_inference())  # of which it is an ordinary tensor here
        return None if a is None else Step("attribute", "data", (a,), self.fresh())

    def set_data(self) -> Step | None:
        """Any tensor gets the data of another, mostly of its own shape; torch takes the flag of an inference tensor over with the data."""
        a, t = self.some()
        b, _ = self.any(lambda s: s is not t and s.is_inference() == t.is_inference() and (s.shape == t.shape or self.chance(0.2)))
        return None if b is None else Step("set", "data", (a, b))

    def scattered(self) -> Step | None:
        """A scatter with an index that may have another shape or dtype, or be out of range; a source, or a number."""
        a, t = self.any(lambda t: t.dim() and not (t.is_inference() and t.requires_grad))  # a constant here, as in torch without an index
        if a is None:
            return None
        dim, shape = self.axis(t), list(t.shape)
        if shape and self.chance(0.25):
            shape[self.random.randrange(len(shape))] += self.random.choice([-1, 1])
        if self.chance(0.1):
            shape = [*shape, 1] if self.chance(0.5) else shape[1:]
        shape = tuple(max(n, 0) for n in shape)
        most = t.shape[dim] if t.dim() and -t.dim() <= dim < t.dim() else 1
        count = math.prod(shape)
        values = [self.random.randrange(most) if most else 0 for _ in range(count)]
        if count and self.chance(0.08):
            values[0] = self.random.choice([most, -1, most + 3])
        index = Array(nested(values, shape) if count else (), self.random.choice(["int64"] * 12 + ["int32", "float64", "bool", "uint8"]))
        word = self.random.choice(["scatter", "scatter", "scatter_add", "gather", "index_select", "index_add", "index_copy", "index_fill",
                                   "scatter_reduce"])
        b, _ = self.any(lambda s: s.shape == t.shape and (memory(s) != memory(t) or self.chance(0.1)))
        source: Any = self.constant(shape) if b is None or self.chance(0.3) else b
        if word == "scatter" and self.chance(0.3):
            source = self.number()
        if word == "scatter_reduce" and shape != tuple(t.shape):
            word = "scatter"  # of a source that is larger than the index torch has no gradient
        options: tuple = (("reduce", self.random.choice(["add", "multiply", "sum"])),) if word == "scatter" and self.chance(0.15) else ()
        if word == "scatter_reduce":
            options = (("reduce", self.random.choice(["sum", "mean", "prod", "amax"])),)
        if word in ("index_select", "index_add", "index_copy", "index_fill"):
            index = Array(tuple(values[:2]), index.dtype)
        args: tuple = {"gather": (dim, index), "index_select": (dim, index), "index_fill": (dim, index, self.number())}.get(
            word, (dim, index, source))
        if word not in ("gather", "index_select") and self.chance(0.6):
            return Step("call", f"{word}_", (a, *args), (), options, self.mode())
        return Step("call", word, (a, *args), self.fresh(), options, self.mode())

    def delete(self, wanted: Any = None) -> Step | None:
        """Leaves that require grad stay, which torch's graph keeps alive."""
        names = [n for n, t in self.world.tensors.items() if t._is_view() and not t.requires_grad or not t._is_view() and not (
            n in self.world.variables or t.is_leaf and memory(t) in self.world.recorded)]
        if wanted is not None and wanted.name in names:
            return Step("delete", "", (wanted,))
        return Step("delete", "", (Ref(self.random.choice(names)),)) if names else None
