"""The errors of linear algebra, as `torch.linalg.LinAlgError`, and of dtypes for which an op has no rule; and the texts of PyTorch.

The type of an exception follows PyTorch, its text is ours: `function: what is wrong, with the value or shape. What to do.` The texts below are all
that equal PyTorch's, because programs match on them; what is raised may go on in our words. The core has no other.
"""

from __future__ import annotations

from typing import Any

__all__ = ["AMBIGUOUS", "BROADCAST", "FREED", "GRADIENT_SHAPE", "GRAD_OF_NON_LEAF", "LEAF_WRITTEN", "LinAlgError", "MODIFIED", "NOT_SCALAR",
           "NO_CUDA", "NO_DERIVATIVE", "NO_GRAPH", "NUMPY", "ONE_ELEMENT", "OUT_OF_RANGE", "PRODUCT", "RESHAPE", "TARGET_SIZE", "UNUSED",
           "UnsupportedDtype", "kind_name"]

AMBIGUOUS = "Boolean value of Tensor with more than one value is ambiguous"
BROADCAST = "The size of tensor a ({}) must match the size of tensor b ({}) at non-singleton dimension {}"
FREED = "Trying to backward through the graph a second time, or to read saved values, after they have been freed. Specify retain_graph=True in the " \
        "first pass."
GRADIENT_SHAPE = "Mismatch in shape: grad_output[{}] has a shape of {} and output[{}] has a shape of {}."
LEAF_WRITTEN = "a leaf Variable that requires grad is being used in an in-place operation."
MODIFIED = "one of the variables needed for gradient computation has been modified by an inplace operation: [{} {}]{} is at version {}; expected " \
           "version {} instead. Hint: enable anomaly detection to find the operation that failed to compute its gradient, with " \
           "torch.autograd.set_detect_anomaly(True, check_nan=False)."
NO_CUDA = "Torch not compiled with {} enabled"
NO_DERIVATIVE = "the derivative for '{}' is not implemented."
GRAD_OF_NON_LEAF = "The .grad attribute of a Tensor that is not a leaf Tensor is being accessed. Its .grad attribute won't be populated during " \
                   "autograd.backward(). If you indeed want the .grad field to be populated for a non-leaf Tensor, use .retain_grad() on the " \
                   "non-leaf Tensor. If you access the non-leaf Tensor by mistake, make sure you access the leaf Tensor instead."
NO_GRAPH = "element {} of tensors does not require grad and does not have a grad_fn"
NOT_SCALAR = "grad can be implicitly created only for scalar outputs"
NUMPY = "Can't call numpy() on Tensor that requires grad"
ONE_ELEMENT = "a Tensor with {} elements cannot be converted to Scalar"
OUT_OF_RANGE = "Dimension out of range (expected to be in range of [{}, {}], but got {})"
PRODUCT = "mat1 and mat2 shapes cannot be multiplied ({}x{} and {}x{})"
RESHAPE = "shape '{}' is invalid for input of size {}"
TARGET_SIZE = "Using a target size ({}) that is different to the input size ({}). This will likely lead to incorrect results due to broadcasting. " \
              "Please ensure they have the same size."
TRACKED_NUMBER = "Converting a tensor with requires_grad=True to a scalar may lead to unexpected behavior"
VIEW = "view size is not compatible with input tensor's size and stride (at least one dimension spans across two contiguous subspaces). Use " \
       ".reshape(...) instead."
UNUSED = "The differentiated Tensor at index {} appears to not have been used in the graph. Set allow_unused=True if this is the desired behavior."


class LinAlgError(RuntimeError):
    """A matrix is singular, not positive definite, or not finite, so that a function of linear algebra has no answer for it.

    `info` is the position, from 1, of the zero on the diagonal of U, or the order of the leading minor that is not positive definite; 0 where
    neither is known.

    >>> import symgrad
    >>> try:
    ...     symgrad.linalg.inv(symgrad.ones(2, 2))
    ... except symgrad.linalg.LinAlgError as error:
    ...     print(error.info)
    2
    """

    def __init__(self, message: str = "", info: int = 0):
        super().__init__(message)
        self.info = info


class UnsupportedDtype(TypeError, NotImplementedError):
    """An op has no rule for the dtype of an operand: a TypeError, as in NumPy, and a NotImplementedError, as in torch."""


def kind_name(x: Any) -> str:
    """The name of the type of an argument, as torch's errors write it.

    >>> import numpy as np
    >>> kind_name(2.0), kind_name(np.ones(2))
    ('float', 'numpy.ndarray')
    """
    return f"{'numpy.' * (type(x).__module__ == 'numpy')}{type(x).__name__}"
