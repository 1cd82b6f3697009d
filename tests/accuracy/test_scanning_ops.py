"""Scans of the registry's ops over their domains: what the catalogue covers, digits up to the third order, and the forms of a report."""

import io
import json
import sys

import mpmath
import numpy as np
import pytest

import symgrad
from symgrad.engine.traced import FUNCTIONS
from symgrad.graph.op import REGISTRY
from symgrad.reference.accuracy import BOUNDS
from symgrad.sampling.floats import Floats
from symgrad.scanning import accuracy
from symgrad.scanning.blame import Blame
from symgrad.scanning.catalogue import is_listed, scan, scanned_calls
from symgrad.scanning.subject import Subject

# Bounds in ULP of the value and of two derivatives. A derivative that crosses zero has a condition there, which excuses it: its verdict says so.
BOUND = 8.0
WELL_MADE = ["exp", "expm1", "log", "log1p", "sqrt", "rsqrt", "sin", "cos", "asin", "acos", "atan", "sinh", "cosh", "tanh", "sech", "sech_square",
             "asinh", "acosh", "atanh", "sigmoid", "softplus", "logsigmoid", "relu"]


@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", WELL_MADE)
def test_well_made_ops_keep_their_digits_over_all_floats(name):
    report = accuracy(name, points=1)
    domain = (REGISTRY[name].domain or (symgrad.graph.domains.REAL,))[0]
    assert report.points >= 60 and report.outside <= 4 and all(w.point[0] in domain for w in report.worst)
    for w in report.worst:
        assert w.ulp <= BOUND or w.verdict in ("ill-conditioned", "accurate") and w.condition > w.ulp / 64, w
    assert report.ok


@pytest.mark.sweep
@pytest.mark.parametrize("name", ["mul", "div", "hypot", "maximum"])
def test_ops_of_two_arguments(name):
    report = accuracy(name, points=1, order=1)
    assert report.ok and all(w.ulp <= BOUND for w in report.worst)
    assert {"all arguments anywhere", "arguments close to each other"} <= {s.region for s in report.samples}


class TestFloats:
    @pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
    def test_rank_and_at_are_inverse_and_in_order(self, dtype):
        floats = Floats(dtype)
        info = np.finfo(dtype)
        x = np.array([-info.max, -1.5, -1.0, -info.tiny, -info.smallest_subnormal, 0.0, info.smallest_subnormal, info.tiny, 1.0, info.max], dtype)
        assert np.array_equal(floats.at(floats.rank(x)), x) and (np.diff(floats.rank(x)) > 0).all()
        assert np.array_equal(floats.at(floats.rank(x[:-1]) + 1), np.nextafter(x[:-1], info.max, dtype=dtype))

    def test_between_has_both_ends_and_is_even_in_its_ranks(self):
        floats, rng = Floats("float64"), np.random.default_rng(0)
        x = floats.between(1e-300, 1e300, 201, rng)
        assert x[0] == 1e-300 and x[-1] == 1e300 and (np.diff(x) > 0).all()
        assert 0.45 < (np.log10(x) < 0).mean() < 0.55
        assert floats.between(1.0, 1.0 + 2**-51, 10, rng).tolist() == [1.0, 1.0 + 2**-52, 1.0 + 2**-51]

    def test_beside_goes_from_the_neighbour_to_the_reach(self):
        floats, rng = Floats("float64"), np.random.default_rng(0)
        x = floats.beside(1.0, -10**6, 100, rng)
        assert x[0] == np.nextafter(1.0, 0.0) and x.max() < 1.0 and x.min() >= float(floats.at(floats.rank(1.0) - 10**6))

    def test_ulps(self):
        floats = Floats("float32")
        truth = [mpmath.mpf(1), mpmath.mpf(1), mpmath.mpf("1e39"), mpmath.mpf("1e39"), mpmath.mpf("1e-60"), mpmath.mpf(0), mpmath.mpf(3)]
        values = np.array([1.0, 1.0 + 2**-22, np.inf, -np.inf, 0.0, 2**-149, np.nan])
        assert floats.ulps(values, truth).tolist() == pytest.approx([0.0, 2.0, 0.0, np.inf, 0.0, 1.0, np.inf], abs=1e-15)


@pytest.mark.sweep
def test_a_loss_inside_one_operation_is_its_own():
    report = accuracy("sinc", (1.885, 1.9), points=8, order=2)
    worst = report.of_order(2)
    assert worst.verdict == "ill-conditioned" and worst.ulp > 64  # the second derivative of sinc crosses zero here
    assert [(loss.op, loss.reason[:31]) for loss in report.losses] == [("sinc_derivative", "the operation itself has an err")]
    assert not report.losses[0].line


def test_no_operation_is_blamed_for_a_number_that_is_right():
    report = accuracy("tanh", (0.5, 1.0), points=8, order=0)
    subject = Subject("tanh")
    assert Blame(subject, Floats("float64")).find(report.of_order(0), (), mpmath.tanh(report.of_order(0).point[0])) is None


@pytest.fixture(scope="module")
def report():
    def naive(x):
        return symgrad.log(1 + symgrad.exp(x))

    return accuracy(naive, (-50.0, 50.0), points=8, order=2)


class TestReport:
    @pytest.mark.sweep
    def test_text(self, report):
        text = str(report)
        assert text.startswith("naive: digits are lost in ") and f"{report.points:,} points (float64)" in text
        for words in ("f = log(exp(x) + 1)", "Worst error by region", "large, negative", "lost at order 0", "softplus(x)", "1,000,000 ULP"):
            assert words in text
        assert repr(report.of_order(0).point[0]) in text
        assert repr(report) == f"<AccuracyReport naive: {report.summary}>"

    @pytest.mark.sweep
    def test_data(self, report):
        data = json.loads(json.dumps(report.to_dict(), allow_nan=False))
        assert data["schema"] == 1 and data["points"] == report.points and data["better"][0]["better"] == "softplus(x)"
        assert [w["ulp"] for w in data["worst"]] == [w.ulp if np.isfinite(w.ulp) else "inf" for w in report.worst]
        assert data["losses"][0]["op"] == report.losses[0].op

    def test_notebook_and_terminal(self, report):
        from rich.console import Console

        html, markdown = report._repr_html_(), report._repr_markdown_()
        assert html.count("<table>") == 4 and html.startswith('<div class="symgrad-report">')
        assert markdown.startswith("### naive: digits are lost") and "$$f = " in markdown
        console = Console(width=200, record=True, file=io.StringIO())
        console.print(report)
        assert "naive: digits are lost" in console.export_text()

    def test_progress_is_reported(self):
        told = []
        accuracy("sin", (0.0, 1.0), points=8, order=0, progress=lambda what, done, total: told.append(what))
        assert any(what.startswith("measuring") for what in told) and any(what.startswith("refining") for what in told)

    def test_drawing_needs_its_extra(self, report, monkeypatch):
        monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
        with pytest.raises(ImportError, match=r"pip install 'symgrad\[visual\]'"):
            report.plot()


CALLS = [(op, parameters) for op in REGISTRY.values() if is_listed(op) for parameters in scanned_calls(op)]
SHARE = SHARE_OF_ALL = 0.999
IDENTITIES = {"conj", "real", "resolve_conj", "tile"}
"""Of real numbers, and without a number of repetitions, these return their argument itself."""


@pytest.mark.sweep
def test_every_op_that_works_element_by_element_is_scanned():
    x, y = np.array([[0.25, 0.5, 0.75], [0.125, 0.375, 0.625]]), np.array([[0.5, 0.25, 0.5], [0.75, 0.125, 0.25]])
    covered = {op.name for op, _ in CALLS}
    found = set()
    for op in REGISTRY.values():
        if not op.surface.public or not op.differentiable or op.kind != "composite" or op.arity is None:
            continue
        values = [x, y, x + y][:op.arity]
        try:
            whole = FUNCTIONS[op.name](*map(symgrad.tensor, values)).numpy()
            if whole.shape != x.shape or whole.dtype != x.dtype:
                continue
            single = [FUNCTIONS[op.name](*(symgrad.tensor(v[i]) for v in values)).item() for i in np.ndindex(x.shape)]
        except (TypeError, ValueError, RuntimeError, AttributeError, IndexError, NotImplementedError, UserWarning):
            continue  # it needs other arguments than numbers
        if np.array_equal(np.ravel(whole), single):
            found.add(op.name)
    assert len(found) > 20 and found - covered == IDENTITIES


@pytest.mark.parametrize("name, expected", [("jv", (0.5, 2)), ("polygamma", (1,)), ("chebyshev_polynomial_t", (3,)), ("gelu", ("tanh",))])
def test_parameters_of_the_examples_are_used(name, expected):
    op = REGISTRY[name]
    for parameters in expected:
        subject = Subject(op, parameters=(parameters,))
        arguments = (parameters, 0.7) if name in ("jv", "polygamma") else (0.7, parameters)
        call = FUNCTIONS.get(name) or (lambda x, how: symgrad.nn.functional.gelu(x, approximate=how))
        expected_value = call(*(symgrad.tensor(a) if a == 0.7 else a for a in arguments)).item()
        assert subject.names == ["x"] and subject.call_at([np.array(0.7)]).result.item() == expected_value


def shares(calls, points):
    """The numbers within their bounds, and all that were compared, of evenly drawn points of some ops."""
    within = compared = 0
    for op, parameters in calls:
        for sample in scan(op, parameters, points, 0).samples:
            for index, errors in sample.errors.items():
                drawn = errors[:sample.drawn]
                known = drawn[~np.isnan(drawn)]
                within, compared = within + np.count_nonzero(known <= BOUNDS[len(index)]), compared + known.size
    return within, compared


@pytest.mark.sweep
def test_the_digits_of_some_ops():
    names = {"gelu", "bessel_j0", "legendre_polynomial_p", "logaddexp2", "polygamma"}
    calls = {op.name: (op, parameters) for op, parameters in CALLS if op.name in names}
    within, compared = shares(calls.values(), 1)
    assert within >= SHARE * compared > 500


@pytest.mark.sweep
def test_the_digits_of_all_ops():
    within, compared = shares(CALLS, 1)
    assert within >= SHARE_OF_ALL * compared > 10_000
