"""Where torch has the modes of recording."""

from symgrad.autograd.modes import enable_grad, inference_mode, no_grad, set_grad_enabled, set_multithreading_enabled
from symgrad.types.absent import explained

__all__ = ["enable_grad", "inference_mode", "no_grad", "set_grad_enabled", "set_multithreading_enabled"]


__getattr__, __path__ = explained(__name__), list[str]()
