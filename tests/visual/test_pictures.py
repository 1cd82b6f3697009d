"""Pictures: what boxes say, where they stand, how they are folded, and what becomes of text that means something in another language."""

import doctest
import json
import math
import re
import xml.etree.ElementTree as ElementTree
from html import unescape

import pytest
from hypothesis import given
from hypothesis import strategies as st

import symgrad
from symgrad import nn, visual
from symgrad.visual.arranging import arranged, place, ranked
from tests.support.functions import Two, leaf
from tests.support.pages import PAGES, blocks

SVG = "{http://www.w3.org/2000/svg}"
ELEMENTS = {SVG + tag for tag in ("svg", "g", "rect", "path", "line", "text", "title")}
HOSTILE = ['"><script>alert(1)</script>', "</script><img src=x onerror=alert(1)>", 'a"; b -> c [x="', "\\N\\G\\", "%%{init: {}}%%\nend",
           "x]:::y --> z", "&lt;b&gt;", "]]> --> <!--", "\u202e\x00\ud800", "{{data}}{{script}}", "$x$ \\input{y} #1", "'`|"]


def shown(page):
    """The data of a page."""
    return json.loads(re.search(r'id="data">(.*?)</script>', page, re.DOTALL)[1])


def by_name(picture):
    return {box.name: box for box in picture.boxes}


def example():
    x = symgrad.tensor(0.5, requires_grad=True, symbol="x")
    y = symgrad.tensor([1.0, 2.0], requires_grad=True, symbol="y")
    w = symgrad.tensor(3.0, requires_grad=True)
    return ((x * y).sin() * w).sum(), {"x": x, "y": y, "w": w}


def module():
    return nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Sequential(nn.Linear(4, 4), nn.Sigmoid()), nn.Linear(4, 1))


# What boxes say


def test_every_node_with_its_shape_value_and_formulas():
    result, leaves = example()
    found = [(b.kind, b.name, b.type, b.value, b.expression, b.formula, b.node) for b in visual.graph(result, names={"w": leaves["w"]}).boxes]
    assert found == [
        ("leaf", "x", "float64[]", "0.5", "", "", "torch::autograd::AccumulateGrad"),
        ("leaf", "y", "float64[2]", "[1, 2]", "", "", "torch::autograd::AccumulateGrad"),
        ("operation", "mul", "float64[2]", "[0.5, 1]", "x*y", "[x*y_0, x*y_1]", "MulBackward0"),
        ("operation", "sin", "float64[2]", "[0.47943, 0.84147]", "sin(mul)", "[sin(x*y_0), sin(x*y_1)]", "SinBackward0"),
        ("leaf", "w", "float64[]", "3", "", "", "torch::autograd::AccumulateGrad"),
        ("operation", "mul_1", "float64[2]", "[1.4383, 2.5244]", "sin*w", "[3*sin(x*y_0), 3*sin(x*y_1)]", "MulBackward0"),
        ("operation", "sum", "float64[]", "3.9627", "sum(mul_1, dim=(0,), keepdim=False)", "3*sin(x*y_0) + 3*sin(x*y_1)", "SumBackward0")]


def test_values_and_expressions_can_be_left_out():
    result, _ = example()
    boxes = visual.graph(result, values=False, expressions=False).boxes
    assert not any(box.value or box.expression or box.formula for box in boxes) and all(box.type for box in boxes)


def test_edges_lead_from_operands_to_results():
    picture = visual.graph(example()[0])
    names = [box.name for box in picture.boxes]
    assert {(names[a], names[b]) for a, b in picture.edges} == {("x", "mul"), ("y", "mul"), ("mul", "sin"), ("sin", "mul_1"), ("leaf", "mul_1"),
                                                                 ("mul_1", "sum")}
    assert [box.operands for box in picture.boxes if box.name == "mul"] == [[names.index("x"), names.index("y")]]


def test_gradients_are_those_of_backward_and_stand_beside_their_nodes():
    result, leaves = example()
    picture = visual.graph(result, gradient=True)
    boxes = picture.boxes
    found = {boxes[v].name: boxes[g] for g, v in picture.cotangents}
    result.backward()
    for name, t in leaves.items():
        box = found["leaf" if name == "w" else name]
        assert box.is_gradient and box.value == boxes[[b.name for b in boxes].index("leaf" if name == "w" else name)].gradient
        numbers = [float(x) for x in box.value.strip("[]").split(",")]
        assert numbers == pytest.approx(t.grad.ravel().tolist(), rel=1e-4)
    assert found["x"].formula == "3*y_0*cos(x*y_0) + 3*y_1*cos(x*y_1)"
    assert found["mul"].gradient_of == "mul" and {boxes[v].kind for _, v in picture.view.arrows} == {"leaf"}
    places = arranged(picture.view).rectangles
    assert max(left + width for (left, _, width, _), b in zip(places, boxes) if not b.is_gradient) < min(
        left for (left, *_), b in zip(places, boxes) if b.is_gradient)


def test_a_picture_has_no_effect_on_the_graph():
    result, leaves = example()
    seen = []
    leaves["x"].register_hook(seen.append)
    visual.graph(result, gradient=True).html()
    assert seen == [] and all(t.grad is None for t in leaves.values())
    result.backward()
    assert len(seen) == 1


def test_gradients_of_complex_numbers_and_of_several_results():
    z = symgrad.tensor([1 + 2j, 2.0], requires_grad=True, symbol="z")
    picture = visual.graph([(z * z).abs().sum(), z.real.sum()], gradient=True)
    g, = [g for g, v in picture.cotangents if picture.boxes[v].name == "z"]
    expected, = symgrad.autograd.grad([(z * z).abs().sum(), z.real.sum()], z)
    found = [complex(x) for x in picture.boxes[g].value.strip("[]").split(",")]
    assert found == pytest.approx(expected.tolist(), rel=1e-4)


def test_under_no_grad_the_gradients_are_the_same():
    result, _ = example()
    expected = visual.graph(result, gradient=True).dot
    with symgrad.no_grad():
        assert visual.graph(result, gradient=True).dot == expected


def test_outputs_of_one_call_and_of_a_function():
    product, total = Two.apply(leaf(2.0), leaf(3.0))
    boxes = by_name(visual.graph(product * total, gradient=True))
    assert (boxes["Two"].value, boxes["output 0"].value, boxes["output 1"].value) == ("", "6", "5")
    assert (boxes["output 0"].gradient, boxes["output 1"].gradient, boxes["leaf"].gradient, boxes["leaf_1"].gradient) == ("5", "6", "21", "16")
    first, second = symgrad.ones(3, requires_grad=True).split(2)
    names = [box.name for box in visual.graph([first, second]).boxes]
    assert names == ["leaf", "split_piece", "split_piece_1"]


def test_second_derivatives_have_a_graph_like_any_other():
    x = symgrad.tensor(0.5, requires_grad=True, symbol="x")
    first, = symgrad.autograd.grad(x.sin() * x, x, create_graph=True)
    boxes = visual.graph(first, gradient=True).boxes
    assert boxes[0].gradient == f"{2 * math.cos(0.5) - 0.5 * math.sin(0.5):.5g}"


def test_after_a_backward_the_values_are_gone_and_the_graph_is_not():
    w = symgrad.ones(3, requires_grad=True)
    result = (w * 2).exp().sum()
    result.backward()
    boxes = by_name(visual.graph(result))
    assert boxes["exp"].value == "freed by a backward" and boxes["exp"].shape is None and list(boxes) == ["leaf", "mul", "exp", "sum"]
    with pytest.raises(RuntimeError, match="a second time"):
        visual.graph(result, gradient=True)


def written(w):
    y = w * 1
    y[0] = y[1] * 2
    y[:, 0].mul_(3.0)
    return y.sum()


def stale(w):
    y = w * 1
    view = y[0]
    y.mul_(2.0)
    return view.sum()


CASES = {"writes": written, "stale view": stale, "empty": lambda w: (w[:0] * 2).sum(), "bfloat16": lambda w: (w.to(symgrad.bfloat16) * 2).sum(),
         "not finite": lambda w: (w.reshape(4).repeat(3) / 0).sum(), "selection": lambda w: symgrad.where(w > 2, w, w * 2).sum(),
         "complex": lambda w: (w.reshape(4).repeat(3) * 2j).abs().sum(), "pairs": lambda w: w.sort()[0].sum(),
         "list": lambda w: symgrad.cat([w, w]).sum(),
         "indices": lambda w: w[symgrad.tensor([0, 1]), None].sum(), "matrices": lambda w: symgrad.linalg.eigh(w)[0].sum(),
         "batches": lambda w: symgrad.vmap(lambda row: row.sin().sum())(w).sum(),
         "Hessian": lambda w: symgrad.func.hessian(lambda x: (x**3).sum())(w).sum(),
         "compiled": lambda w: symgrad.compile(lambda x: (x**3).sum())(w), "one twice": lambda w: [w.sin().sum()] * 2,
         "checkpoint": lambda w: symgrad.utils.checkpoint.checkpoint(lambda x: (x**3).sum(), w, use_reentrant=False)}


@pytest.mark.parametrize("case", CASES)
def test_every_kind_of_graph_is_drawn_in_every_form(case):
    w = symgrad.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True, symbol="w")
    results = CASES[case](w)
    expected, = symgrad.autograd.grad(results, w, retain_graph=True)
    picture = visual.graph(results, gradient=True)
    (box,) = [box for box in picture.boxes if box.name == "w"]
    numbers = [float(x) for x in re.findall(r"-?(?:nan|inf|[\d.]+(?:e[-+]\d+)?)", box.gradient)]
    assert numbers == pytest.approx(expected.ravel().tolist(), rel=1e-4, nan_ok=True)
    ElementTree.fromstring(picture.svg())
    assert all([picture.html(), picture.dot, picture.mermaid, picture.latex()])


# Modules and groups


def test_a_module_is_drawn_by_its_parts():
    net, x = module(), symgrad.ones(5, 3)
    names = {depth: [box.name for box in visual.graph(net, x, depth=depth).boxes] for depth in (1, 2, 3, 4)}
    assert names[1] == ["input", "Sequential", "output.1"]
    assert names[2] == ["input", "Linear[0]", "tanh", "Sequential[2]", "Linear[3]", "output.1"]
    assert names[3] == ["input", "0.weight", "t", "0.bias", "addmm", "tanh", "Linear[2.0]", "sigmoid", "3.weight", "t_2", "3.bias", "addmm_2",
                        "output.1"]
    assert len(names[4]) == 16 and visual.graph(net, x).folded == 0


def test_a_module_that_is_called_twice_is_two_boxes_without_a_cycle():
    class Twice(nn.Module):
        def __init__(self):
            super().__init__()
            self.shared = nn.Linear(3, 3)

        def forward(self, x):
            return self.shared(self.shared(x).relu())

    picture = visual.graph(Twice(), symgrad.ones(2, 3), depth=2)
    assert [box.name for box in picture.boxes if box.kind == "fold"] == ["Linear[shared]", "Linear[shared]"]
    assert all(a < b for a, b in picture.edges)


def test_folding_says_how_many_nodes_it_hides():
    net = nn.Sequential(*[nn.Sequential(nn.Linear(4, 4), nn.Tanh()) for _ in range(20)])
    picture = visual.graph(net, symgrad.ones(5, 4))
    assert len(picture.boxes) <= 40 and picture.folded == sum(box.folded for box in picture.boxes)
    assert repr(picture) == "<Picture of 102 nodes, 100 of them folded into 20 boxes>"
    assert picture.caption in unescape(picture.svg()) and len(visual.graph(net, symgrad.ones(5, 4), fold=200).boxes) == 102


def chain(length):
    y = symgrad.tensor(1.0, requires_grad=True, symbol="x")
    for _ in range(length):
        y = y.sin()
    return y


@pytest.mark.sweep
@pytest.mark.parametrize("length", [6000, pytest.param(100_000, marks=pytest.mark.sweep)])
def test_a_large_graph_is_folded(length):
    result = chain(length)
    picture = visual.graph(result)
    texts = [picture.svg(), picture.html(), picture.dot, picture.mermaid, picture.latex()]
    assert max(map(len, texts)) < 10**7
    assert picture.count == picture.folded == length + 1 and len(picture.boxes) <= 40
    with pytest.raises(ValueError, match=f"the gradients of {length + 1:,} nodes are too many"):
        visual.graph(result, gradient=True)
    with pytest.raises(ValueError, match="at depth [34] more than 2000 boxes"):
        visual.graph(result, depth=4)


@pytest.mark.sweep
def test_every_node_of_a_folded_graph_is_on_some_page():
    data = shown(visual.graph(chain(1500), fold=5).html())
    names = {box["name"] for page in data["pages"] for box in page["boxes"] if box["kind"] in ("leaf", "operation")}
    assert names == {"x", "sin", *(f"sin_{i}" for i in range(1, 1500))}
    opened = {box["open"] for page in data["pages"] for box in page["boxes"] if "open" in box}
    levels = {page for _, page in data["levels"]}
    assert opened | levels == set(range(len(data["pages"]))) and all(page["parent"] < i for i, page in enumerate(data["pages"]))


# Errors


@pytest.mark.parametrize("args, words, error, message", [
    ((3,), {}, TypeError, "expected a tensor, several, a module or a function, but got int"),
    (([symgrad.ones(2, requires_grad=True), 1],), {}, TypeError, "expected a tensor, but got int"),
    (([],), {}, ValueError, "there is no tensor"),
    ((symgrad.ones(2),), {}, ValueError, r"the tensor of shape \[2\] has no graph.*requires_grad=True or symbol"),
    (([symgrad.ones(2, requires_grad=True).mul(2).detach()],), {}, ValueError, "has no graph"),
    ((symgrad.ones(2, requires_grad=True), 1), {}, TypeError, "several tensors as a list"),
    ((symgrad.tensor(1.0, symbol="x").sin(),), {"gradient": True}, ValueError, "no result requires grad"),
    ((symgrad.ones(2, requires_grad=True),), {"fold": 0}, ValueError, "fold must be a whole number from 1 to 2000, not 0"),
    ((symgrad.ones(2, requires_grad=True),), {"depth": 2.5}, ValueError, "depth must be a whole number")])
def test_refusals(args, words, error, message):
    with pytest.raises(error, match=message):
        visual.graph(*args, **words)


def test_inference_records_nothing():
    with symgrad.inference_mode(), pytest.raises(ValueError, match="has no graph.*outside of no_grad and inference_mode"):
        visual.graph(symgrad.ones(2, requires_grad=True).sin())


def test_a_leaf_alone_is_one_box():
    assert [box.name for box in visual.graph(symgrad.ones(2, requires_grad=True)).boxes] == ["leaf"]


def test_saving_by_the_ending(tmp_path):
    picture = visual.graph(example()[0])
    for ending, text in (("svg", picture.svg()), ("html", picture.html()), ("dot", picture.dot), ("mmd", picture.mermaid), ("tex", picture.latex())):
        picture.save(tmp_path / f"x.{ending}")
        assert (tmp_path / f"x.{ending}").read_text(encoding="utf-8") == text
    with pytest.raises(ValueError, match=r"none of the endings .svg, .html"):
        picture.save(tmp_path / "x.gif")
    with pytest.raises(RuntimeError, match="does not exist"):
        picture.save(tmp_path / "none" / "x.svg")
    assert len(list(tmp_path.iterdir())) == 5


# Other languages


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", HOSTILE)
def test_text_stays_text_in_every_language(name):
    x = symgrad.tensor(0.5, requires_grad=True)

    class Net(nn.Module):
        def forward(self, t):
            return t.sin() * t

    Net.__name__ = name.replace("\x00\ud800", "")
    result = (x.sin() * x).sum()
    plain = visual.graph(result, gradient=True, names={"x": x})
    for picture in (visual.graph(result, gradient=True, names={name: x}), visual.graph(Net(), x, depth=1), visual.graph(Net(), x)):
        root = ElementTree.fromstring(picture.svg())
        assert {e.tag for e in root.iter()} <= ELEMENTS
        assert not any(key.startswith("on") for e in root.iter() for key in e.attrib)
        page = picture.html()
        assert page.count("<script") == 2 and page.count("</script>") == 2 and "<img" not in page
        data = shown(page)
        assert {e.tag for p in data["pages"] for e in ElementTree.fromstring(p["svg"]).iter()} <= ELEMENTS
        frame = ElementTree.fromstring(picture._repr_html_())
        assert frame.tag == "iframe" and frame.attrib["sandbox"] == "allow-scripts" and frame.attrib["srcdoc"].count("<script") == 2
        for line in picture.dot.splitlines():
            assert re.fullmatch(r'[^"]*("(\\.|[^"\\])*"[^"]*)*', line), line
        assert not re.search(r'[<>;{}|`$\\]|%%\{', re.sub(r"<br/>|#\d+;|-->|-\.->|\(\[|\]\)|\[\[", "", picture.mermaid.partition("    style")[0])
                             .replace("%% ", "")), picture.mermaid
        assert not re.search(r"[<>`]|\\input", picture.latex().replace("\\begin{aligned}", ""))
    named = visual.graph(result, gradient=True, names={name: x})
    assert len(named.mermaid.splitlines()) == len(plain.mermaid.splitlines()) and len(named.dot.splitlines()) == len(plain.dot.splitlines())


def test_the_page_asks_no_network_and_runs_its_own_script_alone():
    page = visual.graph(example()[0]).html()
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', page)[1]
    assert "default-src 'none'" in policy and "script-src 'sha256-" in policy
    assert not re.search(r"(src|href)\s*=|https?:(?!//www\.w3\.org/2000/svg)", page)


def test_latex_has_one_equation_for_each_operation():
    x = symgrad.tensor(0.5, requires_grad=True, symbol="x")
    assert visual.graph(x.sin() * x / 2)._repr_latex_() == (
        "$\\displaystyle \\begin{aligned}\n\\mathrm{sin} &= \\sin{\\left(x \\right)} \\\\\n\\mathrm{mul} &= \\mathrm{sin} x \\\\\n"
        "\\mathrm{div} &= \\frac{\\mathrm{mul}}{2}\n\\end{aligned}$")


def test_the_diagram_of_the_guide_is_what_its_code_draws():
    page = PAGES["examples/guide/pictures.md"]
    test = doctest.DocTestParser().get_doctest("\n".join(block["text"] for block in blocks(page, "python")), {}, "page", "page", 0)
    doctest.DocTestRunner().run(test, out=len, clear_globs=False)
    (diagram,) = blocks(page, "mermaid")
    assert diagram["text"] == test.globs["picture"].mermaid + "\n"


# Places


@given(st.data())
def test_boxes_do_not_overlap_and_edges_lead_down(data):
    count = data.draw(st.integers(1, 25))
    pairs = [(a, b) for b in range(count) for a in range(b)]
    edges = data.draw(st.lists(st.sampled_from(pairs), unique=True, max_size=60)) if pairs else []
    rank = ranked(count, edges)
    assert all(rank[a] < rank[b] for a, b in edges)
    width = {i: float(10 + 7 * (i % 5)) for i in range(count)}
    x, bends = place(width, dict(enumerate(rank)), edges)
    for i in range(count):
        assert x[i] - width[i] / 2 > -1e-6
        for j in range(i):
            assert rank[i] != rank[j] or abs(x[i] - x[j]) >= (width[i] + width[j]) / 2
    assert all([row for _, row in bends[a, b]] == list(range(rank[a] + 1, rank[b])) for a, b in edges)


def test_a_picture_keeps_a_diamond_without_crossings():
    x = symgrad.tensor(1.0, requires_grad=True)
    view = visual.graph(x.sin().cos() + x.exp().tanh()).view
    left = {box.name: place[0] for box, place in zip(view.boxes, arranged(view).rectangles)}
    assert (left["sin"] < left["exp"]) == (left["cos"] < left["tanh"])
