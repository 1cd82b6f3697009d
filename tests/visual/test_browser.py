"""What a browser shows: the page of a picture, where a click shows a node and opens a group, and the graphs page of TensorBoard.

CI installs the browser and sets SYMGRAD_BROWSER=required, so that nothing is left out there.
"""

import io
import os
import sys
import time

import numpy as np
import pytest

import symgrad
from symgrad import nn, visual
from symgrad.utils.tensorboard import SummaryWriter
from tests.support.browser import MISSING, browser, free_port, server, wait_for

pytestmark = [pytest.mark.sweep, pytest.mark.skipif(MISSING is not None and os.environ.get("SYMGRAD_BROWSER") != "required", reason=str(MISSING))]
LABELS = """
    const found = [], roots = [document];
    while (roots.length) {
        const root = roots.pop();
        for (const e of root.querySelectorAll("*")) {
            if (e.shadowRoot) roots.push(e.shadowRoot);
            const area = e.tagName.toLowerCase() === "text" ? e.getBoundingClientRect() : null;
            if (area && area.width && area.height) found.push([...e.childNodes].filter(n => n.nodeType === 3).map(n => n.data).join(""));
        }
    }
    return found"""


@pytest.fixture(scope="module")
def window():
    if MISSING:
        pytest.fail(MISSING)
    with browser() as found:
        yield found


def drawn(png):
    """The part of a screenshot that differs from its most frequent colour."""
    from PIL import Image

    pixels = np.asarray(Image.open(io.BytesIO(png)).convert("RGB")).reshape(-1, 3)
    _, counts = np.unique(pixels, axis=0, return_counts=True)
    return 1 - counts.max() / len(pixels)


def look(window, name):
    """The part of the window that is drawn when it moves no more; the screenshot is kept in the folder SYMGRAD_SCREENSHOTS, if there is one."""
    before = None
    for _ in range(20):
        png = window.screenshot()
        if png == before:
            break
        before = png
        time.sleep(0.3)
    if folder := os.environ.get("SYMGRAD_SCREENSHOTS"):
        with open(os.path.join(folder, f"{name}.png"), "wb") as stream:
            stream.write(png)
    return drawn(png)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Sequential(nn.Linear(4, 4), nn.Sigmoid()))
        self.head = nn.Linear(4, 2)

    def forward(self, x):
        return self.head(self.layers(x) * 2.0)


def details(window):
    return window.run("return document.getElementById('details').innerText")


def test_a_click_shows_what_is_known_of_a_node(window, tmp_path):
    x = symgrad.tensor(0.5, requires_grad=True, symbol="x")
    y = symgrad.tensor(2.0, requires_grad=True, symbol="y")
    visual.graph((x * y).sin() * x, gradient=True).save(tmp_path / "graph.html")
    window.open((tmp_path / "graph.html").as_uri())
    assert {"x", "y", "mul", "sin", "mul_1"} <= set(window.run(LABELS)) and look(window, "page") > 0.1
    names = window.run("return [...document.querySelectorAll('[data-box]')].map(e => e.querySelector('text').textContent)")
    window.click(f"[data-box='{names.index('sin')}']")
    text = details(window)
    for part in ("sin\n", "float64[]", "0.84147", "sin(mul)", "sin(x*y)", "SinBackward0", "0.5"):
        assert part in text, text
    assert look(window, "node") > 0.1
    window.run("[...document.querySelectorAll('#details button')].find(b => b.textContent === 'mul').click()")
    assert "x*y" in details(window)
    assert window.messages() == []


def test_a_group_is_opened_and_closed_and_the_picture_moves(window, tmp_path):
    visual.graph(Net(), symgrad.ones(5, 3), depth=2).save(tmp_path / "module.html")
    window.open((tmp_path / "module.html").as_uri())
    labels = window.run(LABELS)
    assert "Sequential[layers]" in labels and "tanh" not in labels
    number = window.run("return [...document.querySelectorAll('[data-box]')].find(e => e.textContent.includes('Sequential[layers]')).dataset.box")
    window.click(f"[data-box='{number}']")
    assert "nodes\n10" in details(window) and "module\nNet" in details(window)
    window.click(f"[data-box='{number}']", double=True)
    assert {"tanh", "sigmoid"} <= set(window.run(LABELS)) and look(window, "group") > 0.03
    before = window.run("return document.querySelector('#canvas > div').style.transform")
    window.click("#in")
    assert window.run("return document.querySelector('#canvas > div').style.transform") != before
    window.click("#path button")
    assert "tanh" not in window.run(LABELS)
    window.run("[...document.querySelectorAll('#levels button')].at(-1).click()")
    assert {"tanh", "addmm_2"} <= set(window.run(LABELS)) and window.messages() == []


@pytest.mark.parametrize("name", ['"><img src=x onerror="document.title=1">', "</script><script>document.title=1</script>",
                                  "a'b`${document.title=1}"])
def test_text_is_never_run(window, tmp_path, name):
    x = symgrad.tensor(0.5, requires_grad=True)
    visual.graph(x.sin() * x, names={name: x}).save(tmp_path / "hostile.html")
    window.open((tmp_path / "hostile.html").as_uri())
    window.click("[data-box='0']")
    assert details(window).startswith(name) and window.run("return document.title").startswith("graph: ")
    assert window.run("return document.images.length") == 0 and window.messages() == []


def test_the_page_stands_in_the_frame_of_a_notebook(window, tmp_path):
    (tmp_path / "notebook.html").write_text(f"<!DOCTYPE html><meta charset=utf-8>{visual.graph(Net(), symgrad.ones(5, 3))._repr_html_()}")
    window.open((tmp_path / "notebook.html").as_uri())
    assert look(window, "notebook") > 0.05 and window.messages() == []


def test_tensorboard_draws_the_graph_of_a_module(window, tmp_path):
    with SummaryWriter(tmp_path) as writer:
        writer.add_graph(Net(), symgrad.ones(5, 3))
    port = free_port()
    command = [sys.executable, "-m", "tensorboard.main", "--logdir", str(tmp_path), "--host", "127.0.0.1", "--port", str(port), "--load_fast=false"]
    with server(command, f"http://127.0.0.1:{port}/data/environment"):
        window.open(f"http://127.0.0.1:{port}/#graphs&run=.")
        wait_for("the nodes of the module in TensorBoard", lambda: {"Net", "input"} <= set(window.run(LABELS)))
        assert look(window, "tensorboard") > 0.03
        window.run("""
            const roots = [document];
            while (roots.length) for (const e of roots.pop().querySelectorAll("*")) {
                if (e.shadowRoot) roots.push(e.shadowRoot);
                if (e.tagName === "g" && e.getAttribute("data-name") === "Net") {
                    e.querySelector(".nodeshape").dispatchEvent(new MouseEvent("dblclick", {bubbles: true}));
                    return;
                }
            }""")
        wait_for("the parts of the module in TensorBoard", lambda: {"Sequential[layers]", "Linear[head]"} <= set(window.run(LABELS)))
        assert look(window, "tensorboard_opened") > 0.03
