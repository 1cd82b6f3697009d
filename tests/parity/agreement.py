"""What is compared of two libraries that raise, or of which one raises, and where a program ends: with the reason for each rule."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from .step_modes import SAVING
from .steps import PASSES, TURNED, Step

CONSTANT = ("argsort", "argmax", "argmin", "gt", "le", "eq", "ne", "all", "any", "count_nonzero")
PLACING = ("masked_fill_", "index_fill_", "scatter_", "masked_scatter_", "index_put_", "index_copy_", "index_add_", "scatter_add_", "fill_")
MIDWAY = re.compile(r"modified by an inplace|second time|detached in-place|moved into the graph|is a view and its base|A view was")
# What a pass refuses before it begins.
EARLY = re.compile(r"does not require grad|implicitly created|Mismatch in shape|Mismatch in dtype|One of the differentiated Tensors|"
                   r"requires_grad=False|materialize_grads|allow_unused|inputs. argument|can't be empty|appears to not have been used|no grad_fn|"
                   r"For complex Tensors")
# Messages that are the same word for word, up to the end of their first sentence; of the others only the type is compared.
PROMISED = re.compile(r"leaf Variable|is a view|A view was|modified by an inplace|second time|detach|retain_grad|register a hook|implicitly created|"
                      r"does not require grad|refer to a single memory|refers to a single memory|doesn't match the broadcast shape|"
                      r"only change requires_grad|moved into the graph|view size is not compatible|Mismatch in shape")


class Case(NamedTuple):
    """A step, what torch and symgrad raised ("" for nothing), the program so far, and torch's tensors."""

    step: Step
    theirs: str
    ours: str
    program: Sequence[Step]
    tensors: dict[str, Any]

    def dtypes(self) -> set[Any]:
        """The dtypes of the operands."""
        return {self.tensors[name].dtype for name in self.step.needs()}

    def one_memory(self) -> bool:
        """Whether the operands are the same elements of the same memory, up to dimensions of size 1."""
        ts = [self.tensors[name] for name in self.step.needs()]
        return len(ts) > 1 and len({(t.data_ptr(), tuple((n, s) for n, s in zip(t.shape, t.stride()) if n > 1)) for t in ts}) == 1


def _raises_alone(case: Case, words: str) -> bool:
    return bool(case.theirs) and not case.ours and bool(re.search(words, case.theirs))


BEFORE_MESSAGES: dict[str, Callable[[Case], bool]] = {  # where these hold, messages are not compared
    "a defect of torch": lambda c: bool(re.search(r"INTERNAL ASSERT|'NoneType' object has|Boolean value of Tensor with more than one", c.theirs)),
    "torch has no kernel for the dtype, or no derivative": lambda c: bool(re.search(
        r"not implemented for|not supported for|not support|Could this error message be improved", c.theirs)),
    "a real gradient of a complex output is a complex one": lambda c: "For complex Tensors" in c.theirs and "For complex Tensors" not in c.ours,
    "dtypes are promoted": lambda c: _raises_alone(
        c, r"expected scalar type|the same dtype|Found dtype|to be equal to src.dtype|dtypes match|dtypes should match"),
    "every op has derivatives": lambda c: _raises_alone(c, r"is not differentiable with respect to|derivative for|automatic differentiation for"),
    "the layout of an operand has no effect": lambda c: _raises_alone(c, "last dimension with stride 1|must be divisible by|stride divisible by"),
    "the copy of an operand in another dtype is saved, and not the operand": lambda c: _raises_alone(c, "cannot be saved") and len(c.dtypes()) > 1,
    "no history is needed for a result without derivative":
        lambda c: c.step.word in CONSTANT and _raises_alone(c, "base has been modified"),
    "NumPy does not keep the strides of dimensions of size 1": lambda c: _raises_alone(c, "refer to a single memory") and c.one_memory(),
    "torch deprecates writes to expanded memory here, and does not refuse them":
        lambda c: not c.theirs and "more than one element of the written-to" in c.ours and (c.step.form == "assign" or c.step.word in PLACING),
    "there are two reasons to refuse":
        lambda c: bool(c.theirs and c.ours) and ("cannot be saved" in c.theirs and any(mode in c.step.mode for mode in SAVING)
                                                 or "no such tensor" in c.theirs and "not packed" in c.step.mode),
    "a value that overlaps is computed before it is written": lambda c: c.step.form == "assign" and _raises_alone(c, "refer to a single memory"),
    "torch gives no derivative of a backward that may be differentiated once":
        lambda c: not c.theirs and c.step.form in ("grad", "second") and "function that was marked with @once_differentiable" in c.ours,
    "torch has no backward of a write to expanded memory":
        lambda c: c.step.form in PASSES and _raises_alone(c, "more than one element of the written-to"),
    "what a view that no operation recorded would receive is not computed":
        lambda c: c.step.form in PASSES and _raises_alone(c, "A view was created in no_grad mode and its base"),
}
AFTER_MESSAGES: dict[str, Callable[[Case], bool]] = {
    "torch writes before it refuses": lambda c: "Inplace update to inference tensor" in c.theirs and bool(c.ours),
    "a hook for saved tensors may have written": lambda c: bool(c.theirs and c.ours) and any(mode in c.step.mode for mode in SAVING),
    "a pass failed midway": lambda c: bool(c.theirs and c.ours) and c.step.form in PASSES and not EARLY.search(c.theirs),
}


def alike(case: Case, compare: bool = True) -> bool:
    """Whether the messages of two refusals agree."""
    theirs, ours = case.theirs, case.ours
    if not compare or not PROMISED.search(theirs):
        return True
    if any(step.word in TURNED for step in case.program):  # torch tells the new shape of a saved tensor that was reshaped in place
        theirs, ours = (re.sub(r"(Tensor|Type) \[[^]]*\]", r"\1", message) for message in (theirs, ours))
    if normal(ours).startswith(normal(theirs)):
        return True
    if re.search("base has been modified|cannot be saved|single memory", theirs) and (not PROMISED.search(ours) or "view size is" in ours):
        return True  # arguments are checked before histories
    if "modified by an" in theirs and "modified by an" in ours:
        return True  # the first of several tensors
    if MIDWAY.search(theirs) and "second time" in ours:  # where the cotangent is zero, symgrad does not look at what was saved
        return True
    both = theirs + ours
    # one of the nodes of a view
    if any(words in both for words in ("of AsStrided", "CopySlices", "base has been modified")):
        return unnamed(ours) == unnamed(theirs)
    if case.step.form in PASSES and any(step.form == "delete" or step.word == "detach_" for step in case.program):
        return bool(MIDWAY.search(theirs) and MIDWAY.search(ours))  # torch asks what a tensor became that nobody holds here any more
    return bool(re.search("single memory location|cannot be saved", ours))  # there are two reasons


def named_alike(a: Any, b: Any, freed: bool) -> bool:
    """Whether two nodes, or refusals that name one, are the same but for that name: of a conversion in place of the operation, or of a view."""
    if b in ("ToCopyBackward0", "ViewAsRealBackward0", "ViewAsComplexBackward0"):
        return isinstance(a, str)
    if isinstance(a, str) and isinstance(b, str) and re.sub(r"\d$", "", a) == re.sub(r"\d$", "", b):
        return freed  # the number at the end follows from arguments
    return isinstance(a, str) and isinstance(b, str) and "of AsStrided" in a + b and unnamed(a) == unnamed(b)


def unnamed(message: str) -> str:
    """The first sentence without the name of a node, and without the shape of what was saved, which may be a view of an operand."""
    return re.sub(r"(, which is)? [oO]utput \d+ of [\w:]+,?|(?<=Tensor) \[[^]]*\]", "", f" {normal(message)}")


def normal(message: str) -> str:
    """The first sentence, with a pair of versions told by their distance."""
    message = re.sub(r"is at version (\d+); expected version (\d+)", lambda m: f"is {int(m[1]) - int(m[2])} versions later", message)
    return re.split(r"\.\s|\n|\.$", message)[0].strip()
