"""Imports point down, and the configuration of the layers names every module and no other."""

import ast
import functools
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import grimp
import pytest

from symgrad import errors
from symgrad.engine.method_table import MethodTable
from symgrad.methods.assemble import attach

ROOT = Path(__file__).parents[2]
CONFIGURATION = tomllib.loads((ROOT / "pyproject.toml").read_text())
CONTRACTS = {contract["type"]: contract for contract in CONFIGURATION["tool"]["importlinter"]["contracts"]}


def modules():
    """What stands directly under the package, as module names."""
    package = ROOT / "symgrad"
    files = {path.stem for path in package.glob("*.py")} - {"__init__", *CONTRACTS["layers"]["exhaustive_ignores"]}
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
def test_a_stale_configuration_fails(kind, change):
    assert disagreement({"layers": change(CONTRACTS["layers"]["layers"])})[kind]


def test_imports_point_down(tmp_path):
    linted = lint(tmp_path, (ROOT / "pyproject.toml").read_text())
    assert linted.returncode == 0, linted.stdout + linted.stderr


@pytest.mark.sweep
def test_an_upward_import_fails(tmp_path):
    layers = CONTRACTS["layers"]["layers"]
    upside_down = "\n".join(['[tool.importlinter]', 'root_packages = ["symgrad"]', '[[tool.importlinter.contracts]]', 'name = "Imports point up"',
                             'type = "layers"', 'containers = ["symgrad"]', f"layers = {layers[::-1]!r}"])
    linted = lint(tmp_path, upside_down)
    assert linted.returncode == 1 and "Imports point up BROKEN" in linted.stdout, linted.stdout + linted.stderr


def named_in_strings(name, path, known):
    """The modules of symgrad in the strings of a file that imports such modules by name: no linter sees these imports."""
    text = path.read_text()
    if not re.search(r"\b(import_module|__import__)\(f?['\"]symgrad", text):
        return set()
    package = name if path.name == "__init__.py" else name.rpartition(".")[0]
    strings = {node.value for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Constant) and isinstance(node.value, str)}
    return {f"{prefix}{string}" for string in strings for prefix in ("", "symgrad.", f"{package}.")} & known - {name}


@functools.cache
def imported():
    """Every module with the modules it imports: at module level, inside functions, for type checkers, and by a string."""
    graph = grimp.build_graph("symgrad", cache_dir=None)
    arrows = {name: set(graph.find_modules_directly_imported_by(name)) for name in graph.modules}
    for name in arrows:
        path = ROOT / (name.replace(".", "/") + ".py")
        path = path if path.exists() else ROOT / name.replace(".", "/") / "__init__.py"
        arrows[name] |= named_in_strings(name, path, set(arrows) - {"symgrad", "symgrad.__main__"})
    return arrows


def circle(arrows):
    """A circle of imports as a list of modules, None if there is none."""
    state, path = {}, []
    for root in sorted(arrows):
        stack = [(root, iter(sorted(arrows[root])))] if root not in state else []
        while stack:
            name, rest = stack[-1]
            if state.get(name) is None:
                state[name] = "open"
                path.append(name)
            following = next(rest, None)
            if following is None:
                state[name] = "done"
                path.pop()
                stack.pop()
            elif state.get(following) == "open":
                return [*path[path.index(following):], following]
            elif following not in state:
                stack.append((following, iter(sorted(arrows[following]))))
    return None


def test_there_is_no_import_cycle():
    arrows = imported()
    assert "symgrad.autograd.functional" in arrows["symgrad.autograd"] and "symgrad.diagnose.nans" in arrows["symgrad"]  # by a string
    assert circle(arrows) is None, " -> ".join(circle(arrows))


def test_an_import_cycle_fails():
    arrows = {**imported(), "symgrad.dtypes.dtype": {"symgrad.engine.tensor"}}
    found = circle(arrows)
    assert found is not None and found[0] == found[-1] and "symgrad.dtypes.dtype" in found


@pytest.mark.sweep
def test_tensor_gets_its_members_in_one_place():
    """No module but the assembling one sets an attribute of Tensor or Node, or puts names into its own globals, but for the lifted ops."""
    for path in (ROOT / "symgrad").rglob("*.py"):
        text, name = path.read_text(), path.relative_to(ROOT).as_posix()
        if name != "symgrad/methods/assemble.py":
            assert not re.search(r"setattr\((Tensor|Node)\b|^\s*(Tensor|Node)\.\w+ = ", text, re.MULTILINE), name
        allowed = "globals()[name] =" if name == "symgrad/__init__.py" else ""
        assert re.findall(r"globals\(\)(?:\.update\(\w+\)|\[\w+\] =)", text) == [allowed] * bool(allowed), name


def test_a_member_of_tensor_that_is_defined_twice_is_an_error():
    with pytest.raises(NameError, match="Tensor.numel is defined twice"):
        attach({"numel": None})
    table = MethodTable(twice=None)
    with pytest.raises(NameError, match="Tensor.twice is defined twice"):
        table["twice"] = None


def test_rules_import_nothing_that_computes():
    """What the forbidden contract promises, read from the files themselves: a lazy import counts too."""
    imported = re.compile(r"^\s*(?:from|import)\s+(numpy|scipy|sympy|mpmath|symgrad\.(?:engine|carriers|graph\.node))\b", re.MULTILINE)
    for path in (ROOT / "symgrad" / "ops").glob("*.py"):
        assert imported.findall(path.read_text()) == [], path.name


def test_only_what_is_compared_with_other_frameworks_may_be_skipped_without_a_package():
    """The extra `test` installs what the others need, so that a test is never left out there; an MPI is not to be had on every system."""
    for path in (ROOT / "tests").rglob("test_*.py"):
        assert path.parent.name in ("parity", "distributed") or not re.search(r"importorskip\(", path.read_text(encoding="utf-8")), path.name


def test_files_named_in_the_lint_configuration_exist():
    for pattern in CONFIGURATION["tool"]["ruff"]["lint"]["per-file-ignores"]:
        assert list(ROOT.glob(pattern)), f"{pattern} matches no file"


def test_modules_named_for_the_type_checker_exist():
    for override in CONFIGURATION["tool"]["mypy"]["overrides"]:
        for name in override["module"]:
            if name.startswith("symgrad."):
                assert name.split(".")[1] in modules(), f"{name} is no module"


CORE = ("arguments.py", "dtypes", "layouts", "graph", "carriers", "ops", "engine", "autograd", "factories", "methods", "fft.py", "linalg.py")
ATEN = re.compile(r"torch[.:]|aten::|\b[Ee]xpected\b|but got|argument '|\(position |not implemented for '|\bVariable\b|is not supported for|Please ")


def messages(path):
    """The strings of a file with their lines, and whether they are raised or warned of; \\0 stands for what is filled in, docstrings are left out."""
    left = [(ast.parse(path.read_text(encoding="utf-8")), False)]
    while left:
        node, told = left.pop()
        told = told or isinstance(node, ast.Raise) or isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "warn"
        if isinstance(node, ast.JoinedStr):
            yield node.lineno, "".join([part.value if isinstance(part, ast.Constant) else "\0" for part in node.values]), told
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.lineno, node.value, told
        elif not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)):
            left += [(child, told) for child in ast.iter_child_nodes(node)]


def of_pytorch(path, known):
    """The lines of a file with a text of PyTorch's, or with a message that is spelled as ATen spells its own."""
    return [f"{path}:{line}: {text}" for line, text, told in messages(path) if any(part in text for part in known) or told and ATEN.search(text)]


def test_the_core_knows_no_text_of_pytorch(tmp_path):
    """Texts that equal PyTorch's stand in one table, of at most 20, and nowhere else in the core."""
    texts = [value for name, value in vars(errors).items() if name.isupper()]
    known = [part for text in texts for part in re.split(r"\{\}", text) if part.strip().count(" ") > 2]
    assert len(texts) <= 20 and len(known) >= len(texts) - 2
    files = [path for name in CORE for path in ([ROOT / "symgrad" / name] if name.endswith(".py") else (ROOT / "symgrad" / name).rglob("*.py"))]
    files = [path for path in files if not path.name.startswith("numpy_")]  # NumPy's functions have its texts
    assert [line for path in files for line in of_pytorch(path, known)] == []
    wrong = tmp_path / "wrong.py"
    wrong.write_text(f'raise TypeError("f(): argument \'x\' (position 1) must be Tensor")\nx = "{known[0]}"\n')
    assert len(of_pytorch(wrong, known)) == 2
