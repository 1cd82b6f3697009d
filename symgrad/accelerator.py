"""The functions of `torch.accelerator`, torch's name for whatever computes faster than the CPU: there is none.

>>> import symgrad
>>> symgrad.accelerator.current_accelerator().type if symgrad.accelerator.is_available() else "cpu"
'cpu'
"""

from symgrad.types.absent import explained as _explained
from symgrad.types.devices import no_accelerator
from symgrad.types.queries import answers, refusals

globals().update(answers(False, "Whether there is an accelerator: False.", "is_available"))
globals().update(answers(0, "The number of accelerators: 0.", "device_count"))
globals().update(answers(None, "The device of the accelerator: None.", "current_accelerator"))
globals().update(refusals(no_accelerator, "current_device_idx", "current_device_index", "current_stream", "device_index", "empty_cache",
                          "empty_host_cache", "get_device_capability", "get_memory_info", "max_memory_allocated", "max_memory_reserved",
                          "memory_allocated", "memory_reserved", "memory_stats", "reset_accumulated_memory_stats", "reset_peak_memory_stats",
                          "set_device_idx", "set_device_index", "set_stream", "synchronize"))


__getattr__, __path__ = _explained(__name__), list[str]()
