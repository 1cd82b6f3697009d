"""Transforms of functions, in torch.func's names: derivatives of any order, batches, Jacobians and Hessians with their structure."""

from symgrad.func.calculus import curl, divergence, laplacian, value_and_laplacian
from symgrad.func.calling import functional_call, stack_module_state, vmap
from symgrad.func.checkpointing import CheckpointError, checkpoint, checkpoint_sequential
from symgrad.func.custom import custom_jvp, custom_vjp, stop_gradient
from symgrad.func.estimators import extreme_eigenvalues, hessian_diag, hessian_operator, hessian_trace
from symgrad.func.factors import hessian_factors
from symgrad.func.foreign import foreign
from symgrad.func.hessians import hessian, hvp, jacobian, vhp
from symgrad.func.implicit import implicit_argmin, implicit_fixed_point, implicit_root
from symgrad.func.taylor import derivatives, directional_derivatives, jet
from symgrad.func.transforms import grad, grad_and_value, jacfwd, jacrev, jvp, linearize, vjp

__all__ = [
    "CheckpointError", "checkpoint", "checkpoint_sequential", "curl", "custom_jvp", "custom_vjp", "derivatives", "directional_derivatives",
    "divergence", "extreme_eigenvalues", "foreign", "functional_call", "grad", "grad_and_value", "hessian", "hessian_diag", "hessian_factors",
    "hessian_operator", "hessian_trace", "hvp", "implicit_argmin", "implicit_fixed_point", "implicit_root", "jacfwd", "jacobian", "jacrev",
    "jet", "jvp", "laplacian", "linearize", "stack_module_state", "stop_gradient", "value_and_laplacian", "vhp", "vjp", "vmap",
]
