"""The functions of `torch.mps` for a system without Metal: queries answer that nothing is there, and requests raise."""

from symgrad.types.absent import explained as _explained
from symgrad.types.devices import device, unavailable_error
from symgrad.types.queries import answers, refusals

globals().update(answers(False, "Whether Metal is available: False.", "is_available"))
globals().update(answers(0, "The number of devices: 0.", "device_count"))
globals().update(refusals(lambda: unavailable_error(device("mps")), "Event", "compile_shader", "current_allocated_memory", "driver_allocated_memory",
                          "empty_cache", "get_rng_state", "load_metallib", "manual_seed", "recommended_max_memory", "seed",
                          "set_per_process_memory_fraction", "set_rng_state", "synchronize"))


__getattr__, __path__ = _explained(__name__), list[str]()
