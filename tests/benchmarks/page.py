"""`examples/guide/benchmarks.md`: the tables, and the machine they were measured on."""

import os
import platform
import re
import textwrap
from importlib import metadata
from pathlib import Path

import numpy as np

from tests.benchmarks.table import table

PAGE = Path(__file__).parents[2] / "examples" / "guide" / "benchmarks.md"
PACKAGES = ("numpy", "torch", "autograd", "jax", "casadi")
SECTIONS = {"ops": "Op by op", "training": "Training"}  # that can be measured alone, with the machine of each
TEMPLATE = Path(__file__).with_suffix(".md").read_text(encoding="utf-8")


def machine():
    """The CPU, its load, NumPy's SIMD level, and the versions."""
    simd = np.show_config(mode="dicts")["SIMD Extensions"]
    versions = [f"{name} {_version(name)}" for name in PACKAGES if _version(name)]
    return (f"{_cpu()}, {os.cpu_count()} cores, load average {os.getloadavg()[0]:.1f}; "
            f"SIMD of NumPy up to {[*simd['baseline'], *simd['found']][-1]}; Python {platform.python_version()}, {', '.join(versions)}.")


def _version(name):
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return ""


def _cpu():
    known = Path("/proc/cpuinfo")
    names = [line.partition(":")[2].strip() for line in known.read_text().splitlines() if line.startswith("model name")] if known.is_file() else []
    return names[0] if names else platform.processor() or platform.machine()


def _measured(found, above, on):
    """The table of a section with the machine that it was measured on, and what is above the bars."""
    filled = [textwrap.fill(each, 150, break_long_words=False, break_on_hyphens=False) for each in above.split("\n\n") if each]
    return "\n\n".join([f"Machine of this section: {on}", table(found), *filled])


def section(name, found, above, on):
    """The page as it is, with one section written again, and the machine that this was measured on."""
    part = re.compile(f"^## {SECTIONS[name]}\n.*?(?=^## )", re.DOTALL | re.MULTILINE)
    filled = part.findall(TEMPLATE)[0].replace(f"{{{name}}}", _measured(found, above, on))
    return part.sub(lambda _: filled, PAGE.read_text(encoding="utf-8"))


def text(tables, above, on, ops_on="", training_on=""):
    """The page with these tables, measured on a machine, or the tables of single ops and of training on other ones."""
    first, ops, second, compiled, training, symbolic = tables
    return TEMPLATE.format(machine=on, first=table(first), ops=_measured(ops, above, ops_on or on), second=table(second), compiled=table(compiled),
                           training=_measured(training, "", training_on or on), symbolic=table(symbolic))
