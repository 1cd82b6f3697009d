"""Gradients with torch's interface `torch.autograd`."""

from typing import TYPE_CHECKING

from symgrad.autograd import function, grad_mode, graph
from symgrad.autograd.engine import backward, grad
from symgrad.autograd.function import Function
from symgrad.autograd.modes import (
    enable_grad,
    inference_mode,
    is_grad_enabled,
    is_inference_mode_enabled,
    is_multithreading_enabled,
    is_view_replay_enabled,
    no_grad,
    set_grad_enabled,
    set_multithreading_enabled,
)
from symgrad.autograd.saving import SavedTensor
from symgrad.autograd.variable import Variable, variable
from symgrad.system.lazy import lazy

if TYPE_CHECKING:
    from symgrad.autograd import anomaly_mode, forward_ad, functional
    from symgrad.autograd.anomaly import detect_anomaly, is_anomaly_check_nan_enabled, is_anomaly_enabled, set_detect_anomaly
    from symgrad.testing.gradcheck.gradcheck import gradcheck, gradgradcheck

__all__ = ["Function", "SavedTensor", "Variable", "anomaly_mode", "backward", "detect_anomaly", "enable_grad", "forward_ad", "function",
           "functional", "grad", "grad_mode", "gradcheck", "gradgradcheck", "graph", "inference_mode", "is_anomaly_check_nan_enabled",
           "is_anomaly_enabled", "is_grad_enabled", "is_inference_mode_enabled", "is_multithreading_enabled", "is_view_replay_enabled", "no_grad",
           "set_detect_anomaly", "set_grad_enabled", "set_multithreading_enabled", "variable"]

# Few programs use these
__getattr__, __dir__ = lazy(__name__, {
    **{name: f"symgrad.autograd.{name}" for name in ("anomaly_mode", "forward_ad", "functional")},
    **dict.fromkeys(("detect_anomaly", "is_anomaly_check_nan_enabled", "is_anomaly_enabled", "set_detect_anomaly"), "symgrad.autograd.anomaly"),
    **dict.fromkeys(("gradcheck", "gradgradcheck"), "symgrad.testing.gradcheck.gradcheck"),
})
