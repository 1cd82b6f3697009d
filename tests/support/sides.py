"""Programs that take `torch` as an argument: run with PyTorch they were recorded, run with symgrad they must say the same.

A program is a function of the library and of a log. `python -m tests.support.sides`, where PyTorch is installed, records them all in data.
"""

import importlib
import inspect
import json
import math
import sys
import warnings
from pathlib import Path

DATA = Path(__file__).parent / "data"


class Log:
    """What a program said, as data that JSON can hold."""

    def __init__(self):
        self.said = []

    def __call__(self, *calls):
        """The text of what each call gave, or the type of what it raised, with the categories of the warnings on the way."""
        for call in calls:
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                warnings.simplefilter("ignore", RuntimeWarning)  # NumPy's, of overflow
                warnings.filterwarnings("ignore", "This process .* is multi-threaded, use of fork", DeprecationWarning)  # a worker of pytest-xdist is
                try:
                    text = repr(call())
                except Exception as error:
                    text = next(kind.__name__ for kind in type(error).__mro__ if kind.__module__ == "builtins")
            self.said.append("\n".join([text, *(w.category.__name__ for w in caught)]))

    def numbers(self, *tensors):
        """The elements of tensors, to be compared as numbers."""
        self.said += [plain(t) for t in tensors]


def plain(value):
    """Tensors as lists, in lists and dictionaries of any depth."""
    if hasattr(value, "tolist"):
        return value.tolist()
    if isinstance(value, dict):
        return {str(key): plain(v) for key, v in value.items()}
    return [plain(v) for v in value] if isinstance(value, (list, tuple)) else value


def numbered(module, torch):
    """Give every parameter of a module numbers that are the same everywhere."""
    count = 0
    with torch.no_grad():
        for parameter in module.parameters():
            n = parameter.numel()
            parameter.copy_(torch.tensor([math.sin(count + i) for i in range(n)]).reshape(parameter.shape))
            count += n
    return module


def run(program, torch):
    """What a program says with a library."""
    log = Log()
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        program(torch, log)
    finally:
        torch.set_default_dtype(before)
    return json.loads(json.dumps(log.said))


def programs(module):
    """The programs of a module by name."""
    return {name: f for name, f in vars(module).items() if inspect.isfunction(f) and f.__module__ == module.__name__ and not name.startswith("_")}


def recorded(module):
    """What PyTorch said for each program of a module."""
    return json.loads((DATA / (module.__name__.rpartition(".")[2] + ".json")).read_text())


def same(a, b, rel):
    """Equal, numbers up to a relative difference; NaN is never equal."""
    if isinstance(b, list):
        return isinstance(a, list) and len(a) == len(b) and all(same(x, y, rel) for x, y in zip(a, b))
    if isinstance(b, dict):
        return isinstance(a, dict) and list(a) == list(b) and all(same(a[key], b[key], rel) for key in b)
    if isinstance(b, float) and isinstance(a, float):
        return a == b or abs(a - b) <= rel * abs(b)
    return type(a) is type(b) and a == b


def compare(program, torch, expected, rel=0.0):
    """Raise where a program says something else than was recorded."""
    found = run(program, torch)
    for i, (a, b) in enumerate(zip(found, expected)):
        assert same(a, b, rel), f"{program.__name__}, entry {i}:\n{a}\nwas recorded as\n{b}"
    assert len(found) == len(expected)


if __name__ == "__main__":
    import torch

    for name in sys.argv[1:] or sorted(path.stem for path in Path(__file__).parent.glob("programs_*.py")):
        module = importlib.import_module(f"tests.support.{name}")
        said = {key: run(program, torch) for key, program in programs(module).items()}
        lines = [f"{json.dumps(key)}: [\n" + ",\n".join(json.dumps(entry, ensure_ascii=False) for entry in value) + "\n]"
                 for key, value in said.items()]
        (DATA / f"{name}.json").write_text("{\n" + ",\n".join(lines) + "\n}\n")
        print(name, {key: len(value) for key, value in said.items()})
