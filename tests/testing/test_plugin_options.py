"""The options of the pytest plugin, and its messages for invalid ones."""

import sys

import pytest

import symgrad
from symgrad.testing.checks import CHECKS
from tests.support import plugin_runs
from tests.support.lines import lines
from tests.support.plugin_runs import MARKED

pytest_plugins = "pytester"
run, everything_is_imported = plugin_runs.run, plugin_runs.everything_is_imported  # fixtures


@pytest.mark.sweep
def test_the_profile_the_seed_and_the_order(pytester, run):
    pytester.makepyfile(test_ops=MARKED)
    pytester.makeini("[pytest]\nsymgrad_profile = ci")
    line = "symgrad: 1 op, 1 check, 0 failed (profile {}, seed {})"
    run("--symgrad-checks=linearity").stdout.fnmatch_lines([line.format("ci", 0)])
    run("--symgrad-checks=linearity", "--symgrad-profile=dev", "--symgrad-seed=7").stdout.fnmatch_lines([line.format("dev", 7)])
    result = run("--symgrad-checks=linearity,pullback", "--symgrad-profile=dev", "--symgrad-orders=0", "-rs")
    result.assert_outcomes(skipped=2)
    result.stdout.fnmatch_lines(["SKIPPED *derivatives of order 1 are not asked for"])


@pytest.mark.sweep
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


@pytest.mark.sweep
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


@pytest.mark.parametrize("option, said", lines("plugin_options"))
def test_bad_input_is_a_usage_error_that_names_the_remedy(pytester, run, monkeypatch, option, said):
    monkeypatch.setattr(sys, "path", list(sys.path))
    pytester.makepyfile(broken_module="1 / 0")
    result = run(option)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"*{said}"])
    assert "Traceback" not in result.stderr.str() + result.stdout.str()


def test_a_bad_profile_in_the_ini_file_is_one_too(pytester, run):
    pytester.makeini("[pytest]\nsymgrad_profile = slow")
    result = run()
    result.stderr.fnmatch_lines(["ERROR: the ini option symgrad_profile is 'slow'; expected one of dev, ci, thorough"])
