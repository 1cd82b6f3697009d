"""What the README shows is what happens: its Python blocks, its shell sessions, and the tables that repeat facts of the code."""

import doctest
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()
BLOCK = re.compile(r"^(?:<!-- (?P<mark>\w+) -->\n)?```(?P<language>\w+)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
CONFIGURATION = tomllib.loads((ROOT / "pyproject.toml").read_text())


def blocks(language, text=README):
    return [found for found in BLOCK.finditer(text) if found["language"] == language]


def failures(text):
    """The failed examples among the Python blocks of a page, which share one namespace from top to bottom."""
    source = "\n".join(block["text"] for block in blocks("python", text))
    test = doctest.DocTestParser().get_doctest(source, {}, "README.md", "README.md", 0)
    report = []
    doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(test, out=report.append)
    return "".join(report)


def session(text):
    """The commands of a shell session and what each printed."""
    steps = re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]
    return [tuple(step.split("\n", 1)) for step in steps]


def shell(command):
    """What a command prints in a terminal of 150 columns, where the programs of this environment come first."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    ran = subprocess.run(command, shell=True, capture_output=True, text=True, cwd=ROOT, env={**os.environ, "PATH": path, "COLUMNS": "150"})
    return ran.stdout + ran.stderr


def table(heading, text=README):
    """The cells of the first table after a heading, without its first row."""
    lines = re.split(r"\n##", text.split(f"\n{heading}\n")[1])[0].splitlines()
    rows = [line for line in lines if line.startswith("|")]
    return [[cell.strip() for cell in row.strip("|").split("|")] for row in rows[2:]]


def test_python_blocks_print_what_they_show():
    assert sum(block["text"].count(">>>") for block in blocks("python")) >= 10
    assert failures(README) == ""


def test_a_python_block_that_lies_is_noticed():
    assert "Expected:\n    3\n" in failures("```python\n>>> 1 + 1\n3\n```\n")


def test_every_python_block_is_one_that_runs():
    assert all(block["text"].startswith(">>> ") for block in blocks("python"))
    assert {block["language"] for block in BLOCK.finditer(README)} == {"python", "console", "shell", "bibtex"}


@pytest.mark.parametrize("command, shown", [step for block in blocks("console") for step in session(block["text"])])
def test_shell_sessions_print_what_they_show(command, shown):
    printed = "".join(f"{line.rstrip()}\n" for line in shell(command).splitlines())
    assert doctest.OutputChecker().check_output(shown, printed, doctest.ELLIPSIS), printed


def test_there_are_exactly_two_commands_to_set_up():
    marked = {block["mark"]: block["text"] for block in blocks("shell") if block["mark"]}
    assert set(marked) == {"check", "test"}
    for command in marked.values():
        assert command.count("\n") == 1 and command.startswith("python3 -m venv .venv && .venv/bin/pip install ")


def test_the_architecture_names_the_layers_as_they_are():
    (contract,) = [contract for contract in CONFIGURATION["tool"]["importlinter"]["contracts"] if contract["type"] == "layers"]
    shown = [sorted(re.findall(r"`(\w+)`", row[0])) for row in table("### Layers")]
    assert shown == [sorted(re.split(r"\s*[|:]\s*", layer)) for layer in contract["layers"]]


def test_files_and_folders_named_in_the_pages_exist():
    for page in (README, *((ROOT / name).read_text() for name in ("CHANGELOG.md", "papers/README.md"))):
        for name in re.findall(r"`((?:symgrad|tests|papers|examples)/[\w./]*)`", page):
            assert (ROOT / name).exists(), name
