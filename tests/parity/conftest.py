"""Nothing here is collected where torch is not installed, nor what is for another library or a compiler that is not there."""

import importlib.util
import pathlib
import re
import shutil

import pytest

FOLDER = pathlib.Path(__file__).parent
FOUND = {name: importlib.util.find_spec(name) is not None for name in ("torch", "jax", "autograd")}
collect_ignore_glob = [] if FOUND["torch"] else ["*.py"]
collect_ignore = [path.name for path in FOLDER.glob("*.py")
                  if not all(FOUND.get(name, True) for name in re.findall(r"^(?:import|from) (\w+)", path.read_text(encoding="utf-8"), re.M))]
collect_ignore += ["test_sources_c.py"] if shutil.which("cc") is None else []


@pytest.fixture
def double_precision():
    """Torch makes tensors of float64, as symgrad does."""
    import torch

    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(before)
