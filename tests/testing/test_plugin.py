"""The plugin of pytest: a marked op, or one named on the command line, is a test for each check."""

import json
import os
import shlex
import subprocess
import sys
import xml.etree.ElementTree
from pathlib import Path

import pytest

import symgrad
from symgrad.testing.checks import CHECKS
from tests.support import plugin_runs
from tests.support.plugin_runs import MARKED, TWO, WRONG, ids

pytest_plugins = "pytester"
run, module, everything_is_imported = plugin_runs.run, plugin_runs.module, plugin_runs.everything_is_imported  # fixtures


# Marked


@pytest.mark.sweep
def test_a_marked_function_is_a_test_for_each_check(pytester, run):
    pytester.makepyfile(test_ops=MARKED + "def test_other(): pass")
    result = run("-v", TWO)
    first, second = sorted(("linearity", "value"), key=list(CHECKS).index)
    assert ids(result) == [f"test_ops.py::ricker[{first}]", f"test_ops.py::ricker[{second}]", "test_ops.py::test_other"]
    result.assert_outcomes(passed=3)
    result.stdout.fnmatch_lines(["symgrad: 1 op, 2 checks, 0 failed (profile dev, seed 0)"])


def test_without_options_there_is_every_check(pytester, run):
    pytester.makepyfile(test_ops=MARKED)
    result = run("--collect-only", "-q")
    assert [line for line in result.outlines if "::" in line] == [f"test_ops.py::ricker[{name}]" for name in CHECKS]


@pytest.mark.sweep
def test_a_wrong_op_fails_with_the_report_and_no_traceback(pytester, run):
    pytester.makepyfile(test_ops=WRONG)
    result = run(TWO)
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines([
        "*_ ricker[[]value[]] _*", "ricker: value: *", "*true *", "*symgrad.testing.check_value(*",
        "symgrad: 1 op, 2 checks, 1 failed (profile dev, seed 0)", "FAILED test_ops.py::ricker[[]value[]] - ricker: value: *"])
    result.stdout.no_fnmatch_line("*symgrad/testing/*")
    assert result.ret == pytest.ExitCode.TESTS_FAILED


@pytest.mark.sweep
def test_one_check_is_run_by_its_id(pytester, run):
    pytester.makepyfile(test_ops=WRONG)
    run("test_ops.py::ricker[linearity]").assert_outcomes(passed=1)
    run("test_ops.py::ricker", TWO).assert_outcomes(passed=1, failed=1)
    run("-k", "value and ricker").assert_outcomes(failed=1, deselected=len(CHECKS) - 1)
    run("-m", "not symgrad", "--strict-markers").assert_outcomes(deselected=len(CHECKS))


@pytest.mark.sweep
def test_an_imported_op_is_tested_once(pytester, run, module):
    name = module(MARKED)
    pytester.makepyfile(test_ops=f"from {name} import ricker\nagain = ricker\nimport {name}")
    result = run("-v", TWO)
    assert sorted(ids(result)) == ["test_ops.py::ricker[linearity]", "test_ops.py::ricker[value]"]


@pytest.mark.sweep
def test_a_class_is_tested_by_its_apply(pytester, run):
    pytester.makepyfile(test_ops="""
        import symgrad
        from symgrad.testing import op

        @op(formula="x**2")
        class Square(symgrad.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                ctx.save_for_backward(x)
                return x * x

            @staticmethod
            def backward(ctx, g):
                return 3 * g * ctx.saved_tensors[0]
        """)
    run("--symgrad-checks=value,pullback").assert_outcomes(passed=1, failed=1)


@pytest.mark.sweep
def test_a_static_method_of_a_test_class_is_an_op_and_a_method_is_an_error(pytester, run):
    pytester.makepyfile(test_ops="""
        from symgrad.testing import op

        class TestOps:
            @staticmethod
            @op(formula="2*x")
            def twice(x):
                return x * 2.0
        """)
    result = run("-v", TWO)
    assert set(ids(result)) == {"test_ops.py::TestOps::twice[linearity]", "test_ops.py::TestOps::twice[value]"}
    pytester.makepyfile(test_ops="from symgrad.testing import op\nclass TestOps:\n    @op\n    def twice(self, x):\n        return x")
    result = run()
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*twice is marked by symgrad.testing.op inside a class; mark functions of a module, or static methods"])


def test_checks_that_do_not_apply_are_skipped_with_the_reason_at_the_op(pytester, run):
    pytester.makepyfile(test_ops=MARKED.replace('domain="-5..5"', 'domain="-5..5", without={"value": "it is Tuesday"}'))
    result = run(TWO, "-rs")
    result.assert_outcomes(passed=1, skipped=1)
    result.stdout.fnmatch_lines([
        "symgrad: 1 op, 2 checks, 0 failed, 1 not applicable (profile dev, seed 0)", "SKIPPED * test_ops.py:4: it is Tuesday"])


DECLARED = """import symgrad
from symgrad.testing import op

declared = op(formula="2*x", without={"value": "it is Tuesday"})(symgrad.elementwise(
    "plugin_place",
    lambda xp, x: 2 * x,
    lambda xp, y, x: 2))
unnamed = op(formula="2*x")(lambda x: 3 * x)
"""


def test_declared_ops_are_where_their_rule_is_written_and_lambdas_have_the_name_of_their_variable(pytester, run):
    pytester.makepyfile(test_declared=DECLARED)
    result = run("--symgrad-checks=value", "-rs")
    result.assert_outcomes(failed=1, skipped=1)
    result.stdout.fnmatch_lines(["unnamed: value: the value is wrong", "    from test_declared import unnamed",
                                 "SKIPPED * test_declared.py:6: it is Tuesday"])


def test_nothing_is_drawn_while_tests_are_collected(pytester, run, monkeypatch):
    def never(*args, **options):
        raise AssertionError("an attack is made")

    monkeypatch.setattr(symgrad.testing.plugin.plugin, "Attack", never)
    pytester.makepyfile(test_ops=MARKED)
    assert run("--collect-only").ret == pytest.ExitCode.OK


def test_the_checks_of_an_op_share_one_attack(pytester, run, monkeypatch):
    made, real = [], symgrad.testing.plugin.plugin.Attack

    def attack(op, *args, **options):
        made.append(op)
        return real(op, *args, **options)

    monkeypatch.setattr(symgrad.testing.plugin.plugin, "Attack", attack)
    pytester.makepyfile(test_ops=MARKED)
    run(TWO).assert_outcomes(passed=2)
    assert len(made) == 1


@pytest.mark.sweep
@pytest.mark.parametrize("claims, said", [
    ("domain={'y': 'real'}", "domain names y, but the arguments are x"),
    ("formula='x*exp(-x'", "expected ',' or ')', but the text ends"),
    ("special=[(1.0, 2.0, 3.0)]", "*the special point (1.0, 2.0, 3.0) has 3 numbers*"),
    ("without={'valeu': 'it is new'}", "without: there is no check 'valeu'; those are value, *, accuracy"),
])
def test_claims_that_do_not_fit_are_reported_once_in_one_line(pytester, run, claims, said):
    pytester.makepyfile(test_ops=MARKED.replace('formula="x*exp(-x)", domain="-5..5"', claims))
    result = run(TWO, "-rs", "--symgrad-report=said.json")
    result.assert_outcomes(failed=1, skipped=1)
    result.stdout.fnmatch_lines([f"ricker: it cannot be attacked: {said}", "SKIPPED * it cannot be attacked, as test_ops.py::ricker[[]value[]] says"])
    result.stdout.no_fnmatch_line("*Traceback*")
    total = json.loads(Path("said.json").read_text())["total"]
    assert total == {"ops": 1, "checks": 2, "passed": 0, "failed": 1, "imprecise": 0, "not_applicable": 1}
    run("test_ops.py::ricker[linearity]").assert_outcomes(failed=1)


@pytest.mark.sweep
def test_claims_of_another_form_are_refused_by_the_decorator(pytester, run):
    pytester.makepyfile(test_ops=MARKED.replace('domain="-5..5"', "parameters=3"))
    result = run()
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["E   TypeError: *: parameters is 3; expected a tuple of the arguments after the tensors, such as (2,)"])


# Named on the command line


OWN = MARKED + """
from symgrad import sin

bump = symgrad.elementwise("plugin_bump", lambda xp, x: xp.exp(-x * x), lambda xp, y, x: -2 * x * y)
other_name = bump
soft = symgrad.op_from_sympy("plugin_soft", "x/(1 + abs(x))", check=False)

def unmarked(x):
    return x * 2.0

number = 1.0
"""


@pytest.mark.sweep
def test_the_ops_of_a_module(pytester, run, module):
    name = module(OWN)
    result = run("-v", "--symgrad-checks=linearity", "--symgrad-ops", name)
    assert ids(result) == [f"symgrad::{name}::{op}::linearity" for op in ("ricker", "bump", "soft")]
    result.assert_outcomes(passed=3)
    result.stdout.fnmatch_lines(["collecting ... collected 3 items", "symgrad: 3 ops, 3 checks, 0 failed (profile dev, seed 0)"])


@pytest.mark.sweep
def test_ops_by_name(pytester, run, module):
    name = module(OWN)
    result = run("-v", "--symgrad-checks=linearity", "--symgrad-ops", f"{name}:unmarked,{name}:bump", "--symgrad-ops", f"{name}:bump")
    assert ids(result) == [f"symgrad::{name}::{op}::linearity" for op in ("unmarked", "bump")]


@pytest.mark.sweep
def test_they_are_tested_beside_the_tests_of_files(pytester, run, module):
    name = module(OWN)
    pytester.makepyfile(test_other="def test_other(): pass")
    run("--symgrad-checks=linearity", "--symgrad-ops", f"{name}:ricker").assert_outcomes(passed=2)
    run("--symgrad-checks=linearity", "--symgrad-ops", f"{name}:ricker", "-k", "ricker").assert_outcomes(passed=1, deselected=1)


@pytest.mark.sweep
def test_ops_by_id(pytester, run, module):
    name = module(OWN)
    pytester.makepyfile(test_other="def test_other(): pass")
    first, second = sorted(("linearity", "value"), key=list(CHECKS).index)
    prefix = f"symgrad::{name}::ricker"
    assert ids(run("-v", TWO, prefix)) == [f"{prefix}::{first}", f"{prefix}::{second}"]
    assert ids(run("-v", f"{prefix}::value", f"{prefix}::linearity", "test_other.py")) == [
        "test_other.py::test_other", f"{prefix}::{first}", f"{prefix}::{second}"]
    assert ids(run("-v", "--symgrad-checks=linearity", f"symgrad::{name}")) == [
        f"symgrad::{name}::{op}::linearity" for op in ("ricker", "bump", "soft")]
    assert ids(run("-v", f"{prefix}::accuracy")) == [f"{prefix}::accuracy"]


@pytest.mark.sweep
def test_a_report_has_the_command_that_runs_the_test_again(pytester, run, module):
    name = module(WRONG)
    pytester.makepyfile(test_ops=WRONG)
    result = run("--symgrad-ops", name, "--symgrad-checks=value", "--symgrad-seed=3", "--symgrad-dtypes", "float64, float32")
    commands = [shlex.split(line.partition("or: ")[2]) for line in result.outlines if line.startswith("or: pytest ")]
    assert [command[1] for command in commands] == ["test_ops.py::ricker[value]", f"symgrad::{name}::ricker::value"]
    for command in commands:
        again = run(*command[1:])
        again.assert_outcomes(failed=1)
        again.stdout.fnmatch_lines(["symgrad: 1 op, 1 check, 1 failed (profile dev, seed 3)"])


@pytest.mark.sweep
def test_the_last_failures_are_run_again(pytester, module):
    name = module(WRONG)
    pytester.makepyfile(test_ops=WRONG)
    for options in ([], ["--lf"]):
        result = pytester.runpytest_inprocess(TWO, "--symgrad-ops", name, *options)
        result.assert_outcomes(failed=2, passed=0 if options else 2, deselected=None)
    assert "run-last-failure: rerun previous 2 failures" in result.outlines


# Reports


@pytest.mark.sweep
def test_the_report_and_junit_have_the_result_of_every_check(pytester, run):
    pytester.makepyfile(test_ops=WRONG + "def test_other(): pass")
    run(TWO, "--symgrad-report=said.json", "--junitxml=said.xml", "--symgrad-seed=3")
    data = json.loads(Path("said.json").read_text())
    (op,) = data["ops"]
    assert (data["schema"], data["symgrad"], data["profile"], data["order"], data["seed"]) == (1, symgrad.__version__, "dev", 3, 3)
    assert data["total"] == {"ops": 1, "checks": 2, "passed": 1, "failed": 1, "imprecise": 0, "not_applicable": 0} and data["complete"] is True
    assert (op["id"], op["op"], op["verdict"]) == ("test_ops.py::ricker", "ricker", "failed")
    said = {check["check"]: check for check in op["checks"]}
    assert said["linearity"]["verdict"] == "passed" and said["linearity"]["examples"] > 1
    assert said["value"]["verdict"] == "failed" and said["value"]["ulp"] > 1e11 and said["value"]["report"].startswith("ricker: value: ")
    cases = {case.get("name"): case for case in xml.etree.ElementTree.parse("said.xml").iter("testcase")}
    properties = {p.get("name"): p.get("value") for p in cases["ricker[value]"].iter("property")}
    assert properties["symgrad.op"] == "ricker" and properties["symgrad.check"] == "value" and properties["symgrad.verdict"] == "failed"
    assert float(properties["symgrad.ulp"]) > 1e11 and cases["ricker[value]"].find("failure") is not None
    assert not list(cases["test_other"].iter("property"))


@pytest.mark.sweep
def test_the_report_of_a_stopped_run_is_incomplete_and_replaces_an_older_one(pytester, run):
    pytester.makepyfile(test_ops=WRONG)
    run("--symgrad-checks=value,linearity", "-x", "--symgrad-report=said.json")
    data = json.loads(Path("said.json").read_text())
    assert data["complete"] is False and data["total"]["checks"] == 1
    run("--collect-only", "--symgrad-report=said.json")
    assert json.loads(Path("said.json").read_text()) == data
    pytester.makeconftest("def pytest_collection(session): raise SystemError('killed')")
    run("--symgrad-report=said.json")
    assert json.loads(Path("said.json").read_text())["complete"] is False


@pytest.mark.sweep
def test_the_report_includes_crashed_processes(pytester):
    pytester.makepyfile(test_ops=MARKED + "def test_dies(): __import__('os')._exit(1)")
    pytester.runpytest_subprocess("-p", "no:cacheprovider", TWO, "--symgrad-report=said.json", "-n", "1")
    assert json.loads(Path("said.json").read_text())["complete"] is False


@pytest.mark.sweep
def test_several_processes_have_the_results_of_one(pytester, run):
    pytester.makepyfile(test_ops=WRONG, test_more=MARKED)
    run(TWO, "--symgrad-report=one.json")
    result = pytester.runpytest_subprocess("-p", "no:cacheprovider", TWO, "--symgrad-report=two.json", "-n", "1")
    result.assert_outcomes(passed=3, failed=1)
    result.stdout.fnmatch_lines(["symgrad: 2 ops, 4 checks, 1 failed (profile dev, seed 0)", "symgrad: the report is in two.json"])
    one, two = (json.loads(Path(name).read_text()) for name in ("one.json", "two.json"))
    for data in (one, two):
        for check in (check for op in data["ops"] for check in op["checks"]):
            del check["seconds"]
    assert one == two


# What it costs


IDLE = """
import sys
before = set(sys.modules)
import pytest_symgrad

def test_nothing_is_imported():
    assert not {"symgrad", "sympy", "numpy"} & set(sys.modules), sorted(sys.modules)
"""


def test_a_run_without_ops_imports_nothing(pytester):
    """In a process of its own, with this plugin and no other."""
    pytester.makepyfile(test_idle=IDLE)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "pytest_symgrad"]
    environment = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PATH": "", "PYTHONPATH": str(Path(symgrad.__file__).parent / "testing" / "entry")}
    found = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert found.returncode == 0 and "1 passed" in found.stdout, found.stdout + found.stderr


WARNS = """
import pytest
import symgrad

symgrad.tensor(0.0).log()  # while tests are collected

@pytest.fixture
def infinite():
    yield symgrad.tensor(0.0).log()
    symgrad.tensor(-1.0).sqrt()

def test_infinite(infinite):
    x = symgrad.tensor([0.0, -1.0], requires_grad=True)
    x.log().sum().backward()
    symgrad.tensor([1e308, 1e308]).cumsum(0).exp()

@pytest.mark.filterwarnings("error")
def test_marked(infinite):
    assert symgrad.tensor(0.0).log().isinf()

def test_warnings_of_others_stay_errors():
    import numpy
    with pytest.raises(RuntimeWarning):
        numpy.log(numpy.zeros(1))
"""


@pytest.mark.sweep
@pytest.mark.parametrize("arguments, settings", [((), "filterwarnings = error"), (("-W", "error"), "")])
def test_results_that_are_not_finite_do_not_warn_where_warnings_are_errors(pytester, monkeypatch, arguments, settings):
    package = Path(symgrad.__file__).parent
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(map(str, (package.parent, package / "testing" / "entry"))))
    pytester.makepyfile(test_warns=WARNS)
    pytester.makeini("[pytest]\n" + settings)
    found = pytester.runpytest_subprocess("-p", "no:cacheprovider", *arguments)
    found.assert_outcomes(passed=3)
    found.stdout.no_fnmatch_line("*RuntimeWarning*")


@pytest.mark.sweep
def test_results_that_are_not_finite_do_not_warn_in_a_program():
    text = ("from symgrad import tensor; tensor([0.0, -1.0], requires_grad=True).log().sum().backward(); "
            "tensor([1e308, 1e308]).cumsum(0); tensor([1e308, 1e308]).cumprod(0)")
    found = subprocess.run([sys.executable, "-W", "error", "-c", text], capture_output=True, text=True)
    assert found.returncode == 0 and not found.stderr, found.stderr


def test_the_plugin_can_be_disabled(pytester, run):
    pytester.makepyfile(test_ops=MARKED + "def test_other(): pass")
    run("-p", "no:symgrad").assert_outcomes(passed=1)


def test_the_entry_and_the_decorator_use_one_mark():
    import pytest_symgrad

    from symgrad.testing.claims import MARK

    assert pytest_symgrad.MARK == MARK
