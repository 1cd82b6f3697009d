"""The functions of `torch.cpu`: the CPU is the only device, and what is computed on it is done when a call returns."""

from symgrad.types.absent import explained as _explained
from symgrad.types.queries import answers

globals().update(answers(True, "Whether there is a CPU: True.", "is_available", "is_initialized"))
globals().update(answers(1, "The number of devices: 1.", "device_count"))
globals().update(answers("cpu", "The device: 'cpu'.", "current_device"))
globals().update(answers(None, "Do nothing: there is one device, and nothing is queued on it.", "set_device", "synchronize"))


__getattr__, __path__ = _explained(__name__), list[str]()
