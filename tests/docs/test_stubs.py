"""The stub files are current, complete, and of use to a type checker."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from symgrad.engine.traced import FUNCTIONS
from tests import stubs

ROOT = Path(__file__).parents[2]

GOOD = '''
import symgrad as torch
from symgrad import Tensor

x = torch.tensor([1.0, 2.0], requires_grad=True, symbol="x", dtype=torch.float64)
y: Tensor = torch.tanh(x).softmax(dim=0) + 2 / x**2 - x.sum(axis=0, keepdims=True)
largest, at = x.max(0)
most: Tensor = torch.maximum(x, 1.0).max()
pieces: tuple[Tensor, ...] = torch.split(x, 1)
positive: bool = bool((x > 0).all()) and x.requires_grad
(slope,) = torch.autograd.grad(y.sum(), x, create_graph=True)
with torch.no_grad():
    x.grad = None
y.mean().backward()
torch.zeros_like(x).reshape(2, 1).T @ torch.ones(2, 1)
'''

WRONG = {
    "torch.tanh(x, keepdim=True)": 'Unexpected keyword argument "keepdim" for "tanh"',
    "torch.sum(x, dimension=0)": 'No overload variant of "sum"',
    "x.softmx(0)": '"Tensor" has no attribute "softmx"',
    "torch.tanhh(x)": 'Module has no attribute "tanhh"',
    "x.flatten(start_dim='a')": 'Argument "start_dim" to "flatten" of "Tensor" has incompatible type "str"',
    "torch.zeros(2, dtpye=torch.float64)": 'Unexpected keyword argument "dtpye" for "zeros"',
    "n: int = x.exp()": "Incompatible types in assignment",
}


def python(*arguments, cwd=ROOT):
    return subprocess.run([sys.executable, *map(str, arguments)], capture_output=True, text=True, cwd=cwd)


def defined(path):
    """The names a stub file defines at its top level, and those of its class Tensor."""
    names, methods = set(), set()
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.ClassDef) and node.name == "Tensor":
            methods = {getattr(m, "name", None) or m.target.id for m in node.body}
        elif isinstance(node, ast.ImportFrom):
            names |= {alias.asname or alias.name for alias in node.names}
        elif isinstance(node, ast.AnnAssign):
            names.add(node.target.id)
        elif isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            names.add(node.name)
    return names, methods


@pytest.mark.sweep
def test_the_stub_files_are_current():
    checked = python("-m", "tests.stubs", "--check")
    assert checked.returncode == 0, checked.stdout + checked.stderr


@pytest.mark.sweep
def test_a_stale_stub_file_fails_the_check(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(stubs, "PACKAGE", tmp_path)
    (tmp_path / "engine").mkdir()
    assert stubs.main([]) == 0
    assert stubs.main(["--check"]) == 0
    path = tmp_path / "__init__.pyi"
    path.write_text(path.read_text().replace("def tanh(input: ", "def tanh(x: "))
    capsys.readouterr()
    assert stubs.main(["--check"]) == 1
    assert str(path) in capsys.readouterr().out


def test_all_public_names_are_in_the_stubs():
    names, _ = defined(ROOT / "symgrad" / "__init__.pyi")
    _, methods = defined(ROOT / "symgrad" / "engine" / "tensor.pyi")
    code = """import symgrad; print(*[name for name in vars(symgrad.Tensor)])"""
    fresh = python("-c", code).stdout.split()  # tests may have declared ops of their own here
    assert set(FUNCTIONS) <= names
    assert {name for name in fresh if not name.startswith("_")} <= methods


def test_a_parameter_without_a_type_is_named(monkeypatch):
    monkeypatch.delitem(stubs.TYPES, "keepdim")
    with pytest.raises(LookupError, match="the parameter keepdim has no type; add it to TYPES"):
        stubs.stub_files()


@pytest.mark.sweep
def test_a_type_checker_accepts_right_programs_and_rejects_wrong_ones(tmp_path):
    (tmp_path / "good.py").write_text(GOOD)
    lines = ["import symgrad as torch", 'x = torch.tensor(1.0, symbol="x")', *WRONG]
    (tmp_path / "wrong.py").write_text("\n".join(lines) + "\n")
    checked = python("-m", "mypy", "--strict", "--config-file=", f"--cache-dir={tmp_path / 'cache'}", "good.py", "wrong.py", cwd=tmp_path)
    assert "good.py" not in checked.stdout, checked.stdout
    found = [line for line in checked.stdout.splitlines() if ": error: " in line]
    for number, message in enumerate(WRONG.values(), start=3):
        assert any(line.startswith(f"wrong.py:{number}: error: {message}") for line in found), (message, checked.stdout)
