"""Standard streams that are missing, closed, full or a pipe without a reader; the exit codes; and what a checked file writes beside `--json`."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
import warnings
from pathlib import Path

import pytest

import symgrad
from symgrad.cli import main
from symgrad.system.frames import PACKAGE

ROOT = Path(__file__).parents[2]


def full():
    if not os.path.exists("/dev/full"):
        pytest.skip("there is no /dev/full here, a device that is always full")
    return open("/dev/full", "w", encoding="utf-8")


def closed():
    with open(os.devnull, "w", encoding="utf-8") as stream:
        return stream


def broken():
    reader, writer = os.pipe()
    os.close(reader)
    return os.fdopen(writer, "w", encoding="utf-8")


STREAMS = {"none": lambda: None, "closed": closed, "full": full, "broken pipe": broken}


@contextlib.contextmanager
def stream(name, kind):
    """Replace sys.stdout or sys.stderr by a stream of this kind."""
    made, before = STREAMS[kind](), getattr(sys, name)
    setattr(sys, name, made)
    try:
        yield
        assert getattr(sys, name) is made
    finally:
        setattr(sys, name, before)
        if made is not None:
            with contextlib.suppress(OSError):
                made.close()


FILE = '''
import symgrad
print("printed by the file")

def right(x=1.5):
    print("printed by the function", flush=True)
    return x**2

wrong_cube = symgrad.elementwise("{op}", lambda xp, x: x**3, lambda xp, y, x: 2 * x**2)

def wrong(x=1.5):
    return wrong_cube(x)

def crash(x=1.5):
    raise ValueError("no")
'''

# the arguments, the exit code, and whether something is written to standard output
COMMANDS = {
    "derive": (["derive", "x**2"], 0, True), "bad formula": (["derive", "x +"], 2, False), "version": (["--version"], 0, True),
    "bad flag": (["derive", "x", "--nothing"], 2, False), "cache": (["cache"], 0, True), "check": (["check", "FILE:right"], 0, True),
    "json": (["check", "FILE:right", "--json"], 0, True), "refuted": (["check", "FILE:wrong"], 1, True), "crash": (["check", "FILE:crash"], 2, True),
}


def arguments(command, folder):
    given, code, writes = COMMANDS[command]
    path = folder / "model.py"
    path.write_text(FILE.format(op=f"cube_{abs(hash(str(folder)))}"), encoding="utf-8")
    few = ["--points", "1", "--order", "1"] if given[0] in ("derive", "check") else []
    return [part.replace("FILE", str(path)) for part in given] + few, code, writes


@pytest.mark.sampled(18)
@pytest.mark.parametrize("kind", STREAMS)
@pytest.mark.parametrize("name", ["stdout", "stderr"])
@pytest.mark.parametrize("command", COMMANDS)
def test_commands_keep_their_exit_codes_without_streams(command, name, kind, tmp_path, capfd):
    given, code, writes = arguments(command, tmp_path)
    with stream(name, kind):
        assert main(given) == (74 if kind == "full" and name == "stdout" and writes else code)
    out, err = capfd.readouterr()
    assert "Traceback" not in out + err and (command == "crash" or "Error" not in err)


LIBRARY = {
    "check": lambda: symgrad.check(lambda x: x**2, 1.5, order=1, points=1, progress=True),
    "check on a terminal": lambda: symgrad.check(lambda x: x**2, 1.5, order=1, points=1),
    "map": lambda: symgrad.map(lambda x: x**2, [1.0, 2.0], progress=True),
}


@pytest.mark.parametrize("kind", STREAMS)
@pytest.mark.parametrize("name", ["stdout", "stderr"])
@pytest.mark.parametrize("call", LIBRARY)
def test_progress_is_shown_only_where_it_can_be(call, name, kind):
    with stream(name, kind):
        LIBRARY[call]()


def show(message, category, filename, lineno, file=None, line=None):
    """Show a warning as Python does; pytest collects them."""
    if sys.stderr is not None:
        with contextlib.suppress(OSError):
            sys.stderr.write(warnings.formatwarning(message, category, filename, lineno, line))


@pytest.mark.parametrize("kind", STREAMS)
@pytest.mark.parametrize("action", ["default", "error"])
def test_anomaly_mode_reports_its_error_without_streams(action, kind):
    x = symgrad.tensor(0.0, requires_grad=True)
    with stream("stderr", kind), warnings.catch_warnings():
        warnings.showwarning = show
        warnings.simplefilter("always", UserWarning)
        with symgrad.autograd.detect_anomaly(), pytest.raises(RuntimeError, match="SqrtBackward0"):
            warnings.simplefilter(action, UserWarning)
            (0 * x.sqrt()).backward()


@pytest.mark.parametrize("name", ["stdout", "stderr"])
def test_a_compiled_function_that_prints_runs_without_streams(name):
    def f(x):
        print("printed", file=getattr(sys, name), flush=True)
        return x * x

    compiled = symgrad.compile(f)
    with stream(name, "none"):
        assert [float(compiled(symgrad.tensor(3.0))) for _ in range(4)] == [9.0] * 4


# What is raised

RAISED = {
    "an exception whose message raises": "class Silent(Exception):\n    def __str__(self):\n        raise RuntimeError\n", "sys.exit(1)": "",
    "SystemExit()": "", "sys.exit('text')": "", "GeneratorExit": "", "BaseException('no')": "", "MemoryError": "", "RecursionError": "",
    "StopIteration": "", "AssertionError": "", "ExceptionGroup('several', [ValueError()])": "", "SyntaxError('no', ('file', 1, None, None))": "",
    "a recursion": "def deep(x):\n    return deep(x) + 1\n",
    "a message that ends the process": "class Ending(ValueError):\n    def __str__(self):\n        sys.exit(1)\n",
}
STATEMENTS = {"an exception whose message raises": "raise Silent", "a recursion": "deep(1)", "a message that ends the process": "raise Ending",
              "sys.exit(1)": "sys.exit(1)", "sys.exit('text')": "sys.exit('text')"}
PLACES = {
    "the file": ("{}\ndef f(x=1.5):\n    return x\n", []),
    "the function": ("def f(x=1.5):\n    {}\n", []),
    "other points": ("def f(x=1.5):\n    if x != 1.5:\n        {}\n    return x * x\n", []),
    "a gradient": ("def f(x=1.5):\n    return own(x)\ndef rule(xp, y, x):\n    {}\nown = symgrad.elementwise(OP, lambda xp, x: x * 2, rule)\n", []),
    "a function of NumPy": ("def f(x):\n    {}\n", ["--formula", "x", "--framework", "numpy"]),
}


@pytest.mark.sampled(18)
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("what", RAISED)
def test_a_file_that_raises_is_never_refuted(what, place, tmp_path, capsys):
    text, options = PLACES[place]
    path = tmp_path / "model.py"
    text = text.replace("OP", repr(f"own_{abs(hash(str(tmp_path)))}"))
    path.write_text(f"import sys\nimport symgrad\n{RAISED[what]}{text.format(STATEMENTS.get(what, f'raise {what}'))}", encoding="utf-8")
    code = main(["check", f"{path}:f", "--points", "1", "--order", "1", *options])
    out, err = capsys.readouterr()
    assert code in ((0, 2) if place == "other points" else (2,)), out + err
    assert "Traceback" not in out + err and (code == 0 or place == "a function of NumPy" or str(path) in err or "SyntaxError" in what)


@pytest.mark.sampled(5)
@pytest.mark.parametrize("mistake", ["None.missing", "{}[0]", "[][0]", "assert_()", "1 + ''", "undefined"])
@pytest.mark.parametrize("where", ["symgrad.checks.checker.Checker._sample", "symgrad.cli.parse"])
def test_a_mistake_in_symgrad_is_told_apart(where, mistake, tmp_path, capsys, monkeypatch):
    space = {}
    exec(compile(f"def broken(*args):\n    {mistake}\ndef assert_():\n    assert False\n", PACKAGE + "broken.py", "exec"), space)
    monkeypatch.setattr(where, space["broken"])
    code = main(arguments("check", tmp_path)[0] if "checker" in where else ["derive", "x"])
    err = capsys.readouterr().err
    assert code == 70 and "Traceback" in err and err.splitlines()[-1].startswith("symgrad: this is an error in symgrad itself"), err


def test_a_compiled_program_that_another_process_removes_meanwhile_is_not_counted(tmp_path, capsys, monkeypatch):
    (tmp_path / "kept.so").write_bytes(b"1234")
    monkeypatch.setenv("SYMGRAD_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr("symgrad.program.native.store.contents", lambda folder: [tmp_path / "gone.so", tmp_path / "kept.so"])
    assert main(["cache"]) == 0 and "1 compiled program, 4 bytes" in capsys.readouterr().out


# `--json`

NOISY = '''
import atexit, os, sys
print("noise")
os.write(1, b"noise\\n")
os.system("echo noise")
sys.__stdout__.write("noise\\n")
try:
    import ctypes
    ctypes.CDLL(None).puts(b"noise")
except (ImportError, TypeError, OSError):
    print("noise")
atexit.register(lambda: (print("noise"), os.write(1, b"noise\\n"), sys.__stdout__.write("noise\\n")))
sys.stdout = sys.__stdout__

def f(x=1.5):
    print("noise")
    os.write(1, b"noise\\n")
    return x * x
'''


def program(*given, **options):
    """A process of the command line."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), **options.pop("env", {})}
    return subprocess.Popen([sys.executable, *(options.pop("start", None) or ["-m", "symgrad"]), *given], stderr=subprocess.PIPE, text=True,
                            env=environment, **{"stdout": subprocess.PIPE} | options, preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))


@pytest.mark.sweep
def test_json_is_all_that_is_on_standard_output(tmp_path, capfd):
    path = tmp_path / "noisy.py"
    path.write_text(NOISY, encoding="utf-8")
    process = program("check", f"{path}:f", "--json", "--points", "1")
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0 and json.loads(out)["reports"][0]["verdict"] == "proved", err
    assert set(err.split()) == {"noise"} and len(err.split()) >= 10
    path.write_text(NOISY.replace("atexit.register", "str"), encoding="utf-8")
    assert main(["check", f"{path}:f", "--json", "--points", "1"]) == 0
    os.write(1, b"after")
    out, err = capfd.readouterr()
    assert json.loads(out.removesuffix("after"))["reports"][0]["verdict"] == "proved"


# Interrupts

SCRIPT = "import sys\nfrom symgrad.cli import main\nif __name__ == '__main__':\n    sys.exit(main())\n"


@pytest.mark.parametrize("start", ["module", "script"])
def test_an_interrupt_while_modules_are_imported(start, tmp_path):
    (tmp_path / "numpy.py").write_text("import os, signal, time\nos.kill(os.getpid(), signal.SIGINT)\ntime.sleep(60)\n", encoding="utf-8")
    script = tmp_path / "symgrad"
    script.write_text(SCRIPT, encoding="utf-8")
    process = program("--version", start=[str(script)] if start == "script" else None, env={"PYTHONPATH": f"{tmp_path}{os.pathsep}{ROOT}"})
    assert process.communicate(timeout=60) == ("", "symgrad: interrupted\n") and process.returncode == 130


ENDINGS = {
    "an atexit function": "import atexit, time\natexit.register(lambda: (open('started', 'w').close(), time.sleep(60)))\n",
    "a thread": "import threading, time\nthreading.Thread(target=lambda: (time.sleep(2), open('started', 'w').close(), time.sleep(60))).start()\n",
    "output that nobody reads": "print('y' * 1_000_000)\n",
}


@pytest.mark.sweep
@pytest.mark.parametrize("what", ENDINGS)
def test_an_interrupt_at_the_end(what, tmp_path):
    (tmp_path / "model.py").write_text(ENDINGS[what] + "open('loaded', 'w').close()\ndef f(x=1.5):\n    return x\n", encoding="utf-8")
    with program("check", "model.py", "--points", "1", cwd=tmp_path) as process:
        try:
            end = time.monotonic() + 60
            while "output" not in what and not (tmp_path / "started").exists() and time.monotonic() < end:
                time.sleep(0.05)
            if "output" in what:
                assert process.stdout.read(1) == "y"  # and no more: the pipe is full
            time.sleep(0.5)
            process.send_signal(signal.SIGINT)
            assert process.wait(30) == 130 and process.stderr.read() == "symgrad: interrupted\n"
        finally:
            process.kill()


@pytest.mark.sweep
@pytest.mark.parametrize("redirection, command", [
    (redirection, command) for redirection in (">/dev/full", ">&-", "2>&-", "2>/dev/full", "| true", ">&- 2>&- <&-")
    for command in ("refuted", "bad flag", "json")])
def test_the_process_keeps_its_exit_code_without_streams(redirection, command, tmp_path):
    if "full" in redirection and not os.path.exists("/dev/full"):
        pytest.skip("there is no /dev/full here, a device that is always full")
    given, code, writes = arguments(command, tmp_path)
    line = f"set -o pipefail; {sys.executable} -m symgrad {' '.join(map(repr, given))} {redirection}"
    done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, env={**os.environ, "PYTHONPATH": str(ROOT)}, timeout=120)
    assert done.returncode == (74 if redirection == ">/dev/full" and writes else code), done.stderr
    assert "Traceback" not in done.stderr and "ignored" not in done.stderr
