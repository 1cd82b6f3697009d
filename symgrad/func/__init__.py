"""Transforms of functions, in torch.func's names: derivatives of any order, batches, Jacobians and Hessians."""

from symgrad.func.hessians import hessian, hvp, vhp
from symgrad.func.transforms import grad, grad_and_value, jacfwd, jacrev, jvp, linearize, vjp
from symgrad.func.vmapping import vmap

__all__ = ["grad", "grad_and_value", "hessian", "hvp", "jacfwd", "jacrev", "jvp", "linearize", "vhp", "vjp", "vmap"]
