"""The picture of an accuracy report, where matplotlib is installed."""

import importlib.util

import numpy as np
import pytest

from symgrad.dtypes.ulp import ALL_DIGITS
from symgrad.scanning import accuracy

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
