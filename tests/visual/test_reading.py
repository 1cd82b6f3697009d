"""What makes pictures readable: straight columns, names of modules, shapes of groups, values of arrays, and names that are no paths."""


import numpy as np
import pytest

import symgrad
from symgrad import nn, visual
from symgrad.utils.tensorboard.writer import graph_definition
from symgrad.visual.arranging import arranged
from symgrad.visual.tracing import trace

NAN, INF = float("nan"), float("inf")


class Residual(nn.Module):
    """A module whose input passes it by."""

    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def forward(self, x):
        return x + self.inner(x)


def tower(blocks):
    return nn.Sequential(*[Residual(nn.Sequential(nn.Linear(3, 3), nn.Tanh())) for _ in range(blocks)])


@pytest.mark.parametrize("blocks", [3, 10])
def test_residual_blocks_stand_in_one_column(blocks):
    picture = visual.graph(tower(blocks), symgrad.ones(2, 3), depth=3)
    columns = [left + width / 2 for (left, _, width, _), box in zip(arranged(picture.view).rectangles, picture.boxes) if box.name.startswith("add")]
    assert len(columns) == blocks and max(columns) - min(columns) < 20


def test_a_group_has_the_name_of_its_module_and_the_type_of_its_result():
    net = nn.Sequential(tower(2), nn.Flatten(0), nn.Sequential(nn.Linear(6, 4), nn.Softmax(0)))
    boxes = {box.name: box.type for depth in (2, 4) for box in visual.graph(net, symgrad.ones(2, 3), depth=depth).boxes if box.kind == "fold"}
    assert boxes == {"Sequential[0]": "float64[2, 3]", "Sequential[2]": "float64[4]", "Sequential[0.0.inner]": "float64[2, 3]",
                     "Sequential[0.1.inner]": "float64[2, 3]"}


def test_a_group_with_several_results_has_no_type():
    class Halves(nn.Module):
        def forward(self, x):
            x = x.sin()
            return x + 1, x * 2

    class Both(nn.Module):
        def __init__(self):
            super().__init__()
            self.halves = Halves()

        def forward(self, x):
            a, b = self.halves(x)
            return a.exp() - b

    assert [box.type for box in visual.graph(Both(), symgrad.ones(2), depth=2).boxes if box.kind == "fold"] == [""]


@pytest.mark.parametrize("value, text", [
    ([1.0] * 9, "all 1"), ([1.0] * 8 + [2.0], "1 … 2"), ([1.0] * 8 + [NAN], "1, some not finite"), ([1.0, 2.0] * 4 + [INF], "1 … 2, some not finite"),
    ([NAN] * 9, "none finite"), ([NAN, INF, 1.0], "[nan, inf, 1]"), (NAN, "nan"), ([], "[]"), ([7] * 9, "all 7"), ([True] * 9, "")])
def test_the_value_of_a_box(value, text):
    (box,) = [box for box in visual.graph(lambda x: x.clone(), symgrad.tensor(value)).boxes if box.name == "x"]
    assert box.value == text


@pytest.mark.parametrize("name", ["a/b", "a:0", "/", "x/y:1"])
def test_a_name_with_a_slash_opens_no_scope(name):
    net = nn.ModuleDict({"part": nn.Linear(2, 2)})
    net._modules[name] = net._modules.pop("part")
    net.forward = lambda parts: net[name](parts[name]).sum()
    nodes = graph_definition(trace(net, ({name: symgrad.ones(1, 2)},))).node
    names = [node.name for node in nodes]
    assert len(set(names)) == len(names) and all(":" not in each for each in names)
    assert {x for node in nodes for x in node.input} <= set(names)
    assert {each.count("/") for each in names} == {1, 2}
    boxes = visual.graph(net, {name: symgrad.ones(1, 2)}, depth=9).boxes
    assert {f"parts.{name}", f"{name}.weight"} <= {box.name for box in boxes}


def test_names_that_differ_in_a_slash_alone_stay_apart():
    twins = {"a/b": symgrad.ones(2), "a\N{DIVISION SLASH}b": symgrad.zeros(2)}
    paths = [v.path for v in trace(lambda pair: pair["a/b"] + pair["a\N{DIVISION SLASH}b"], (twins,))]
    assert len(set(paths)) == len(paths) == 4


def test_a_scalar_that_was_written_keeps_its_vertex():
    def function(x):
        total = x.sum()
        total += 1
        return total * x

    with symgrad.no_grad():
        found = {v.label: [o.label for o in v.operands] for v in trace(function, (symgrad.ones(3),))}
    assert found["add"][0] == "sum" and found["mul"] == ["add", "x"]


def test_a_long_trace_names_numbers_that_are_arrays():
    def function(x):
        for _ in range(4000):
            x = x + symgrad.from_numpy(np.zeros(()))
        return x

    assert len(trace(function, (symgrad.ones(3),))) == 8002


def points(curve):
    """Points of a curve of cubic pieces."""
    given = np.array(curve.points)
    t = np.linspace(0.02, 0.98, 49)[:, None]
    for k in range(0, len(given) - 1, 3):
        a, b, c, d = given[k:k + 4]
        yield from (1 - t) ** 3 * a + 3 * (1 - t) ** 2 * t * b + 3 * (1 - t) * t**2 * c + t**3 * d


def product():
    x, y = (symgrad.tensor(value, requires_grad=True, symbol=name) for name, value in (("x", 0.5), ("y", 2.0)))
    return (x * y).sin() + x


def network():
    net = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
    return nn.functional.mse_loss(net(symgrad.ones(5, 3)), symgrad.zeros(5, 1))


@pytest.mark.parametrize("result", [product, network])
def test_edges_between_values_and_gradients_pass_no_box(result):
    found = arranged(visual.graph(result(), gradient=True).view)
    across = [curve for curve in found.curves if curve.kind != "operand"]
    assert len(across) > 3
    for curve in across:
        for x, y in points(curve):
            assert 0 < x < found.width and 0 < y < found.height
            inside = [i for i, (left, top, w, h) in enumerate(found.rectangles) if left < x < left + w and top < y < top + h]
            assert set(inside) <= {curve.source, curve.target}, (curve, inside)
