"""The example project of a new op: the commands of its README are run, and their output is compared with the README."""

import doctest
import re
import shlex
import shutil
import sys
import tomllib
from pathlib import Path

import pytest

from symgrad.cli import main
from symgrad.testing.checks import CHECKS
from tests.support import plugin_runs

pytest_plugins = "pytester"
everything_is_imported = plugin_runs.everything_is_imported  # a fixture

PROJECT = Path(__file__).parents[2] / "examples" / "new_op"
README = (PROJECT / "README.md").read_text(encoding="utf-8")
CODE = (PROJECT / "new_op.py").read_text(encoding="utf-8")


@pytest.fixture
def run(pytester, monkeypatch):
    """Run pytest, as the README says it, in a copy of the project and in this process; what it prints."""
    shutil.copytree(PROJECT, pytester.path, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__", ".*"))
    monkeypatch.setenv("COLUMNS", "110")

    def command(text):
        name, *arguments = shlex.split(text)
        assert name == "pytest"
        result = pytester.runpytest_inprocess(*arguments, "-p", "no:cacheprovider", "-p", "no:xdist")
        return result.ret, "\n".join(line.rstrip() for line in result.outlines)

    return command


def blocks(language):
    return re.findall(rf"^```{language}\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)


def said(command):
    """The output of a command in the README."""
    (found,) = [block for block in blocks("console") if block.partition("\n")[0] == f"$ {command}"]
    return found.partition("\n")[2]


def plain(text):
    """Without times and progress, and with rules of one length; the checks in the order of their names."""
    text = re.sub(r"[=_]{3,}", "---", re.sub(r" +\[ *\d+%\]$|\d+\.\d+(?=s\b)", "", text, flags=re.MULTILINE))
    text = re.sub(r"^(tests/\S+ )([.sF]+)$", lambda m: m[1] + "".join(sorted(m[2])), text, flags=re.MULTILINE)
    listed = sorted(re.findall(r"^tests/\S+\[.*\n", text, re.MULTILINE))
    return re.sub(r"^tests/\S+\[.*\n", lambda _: listed.pop(0), text, flags=re.MULTILINE).strip() + "\n"


def agree(told, found):
    return doctest.OutputChecker().check_output(plain(told), plain(found), doctest.ELLIPSIS)


@pytest.mark.sweep
def test_the_op_and_the_edit_are_those_of_the_files():
    (shown,), (edit,) = blocks("python"), blocks("diff")
    assert shown in CODE and len(shown.splitlines()) <= 10
    old, new = (next(line[1:] for line in edit.splitlines() if line.startswith(sign)) for sign in "-+")
    assert CODE.count(old) == 1 and old != new and CODE.replace(old, new) != CODE


@pytest.mark.sweep
def test_it_is_installed_from_here():
    assert blocks("console")[0] == '$ python -m venv .venv\n$ . .venv/bin/activate\n$ pip install "../..[testing]"\n'
    project = tomllib.loads((PROJECT / "../../pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["name"] == "symgrad" and "testing" in project["optional-dependencies"]
    assert tomllib.loads((PROJECT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["dependencies"] == ["symgrad[testing]"]


@pytest.mark.sweep
def test_its_test_file_is_the_one_that_is_written(tmp_path, monkeypatch, capsys):
    shutil.copytree(PROJECT, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    (command,) = re.findall(r"^\$ symgrad (.*)$", README, re.MULTILINE)
    (tmp_path / "tests" / "test_log1mexp.py").write_text("")
    try:
        assert main(shlex.split(command)) == 0
    finally:
        sys.modules.pop("new_op", None)
    assert capsys.readouterr().out == said(f"symgrad {command}")
    assert (tmp_path / "tests" / "test_log1mexp.py").read_text() == (PROJECT / "tests" / "test_log1mexp.py").read_text()


@pytest.mark.sweep
def test_attacked_it_stands(run):
    code, found = run("pytest -v")
    assert code == 0
    assert set(re.findall(r"log1mexp\[(\w+)\] (?:PASSED|SKIPPED)", found)) == set(CHECKS)
    assert agree(said("pytest -v"), found), f"the README says something else; this is what is printed:\n{found}"


@pytest.mark.sweep
def test_broken_it_is_caught(run):
    old, new = (next(line[1:] for line in blocks("diff")[0].splitlines() if line.startswith(sign)) for sign in "-+")
    Path("new_op.py").write_text(CODE.replace(old, new))
    code, found = run("pytest")
    assert code == pytest.ExitCode.TESTS_FAILED
    assert {"second", "third"} <= set(re.findall(r"^FAILED .*log1mexp\[(\w+)\]", found, re.MULTILINE)) <= set(CHECKS) - {"value", "pullback"}
    assert agree(said("pytest"), found), f"the README says something else; this is what is printed:\n{found}"


def test_the_other_options_are_there(run):
    _, found = run("pytest --help")
    options = re.findall(r"^\$ pytest (--symgrad-\w+)", blocks("console")[-1], re.MULTILINE)
    assert len(options) == 4 and all(option in found for option in options)


def test_a_readme_with_another_output_is_an_error():
    text = said("pytest -v")
    for old, new in ((f"{len(CHECKS)} checks", "1 check"), ("PASSED", "FAILED"), ("new_op", "old_op")):
        assert old not in text or not agree(text.replace(old, new, 1), text)
