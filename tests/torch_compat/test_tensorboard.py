"""SummaryWriter: what TensorBoard's own loader reads back from the files, and the graphs of the same networks that torch writes.

What torch writes is in tests/support/data/tensorboard.json, written by `python -m tests.torch_compat.test_tensorboard`.
"""

import json
import math
import os
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import pytest

import symgrad
from symgrad.graph.modes import DEFAULT, thread
from symgrad.utils.tensorboard import SummaryWriter
from symgrad.visual.boxes import formula
from symgrad.visual.tracing import trace

RECORDED = pathlib.Path(__file__).parents[1] / "support" / "data" / "tensorboard.json"
VALUES = {"line": np.linspace(-1.0, 2.0, 50), "one": np.array([3.0]), "whole": np.arange(7), "zeros": np.zeros(4), "matrix": np.eye(3) / 7}
BINS = [("tensorflow", None), ("auto", None), ([-2.0, 0.0, 0.5, 4.0], None), (30, 7), (30, 4)]


def networks(torch):
    """Networks by name, each with its inputs."""
    nn = torch.nn

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.w = nn.Parameter(torch.randn(2, 1))
            self.b = nn.Parameter(torch.zeros(1, 1))

        def forward(self, x):
            return x @ self.w + self.b

    class Layers(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Sequential(nn.Linear(4, 4), nn.Sigmoid()))
            self.head = nn.Linear(4, 2, bias=False)
            self.register_buffer("scale", torch.ones(2))

        def forward(self, x):
            h = self.layers(x)
            return self.head(h * 2.0) * self.scale

    class Twice(nn.Module):
        def __init__(self):
            super().__init__()
            self.shared, self.act = nn.Linear(3, 3), nn.ReLU()

        def forward(self, x):
            return self.act(self.shared(self.act(self.shared(x)))) + x

    class Pair(nn.Module):
        def __init__(self):
            super().__init__()
            self.act = nn.Tanh()

        def forward(self, first, second):
            difference = first.exp() - second.sin()
            return (self.act(difference / second.cosh()) ** 2).mean()

    return {"net": (Net(), (torch.randn(10, 2),)), "layers": (Layers(), (torch.randn(5, 3),)), "twice": (Twice(), (torch.randn(2, 3),)),
            "pair": (Pair(), (torch.randn(4), torch.randn(4)))}


def loaded(folder):
    """TensorBoard's own reading of a folder."""
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    everything = dict.fromkeys(["scalars", "histograms", "tensors", "graph"], 0)
    return EventAccumulator(str(folder), size_guidance=everything).Reload()


def events(folder):
    """Every event of the files in a folder, as TensorBoard loads it."""
    from tensorboard.backend.event_processing.event_file_loader import RawEventFileLoader
    from tensorboard.compat.proto.event_pb2 import Event

    files = sorted(pathlib.Path(folder).glob("events.out.tfevents.*"))
    return [Event.FromString(raw) for file in files for raw in RawEventFileLoader(str(file)).Load()]


def shape_of(node):
    return [d.size for d in node.attr["_output_shapes"].list.shape[0].dim] if node.attr["_output_shapes"].list.shape else None


def canonical(graph):
    """What symgrad's and torch's graphs of one network have in common: operations by scope and kind, shapes and edges.

    Constants are left out, for torch has one for each argument; symgrad's products of a transposed weight are torch's one `linear`.
    """
    nodes = {n.name: n for n in graph.node}
    kinds, names, count = {}, {}, {}
    for name, n in nodes.items():
        scope, _, last = name.rpartition("/")
        kind = n.op.removeprefix("aten::")
        if kind in ("Const", "prim::Constant", "t"):
            continue
        if kind == "IO Node":
            names[name] = name.removesuffix(".1") if scope == "input" else name
        elif kind in ("prim::GetAttr", "Parameter", "Buffer"):
            names[name], kind = scope if kind == "prim::GetAttr" else name, "member"
        else:
            transposed = kind in ("mm", "addmm") and nodes[n.input[-1]].op == "t"
            kind = "linear" if transposed else "matmul" if kind == "mm" else kind
            count[scope, kind] = count.get((scope, kind), 0) + 1
            names[name] = f"{scope}/{kind}.{count[scope, kind]}"
        kinds[names[name]] = [kind, None if kind == "member" else shape_of(n)]

    def through(name):
        return through(nodes[name].input[0]) if nodes[name].op == "t" else names.get(name)

    edges = {(through(i), names[n.name]) for n in graph.node if n.name in names for i in n.input if i in nodes and through(i)}
    return {"nodes": dict(sorted(kinds.items())), "edges": sorted(map(list, edges))}


def graph_of(folder, model, args):
    with SummaryWriter(folder) as writer:
        writer.add_graph(model, args)
    return loaded(folder).Graph()


@pytest.mark.parametrize("name", ["net", "layers", "twice", "pair"])
def test_the_graph_is_that_of_torch(name, tmp_path):
    model, args = networks(symgrad)[name]
    assert canonical(graph_of(tmp_path, model, args)) == json.loads(RECORDED.read_text())["graphs"][name]


def test_attributes_of_a_node(tmp_path):
    model, args = networks(symgrad)["layers"]
    graph = graph_of(tmp_path, model, args)
    notes = {n.name.rpartition("/")[2]: {key: a.s.decode() for key, a in n.attr.items() if key != "_output_shapes"} for n in graph.node}
    assert notes["mul"] == {"expr": "2*sigmoid", "dtype": "float64", "requires_grad": "True", "grad_fn": "MulBackward0"}
    assert notes["const"] == {"value": "2.0"}
    assert notes["scale"] == {"dtype": "float64"}
    assert notes["addmm"]["attr"] == "beta=1, alpha=1"
    assert graph.versions.producer == 22


def test_ops_without_grad_are_traced():
    for model, args in networks(symgrad).values():
        before = [repr(v) for v in trace(model, args)]
        with symgrad.no_grad():
            assert [repr(v) for v in trace(model, args)] == before
        model.requires_grad_(False)
        assert [repr(v) for v in trace(model, args)] == before


def test_the_formulas_use_the_symbols_of_named_tensors():
    x, w = symgrad.tensor([1.0, 2.0], symbol="x"), symgrad.tensor(2.0, symbol="w")
    vertices = trace(lambda given: (w * given).sin() + 1, (x,))
    assert [formula(v) for v in vertices if v.op] == ["w*x", "sin(mul)", "sin + 1"]
    assert [v.label for v in vertices if v.kind == "Leaf"] == ["w"]


def test_a_complex_operand_is_not_treated_as_real():
    assert [formula(v) for v in trace(lambda z: z.conj(), (symgrad.tensor([1j, 2.0]),)) if v.op] == ["conjugate(z)"]


def test_ops_in_hooks_belong_to_the_module():
    model = symgrad.nn.Sequential(symgrad.nn.Tanh(), symgrad.nn.Sigmoid())
    model[1].register_forward_pre_hook(lambda module, args: (2 * args[0],))
    model[0].register_forward_hook(lambda module, args, output: output.exp())
    assert [v.path for v in trace(model, (symgrad.ones(2),)) if v.op] == [
        "Sequential/Tanh[0]/tanh", "Sequential/Tanh[0]/exp", "Sequential/Sigmoid[1]/mul", "Sequential/Sigmoid[1]/sigmoid"]


def chain(model, *args):
    """Each operation with the names of its operands."""
    return [f"{v.label} <- {' '.join(o.label for o in v.operands)}".strip() for v in trace(model, args) if v.operands]


class Cube(symgrad.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.square = x * x
        return ctx.square * x

    @staticmethod
    def backward(ctx, grad):
        return grad * 3 * ctx.square


def writes(x):
    h = x * x
    h.exp_()
    return h.sin()


def writes_before_others(x):
    h = x * x
    h.exp_()
    g = x.cos()
    return h.sin() + g


def writes_a_view(x):
    h = x * x
    h[0].exp_()
    return h.sin()


def writes_something_tracked(x, w):
    h = x * x
    h += w
    return h.sin()


def writes_out(x):
    out = symgrad.empty(3)
    symgrad.exp(x, out=out)
    return out.sin()


def copies(x, y):
    h = x * x
    h.copy_(y)
    return h.sin()


def draws(x):
    h = x * x
    symgrad.randn(3, out=h)
    return h.sin()


@pytest.mark.parametrize("function, tracked, expected", [
    (lambda x: x.exp().detach().sin(), True, ["exp <- x", "sin <- exp"]),
    (lambda x: x.exp().data.sin(), True, ["exp <- x", "sin <- exp"]),
    (lambda x: x.sum().reshape(1), True, ["sum <- x", "reshape <- sum"]),
    (lambda x: x.sum().reshape(1), False, ["sum <- x", "reshape <- sum"]),
    (writes, True, ["mul <- x x", "exp <- mul", "sin <- exp"]),
    (writes, False, ["mul <- x x", "exp <- mul", "sin <- exp"]),
    (writes_before_others, False, ["mul <- x x", "exp <- mul", "cos <- x", "sin <- exp", "add <- sin cos"]),
    (writes_a_view, True, ["mul <- x x", "select_item <- mul", "exp <- select_item", "CopySlices <- mul exp", "sin <- CopySlices"]),
    (writes_a_view, False, ["mul <- x x", "select_item <- mul", "exp <- select_item", "sin <- exp"]),
    (writes_out, False, ["exp <- x", "sin <- exp"]),
    (draws, False, ["mul <- x x", "sin <- const"]),
    (lambda x: Cube.apply(x).sin(), True, ["Cube <- x", "sin <- Cube"]),
    (lambda x: Cube.apply(x).sin(), False, ["mul <- x x", "mul_1 <- mul x", "sin <- mul_1"]),
    (lambda x: (x > 0).sum(), True, ["gt <- x const", "sum <- gt"]),
    (lambda x: symgrad.where(x.sum() > 0, x, (x.sum() > 1).double()), True,  # NumPy has one True for both
     ["sum <- x", "gt <- sum const", "sum_1 <- x", "gt_1 <- sum_1 const_1", "to_copy <- const_2", "where <- const_3 x to_copy"]),
    (lambda x: x.unbind()[2], True, ["unbind_piece <- x", "unbind_piece_1 <- x", "unbind_piece_2 <- x"]),
])
def test_vertices_of_operands(function, tracked, expected):
    found = chain(function, symgrad.tensor([1.0, 2.0, 3.0], requires_grad=tracked))
    *operations, output = found
    assert output.startswith("output.1 <- ") and operations == expected


@pytest.mark.parametrize("function, args, expected", [
    (writes_something_tracked, "xw", ["mul <- x x", "add <- mul w", "sin <- add"]),
    (copies, "xy", ["mul <- x x", "overwrite <- mul y", "sin <- overwrite"]),
    (copies, "xw", ["mul <- x x", "overwrite <- mul y", "sin <- overwrite"]),
    (lambda x, i: x[i].sin(), "xi", ["getitem <- x i", "sin <- getitem"]),
    (lambda x, i: x + i, "xi", ["to_copy <- i", "add <- x to_copy"]),
])
def test_vertices_of_operands_of_several_inputs(function, args, expected):
    given = {"x": symgrad.ones(3), "y": symgrad.zeros(3), "w": symgrad.ones(3, requires_grad=True), "i": symgrad.tensor([0, 2, 1])}
    assert chain(function, *(given[name] for name in args))[:-1] == expected


def test_inputs_and_outputs_in_containers():
    def function(x, *rest, **options):
        return {"sum": x["a"] + x["b"][0], "rest": [y.exp() for y in rest]}

    x = {"a": symgrad.ones(2), "b": (symgrad.zeros(2),)}
    assert chain(function, x, symgrad.ones(1)) == ["add <- x.a x.b.0", "exp <- rest.0", "output.1 <- add", "output.2 <- exp"]


def test_other_threads_are_not_traced():
    model = symgrad.nn.DataParallel(symgrad.nn.Linear(2, 1), device_ids=2)
    assert [v.path for v in trace(model, (symgrad.ones(4, 2),)) if v.op] == ["DataParallel/Linear[module]/t", "DataParallel/Linear[module]/addmm"]
    assert len(model.device_ids) == 2


def test_tensor_attributes_of_a_module():
    class Shift(symgrad.nn.Module):
        def __init__(self):
            super().__init__()
            self.amount = symgrad.ones(2)

        def forward(self, x):
            return x + self.amount

    assert [repr(v) for v in trace(Shift(), (symgrad.zeros(2),))] == [
        "%input/x : float64[2] = IO Node()", "%Shift/amount : float64[2] = Attribute()",
        "%Shift/add : float64[2] = add(%input/x, %Shift/amount)", "%output/output.1 : float64[2] = IO Node(%Shift/add)"]


def test_tracing_restores_the_model():
    model, args = networks(symgrad)["layers"]
    model.train()
    model.head.eval()
    seen = []
    model.register_forward_hook(lambda module, args, output: seen.append(module.training))
    flags = [m.training for m in model.modules()]
    hooks = [(len(m._forward_hooks), len(m._forward_pre_hooks)) for m in model.modules()]
    trace(model, args)
    with pytest.raises(RuntimeError):
        trace(model, (symgrad.ones(7, 7),))
    assert seen == [False]
    assert [m.training for m in model.modules()] == flags
    assert [(len(m._forward_hooks), len(m._forward_pre_hooks)) for m in model.modules()] == hooks
    assert thread.modes.recorder is DEFAULT and thread.modes.plain


def test_values_computed_while_tracing_have_gradients():
    kept = []

    def function(x, w):
        kept.append((x * w).sin().sum())
        return kept[0]

    x, w = symgrad.tensor([1.0, 2.0]), symgrad.tensor(3.0, requires_grad=True)
    trace(function, (x, w))
    kept[0].backward()
    assert w.grad.item() == pytest.approx(math.cos(3) + 2 * math.cos(6), rel=1e-14)
    assert not x.requires_grad and x._node is None


def test_verbose_prints_the_graph(tmp_path, capsys):
    with SummaryWriter(tmp_path) as writer:
        writer.add_graph(symgrad.nn.Tanh(), symgrad.zeros(2), verbose=True)
    assert capsys.readouterr().out == ("%input/input : float64[2] = IO Node()\n%Tanh/tanh : float64[2] = tanh(%input/input)\n"
                                       "%output/output.1 : float64[2] = IO Node(%Tanh/tanh)\n")


# Numbers, histograms and texts


def test_scalars(tmp_path):
    with SummaryWriter(tmp_path) as writer:
        for step, x in enumerate([1, 0.1, np.float64(0.25), np.array([[2.0]]), symgrad.tensor(0.5), symgrad.tensor([3.0], requires_grad=True)]):
            writer.add_scalar("old", x, step, walltime=100.0 + step)
            writer.add_scalar("new", x, step, new_style=True)
            writer.add_scalar("double", x, step, new_style=True, double_precision=True)
        writer.add_scalar("no step", 1.0)
    found = loaded(tmp_path)
    values = [1, 0.1, 0.25, 2.0, 0.5, 3.0]
    assert [(e.step, e.wall_time, e.value) for e in found.Scalars("old")] == [(i, 100.0 + i, float(np.float32(x))) for i, x in enumerate(values)]
    assert [e.tensor_proto.float_val[0] for e in found.Tensors("new")] == [float(np.float32(x)) for x in values]
    assert [e.tensor_proto.double_val[0] for e in found.Tensors("double")] == values
    assert [e.step for e in found.Scalars("no step")] == [0]
    assert {tag: found.SummaryMetadata(tag).plugin_data.plugin_name for tag in ("new", "double")} == {"new": "scalars", "double": "scalars"}


def test_add_scalars_writes_one_run_per_scalar(tmp_path):
    with SummaryWriter(tmp_path) as writer:
        for step in range(3):
            writer.add_scalars("pair/both", {"sin": math.sin(step), "cos": symgrad.tensor(math.cos(step))}, step)
    assert sorted(p.name for p in tmp_path.iterdir() if p.is_dir()) == ["pair_both_cos", "pair_both_sin"]
    found = loaded(tmp_path / "pair_both_cos").Scalars("pair/both")
    assert [(e.step, e.value) for e in found] == [(i, float(np.float32(math.cos(i)))) for i in range(3)]


@pytest.mark.parametrize("name", VALUES)
def test_histograms_are_those_of_torch(name, tmp_path):
    expected = json.loads(RECORDED.read_text())["histograms"][name]
    with SummaryWriter(tmp_path) as writer:
        for step, (bins, max_bins) in enumerate(BINS):
            writer.add_histogram("x", symgrad.tensor(VALUES[name]), step, bins=bins, max_bins=max_bins)
    for event, entry in zip([e for e in events(tmp_path) if e.summary.value], expected, strict=True):
        (*moments, squares), *buckets = read(event.summary.value[0].histo)
        assert [moments, *buckets] == [entry[0][:-1], *entry[1:]]
        np.testing.assert_array_max_ulp(squares, entry[0][-1], 2)  # the order of a sum differs from one CPU to another


def read(h):
    return [[h.min, h.max, h.num, h.sum, h.sum_squares], list(h.bucket_limit), list(h.bucket)]


def test_texts(tmp_path):
    with SummaryWriter(tmp_path) as writer:
        writer.add_text("note", "**∇f** is there", 2)
    found = loaded(tmp_path)
    (event,) = found.Tensors("note/text_summary")
    assert (event.step, event.tensor_proto.string_val[0].decode()) == (2, "**∇f** is there")
    assert found.SummaryMetadata("note/text_summary").plugin_data.plugin_name == "text"


# Files


def test_the_folder_and_the_names_of_files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with SummaryWriter(comment="_first", filename_suffix=".mine") as writer:
        folder = pathlib.Path(writer.get_logdir())
        assert folder.parent.name == "runs" and folder.name.endswith("_first") and folder.is_dir()
        (file,) = folder.iterdir()
        assert file.name.startswith("events.out.tfevents.") and file.name.endswith(".mine")
    with SummaryWriter(tmp_path / "given") as writer:
        assert writer.get_logdir() == str(tmp_path / "given")


def test_writing_after_flush_and_close(tmp_path):
    writer = SummaryWriter(tmp_path, flush_secs=3600)
    writer.add_scalar("x", 1.0, 0)
    writer.flush()
    assert len(loaded(tmp_path).Scalars("x")) == 1
    writer.close()
    writer.close()
    writer.add_scalar("x", 2.0, 1)
    writer.close()
    assert len(list(tmp_path.iterdir())) == 2
    assert sorted(e.value for e in loaded(tmp_path).Scalars("x")) == [1.0, 2.0]


def test_purge_step(tmp_path):
    from tensorboard.compat.proto.event_pb2 import SessionLog

    with SummaryWriter(tmp_path) as writer:
        for step in range(5):
            writer.add_scalar("x", step, step)
    (first,) = tmp_path.iterdir()
    first.rename(tmp_path / "events.out.tfevents.0")  # files are read in the order of their names, which say the second
    with SummaryWriter(tmp_path, purge_step=3) as writer:
        writer.add_scalar("x", 10.0, 3)
    assert [(e.step, e.value) for e in loaded(tmp_path).Scalars("x")] == [(0, 0.0), (1, 1.0), (2, 2.0), (3, 10.0)]
    assert [e.step for e in events(tmp_path) if e.session_log.status == SessionLog.START] == [3]


@pytest.mark.sweep
def test_without_tensorboard_the_error_names_the_extra():
    """Which is imported by the first writer."""
    code = """
import sys, symgrad as torch
writer = torch.utils.tensorboard.SummaryWriter
assert "tensorboard" not in sys.modules
sys.modules["tensorboard"] = None
try:
    writer("never")
except ImportError as error:
    print(error.name, error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("tensorboard ") and "pip install 'symgrad[tensorboard]'" in done.stdout and not os.path.exists("never")


def record():
    """Write what torch writes."""
    import torch
    from tensorboard.compat.proto.graph_pb2 import GraphDef
    from torch.utils.tensorboard import SummaryWriter

    graphs, histograms = {}, {}
    for name, (model, args) in networks(torch).items():
        with tempfile.TemporaryDirectory() as folder:
            with SummaryWriter(folder) as writer:
                writer.add_graph(model, args)
            (graph,) = [GraphDef.FromString(e.graph_def) for e in events(folder) if e.graph_def]
            graphs[name] = canonical(graph)
    for name, values in VALUES.items():
        with tempfile.TemporaryDirectory() as folder:
            with SummaryWriter(folder) as writer:
                for step, (bins, max_bins) in enumerate(BINS):
                    writer.add_histogram("x", torch.tensor(values), step, bins=bins, max_bins=max_bins)
            histograms[name] = [read(e.summary.value[0].histo) for e in events(folder) if e.summary.value]
    RECORDED.write_text(json.dumps({"graphs": graphs, "histograms": histograms}, indent=None, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    record()
