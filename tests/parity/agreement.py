"""Where a program ends of which one library or both raise, with the reason for each rule; otherwise their exceptions have one type."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from tests.parity.steps import SAVING

from .asked import memory
from .steps import KEPT, PASSES, SHAPES_KEPT, TURNED, Ref, Step

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


BEFORE_TYPES: dict[str, Callable[[Case], bool]] = {  # where these hold, nothing is compared
    "a defect of torch": lambda c: _raises_alone(c, "returned an invalid gradient") or bool(re.search(
        r"INTERNAL ASSERT|'NoneType' object has|Boolean value of Tensor with more than one", c.theirs)) or (
            c.step.word == "grads" and "The size of tensor a" in c.theirs),  # it compares gradients, to tell the number of one
    "torch has no kernel for the dtype, or no derivative": lambda c: bool(re.search(
        r"not implemented for|not supported for|not support|Could this error message be improved|derivative for .* is not implemented", c.theirs)),
    "a real gradient of a complex output is a complex one": lambda c: "For complex Tensors" in c.theirs and not c.ours,
    "no history is needed for a result without derivative":
        lambda c: c.step.word in CONSTANT and _raises_alone(c, "base has been modified"),
    "NumPy does not keep the strides of dimensions of size 1": lambda c: _raises_alone(c, "refer to a single memory") and c.one_memory(),
    "torch deprecates writes to expanded memory here, and does not refuse them":
        lambda c: not c.theirs and bool(c.ours) and (c.step.form == "assign" or c.step.word in PLACING) and c.repeats(),
    "there are two reasons to refuse":
        lambda c: bool(c.theirs and c.ours) and ("cannot be saved" in c.theirs and any(mode in c.step.mode for mode in SAVING)
                                                 or "no such tensor" in c.theirs and "not packed" in c.step.mode
                                                 or re.search("is a view and|A view was created", c.theirs) is not None),
    "a value that overlaps is computed before it is written":
        lambda c: c.step.form == "assign" and _raises_alone(c, "refer to a single memory") or c.step.word in PLACING and c.reads_itself(),
    "what detach() gives of an inference tensor is one, too, and not written outside of the mode":
        lambda c: re.search("(?i)inference ?tensor", c.ours) is not None and "Inplace update to inference tensor" not in c.theirs,
    "a leaf whose sizes have changed gets no gradient of the former ones": lambda c: c.step.form in PASSES and "but its leaf has shape" in c.ours,
    "torch saves an operand for its shape alone": lambda c: _raises_alone(c, "modified by an inplace") and any(
        step.word.rstrip("_") in SHAPES_KEPT | KEPT | {"scatter_reduce"} for step in c.program),
    "a change of sizes leaves the elements that a graph has saved":
        lambda c: _raises_alone(c, "modified by an inplace") and any(step.word in TURNED and step.mode for step in c.program),
    "of integers a converted copy is saved": lambda c: _raises_alone(c, r"modified by an inplace operation: \[torch.(Long|Int|Bool)Tensor"),
    "torch has several errors for an index out of range": lambda c: bool(OUTSIDE.search(c.theirs) and c.ours),
    "scatter_reduce, and a scatter of nothing, are composed of operations that save less":
        lambda c: "output 0 of ScatterReduce" in c.theirs or _raises_alone(c, "cannot be saved|second time") and any(
            step.word.startswith("scatter") for step in c.program),
    "a graph keeps the values that it has used, where torch takes what its tensors got later by .data": lambda c: c.reset and c.step.form in PASSES,
    "torch writes a view whose base got other data, with a gradient of the former":
        lambda c: not c.theirs and "whose base got other memory" in c.ours,
    "in inference mode torch's detach_ does nothing": lambda c: c.step.word == "detach_" and "inference_mode" in c.step.mode,
    "torch's graph does not see that sizes change in inference mode":
        lambda c: c.step.word in TURNED and "inference_mode" in c.step.mode and c.tensors[c.step.args[0].name].requires_grad,
    "torch gives no derivative of a backward that may be differentiated once":
        lambda c: not c.theirs and c.step.form in ("grad", "second") and "function that was marked with @once_differentiable" in c.ours,
    "torch has no backward of a write to expanded memory":
        lambda c: c.step.form in PASSES and "more than one element of the written-to" in c.theirs,
}
AFTER_TYPES: dict[str, Callable[[Case], bool]] = {
    "torch writes before it refuses": lambda c: "Inplace update to inference tensor" in c.theirs and bool(c.ours),
    "a hook for saved tensors may have written": lambda c: bool(c.theirs and c.ours) and any(mode in c.step.mode for mode in SAVING),
    "a pass failed midway": lambda c: bool(c.theirs and c.ours) and c.step.form in PASSES and not EARLY.search(c.theirs),
}


def named_alike(a: Any, b: Any, freed: bool) -> bool:
    """Whether two nodes, or refusals that name one, are the same but for that name: of a conversion in place of the operation, or of a view."""
    if b in ("ToCopyBackward0", "ViewAsRealBackward0", "ViewAsComplexBackward0"):
        return isinstance(a, str)
    if isinstance(a, str) and isinstance(b, str) and re.sub(r"\d$", "", a) == re.sub(r"\d$", "", b):
        return freed  # the number at the end follows from arguments
    return False
