"""Nothing here is collected where torch is not installed, nor what is for another library or a compiler that is not there."""

import importlib.util
import shutil

collect_ignore_glob = [] if importlib.util.find_spec("torch") else ["*.py"]
JAX = ["test_sources_torch_jax.py", "test_testing_jax.py", "test_scanning_jax.py", "test_foreign_functions.py"]
collect_ignore = [*(JAX if importlib.util.find_spec("jax") is None else []),
                  *(["test_testing_autograd.py"] if importlib.util.find_spec("autograd") is None else []),
                  *(["test_sources_c.py"] if shutil.which("cc") is None else [])]
