"""What is drawn by matplotlib: pictures as PNG, and figures for TensorBoard."""

import io
import sys

import numpy as np
import pytest

import symgrad
from symgrad import visual
from symgrad.utils.tensorboard import SummaryWriter
from symgrad.visual.arranging import arranged
from symgrad.visual.texts import colours_of
from tests.torch_compat.test_tensorboard import events

pytestmark = pytest.mark.sweep


def pixels(png):
    from PIL import Image

    return np.asarray(Image.open(io.BytesIO(png)).convert("RGB"))


def example():
    x = symgrad.tensor(0.5, requires_grad=True, symbol="x")
    return (x.sin() * x).exp()


def test_a_png_shows_boxes_at_the_places_of_the_svg():
    picture = visual.graph(example(), gradient=True)
    drawn = pixels(picture.png(dpi=96))
    for box, (left, top, width, height) in zip(picture.boxes, arranged(picture.view).rectangles):
        fill = tuple(int(colours_of(box)[0][i:i + 2], 16) for i in (1, 3, 5))
        inside = drawn[round(top) + 2:round(top + height) - 2, round(left) + 2:round(left + width) - 2]
        assert (inside == fill).all(2).mean() > 0.5, box.name
    assert pixels(picture.png(dpi=48)).shape[0] == pytest.approx(drawn.shape[0] / 2, abs=2)


@pytest.mark.parametrize("name", ["$\\frac{1}{0}$ $", "a_b^{c}", "汉字", "\u202e\x00"])
def test_text_in_a_png_is_text(name):
    x = symgrad.tensor(0.5, requires_grad=True)
    assert pixels(visual.graph(x.sin(), names={name: x}).png()).size


def test_a_png_is_saved_or_nothing_is(tmp_path, monkeypatch):
    picture = visual.graph(example())
    picture.save(tmp_path / "graph.PNG")
    assert pixels((tmp_path / "graph.PNG").read_bytes()).size
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(ImportError, match=r"needs matplotlib: pip install 'symgrad\[visual\]'"):
        picture.save(tmp_path / "other.png")
    assert [p.name for p in tmp_path.iterdir()] == ["graph.PNG"]


def test_figures_are_pictures_of_tensorboard(tmp_path):
    from matplotlib import pyplot
    from matplotlib.figure import Figure

    red, open_figure = Figure(figsize=(2, 1), dpi=50, facecolor="red"), pyplot.figure(figsize=(2, 1), dpi=50, facecolor="blue")
    with SummaryWriter(tmp_path) as writer:
        writer.add_figure("one", red, 3)
        writer.add_figure("kept", open_figure, close=False)
        assert pyplot.get_fignums()
        writer.add_figure("two", [red, open_figure])
        assert not pyplot.get_fignums()
    found = {v.tag: (e.step, pixels(v.image.encoded_image_string)) for e in events(tmp_path) for v in e.summary.value}
    assert found["one"][0] == 3 and found["one"][1].shape == (50, 100, 3) and (found["one"][1] == (255, 0, 0)).all()
    assert found["two"][1].shape == (50, 200, 3) and (found["two"][1][:, 100:] == (0, 0, 255)).all()
