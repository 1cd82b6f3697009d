"""The options of the pytest plugin, and its messages for invalid ones."""

import sys

import pytest

import symgrad
from symgrad.testing.checks import CHECKS
from tests.support import plugin_runs
from tests.support.plugin_runs import MARKED

pytest_plugins = "pytester"
run, everything_is_imported = plugin_runs.run, plugin_runs.everything_is_imported  # fixtures


def test_the_profile_the_seed_and_the_order(pytester, run):
    pytester.makepyfile(test_ops=MARKED)
    pytester.makeini("[pytest]\nsymgrad_profile = ci")
    line = "symgrad: 1 op, 1 check, 0 failed (profile {}, seed {})"
    run("--symgrad-checks=linearity").stdout.fnmatch_lines([line.format("ci", 0)])
    run("--symgrad-checks=linearity", "--symgrad-profile=dev", "--symgrad-seed=7").stdout.fnmatch_lines([line.format("dev", 7)])
    result = run("--symgrad-checks=linearity,pullback", "--symgrad-profile=dev", "--symgrad-orders=0", "-rs")
    result.assert_outcomes(skipped=2)
    result.stdout.fnmatch_lines(["SKIPPED *derivatives of order 1 are not asked for"])


def test_the_seed_decides_the_examples_and_the_one_of_hypothesis_does_not(pytester, run, monkeypatch):
    drawn, real = [], symgrad.testing.plugin.plugin.run

    def noted(check, attack):
        drawn.append([x.tobytes() for example in attack.examples("points") for x in example.xs])
        return real(check, attack)

    monkeypatch.setattr(symgrad.testing.plugin.plugin, "run", noted)
    pytester.makepyfile(test_ops=MARKED)
    for options in ((), ("--hypothesis-seed=5",), ("--symgrad-seed=1",)):
        run("--symgrad-checks=linearity", *options).assert_outcomes(passed=1)
    assert drawn[0] == drawn[1] != drawn[2]


def test_dtypes_and_the_tolerance_reach_the_claims(pytester, run, monkeypatch):
    seen, real = [], symgrad.testing.plugin.plugin.run

    def noted(check, attack):
        seen.append((attack.claims.dtypes, attack.claims.ulp))
        return real(check, attack)

    monkeypatch.setattr(symgrad.testing.plugin.plugin, "run", noted)
    pytester.makepyfile(test_ops=MARKED + MARKED.replace("ricker", "second").replace('domain="-5..5"', 'ulp=7, dtypes=("float16", "float32")'))
    run("--symgrad-checks=linearity", "--symgrad-dtypes=float32,float64", "--symgrad-ulp=12.5").assert_outcomes(passed=2)
    assert seen == [(("float64", "float32"), 12.5), (("float32",), 7)]


def test_the_scan_is_one_more_test(pytester, run):
    pytester.makepyfile(test_ops="""
        import symgrad
        from symgrad.testing import op

        @op(domain="0..30")
        def good(x):
            return symgrad.sech(x) ** 2

        @op(domain="0..30")
        def bad(x):
            return 1 - symgrad.tanh(x) ** 2

        @op(shapes=[(3,)])
        def whole(x):
            return x.sum()
        """)
    result = run("-v", "--symgrad-checks=linearity", "--symgrad-accuracy", "--symgrad-orders=1", "-k", "accuracy", "-rs")
    result.assert_outcomes(passed=1, failed=1, skipped=1, deselected=3)
    result.stdout.fnmatch_lines(["test_ops.py::good[[]accuracy[]] PASSED*", "bad: accuracy: *loses digits at *", "Worst error by region",
                                 "SKIPPED * the scan is of functions of single numbers"])


def test_the_list_of_checks(run):
    result = run("--symgrad-list")
    assert result.ret == 0 and [line.split()[0] for line in result.outlines] == list(CHECKS)


BAD = {
    "--symgrad-ops=no.such_module": "*there is no module 'no'; go to the folder it is in, or install it",
    "--symgrad-ops=abc": "*abc has no ops; write @symgrad.testing.op(formula=...) above a function in it, or name one: --symgrad-ops abc:FUNCTION",
    "--symgrad-ops=json": "*json is a package without ops of its own; name the modules in it *json.decoder, *; or name a function: *json:FUNCTION",
    "--symgrad-ops=mine/ops.py:f": "*'mine/ops.py:f' is a file; name its module as Python imports it, such as mine.ops:f",
    "--symgrad-ops=json:JSONEncoder": "*json:JSONEncoder is a class without apply; name a function, or an instance that can be called",
    "--symgrad-ops=json:no_such": "*json has no 'no_such'; in it there are: *dumps*",
    "--symgrad-ops=json:__name__": "*json:__name__ is of type str; name a function, or a class with apply",
    "--symgrad-ops=__import__('os')": "*is not the name of a module; write MODULE or MODULE:NAME as Python imports it*",
    "--symgrad-ops=if": "*'if' is not the name of a module*",
    "--symgrad-ops=broken_module": "*importing broken_module raised ZeroDivisionError: *; python -c 'import broken_module' shows where",
    "symgrad::json::no_such": "*json has no 'no_such'; in it there are: *dumps*",
    "symgrad::json::dumps::valeu": "symgrad::json::dumps::valeu: there is no check 'valeu'; those are *value*",
    "symgrad::json::dumps::value::more": "*is not the id of a test; those are symgrad::MODULE::NAME::CHECK",
    "--symgrad-checks=valeu": "*there is no check 'valeu'; those are *value*",
    "--symgrad-checks=,": "*no check is named; those are *value*",
    "--symgrad-profile=slow": "*--symgrad-profile: invalid choice: 'slow'*",
    "--symgrad-orders=4": "*--symgrad-orders: invalid choice: 4*",
    "--symgrad-dtypes=float64,int": "*--symgrad-dtypes is 'float64,int'; expected names among float64, *",
    "--symgrad-ulp=-1": "*--symgrad-ulp: invalid positive value: '-1'*",
    "--symgrad-ulp=few": "*--symgrad-ulp: invalid positive value: 'few'*",
    "--symgrad-seed=x": "*--symgrad-seed: invalid int value: 'x'*",
    "--symgrad-report=no/such/folder/file.json": "*no/such/folder/file.json cannot be written; name a file in a folder that exists",
}


@pytest.mark.parametrize("option", BAD)
def test_bad_input_is_a_usage_error_that_names_the_remedy(pytester, run, monkeypatch, option):
    monkeypatch.setattr(sys, "path", list(sys.path))
    pytester.makepyfile(broken_module="1 / 0")
    result = run(option)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"*{BAD[option]}"])
    assert "Traceback" not in result.stderr.str() + result.stdout.str()


def test_a_bad_profile_in_the_ini_file_is_one_too(pytester, run):
    pytester.makeini("[pytest]\nsymgrad_profile = slow")
    result = run()
    result.stderr.fnmatch_lines(["ERROR: the ini option symgrad_profile is 'slow'; expected one of dev, ci, thorough"])
