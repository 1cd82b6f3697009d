"""Imports point down, and the configuration that says so names every module there is and no other."""

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
CONFIGURATION = tomllib.loads((ROOT / "pyproject.toml").read_text())
CONTRACTS = {contract["type"]: contract for contract in CONFIGURATION["tool"]["importlinter"]["contracts"]}


def modules():
    """What stands directly under the package, as module names."""
    package = ROOT / "symgrad"
    files = {path.stem for path in package.glob("*.py")} - {"__init__"}
    return files | {path.parent.name for path in package.glob("*/__init__.py")}


def layered(contract):
    return [name for layer in contract["layers"] for name in re.split(r"\s*[|:]\s*", layer)]


def disagreement(contract):
    """Modules without a layer, layers without a module, and modules that stand in two layers."""
    named = layered(contract)
    return {"no layer": modules() - set(named), "no module": set(named) - modules(), "twice": {name for name in named if named.count(name) > 1}}


def lint(folder, text):
    (folder / "layers.toml").write_text(text)
    command = [sys.executable, "-c", "import sys; from importlinter.cli import lint_imports_command as run; sys.exit(run())",
               "--config", "layers.toml", "--no-cache"]
    return subprocess.run(command, capture_output=True, text=True, cwd=folder, env={**os.environ, "PYTHONPATH": str(ROOT)})


def test_every_module_has_one_layer():
    assert disagreement(CONTRACTS["layers"]) == {"no layer": set(), "no module": set(), "twice": set()}


@pytest.mark.parametrize("kind, change", [("no layer", lambda layers: layers[1:]), ("no module", lambda layers: [*layers, "attic"]),
                                          ("twice", lambda layers: [*layers, layers[0]])])
def test_a_configuration_that_rots_is_noticed(kind, change):
    assert disagreement({"layers": change(CONTRACTS["layers"]["layers"])})[kind]


def test_imports_point_down(tmp_path):
    linted = lint(tmp_path, (ROOT / "pyproject.toml").read_text())
    assert linted.returncode == 0, linted.stdout + linted.stderr


def test_an_import_that_points_up_is_noticed(tmp_path):
    layers = CONTRACTS["layers"]["layers"]
    upside_down = "\n".join(['[tool.importlinter]', 'root_packages = ["symgrad"]', '[[tool.importlinter.contracts]]', 'name = "Imports point up"',
                             'type = "layers"', 'containers = ["symgrad"]', f"layers = {layers[::-1]!r}"])
    linted = lint(tmp_path, upside_down)
    assert linted.returncode == 1 and "Imports point up BROKEN" in linted.stdout, linted.stdout + linted.stderr


def test_rules_import_nothing_that_computes():
    """What the forbidden contract promises, read from the files themselves: a lazy import counts too."""
    imported = re.compile(r"^\s*(?:from|import)\s+(numpy|scipy|sympy|mpmath|symgrad\.(?:engine|carriers|graph\.node))\b", re.MULTILINE)
    for path in (ROOT / "symgrad" / "ops").glob("*.py"):
        assert imported.findall(path.read_text()) == [], path.name


def test_files_named_in_the_lint_configuration_exist():
    for pattern in CONFIGURATION["tool"]["ruff"]["lint"]["per-file-ignores"]:
        assert list(ROOT.glob(pattern)), f"{pattern} matches no file"


def test_modules_named_for_the_type_checker_exist():
    for override in CONFIGURATION["tool"]["mypy"]["overrides"]:
        for name in override["module"]:
            if name.startswith("symgrad."):
                assert name.split(".")[1] in modules(), f"{name} is no module"
