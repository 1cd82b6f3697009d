"""The functions of `torch.xpu` for a system without GPUs of Intel: queries return 0, False or nothing, and requests raise."""

from symgrad.types.absent import explained as _explained
from symgrad.types.devices import device, unavailable_error
from symgrad.types.queries import answers, refusals

globals().update(answers(False, "Whether a GPU is available: False.", "is_available", "is_initialized", "is_bf16_supported", "is_tf32_supported"))
globals().update(answers(0, "The number of GPUs, or of bytes in their memory: 0.", "device_count", "memory_allocated", "max_memory_allocated",
                         "memory_reserved", "max_memory_reserved"))
globals().update(answers(None, "Do nothing, since there is no GPU.", "manual_seed", "manual_seed_all", "seed", "seed_all", "empty_cache"))
globals().update(refusals(lambda: unavailable_error(device("xpu")), "Event", "Stream", "current_device", "current_stream", "get_device_capability",
                          "get_device_name", "get_device_properties", "get_rng_state", "init", "initial_seed", "mem_get_info", "set_device",
                          "set_rng_state", "set_stream", "stream", "synchronize"))


__getattr__, __path__ = _explained(__name__), list[str]()
