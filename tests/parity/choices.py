"""The small choices of which drawn steps of programs over aliased tensors are made."""

from __future__ import annotations

import itertools
from typing import Any

from tests.parity.steps import MODES, SAVING

from .asked import fills, fits_in, fits_with, least, size, unordered
from .steps import Array, Ref, World

NUMBERS = [-2.0, -1.5, -1.0, -0.5, 0.25, 0.5, 0.75, 1.0, 1.25, 1.5, 2.0, 3]

DTYPES = ["", "float32", "complex128", "int64", "int32", "bool"]
OTHER = [mode for mode in MODES if mode not in SAVING]
COMMON = ["no_grad", "enable_grad", "inference_mode", "grad off", "cloned", "saved"]


def plain(t: Any) -> bool:
    """Whether the elements are real numbers that have derivatives."""
    return t.dtype.is_floating_point


class Choices:
    """A source of choices, made by `random`, a `random.Random`."""

    def __init__(self, random: Any, world: World, without: frozenset[str] = frozenset(), start: int = 0):
        self.random, self.world, self.names, self.hooks, self.without = random, world, itertools.count(start), itertools.count(start), without
        self.mixed, self.moded = self.chance(0.4) and "types" not in without, self.chance(0.5) and "modes" not in without

    def chance(self, p: float) -> bool:
        return self.random.random() < p

    def any(self, test: Any = None) -> tuple[Ref, Any] | tuple[None, None]:
        """One tensor of the program that passes the test; the newest are the likeliest."""
        found = [(Ref(n), t) for n, t in self.world.tensors.items() if test is None or test(t)]
        if not found:
            return None, None
        return found[-1 - self.random.randrange(min(3, len(found)))] if self.chance(0.5) else self.random.choice(found)

    def written(self, test: Any = None) -> tuple[Ref, Any] | tuple[None, None]:
        """One tensor to write to: mostly not a leaf that requires grad, nor a view of one."""
        fair = self.chance(0.85)

        def good(t: Any) -> bool:
            if not t.numel() or self.world.loose(t) or t.is_inference() and not (plain(t) or t.is_complex()):
                return False
            base = t._base
            if base is not None and base.retains_grad and base.output_nr:
                return False  # torch's process ends in a pass to it, whose one gradient is looked for at the number of the former output
            return not (fair and t.requires_grad and (t._base if t._is_view() else t).grad_fn is None)

        if self.chance(0.2):  # what happens to a retained gradient shows only where it is written
            found = self.any(lambda t: t.retains_grad and good(t) and (test is None or test(t)))
            if found[0] is not None:
                return found
        return self.any(lambda t: good(t) and (test is None or test(t)))

    def tracked(self) -> Ref:
        """One tensor that requires grad, or (now and then, or for want of one) any."""
        a, _ = self.any(lambda t: t.requires_grad) if self.chance(0.97) else self.any()
        return self.any()[0] if a is None else a

    def number(self) -> float:
        return self.random.choice(NUMBERS)

    def fresh(self, count: int = 1) -> tuple[str, ...]:
        return tuple(f"t{next(self.names)}" for _ in range(count))

    def bounds(self) -> tuple[float, float]:
        """Two bounds for clamp that were not drawn before and that no constant has: at a bound, its derivative is a convention of each library."""
        low = self.random.uniform(-1, 0.5) + 1e-5 * (next(self.names) + 1 / 3)
        return low, low + self.random.uniform(0.3, 2)

    def mode(self) -> str:
        """The modes around a step; most programs have few, some have any."""
        if "modes" in self.without:
            return ""
        if not self.moded:
            return "no_grad" if self.chance(0.15) else ""
        if self.chance(0.6):
            return ""
        return " + ".join(self.random.choice(COMMON if self.chance(0.8) else OTHER) for _ in range(1 + self.chance(0.2)))

    def saving(self, t: Any, b: Any = None) -> str:
        """The modes around an operation of one dtype, whose saved tensors are the same in both libraries."""
        dtypes = {t.dtype, *([self.world.tensors[b.name].dtype] if isinstance(b, Ref) else [])}
        known = len(dtypes) == 1 and plain(t) and not t._is_view() and not any(s.is_inference() for s in self.world.tensors.values())
        return self.random.choice(SAVING) if self.moded and self.chance(0.1) and known else self.mode()

    def dtype(self) -> str:
        """The dtype of a new tensor; "" is float64."""
        return self.random.choice(DTYPES) if self.mixed and self.chance(0.5) else ""

    def constant(self, shape: tuple[int, ...], dtype: str = "") -> Array:
        def fill(shape: tuple[int, ...]) -> Any:
            return tuple(fill(shape[1:]) for _ in range(shape[0])) if shape else self.entry(dtype)
        return Array(fill(shape), dtype or "float64")

    def entry(self, dtype: str) -> Any:
        """One element of a dtype."""
        if dtype.startswith("complex"):
            return complex(self.number(), self.number())
        return self.chance(0.5) if dtype == "bool" else self.random.randrange(-3, 4) if dtype.startswith("int") else float(self.number())

    def other(self, t: Any, word: str, within: bool = False) -> Any:
        """A number, or a tensor whose shape goes with that of `t` (now and then one whose shape does not)."""
        if self.chance(0.35):
            return self.number()
        fits = fits_in if within else fits_with
        divides = word in ("div", "div_", "itruediv")
        b, _ = self.any(lambda s: (fits(s.shape, t.shape) or self.chance(0.03)) and size(s) < 20 and not (divides and least(s) < 0.2)
                        and not (within and (unordered(s, t) or not fills(t, s))))
        return self.number() if b is None else b
