"""Draws the next step of a program over aliased tensors, from the state the program has reached in torch."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from typing import Any

from .asked import fills, fits_in, has_grad, memory, nested, size, tame, unordered
from .draw_graphs import Graphs
from .draw_values import Values
from .steps import UNCOPIED, Array, Ref, Step, World

UNARY = ["exp", "sin", "cos", "tanh", "sigmoid", "relu", "neg", "square", "abs", "sqrt", "reciprocal", "clone"]
UNARY_ = ["exp_", "sin_", "cos_", "tanh_", "sigmoid_", "relu_", "neg_", "square_", "abs_", "sqrt_", "reciprocal_", "zero_"]
BINARY = ["add", "sub", "mul", "div"]
VIEWS = ["item", "item", "item", "view", "reshape", "t", "transpose", "permute", "expand", "unsqueeze", "squeeze", "diagonal", "select", "narrow",
         "detach", "as_strided", "view_as", "flatten", "T", "swapaxes", "movedim", "expand_as", "squeeze_dim"]
SHAPES = [(), (1,), (2,), (3,), (4,), (2, 2), (2, 3), (3, 1), (1, 3), (2, 1, 2), (2, 2, 2)]
MOST = 12  # tensors alive at once


class Drawer(Graphs, Values):
    """A source of steps."""

    def __init__(self, random: Any, world: World, without: frozenset[str] = frozenset(), start: int = 0):
        super().__init__(random, world, without, start)
        families = [(7, self.leaf), (10, self.unary), (12, self.binary), (5, self.reduction), (3, self.product), (3, self.joined), (24, self.view),
                    (4, self.several), (10, self.unary_), (13, self.binary_), (11, self.assign), (5, self.augment), (3, self.requires_grad_),
                    (2, self.detach_), (6, self.retain_grad), (5, self.hook), (1, self.node_hook), (1, self.hook_of_several), (1, self.remove),
                    (2, self.data), (3, self.grad_of), (2, self.clear), (1, self.set_data), (9, self.backward), (4, self.grad), (3, self.grads),
                    (1, self.grad_batched), (1, self.edge), (2, self.second), (3, self.delete), (4, self.custom), (4, self.reduced),
                    (3, self.scanned), (3, self.sorted), (4, self.indexed), (3, self.scattered), (4, self.scattered_), (2, self.copied),
                    (2, self.view_scattered), (2, self.into_out), (2, self.turned_), (2, self.typed), (1, self.compared)]
        self.families = [(weight, draw) for weight, draw in families if draw.__name__ not in without]
        self.total = sum(weight for weight, _ in self.families)

    def step(self) -> Step:
        tensors = self.world.tensors
        if len(tensors) < 2:
            return self.leaf()
        if len(tensors) > MOST and (step := self.delete()) is not None:
            return step
        step = self.weighted()
        return replace(step, mode="") if step.writes() and UNCOPIED & set(step.mode.split(" + ")) else step

    # Steps

    def leaf(self) -> Step:
        dtype = self.dtype()
        grad = self.chance(0.55 if dtype in ("", "float32", "complex128") else 0.05)
        return Step("leaf", dtype, (self.constant(self.random.choice(SHAPES), dtype).values,), self.fresh(), (("requires_grad", grad),))

    def unary(self) -> Step | None:
        word = self.random.choice(UNARY)
        a, t = self.any(lambda t: tame(word, t))
        if a is None:
            return None
        if self.chance(0.15):
            return Step("call", "clamp", (a, *self.bounds()), self.fresh(), mode=self.mode())
        if self.chance(0.15) and size(t) < 4:
            return Step("call", "pow", (a, self.random.choice([2, 3])), self.fresh(), mode=self.mode())
        return Step("call", word, (a,), self.fresh(), mode=self.saving(t))

    def binary(self) -> Step | None:
        word = self.random.choice(BINARY)
        a, t = self.any(lambda t: size(t) < 20)
        if a is None:
            return None
        b = self.other(t, word)
        return Step("call", word, (a, b), self.fresh(), mode=self.saving(t, b))

    def reduction(self) -> Step | None:
        a, t = self.any(lambda t: t.numel())
        if a is None:
            return None
        args: tuple = (a,)
        options: tuple = ()
        if t.dim() and self.chance(0.5):
            args += (self.random.randrange(t.dim()),)
            options = (("keepdim", True),) if self.chance(0.3) else ()
        word = self.random.choice(["sum", "sum", "mean", "prod"]) if size(t) < 3 else "mean"
        return Step("call", word, args, self.fresh(), options, self.mode())

    def product(self) -> Step | None:
        a, t = self.any(lambda t: t.dim() in (1, 2) and size(t) < 10)
        if a is None:
            return None
        b, _ = self.any(lambda s: s.dim() in (1, 2) and s.shape[0] == t.shape[-1] and size(s) < 10)
        return None if b is None else Step("call", "matmul", (a, b), self.fresh(), mode=self.mode())

    def joined(self) -> Step | None:
        a, t = self.any(lambda t: t.dim() and t.numel() < 12)
        if a is None:
            return None
        b, _ = self.any(lambda s: s.shape == t.shape)
        word = self.random.choice(["cat"] if t.is_inference() else ["cat", "stack"])  # there torch's stack is a view of a new tensor
        return Step("function", word, ([a, b], self.random.randrange(t.dim())), self.fresh(), mode=self.mode())

    def view(self) -> Step | None:
        a, t = self.any(lambda t: t.numel() <= 24)
        if a is None:
            return None
        d, out, mode = t.dim(), self.fresh(), self.mode()
        dim = self.random.randrange(d) if d else 0
        word = self.random.choice(VIEWS)
        if word == "item":
            return Step("item", "", (a, self.basic_index(t)), out, mode=mode)
        args: tuple | None = None
        if word in ("view", "reshape"):
            args = (a, self.shape_of(t.numel()))
        elif word in ("t", "T"):
            args = (a,) if d == 2 or (word == "t" and d < 2) else None
        elif word in ("transpose", "swapaxes", "movedim"):
            args = (a, dim, self.random.randrange(-d, d)) if d else None
        elif word == "permute":
            order = list(range(d))
            for i in range(d):
                j = self.random.randrange(i, d)
                order[i], order[j] = order[j], order[i]
            args = (a, tuple(order))
        elif word == "expand":
            sizes = [self.random.choice([1, 2, 3]) if n == 1 else self.random.choice([n, -1]) for n in t.shape]
            args = (a, tuple(([2] if self.chance(0.4) and t.numel() < 9 else []) + sizes)) if d or self.chance(0.5) else None
            if args and not args[1]:
                args = (a, (2,))
        elif word == "unsqueeze":
            args = (a, self.random.randrange(-d - 1, d + 1)) if d < 3 else None
        elif word in ("squeeze", "detach", "flatten"):
            args = (a,)
        elif word == "squeeze_dim":
            word, args = "squeeze", (a, dim) if d else None
        elif word == "diagonal":
            args = (a, self.random.choice([0, 0, 1]), *(self.random.choice([(0, 1), (1, 0)]) if d == 2 else ())) if d > 1 else None
        elif word == "select":
            args = (a, dim, self.random.randrange(t.shape[dim])) if d and t.shape[dim] else None
        elif word == "narrow":
            if d and t.shape[dim]:
                start = self.random.randrange(t.shape[dim])
                args = (a, dim, start, 1 + self.random.randrange(t.shape[dim] - start))
        elif word in ("view_as", "expand_as"):
            b, _ = self.any(lambda s: s.numel() == t.numel() if word == "view_as" else fits_in(t.shape, s.shape))
            args = (a, b)
        elif word == "as_strided":
            args = self.strided(a, t)
        if args is None:
            return None
        return Step("attribute" if word == "T" else "call", word, args, out, mode=mode)

    def strided(self, a: Ref, t: Any) -> tuple | None:
        room = t.untyped_storage().nbytes() // t.element_size()
        if not room or not t.is_contiguous() or t.numel() < 2 or self.chance(0.5):
            return None
        start = self.random.randrange(room)
        rows = 1 + self.random.randrange(2)
        step = 1 + self.random.randrange(2)
        count = 1 + (room - start - 1) // step
        if count < 2 * rows:
            return a, (count,), (step,), start
        return a, (rows, count // rows), (step * (count // rows), step), start

    def shape_of(self, count: int) -> tuple[int, ...]:
        factors = [k for k in range(1, count + 1) if count % k == 0]
        shapes = [s for n in (1, 2, 3) for s in itertools.product(factors, repeat=n) if math.prod(s) == count] or [(count,)]
        shape = list(self.random.choice(shapes + [()] * (count == 1)))
        if shape and count and self.chance(0.25):
            shape[self.random.randrange(len(shape))] = -1
        return tuple(shape)

    def basic_index(self, t: Any) -> Any:
        """An index that makes a view: integers, slices, an ellipsis, a new axis."""
        if not t.dim():
            return self.random.choice([Ellipsis, (), None])
        if self.chance(0.1):
            return self.random.choice([Ellipsis, None, (Ellipsis, None), (Ellipsis, slice(0, 1))])
        parts = []
        for n in t.shape[: 1 + self.random.randrange(t.dim())]:
            if n and self.chance(0.45):
                parts.append(self.random.randrange(-n, n))
            elif self.chance(0.3):
                parts.append(slice(None))
            else:
                start = self.random.randrange(n + 1)
                parts.append(slice(start, start + self.random.randrange(n + 1 - start) + 1, self.random.choice([None, None, 2])))
        return parts[0] if len(parts) == 1 else tuple(parts)

    def several(self) -> Step | None:
        a, t = self.any(lambda t: t.dim())
        if a is None:
            return None
        word, dim = self.random.choice(["unbind", "split", "chunk", "split_sizes", "tensor_split"]), self.random.randrange(t.dim())
        n = t.shape[dim]
        args: Any = {"unbind": (a, dim), "split": (a, 1 + self.random.randrange(2), dim), "chunk": (a, 1 + self.random.randrange(3), dim),
                     "split_sizes": (a, [n - n // 2, n // 2], dim), "tensor_split": (a, 2, dim)}[word]
        return Step("call", "split" if word == "split_sizes" else word, args, self.fresh(2), mode=self.mode()) if n else None

    def unary_(self) -> Step | None:
        word = self.random.choice(UNARY_)
        a, t = self.written(lambda t: tame(word, t))
        if a is None:
            return None
        if self.chance(0.1):
            return Step("call", "clamp_", (a, *self.bounds()), mode=self.mode())
        if self.chance(0.1):
            return Step("call", "fill_", (a, float(self.number())), mode=self.mode())
        if self.chance(0.1) and size(t) < 4:
            return Step("call", "pow_", (a, self.random.choice([2, 3])), mode=self.mode())
        return Step("call", word, (a,), mode=self.mode())

    def binary_(self) -> Step | None:
        word = self.random.choice(["add_", "sub_", "mul_", "div_", "copy_", "fill_"])
        a, t = self.written(lambda t: size(t) < 20)
        if a is None:
            return None
        if word == "fill_":
            b, _ = self.any(lambda s: not s.dim() and fills(t, s))
            return None if b is None else Step("call", word, (a, b), mode=self.mode())
        b = self.other(t, word, within=True)
        if word == "copy_" and not isinstance(b, Ref):
            b = self.constant(tuple(t.shape))
        options = (("alpha", 2),) if word in ("add_", "sub_") and self.chance(0.1) else ()
        return Step("call", word, (a, b), (), options, self.mode())

    def assign(self) -> Step | None:
        a, t = self.written(lambda t: t._is_view() or not (t.retains_grad and t.output_nr))  # as of the bases of other views
        if a is None:
            return None
        kind = self.random.choice(["basic", "basic", "mask", "array"])
        if kind == "mask" and 0 < t.numel() <= 12:
            index: Any = Array(nested([self.chance(0.5) for _ in range(t.numel())], tuple(t.shape)))
            return Step("assign", "", (a, index, self.number()), mode=self.mode())
        if kind == "array" and t.dim() and t.shape[0]:
            index = Array(tuple(self.random.randrange(t.shape[0]) for _ in range(1 + self.random.randrange(2))))
            distinct = len(set(index.values)) == len(index.values)  # which of two writes to one place is the last is nobody's promise
            return Step("assign", "", (a, index, self.assigned(t.detach()[list(index.values)], t, distinct)), mode=self.mode())
        basic = self.basic_index(t)
        piece = t.detach()[basic]
        return Step("assign", "", (a, basic, self.assigned(piece, piece)), mode=self.mode())

    def assigned(self, like: Any, t: Any, distinct: bool = True) -> Any:
        """A value for a piece of `t` that is of a shape like this."""
        fits = distinct and self.chance(0.55)
        b, _ = self.any(lambda s: fits and fits_in(s.shape, like.shape) and not unordered(s, t) and fills(t, s))
        return self.number() if b is None else b

    def augment(self) -> Step | None:
        word = self.random.choice(["iadd", "isub", "imul", "itruediv"])
        a, t = self.written(lambda t: size(t) < 20)
        return None if a is None else Step("augment", word, (a, self.other(t, word, within=True)), mode=self.mode())

    def requires_grad_(self) -> Step:
        a, _ = self.any()
        return Step("call", "requires_grad_", (a,) if self.chance(0.7) else (a, False))

    def detach_(self) -> Step:
        return Step("call", "detach_", (self.any(lambda t: self.chance(0.1) or not t._is_view())[0] or self.any()[0],))

    def retain_grad(self) -> Step:
        return Step("call", "retain_grad", (self.tracked(),))

    def remove(self) -> Step | None:
        return Step("remove", self.random.choice(sorted(self.world.handles))) if self.world.handles else None

    def data(self) -> Step:
        return Step("attribute", "data", (self.any(lambda t: not t.is_inference())[0] or self.any()[0],), self.fresh())

    def grad_of(self) -> Step | None:
        a, _ = self.any(lambda t: has_grad(t) and not t.grad.requires_grad)
        return None if a is None else Step("attribute", "grad", (a,), self.fresh())

    def clear(self) -> Step | None:
        a, _ = self.any(has_grad)
        return None if a is None else Step("set", "grad", (a, None))

    def set_data(self) -> Step | None:
        bases = [t._base for t in self.world.tensors.values()]

        def alone(t: Any) -> bool:
            return not t._is_view() and all(t is not base for base in bases) and memory(t) not in self.world.recorded

        a, t = self.any(lambda t: not t.is_inference() and alone(t))
        if a is None:
            return None
        b, _ = self.any(lambda s: s is not t and s.shape == t.shape and s.dtype == t.dtype and not s.is_inference())
        return None if b is None else Step("set", "data", (a, b))

    def second(self) -> Step | None:
        a, t = self.any(lambda t: t.requires_grad and size(t) < 4)
        b, _ = self.any(lambda t: t.requires_grad and not self.piece(t))
        return None if a is None or b is None else Step("second", "", (a, b), self.fresh())

    def delete(self) -> Step | None:
        """Leaves that require grad stay: torch's graph keeps them alive, where here a leaf nobody holds receives no gradient.

        So do those that did, whose graphs tell what they have become.
        """
        names = [n for n, t in self.world.tensors.items() if t._is_view() and not t.requires_grad or not t._is_view() and not (
            n in self.world.variables or t.is_leaf and memory(t) in self.world.recorded)]
        return Step("delete", "", (Ref(self.random.choice(names)),)) if names else None
