"""Functions of torch and of JAX scanned, and the picture of an accuracy report: the digits that are lost, and what is no fault."""

import importlib.util

import jax.numpy as jnp
import numpy as np
import pytest
import torch

from symgrad.dtypes.ulp import ALL_DIGITS
from symgrad.scanning import accuracy


def test_softplus_loses_digits_above_its_threshold():
    report = accuracy(lambda x: torch.nn.functional.softplus(x), (0.0, 40.0), formula="log(1+exp(x))", points=12, order=1)
    worst = report.of_order(0)
    assert worst.point[0] > 20 and worst.ulp > 1e4 and worst.value == worst.point[0]
    assert report.of_order(1).value == 1.0 and report.of_order(1).verdict == "digits are lost"


def test_tanh_has_no_second_derivative_left_in_its_tail():
    report = accuracy(torch.tanh, (0.0, 40.0), formula="tanh(x)", points=12)
    assert report.of_order(0).verdict == "accurate"
    assert report.of_order(1).verdict == report.of_order(2).verdict == "digits are lost" and report.of_order(2).point[0] > 15


TINY = 2.2250738585072014e-308


def scan(function, formula, order=1):
    return accuracy(function, (-5.0, 5.0), formula=formula, points=12, order=order, seconds=4, progress=False)


@pytest.mark.parametrize("formula, function", [("x*exp(-x)", lambda x: x * jnp.exp(-x)), ("x/1024", lambda x: jnp.multiply(x, 2.0**-10)),
                                               ("sin(x)", jnp.sin)],
                         ids=["product", "quotient", "sin"])
def test_flushing_subnormal_numbers_is_not_faulted(function, formula):
    report = scan(function, formula, order=2)
    assert {w.verdict for w in report.worst} <= {"accurate", "ill-conditioned"}, str(report)  # the derivative of the product is 0 at 1
    assert not any("subnormal" in s.region for s in report.samples) and any("tiny" in s.region for s in report.samples)
    assert "no subnormal numbers were drawn: jax takes them for zero" in report.notes


def test_what_is_taken_for_zero_beyond_that_is_faulted():
    report = scan(lambda x: jnp.where(jnp.abs(x) < 1e-300, 0.0, x), "x")
    assert report.of_order(0).verdict == "digits are lost" and TINY <= abs(report.of_order(0).point[0]) < 1e-300


if importlib.util.find_spec("matplotlib"):
    from matplotlib.figure import Figure

    @pytest.fixture(scope="module")
    def report():
        return accuracy(lambda x: 1 - x.tanh() ** 2, (-40.0, 40.0), points=8, order=1)

    def test_a_figure_has_one_panel_for_each_order_with_all_points(report):
        figure = report.plot()
        assert isinstance(figure, Figure) and len(figure.axes) == 2
        for order, panel in enumerate(figure.axes):
            drawn = np.concatenate([c.get_offsets() for c in panel.collections])
            known = sum(int((~np.isnan(s.errors[(0,) * order])).sum()) for s in report.samples)
            assert panel.get_yscale() == "log" and len(drawn) == known
        worst = max(c.get_offsets()[:, 1].max() for c in figure.axes[0].collections if len(c.get_offsets()))
        assert 0.5 * ALL_DIGITS < worst <= 4 * ALL_DIGITS
        assert "digits are lost" in figure.axes[0].get_title(loc="left")

    def test_the_axis_keeps_the_order_of_the_floats(report):
        from symgrad.sampling.floats import Floats
        from symgrad.scanning.report import _Axis

        axis = _Axis(Floats("float64"))
        x = np.array([-1e300, -1.0, -1e-5, -1e-300, 0.0, 1e-300, 1e-5, 1.0, 1e300])
        assert (np.diff(axis.place(x)) > 0).all()
        assert [axis.at(p) for p in axis.place(x)] == pytest.approx(x.tolist(), rel=1e-3)

    @pytest.mark.parametrize("ending", ["png", "svg", "pdf"])
    def test_a_figure_is_saved(report, tmp_path, ending):
        report.plot(tmp_path / f"errors.{ending}")
        assert (tmp_path / f"errors.{ending}").stat().st_size > 1000

    def test_axes_of_the_users_are_drawn_into(report):
        figure = Figure()
        panels = figure.subplots(2)
        assert report.plot(panels) is figure and all(panel.collections for panel in panels)
        one = Figure().subplots()
        report.plot(one)
        assert one.collections
        with pytest.raises(ValueError, match="3 axes were given for 2 orders"):
            report.plot(Figure().subplots(3))
