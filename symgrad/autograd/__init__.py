"""Gradients as torch asks for them."""

from symgrad.autograd.engine import backward, grad
from symgrad.autograd.modes import enable_grad, inference_mode, is_grad_enabled, is_inference_mode_enabled, no_grad, set_grad_enabled

__all__ = ["backward", "enable_grad", "grad", "inference_mode", "is_grad_enabled", "is_inference_mode_enabled", "no_grad", "set_grad_enabled"]
