"""Transforms of functions, in torch.func's names: derivatives of any order, batches, Jacobians and Hessians."""

from symgrad.func.transforms import grad, grad_and_value, jacfwd, jacrev, jvp, linearize, vjp

__all__ = ["grad", "grad_and_value", "jacfwd", "jacrev", "jvp", "linearize", "vjp"]
