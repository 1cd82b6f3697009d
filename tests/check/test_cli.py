"""The command line: its output, its exit codes, and one message without a traceback for bad input."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import symgrad
from symgrad.cli import main
from tests.check.test_check_report import KEYS as REPORT

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture
def run(capsys):
    """Run the command line in this process: the exit code, standard output, standard error."""
    def run(*arguments):
        code = main([*arguments, "--points", "3"] if arguments and arguments[0] in ("check", "derive") else list(arguments))
        out, err = capsys.readouterr()
        assert "Traceback" not in out + err
        return code, out, err

    return run


@pytest.fixture
def file(tmp_path):
    def write(text, name="model.py"):
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        return str(path)

    return write


GOOD = '''
import symgrad

HALF = 0.5

def energy(x=1.0, y=[1.0, 2.0]):
    return (x * y).sin().sum()

@symgrad.example(v=2.0)
def pressure(v, scale=2):
    return scale / v

def helper(a, b):
    return a * b

def steps(n=3):
    return n

def _private(x=1.0):
    return x

def main():
    print("not run")
'''

WRONG = '''
import symgrad

cube = symgrad.elementwise("cube_of_the_file", lambda xp, x: x**3, lambda xp, y, x: 3 * x**2 + xp.where(x < -1, 1e-6 * x, 0 * x))

def right(x=1.0):
    return x**2

def wrong(x=1.3, y=2.0):
    return cube(x) + y
'''


# symgrad check

def test_every_function_with_inputs_is_checked(run, file):
    code, out, err = run("check", file(GOOD))
    assert code == 0 and err == ""
    assert "energy: proved" in out and "pressure: proved" in out
    assert not any(name in out for name in ("helper", "steps", "_private", "not run"))


def test_one_function_is_checked_by_name_and_at_other_inputs(run, file):
    path = file(GOOD)
    code, out, _ = run("check", f"{path}:helper", "--at", "a=3,b=pi/2")
    assert code == 0 and "helper: proved" in out and "value 4.71238898" in out
    code, out, _ = run("check", f"{path}:energy", "--at", "x=0.5", "--order", "1")
    assert code == 0 and "x = 0.5, y = [1., 2.]" in out and "Hessian" not in out
    code, out, _ = run("check", path, "--at", "a=1,b=2")
    assert code == 0 and "helper: proved" in out and "energy" not in out
    code, out, _ = run("check", f"{path}:_private")
    assert code == 0 and "_private: proved" in out


def test_wrt_names_the_inputs(run, file):
    code, out, _ = run("check", file(GOOD) + ":energy", "--wrt", "x", "--json")
    assert code == 0 and json.loads(out)["reports"][0]["names"] == ["x"]


def test_a_wrong_rule_is_refuted_with_a_simple_counterexample(run, file):
    path = file(WRONG)
    code, out, _ = run("check", path)
    assert code == 1 and "right: proved" in out and "wrong: refuted" in out
    assert "x = -2, y = 0  df/dx       11.999998     12" in out and "the rule of the op cube_of_the_file is wrong" in out
    assert run("check", path + ":right")[0] == 0
    assert run("check", path)[0] == 1  # the same file again, in the same process


def test_json_is_one_document_with_a_stable_schema(run, file):
    text = GOOD + "\nprint('hello from the file')\n"
    code, out, err = run("check", file(text), "--json")
    data = json.loads(out)
    assert code == 0 and set(data) == {"file", "reports"} and "hello from the file" in err
    assert [r["function"] for r in data["reports"]] == ["energy", "pressure"]
    for report in data["reports"]:
        assert set(report) == REPORT and report["schema"] == 1 and report["verdict"] == "proved"
    code, out, _ = run("check", file(WRONG), "--json")
    found = json.loads(out)["reports"][1]["counterexample"]
    assert code == 1 and found["point"] == {"x": -2.0, "y": 0.0} and found["op"] == "cube_of_the_file"


def test_a_file_may_import_its_neighbours_and_have_no_suffix(run, file):
    file("def square(x):\n    return x * x\n", "neighbour_of_model.py")
    code, out, _ = run("check", file("from neighbour_of_model import square\ndef f(x=2.0):\n    return square(x)\n", "model"))
    assert code == 0 and "f: proved" in out
    sys.modules.pop("neighbour_of_model")


def test_functions_that_cannot_be_checked_are_bad_input(run, file):
    code, out, _ = run("check", file("import symgrad\ndef f(x=1.0):\n    return symgrad.rand(1).sum() * x\n"))
    assert code == 2 and "f: not checkable" in out and "two calls" in out


BAD_FILES = {
    "a syntax error": ("def f(x=1.0):\n    return x +\n", ["line 2", "return x +", "SyntaxError"]),
    "an error when it runs": ("import symgrad\nx = 1 / 0\n", ["line 2", "x = 1 / 0", "ZeroDivisionError: division by zero"]),
    "an import that fails": ("import no_such_module\n", ["line 1", "No module named 'no_such_module'"]),
    "an exit": ("import sys\nsys.exit(3)\n", ["line 2", "sys.exit(3)"]),
    "a function that raises": ("def f(x=1.0):\n    y = x * 2\n    return y.no_such_method()\n", ["line 3", "y.no_such_method()", "AttributeError"]),
    "shapes that do not fit": ("import symgrad\ndef f(x=[1.0, 2.0]):\n    return (x * symgrad.ones(3)).sum()\n", ["line 3", "must match the size",
    "mul"]),
    "no function": ("x = 1\n", ["no function", "the functions are: none"]),
    "no inputs": ("def f(x, y):\n    return x\n", ["f(x, y)", "--at"]),
    "only whole numbers": ("def f(x=1):\n    return x\n", ["f(x=1)", "float defaults"]),
    "null bytes": ("def f(x=1.0):\0\n", ["does not run"]),
}


@pytest.mark.parametrize("what", BAD_FILES)
def test_a_bad_file_is_reported_with_the_line(run, file, what):
    text, expected = BAD_FILES[what]
    code, out, err = run("check", file(text))
    assert code == 2 and out == "" and err.startswith("symgrad: ")
    assert all(part in err for part in expected), err


def test_bad_targets_are_reported(run, file, tmp_path):
    path = file(GOOD)
    for target, expected in {str(tmp_path / "none.py"): "does not exist", str(tmp_path): "is a directory",
    f"{path}:none": "its functions are: energy, pressure, helper",
                             f"{path}:HALF": "is not a function, but of type float", f"{path}:": "not the name of a function",
                             f"{path}:a b": "not the name of a function",
                             str(tmp_path / "none.py") + ":f": "does not exist"}.items():
        code, out, err = run("check", target)
        assert code == 2 and out == "" and expected in err, (target, err)


@pytest.mark.parametrize("options, expected", [
    (["--at", "x="], "cannot read --at"), (["--at", "x=__import__('os')"], "cannot read --at"), (["--at", "q=1"], "has no parameter 'q'"), (["--at",
    "x=[1,[2]]"], "one length"),
    (["--wrt", "q"], "q is not a real argument"), (["--wrt", "x,x"], "given twice"), (["--wrt", "1"], "cannot read --wrt"), (["--order", "4"],
    "invalid choice"),
    (["--order", "x"], "invalid"), (["--points", "0"], "at least 1"), (["--none"], "unrecognized arguments")])
def test_bad_options_are_reported(capsys, file, options, expected):
    assert main(["check", file(GOOD) + ":energy", *options]) == 2
    out, err = capsys.readouterr()
    assert out == "" and expected in err and "Traceback" not in err


def test_a_missing_input_is_reported(run, file):
    code, _, err = run("check", file(GOOD) + ":helper", "--at", "a=1")
    assert code == 2 and "needs a value for b" in err and "--at b=1" in err


# symgrad derive

def test_a_formula_is_differentiated_and_checked(run):
    code, out, err = run("derive", "exp(sin(x))*y", "--wrt", "x,y", "--order", "2", "--at", "x=1,y=2")
    assert code == 0 and err == "" and "exp(sin(x))*y: proved" in out
    for line in ("f = y*exp(sin(x))", "value 4.639553649", "df/dx  2.506761535  y*exp(sin(x))*cos(x)", "df/dy  2.319776825  exp(sin(x))"):
        assert line in out


def test_a_formula_as_latex_and_as_json(run):
    code, out, _ = run("derive", "x**2/y", "--latex")
    assert code == 0 and out.splitlines()[:2] == [r"f = \frac{x^{2}}{y}", r"\frac{\partial f}{\partial x} = \frac{2 x}{y}"] and "% proved" in out
    code, out, _ = run("derive", "x**2/y", "--at", "x=3,y=[1,2]", "--wrt", "y", "--json")
    data = json.loads(out)
    assert code == 0 and set(data) == REPORT and data["names"] == ["y_0", "y_1"] and data["weighted_shape"] == [2]
    assert data["gradient"] == {"y": [-9.0, -4.5]} and data["hessian"] == [[18.0, 0.0], [0.0, 4.5]]


def test_a_variable_without_a_value_is_1_with_a_note(run):
    code, out, _ = run("derive", "x*y", "--at", "x=3")
    assert code == 0 and "note: no value was given for y; 1 was taken" in out


def test_numbers_that_are_not_finite_are_flagged(run):
    code, out, _ = run("derive", "1/x", "--at", "x=0")
    assert code == 2 and "not checkable" in out and "the value at the given point is inf" in out
    code, out, _ = run("derive", "log(x)", "--at", "x=-1", "--json")
    assert code == 2 and json.loads(out)["value"] == "nan"
    code, out, _ = run("derive", "sqrt(x)", "--at", "x=0")
    assert code == 0 and "the gradient at the given point is not finite" in out


@pytest.mark.parametrize("formula, expected", [("", "there is no formula"), ("x +", "but the text ends"), ("x.real", "'.' is not allowed"),
                                               ("3", "no variable"), ("ln(x)", "did you mean log?")])
def test_a_bad_formula_is_reported_with_its_place(run, formula, expected):
    code, out, err = run("derive", formula)
    assert code == 2 and out == "" and expected in err and err.startswith("symgrad: ")


def test_bad_names_and_values_of_a_formula_are_reported(run):
    for options, expected in {("--wrt", "z"): "z is not a variable of the formula; those are x, y", ("--at", "z=1"): "z is not a variable", ("--at",
    "x=1,x=2"): "given twice",
                              ("--at", "x=[1,2],y=[1,2,3]"): "must match the size", ("--at", "x=[]"): "at least one number", ("--at",
                              "x=[[1],[1,2]]"): "one length"}.items():
        code, out, err = run("derive", "x*y", *options)
        assert code == 2 and expected in err, (options, out, err)


# The program

def test_version_and_help(run):
    assert run("--version") == (0, f"symgrad {symgrad.__version__}\n", "")
    for arguments in (["--help"], ["check", "--help"], ["derive", "--help"]):
        assert main(arguments) == 0
    assert run("--help")[1].count("symgrad check") >= 2
    assert main([]) == 2 and main(["nothing"]) == 2


def interrupted(folder, program, *arguments):
    """The exit code, standard output and standard error of `symgrad check` of a program, interrupted when it is called and has written `started`."""
    path = folder / "slow.py"
    path.write_text(program, encoding="utf-8")
    # A process that is started in the background inherits that SIGINT is ignored.
    with subprocess.Popen([sys.executable, "-m", "symgrad", "check", f"{path}:f", *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True, cwd=folder, env={**os.environ, "PYTHONPATH": str(EXAMPLES.parent)},
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


# symgrad check --formula

FOREIGN = '''
import numpy as np

def loss(x, y):
    return np.logaddexp(0, -x * y)

def gradient(x, y):
    slope = -1 / (1 + np.exp(x * y))
    return y * slope, x * slope

def careless(x, y):
    slope = 1 / (1 + np.exp(-x * y)) - 1
    return y * slope, x * slope

def both(t):
    return t**2, 2.5 * t

def power(x, n: int = 3):
    return x**n
'''


@pytest.mark.sweep
def test_a_function_and_its_gradient_are_compared_with_a_formula(run, file):
    path = file(FOREIGN)
    formula = ["--formula", "log(1+exp(-y*x))", "--order", "1", "--domain", "x=0..30,y=(0,1]"]
    code, out, err = run("check", f"{path}:loss", *formula, "--gradient", "gradient")
    assert code == 0 and err == "" and "loss (numpy): verified" in out and "x in [0, 30]; y in (0, 1]" in out
    code, out, err = run("check", path + ":loss", *formula, "--gradient", "careless")
    assert code == 0 and "loss (numpy): imprecise" in out and "digits are lost in sub" in out and "digits are lost" in err
    assert run("check", path + ":loss", *formula, "--gradient", "careless", "--strict")[0] == 3
    code, out, _ = run("check", path, "--formula", "t**2", "--returns", "pair", "--json")
    report = json.loads(out)["reports"][0]
    assert code == 1 and report["function"] == "both" and report["counterexample"]["where"] == "df/dt" and report["verdict"] == "refuted"
    code, out, _ = run("check", path + ":power", "--formula", "x**n", "--framework", "symgrad", "--order", "3", "--at", "x=2")
    assert code == 0 and "power (symgrad): verified" in out and "f = x**3" in out
    assert run("check", path + ":power", "--formula", "x**4", "--framework", "numpy", "--ulp", "10")[0] == 1


def test_a_tuple_of_a_function_and_its_derivatives_is_checked_under_its_name(run, file):
    path = file("import numpy as np\n\ndef sine(x):\n    return np.sin(x)\n\ndef cosine(x):\n    return np.cos(x)\n\n"
                "pair = sine, cosine\nwrong = sine, lambda x: 2 * np.cos(x)\n"
                "three = sine, cosine, lambda x: -np.sin(x)\nnumbers = 1, 2\nloss = sine\n")
    for name, formula, expected in (("pair", ["--formula", "sin(x)"], 0), ("pair", [], 0), ("three", ["--formula", "sin(x)"], 0),
                                    ("wrong", ["--formula", "sin(x)"], 1), ("wrong", [], 1), ("loss", ["--formula", "sin(x)"], 0)):
        code, out, err = run("check", f"{path}:{name}", "--order", "1", "--quiet", *formula)
        assert code == expected and out.startswith(f"{name} (numpy): "), out + err
    code, out, err = run("check", f"{path}:numbers", "--formula", "x")
    assert code == 2 and "is not a function, but of type tuple; a tuple (function, gradient) can be checked, too" in err
    code, out, err = run("check", f"{path}:pair", "--formula", "sin(x)", "--gradient", "cosine")
    assert code == 2 and "pair in" in err and "leave out --gradient" in err


def test_a_report_has_the_name_that_the_file_has_for_a_function(run, file):
    path = file("import functools\n\ndef scaled(a, x):\n    return a * x\n\n"
                "energy = functools.partial(scaled, 2.0)\nother = scaled\ncube = lambda x: x**3\n")
    for name, at in (("energy", "x=1.0"), ("other", "a=1.0,x=2.0"), ("cube", "x=1.5")):
        code, out, err = run("check", f"{path}:{name}", "--at", at, "--quiet")
        assert code == 0 and out.startswith(f"{name}: proved"), out + err


@pytest.mark.parametrize("options, expected", [
    (["--formula", "sine(x)*y"], "cannot read --formula: there is no function 'sine'; did you mean sin"),
    (["--formula", "x*z"], "the formula names z, but the arguments of the function are x, y"),
    (["--formula", "x*y", "--domain", "x"], "cannot read --domain"), (["--formula", "x*y", "--domain", "x=2..1"], "excludes every point"),
    (["--formula", "x*y", "--gradient", "none"], "has no function 'none'"), (["--formula", "x*y", "--framework", "none"], "invalid choice")])
def test_bad_formulas_and_domains_are_reported(capsys, file, options, expected):
    assert main(["check", file(FOREIGN) + ":loss", *options]) == 2
    out, err = capsys.readouterr()
    assert out == "" and expected in err and "Traceback" not in err


def test_the_function_of_a_formula_is_found_by_its_arguments_or_must_be_named(run, file):
    path = file(FOREIGN)
    code, _, err = run("check", path, "--formula", "x*y")
    assert code == 2 and "more than one function" in err and "loss(x, y), gradient(x, y), careless(x, y)" in err and f"{path}:FUNCTION" in err
    code, _, err = run("check", path, "--formula", "x*q")
    assert code == 2 and "no function in" in err and "has the arguments x, q" in err


def test_exceptions_of_a_foreign_function_are_in_the_report(run, file):
    code, out, err = run("check", file("import math\ndef f(x):\n    return math.no_such(x)\n") + ":f", "--formula", "x", "--framework", "numpy")
    assert code == 2 and "f (numpy): not checkable" in out and "AttributeError: module 'math' has no attribute 'no_such'" in out and err == ""


@pytest.mark.parametrize("formula, shown", [("-x**2", "f = -x**2"), ("-(x)", "f = -x"), ("-exp(x)+1", "f = 1 - exp(x)"), ("-h*2", "f = -2*h"),
                                            ("A[0][0]*A[0,1]", "f = A_0_0*A_0_1")])
def test_formulas_that_begin_with_a_minus_or_name_elements(formula, shown, capsys):
    code = main(["derive", formula, "--quiet"])
    out, err = capsys.readouterr()
    assert (code, out.splitlines()[0].split(":")[0]) == (0, formula) and shown in out, err


def test_ghostwrite_takes_a_formula_that_begins_with_a_minus(capsys):
    assert main(["ghostwrite", "math:sin", "--formula", "-(x)"]) == 0
    assert 'formula="-(x)"' in capsys.readouterr().out
