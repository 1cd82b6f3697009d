"""The command line: its output, its exit codes, and one message without a traceback for bad input."""

import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import symgrad
from symgrad.cli import main
from tests.check.test_check_report import KEYS as REPORT

ROOT = Path(__file__).parents[2]
CORPUS = (ROOT / "tests" / "support" / "corpus" / "commands.txt").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^== (.+)\n((?:.*\n)*?)==\n((?:\$.*\n|\d+\n|[-+!] .*\n)*)", CORPUS, re.MULTILINE)
FILES = {name: text for name, text, _ in BLOCKS}
COMMANDS = [(name, command, int(code), re.findall(r"^([-+!]) (.*)$", said, re.MULTILINE)) for name, _, commands in BLOCKS
            for command, code, said in re.findall(r"^\$ ?(.*)\n(\d+)\n((?:[-+!] .*\n)*)", commands, re.MULTILINE)]


@pytest.fixture
def run(capsys, tmp_path):
    """Run a command line in this process, on a file with a text: the exit code, standard output, standard error."""
    def run(command, text=""):
        path = tmp_path / "model.py"
        path.write_text(text, encoding="utf-8")
        first, *rest = shlex.split(command.replace("FILE", str(path)).replace("FOLDER", str(tmp_path))) or [""]
        code = main([first, *(["--points", "3"] if first in ("check", "derive") else []), *rest] if command else [])
        out, err = capsys.readouterr()
        assert "Traceback" not in out + err
        return code, out.replace(str(path), "FILE"), err.replace(str(path), "FILE")

    return run


@pytest.mark.sampled(6)
@pytest.mark.parametrize("name, command, code, said", COMMANDS, ids=[f"{name}: {command}" for name, command, *_ in COMMANDS])
def test_commands_of_the_corpus(run, name, command, code, said):
    found, out, err = run(command, FILES[name].replace("\\0", "\0"))
    words = {kind: [text for mark, text in said if mark == kind] for kind in "+-!"}
    assert found == code and all(text in out for text in words["+"]) and not any(text in out for text in words["-"]), out + err
    assert all(text in err for text in words["!"]) and (err == "" or code or words["!"]), err
    assert words["+"] or out == "" and (err.startswith("symgrad: ") or "usage: symgrad" in err), out + err


def test_the_corpus_of_commands_is_read_whole():
    assert len(FILES) == 18 and len(COMMANDS) >= 85 and {name for name, *_ in COMMANDS} == set(FILES)


@pytest.mark.sweep
def test_a_file_that_is_checked_again_in_the_same_process_counts_anew(run):
    assert [run("check FILE", FILES["a wrong rule"])[0] for _ in range(2)] == [1, 1]


@pytest.mark.sweep
def test_json_is_one_document_with_a_stable_schema(run):
    text = FILES["functions"]
    code, out, err = run("check FILE --json", f"{text}\nprint('hello from the file')\n")
    data = json.loads(out)
    assert code == 0 and set(data) == {"file", "reports"} and "hello from the file" in err
    assert [r["function"] for r in data["reports"]] == ["energy", "pressure"]
    for report in data["reports"]:
        assert set(report) == REPORT and report["schema"] == 1 and report["verdict"] == "proved"
    code, out, _ = run("check FILE:energy --wrt x --json", text)
    assert code == 0 and json.loads(out)["reports"][0]["names"] == ["x"]
    code, out, _ = run("check FILE --json", FILES["a wrong rule"])
    found = json.loads(out)["reports"][1]["counterexample"]
    assert code == 1 and found["point"] == {"x": -2.0, "y": 0.0} and found["op"] == "cube_of_the_file"
    code, out, _ = run("check FILE --formula t**2 --returns pair --json", FILES["foreign functions"])
    report = json.loads(out)["reports"][0]
    assert code == 1 and report["function"] == "both" and report["counterexample"]["where"] == "df/dt" and report["verdict"] == "refuted"


def test_a_file_may_import_its_neighbours_and_have_no_suffix(run, tmp_path):
    (tmp_path / "neighbour_of_model.py").write_text("def square(x):\n    return x * x\n")
    (tmp_path / "model").write_text("from neighbour_of_model import square\ndef f(x=2.0):\n    return square(x)\n")
    code, out, _ = run("check FOLDER/model")
    assert code == 0 and "f: proved" in out
    sys.modules.pop("neighbour_of_model")


@pytest.mark.sweep
def test_a_formula_as_latex_and_as_json(run):
    code, out, _ = run("derive x**2/y --latex")
    assert code == 0 and out.splitlines()[:2] == [r"f = \frac{x^{2}}{y}", r"\frac{\partial f}{\partial x} = \frac{2 x}{y}"] and "% proved" in out
    code, out, _ = run("derive x**2/y --at x=3,y=[1,2] --wrt y --json")
    data = json.loads(out)
    assert code == 0 and set(data) == REPORT and data["names"] == ["y_0", "y_1"] and data["weighted_shape"] == [2]
    assert data["gradient"] == {"y": [-9.0, -4.5]} and data["hessian"] == [[18.0, 0.0], [0.0, 4.5]]
    code, out, _ = run("derive log(x) --at x=-1 --json")
    assert code == 2 and json.loads(out)["value"] == "nan"


def test_the_version(run):
    assert run("--version") == (0, f"symgrad {symgrad.__version__}\n", "")


def interrupted(folder, program, *arguments):
    """The exit code, standard output and standard error of `symgrad check` of a program, interrupted when it is called and has written `started`."""
    path = folder / "slow.py"
    path.write_text(program, encoding="utf-8")
    # A process that is started in the background inherits that SIGINT is ignored.
    with subprocess.Popen([sys.executable, "-m", "symgrad", "check", f"{path}:f", *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True, cwd=folder, env={**os.environ, "PYTHONPATH": str(ROOT)},
                          preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL)) as process:
        try:
            end = time.monotonic() + 60
            while not (folder / "started").exists() and time.monotonic() < end:
                time.sleep(0.05)
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=30)
        finally:
            process.kill()
    return process.returncode, out, err


@pytest.mark.sweep
@pytest.mark.parametrize("default, arguments", [("=1.0", ()), ("", ("--formula", "x", "--framework", "numpy"))], ids=["check", "cross-check"])
def test_ctrl_c_ends_a_check_cleanly(tmp_path, default, arguments):
    program = f"import time\ndef f(x{default}):\n    open('started', 'w').close()\n    time.sleep(60)\n    return x\n"
    assert interrupted(tmp_path, program, *arguments) == (130, "", "symgrad: interrupted\n")
