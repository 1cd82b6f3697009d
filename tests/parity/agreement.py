"""Where a program ends of which one library or both raise, with the reason for each rule; otherwise their exceptions have one type."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from tests.support.tables import table

from .asked import memory
from .steps import Ref, Step

CONSTANT = ("argsort", "argmax", "argmin", "gt", "le", "eq", "ne", "all", "any", "count_nonzero")
PLACING = ("masked_fill_", "index_fill_", "scatter_", "masked_scatter_", "index_put_", "index_copy_", "index_add_", "scatter_add_", "fill_",
           "scatter_reduce_")
OUTSIDE = re.compile(r"out of DATA bounds|out of range in self|out of bounds")
# What a pass refuses before it begins.
EARLY = re.compile(r"does not require grad|implicitly created|Mismatch in shape|Mismatch in dtype|One of the differentiated Tensors|"
                   r"requires_grad=False|materialize_grads|allow_unused|inputs. argument|can't be empty|appears to not have been used|no grad_fn|"
                   r"For complex Tensors")


class Case(NamedTuple):
    """A step, what torch and symgrad raised ("" for nothing), the program so far, and torch's tensors."""

    step: Step
    theirs: str
    ours: str
    program: Sequence[Step]
    tensors: dict[str, Any]
    reset: bool = False  # whether a tensor that a graph may have saved has got other data, unseen by its version

    def reads_itself(self) -> bool:
        """Whether an operand shares the memory of the tensor that is written."""
        written, *others = (memory(self.tensors[name]) if self.tensors[name].numel() else name for name in self.step.needs())
        return written in others or sum(isinstance(a, Ref) and a.name in self.step.needs() for a in self.step.args) > len(self.step.needs())

    def repeats(self) -> bool:
        """Whether the tensor that is written has an element more than once."""
        t = self.tensors[self.step.args[0].name]
        return any(n > 1 and not stride for n, stride in zip(t.shape, t.stride()))

    def one_memory(self) -> bool:
        """Whether the operands are the same elements of the same memory, up to dimensions of size 1."""
        ts = [self.tensors[name] for name in self.step.needs()]
        return len(ts) > 1 and len({(t.data_ptr(), tuple((n, s) for n, s in zip(t.shape, t.stride()) if n > 1)) for t in ts}) == 1


def _raises_alone(case: Case, words: str) -> bool:
    return bool(case.theirs) and not case.ours and bool(re.search(words, case.theirs))


BEFORE_TYPES = table(globals(), "BEFORE_TYPES")
AFTER_TYPES = table(globals(), "AFTER_TYPES")


def named_alike(a: Any, b: Any, freed: bool) -> bool:
    """Whether two nodes, or refusals that name one, are the same but for that name: of a conversion in place of the operation, or of a view."""
    if b in ("ToCopyBackward0", "ViewAsRealBackward0", "ViewAsComplexBackward0"):
        return isinstance(a, str)
    if isinstance(a, str) and isinstance(b, str) and re.sub(r"\d$", "", a) == re.sub(r"\d$", "", b):
        return freed  # the number at the end follows from arguments
    return False
