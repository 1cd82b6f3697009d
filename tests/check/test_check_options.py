"""The options `ulp`, `atol`, `rtol` and `range` of a check of symgrad's own functions, without a formula."""

import json

import numpy as np
import pytest

import symgrad
from symgrad.__main__ import main
from tests.support.functions import saving


def check(function, *inputs, **options):
    return symgrad.check(function, *inputs, progress=False, points=12, **options)


def haversine(x):
    return 1 - symgrad.cos(x)


# sin, with a backward that is wrong beyond 30.
Beyond = saving(lambda x: x.sin(), lambda g, x: g * x.cos() * symgrad.where(x > 30, 2.0, 1.0), "Beyond")


@pytest.mark.sweep
def test_digits_are_compared_with_a_tolerance_and_lost_digits_are_imprecise():
    assert check(haversine, 1.0).verdict == "proved"
    report = check(haversine, 1.0, ulp=4)
    assert report.verdict == "imprecise" and not report, str(report)
    assert report.counterexample.where == "f" and report.counterexample.rule != report.counterexample.truth
    assert report.comparison.counterexample.explained and "digits are lost" in report.reason
    assert any(note.startswith("but for its floats it is proved: ") for note in report.notes)
    assert "Digits are lost" in str(report) and "imprecise at" in str(report)
    assert report.gradient["x"] == pytest.approx(np.sin(1.0))


@pytest.mark.sweep
def test_an_accurate_function_stays_proved_and_the_report_has_its_digits():
    for function, inputs in ((lambda x: symgrad.sin(x), (1.0,)), (lambda x, y: (x * y).sin(), (1.0, 2.0)), (lambda x: symgrad.expm1(x), (1.0,))):
        report = check(function, *inputs, ulp=4)
        assert report.verdict == "proved" and report.comparison.verdict == "verified", str(report)
        assert any("within 4 ULP times the condition" in note for note in report.notes)


@pytest.mark.sweep
@pytest.mark.parametrize("options", [{"atol": 1e-10}, {"rtol": 2.0}, {"range": (0.1, 1e3)}, {"ulp": 1e18}])
def test_tolerances_and_the_range_excuse_lost_digits(options):
    assert check(haversine, 1.0, **options).verdict == "proved"


@pytest.mark.sweep
@pytest.mark.parametrize("options", [{"atol": 1e-30}, {"rtol": 1e-9}, {"range": (1e-9, 1e3)}, {"ulp": 1000}])
def test_tolerances_and_ranges_that_do_not_excuse_the_lost_digits(options):
    assert check(haversine, 1.0, **options).verdict == "imprecise"


@pytest.mark.sweep
def test_a_wrong_derivative_outside_the_range_is_not_reported_and_one_inside_is():
    assert check(Beyond.apply, 1.0).verdict == "refuted"
    for ends in ((1e-3, 30.0), (0, 2.0), (0.5, 1.5)):
        report = check(Beyond.apply, 1.0, range=ends)
        assert report.verdict == "verified" and report.comparison.ok, str(report)
    for ends in ((1e-3, 100.0), (0.0, 31.0), (40.0, 50.0)):
        report = check(Beyond.apply, max(1.0, ends[0]), range=ends)
        found = report.counterexample
        assert report.verdict == "refuted" and 30 < abs(found.point["args0"]) <= ends[1], str(report)


@pytest.mark.sweep
def test_a_number_that_is_not_finite_is_reported_inside_the_range_only():
    def one(x):
        return symgrad.exp(x) * symgrad.exp(-x)

    assert check(one, 1.0, range=(1e-3, 100.0)).verdict == "proved"
    report = check(one, 1.0, range=(1e-3, 1e4))
    assert report.verdict == "imprecise" and np.isnan(report.counterexample.rule) and report.counterexample.truth == 1.0, str(report)


@pytest.mark.sweep
@pytest.mark.parametrize("options", [{"atol": 1e3}, {"rtol": 1e3}, {"ulp": 1e18}])
def test_no_tolerance_excuses_a_formula_that_is_disproved(options):
    report = check(Beyond.apply, 1.0, **options)
    assert report.verdict == "refuted" and "sympy.diff gives" in report.reason


@pytest.mark.sweep
def test_every_kind_of_argument_is_compared():
    def function(a, *rest, scale=2.0, **more):
        return scale * (1 - symgrad.cos(a)) * rest[0].sum() * more["c"]

    report = symgrad.check(lambda *args: function(*args, c=1.5), 0.5, [1.0, 2.0], order=1, ulp=8, points=4, progress=False)
    assert report.verdict == "imprecise" and set(report.counterexample.point) == {"args0", "args1"}, str(report)
    report = check(lambda x, k=3: (1 - symgrad.cos(x)) ** k, np.float32(0.5), order=1, ulp=8)
    assert report.verdict == "imprecise" and set(report.counterexample.point) == {"x"}
    assert check(lambda x, y: x - y, 1.0, 2.0, wrt=["x"], ulp=2).comparison.names == ["x"]
    narrow = symgrad.tensor([0.5, 2.0], dtype=symgrad.bfloat16)
    assert check(lambda x: (x * x).sum(), narrow, order=1, ulp=8, range=(0.25, 4.0)).comparison.verdict == "verified"


NONSENSE = {"ulp": (-1, 0, float("nan"), float("inf"), True, "few"), "atol": (-1e-3, float("nan"), float("inf"), None), "rtol": (-1.0, float("nan")),
            "range": ((2.0, 1.0), (1.0, 1.0), (1.0,), 3.0, (float("nan"), 1.0), (-1.0, 1.0), "ab")}


@pytest.mark.parametrize("option, value", [(name, value) for name, values in NONSENSE.items() for value in values])
def test_an_option_without_a_meaning_is_named_with_its_value_before_the_function_is_called(option, value):
    def never(x):
        raise AssertionError

    for formula in (None, "x"):
        with pytest.raises(ValueError, match=f"check: {option} is .*; expected ") as caught:
            symgrad.check(never, 1.0, formula=formula, **{option: value})
        assert f"{option} is {value!r}" in str(caught.value)


def test_an_input_outside_the_range_and_a_range_outside_the_domain_are_refused():
    for options in ({}, {"formula": "1 - cos(x)"}):
        with pytest.raises(ValueError, match=r"check: the input x = 1e-20 lies outside range=\(0.1, 10.0\); give one inside, or a wider range"):
            check(haversine, 1e-20, range=(0.1, 10.0), **options)
    with pytest.raises(ValueError, match=r"check: range is \(10.0, 20.0\), in which the domain \[1, 2\] has no number; give a wider one"):
        check(haversine, formula="1 - cos(x)", domain=(1, 2), range=(10.0, 20.0))


FILE = """
import symgrad
def haversine(x=1.0):
    return 1 - symgrad.cos(x)
"""


@pytest.mark.sweep
@pytest.mark.parametrize("options, code, verdict", [
    ("", 0, "proved"), ("--ulp 4", 0, "imprecise"), ("--ulp 4 --strict", 3, "imprecise"), ("--atol 1e-10 --strict", 0, "proved"),
    ("--range 0.1,1e3 --strict", 0, "proved"), ("--rtol 1e-9 --strict", 3, "imprecise")])
def test_the_command_compares_the_digits_too(tmp_path, capsys, options, code, verdict):
    (tmp_path / "model.py").write_text(FILE)
    assert main(["check", str(tmp_path / "model.py"), "--quiet", "--json", "--points", "12", *options.split()]) == code
    out, err = capsys.readouterr()
    (report,) = json.loads(out)["reports"]
    assert report["verdict"] == verdict and ("comparison" in report) == bool(options)
    assert err == ("symgrad: haversine: imprecise: digits are lost\n" if verdict == "imprecise" else "")


@pytest.mark.parametrize("options, message", [
    ("--ulp -1", "--ulp is -1.0; expected a positive number"), ("--range 2,1", "--range is (2.0, 1.0); expected (least, largest)"),
    ("--range 3", "--range is (3.0,); expected (least, largest)"), ("--range x", "cannot read --range: 'x'; write --range 1e-100,1e100"),
    ("--atol nan", "--atol is nan; expected a number that is not negative"), ("--range 2,3", "the input x = 1 lies outside range=(2.0, 3.0)")])
def test_the_command_refuses_options_without_a_meaning(tmp_path, capsys, options, message):
    (tmp_path / "model.py").write_text(FILE)
    assert main(["check", str(tmp_path / "model.py"), *options.split()]) == 2
    assert message in capsys.readouterr().err
