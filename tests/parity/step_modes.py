"""The modes around the steps of programs over aliased tensors: what the names in steps stand for."""

SAVING = ["halved", "unpacked to a number", "not packed", "not unpacked", "written when packed"]  # that show which tensors an operation saves
HOOKS = "autograd.graph.saved_tensors_hooks"
MODES = {
    "no_grad": "no_grad()",
    "enable_grad": "enable_grad()",
    "grad off": "set_grad_enabled(False)",
    "grad on": "set_grad_enabled(True)",
    "inference_mode": "inference_mode()",
    "inference off": "inference_mode(False)",
    "anomaly": "autograd.detect_anomaly()",
    "anomaly with nan": "autograd.detect_anomaly(check_nan=False)",
    "cpu": "autograd.graph.save_on_cpu()",
    "saved": f"{HOOKS}(lambda t: t, lambda t: t)",
    "cloned": f"{HOOKS}(lambda t: t.detach().clone(), lambda t: t)",
    "halved": f"{HOOKS}(lambda t: t, lambda t: t * 0.5)",
    "unpacked to a number": f"{HOOKS}(lambda t: t, lambda t: 3.0)",
    "not packed": f"{HOOKS}(fails, lambda t: t)",
    "not unpacked": f"{HOOKS}(lambda t: t, fails)",
    "written when packed": f"{HOOKS}(lambda t: t.mul_(2), lambda t: t)",
}
