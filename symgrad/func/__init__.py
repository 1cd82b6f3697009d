"""Transforms of functions, in torch.func's names: derivatives of any order, batches, Jacobians and Hessians with their structure."""

from symgrad.func.calling import functional_call, stack_module_state
from symgrad.func.hessians import hessian, hvp, vhp
from symgrad.func.jacobians import jacobian
from symgrad.func.transforms import grad, grad_and_value, jacfwd, jacrev, jvp, linearize, vjp
from symgrad.func.vmapping import vmap

__all__ = [
    "functional_call", "grad", "grad_and_value", "hessian", "hvp", "jacfwd", "jacobian", "jacrev", "jvp", "linearize", "stack_module_state", "vhp",
    "vjp", "vmap",
]
