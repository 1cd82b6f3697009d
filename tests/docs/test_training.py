"""The examples of training reach what they say, and would fail if they were wrong."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "examples" / "training"
FILES = sorted(FOLDER.glob("*.py"))
# What each example prints, and a change after which it must fail; what several processes compute is compared where these are tested.
ANSWERS = {
    "digits": ("held-out digits are right", ("loss.backward()", "(-loss).backward()")),
    "digits_ddp": ("held-out digits are right, with", None),
    "hamiltonian_network": ("with a Hamiltonian network", ("slope[:, 1], -slope[:, 0]", "slope[:, 0], slope[:, 1]")),
    "many_hessians": ("convex at 299 of 441 points", ("400 * x**2 + 2 for", "400 * x**2 + 40 for")),
    "physics_informed": ("largest error of u", ("math.pi**2 * symgrad.sin", "1.01 * math.pi**2 * symgrad.sin")),
    "quadratic": ("after one Newton step", ("x**2 - 2.0 * x", "x**2 - 2.001 * x")),
    "train_ddp": ("epoch 30: mean squared error", None),
}
CHANGED = [name for name in ANSWERS if ANSWERS[name][1]]


def run(path, tmp_path, *before):
    command, environment = [*before, sys.executable, str(path)], {**os.environ, "PYTHONPATH": str(FOLDER), "OPENBLAS_NUM_THREADS": "1"}
    return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, encoding="utf-8", env=environment, timeout=300)


def test_every_example_is_tested_and_listed():
    assert {path.stem for path in FILES} == set(ANSWERS)
    listed = re.findall(r"^\| `training/(\w+)\.py` \|", (FOLDER.parent / "README.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert sorted(listed) == sorted(ANSWERS)


@pytest.mark.sweep
@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_reaches_what_it_says(path, tmp_path):
    launcher = shutil.which("mpiexec", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}") if path.stem == "digits_ddp" else None
    found = run(path, tmp_path, *((launcher, "-n", "2") if launcher else ()))
    assert found.returncode == 0, found.stderr
    assert ANSWERS[path.stem][0] in found.stdout


@pytest.mark.sweep
@pytest.mark.parametrize("name", CHANGED)
def test_notices_what_is_wrong(name, tmp_path):
    right, wrong = ANSWERS[name][1]
    source = (FOLDER / f"{name}.py").read_text(encoding="utf-8")
    assert source.count(right) == 1
    changed = tmp_path / f"{name}.py"
    changed.write_text(source.replace(right, wrong), encoding="utf-8")
    found = run(changed, tmp_path)
    assert found.returncode and "AssertionError" in found.stderr
