"""First derivatives, op by op: chains of 120 ops beside torch, HIPS autograd and NumPy; the time of the import, and the memory of a graph."""


import symgrad
from tests.benchmarks.chain import OPS, autograd_step, chain, eager_step, grad_step, in_place, mutating_step, numpy_step, views, writes
from tests.benchmarks.measure import bytes_per_node, import_difference
from tests.benchmarks.table import Row, compare, optional, spell, torch_one_thread


def timed(shape, name, theirs, bar, timing, ours=None, by=""):
    """The chain at one shape beside another library, whose step is None where it is not installed; `ours` in place of symgrad's."""
    return compare(f"{OPS} ops{by}, shape {shape}", name, ours or eager_step(symgrad, shape), theirs, bar, timing, 1e-11)


def rows(timing):
    """Every line, measured one after the other."""
    quick = timing.block == 0
    torch, autograd = torch_one_thread(), optional("autograd")
    for shape, bar, by_grad in (((), 0.30, 0.33), ((10,), 0.47, 0.50), ((1000,), 0.92, 0.95)):
        yield timed(shape, "torch eager", torch and eager_step(torch, shape), bar, timing)
        yield timed(shape, "torch eager", torch and grad_step(torch, shape), by_grad, timing, grad_step(symgrad, shape), " by autograd.grad")
        yield timed(shape, "torch eager", torch and eager_step(torch, shape), None, timing, numpy_step(shape), ", NumPy by hand")  # with no graph
    yield timed((100_000,), "NumPy by hand", numpy_step((100_000,)), 1.15, timing)
    yield timed((), "HIPS autograd", autograd and autograd_step(autograd, ()), 0.20, timing)
    for name, work, limit in (("120 ops in place", in_place, 0.60), ("120 views", views, 1.0), ("60 writes through views", writes, 3.0)):
        yield compare(f"{name}, shape (10,)", "torch eager", mutating_step(symgrad, work), torch and mutating_step(torch, work), limit, timing, 1e-12)
    extra, ours, theirs = import_difference(1 if quick else 11)
    yield Row("import symgrad", "import numpy", f"{extra:+.3f} s", "+0.15 s", spell(ours), spell(theirs))
    for shape in ((), (1000,)):
        held = bytes_per_node(symgrad, chain, shape, 5 if quick else 200)
        yield Row(f"memory of a recorded graph, shape {shape}", "the data of its arrays", f"{held:+.0f} bytes/node", "+700 bytes/node", "", "")
