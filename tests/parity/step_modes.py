"""The modes around the steps of programs over aliased tensors, by the names that steps give them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple


class Mode(NamedTuple):
    """How a mode is entered, and what it is in torch's words."""

    enter: Callable[[Any], Any]
    said: str


def _saving(pack: Callable[[Any], Any], unpack: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda lib: lib.autograd.graph.saved_tensors_hooks(pack, unpack)


def _same(x: Any) -> Any:
    return x


def _fails(x: Any) -> Any:
    raise ValueError("no such tensor")


SAVING = ["halved", "unpacked to a number", "not packed", "not unpacked", "written when packed"]  # that show which tensors an operation saves
MODES = {
    "no_grad": Mode(lambda lib: lib.no_grad(), "no_grad()"),
    "enable_grad": Mode(lambda lib: lib.enable_grad(), "enable_grad()"),
    "grad off": Mode(lambda lib: lib.set_grad_enabled(False), "set_grad_enabled(False)"),
    "grad on": Mode(lambda lib: lib.set_grad_enabled(True), "set_grad_enabled(True)"),
    "inference_mode": Mode(lambda lib: lib.inference_mode(), "inference_mode()"),
    "inference off": Mode(lambda lib: lib.inference_mode(False), "inference_mode(False)"),
    "anomaly": Mode(lambda lib: lib.autograd.detect_anomaly(), "autograd.detect_anomaly()"),
    "anomaly with nan": Mode(lambda lib: lib.autograd.detect_anomaly(check_nan=False), "autograd.detect_anomaly(check_nan=False)"),
    "cpu": Mode(lambda lib: lib.autograd.graph.save_on_cpu(), "autograd.graph.save_on_cpu()"),
    "saved": Mode(_saving(_same, _same), "autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t)"),
    "cloned": Mode(_saving(lambda t: t.detach().clone(), _same), "autograd.graph.saved_tensors_hooks(lambda t: t.detach().clone(), lambda t: t)"),
    "halved": Mode(_saving(_same, lambda t: t * 0.5), "autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t * 0.5)"),
    "unpacked to a number": Mode(_saving(_same, lambda t: 3.0), "autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: 3.0)"),
    "not packed": Mode(_saving(_fails, _same), "autograd.graph.saved_tensors_hooks(fails, lambda t: t)"),
    "not unpacked": Mode(_saving(_same, _fails), "autograd.graph.saved_tensors_hooks(lambda t: t, fails)"),
    "written when packed": Mode(_saving(lambda t: t.mul_(2), _same), "autograd.graph.saved_tensors_hooks(lambda t: t.mul_(2), lambda t: t)"),
}
