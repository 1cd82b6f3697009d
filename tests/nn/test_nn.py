"""Modules and losses: formulas of networks, and data parallelism over threads."""

import os
import subprocess
import sys
import threading
import traceback
from collections import namedtuple

import pytest

import symgrad
from symgrad import autograd, nn
from symgrad.nn import functional as F
from tests.support.words import numbered


def test_losses_of_an_empty_batch():
    empty, probabilities = symgrad.zeros(0, 3), symgrad.zeros(0, 3)
    assert F.cross_entropy(empty, probabilities).isnan() and F.cross_entropy(empty, probabilities, reduction="sum") == 0
    none = symgrad.zeros(5, 0)
    assert F.cross_entropy(none, none) == 0 and F.cross_entropy(none, none, label_smoothing=0.5) == 0
    assert symgrad.autograd.gradcheck(F.pdist, symgrad.zeros(4, 0, requires_grad=True))
    with pytest.raises(RuntimeError, match=r"^cosine_embedding_loss: target .* \[2, 1\]"):
        F.cosine_embedding_loss(symgrad.ones(2, 3), symgrad.ones(2, 3), symgrad.ones(2, 1))


# Packages that are imported when they are asked for


def python(code):
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout.split()


PLAIN = """
import gc
import sys
import symgrad
x = symgrad.tensor([1.0, 2.0], requires_grad=True)
(symgrad.sin(x) * x.exp() / 2).sum().backward()
assert symgrad.func.grad(lambda v: (v**2).sum())(x.detach()).tolist() == [2.0, 4.0]
assert gc.isenabled()
heavy = "sympy mpmath scipy matplotlib logging concurrent hashlib pathlib urllib subprocess multiprocessing numpy.random".split()
parts = "nn optim utils distributed linalg special sparse visual testing checks symbolic algebra codegen frameworks reference compiled".split()
print(*(name for name in sys.modules if name.startswith((*(f"symgrad.{part}" for part in parts), "symgrad.methods.numpy_protocol")) or name in heavy))
from symgrad.engine.method_table import Later
print(sum(type(member) is not Later for member in vars(type(symgrad.engine.traced.traced)).values()))
"""


def test_the_plain_path_loads_and_lifts_only_what_it_uses():
    *loaded, lifted = python(PLAIN)
    assert loaded == [] and 20 < int(lifted) < 80


@pytest.mark.sweep
def test_packages_are_imported_on_first_use():
    loaded = "print(*(name for name in ('symgrad.nn', 'symgrad.optim', 'symgrad.utils.data', 'scipy.special') if name in sys.modules))"
    assert python(f"import sys, symgrad; {loaded}") == []
    assert python(f"import sys, symgrad as torch; torch.nn.MSELoss; {loaded}") == ["symgrad.nn"]
    assert python(f"import sys, symgrad as torch; torch.optim.SGD; torch.utils.data.DataLoader; {loaded}") == ["symgrad.optim", "symgrad.utils.data"]
    assert python("from symgrad import nn; import symgrad.nn.functional as F; import symgrad.utils.data; print(nn.functional is F)") == ["True"]
    with pytest.raises(AttributeError, match="^module 'symgrad' has no attribute 'nm'$"):
        symgrad.nm


# Names and formulas


def test_a_parameter_keeps_its_symbol_and_a_network_has_a_formula():
    line = nn.Linear(1, 1)
    line.weight = nn.Parameter(symgrad.tensor([[2.0]], symbol="w"))
    line.bias = nn.Parameter(symgrad.tensor([0.5], symbol="b"))
    y = nn.Tanh()(line(symgrad.tensor([[3.0]])))
    assert str(y.expr[0, 0]) == "tanh(b_0 + 3*w_0_0)"
    loss = F.mse_loss(y, symgrad.tensor([[0.0]]))
    loss.backward()
    assert line.weight.grad.item() == pytest.approx(6 * y.item() * (1 - y.item() ** 2), rel=1e-13)


def test_the_formula_of_cross_entropy_matches_its_value():
    logits = symgrad.tensor([[0.5, -1.0], [2.0, 0.25]], requires_grad=True, symbol="x")
    for options in ({}, {"weight": symgrad.tensor([0.5, 3.0])}, {"reduction": "sum"}, {"ignore_index": 0}, {"label_smoothing": 0.25}):
        loss = F.cross_entropy(logits, symgrad.tensor([0, 1]), **options)
        values = {f"x_{i}_{j}": logits[i, j].item() for i in range(2) for j in range(2)}
        assert float(loss.expr.subs({symbol: values[str(symbol)] for symbol in loss.expr.free_symbols})) == pytest.approx(loss.item(), rel=1e-14)


@pytest.mark.parametrize("options", [{}, {"ignore_index": 1}, {"weight": symgrad.tensor([1.0, 2.0])}, {"reduction": "none"}])
def test_a_write_to_the_target_of_a_loss_changes_no_gradient(options):
    found = []
    for write in (False, True):
        scores, target = symgrad.zeros(2, 2, requires_grad=True), symgrad.tensor([0, 1])
        loss = F.nll_loss(scores, target, **options).sum()
        if write:
            target.fill_(1)
        loss.backward()
        found.append(scores.grad.tolist())
    assert found[0] == found[1]


def test_losses_are_differentiable_by_their_weights():
    x, t = symgrad.tensor([0.3, -2.0], requires_grad=True), symgrad.tensor([1.0, 0.25])
    w, p = (symgrad.tensor(v, requires_grad=True) for v in ([0.5, 2.0], [3.0, 0.125]))
    loss = F.binary_cross_entropy_with_logits(x, t, w, pos_weight=p, reduction="sum")
    each = p * t * F.softplus(-x) + (1 - t) * F.softplus(x)
    for found, expected in zip(autograd.grad(loss, [x, w, p]), autograd.grad((w * each).sum(), [x, w, p])):
        assert found.tolist() == pytest.approx(expected.tolist(), rel=1e-13)


def test_a_cross_entropy_of_logits_keeps_its_digits_in_the_tails():
    x = symgrad.tensor([800.0, -800.0, 40.0, -40.0], requires_grad=True)
    loss = F.binary_cross_entropy_with_logits(x, symgrad.tensor([1.0, 0.0, 1.0, 0.0]), reduction="none")
    tail = 4.248354255291589e-18  # exp(-40)
    assert loss.tolist() == [0.0, 0.0, pytest.approx(tail, rel=1e-15), pytest.approx(tail, rel=1e-15)]
    assert autograd.grad(loss.sum(), x)[0].tolist() == [0.0, 0.0, pytest.approx(-tail, rel=1e-15), pytest.approx(tail, rel=1e-15)]


def test_a_key_that_is_refused_changes_nothing():
    parameters = nn.ParameterDict({"a": symgrad.ones(1)})
    for write in (lambda: parameters.update([("b", symgrad.ones(1)), (3, symgrad.ones(1))]), lambda: parameters.__setitem__(3, 4)):
        with pytest.raises(TypeError, match="^ParameterDict: .*int 3"):
            write()
    assert list(parameters) == [name for name, _ in parameters.items()] == ["a", "b"]


# A batch split over threads


def net():
    return numbered(symgrad, nn.Sequential(nn.Linear(5, 4), nn.Tanh(), nn.Linear(4, 2)))


@pytest.mark.parametrize("devices", [1, 2, 3, 50, ["cpu", "cpu"], None])
def test_a_split_batch_gives_the_same_outputs_and_gradients(devices):
    module = net()
    x = symgrad.sin(symgrad.arange(35.0)).reshape(7, 5).requires_grad_()
    whole = module(x)
    split = nn.DataParallel(module, devices)(x)
    assert split.shape == whole.shape
    assert split.flatten().tolist() == pytest.approx(whole.flatten().tolist(), rel=1e-14)
    inputs = [x, *module.parameters()]
    for found, expected in zip(autograd.grad(split.square().sum(), inputs), autograd.grad(whole.square().sum(), inputs)):
        assert found.flatten().tolist() == pytest.approx(expected.flatten().tolist(), rel=1e-12)


def test_gradients_accumulate_through_a_split_batch():
    module, x = net(), symgrad.ones(4, 5)
    parallel = nn.DataParallel(module, 2)
    for _ in range(2):
        parallel(x).sum().backward()
    found = [p.grad.flatten().tolist() for p in module.parameters()]
    module.zero_grad()
    (2 * module(x).sum()).backward()
    assert found == [pytest.approx(p.grad.flatten().tolist(), rel=1e-13) for p in module.parameters()]


class Meeting(nn.Module):
    """Each thread waits for all others: it returns only if they run at one time."""

    def __init__(self, count):
        super().__init__()
        self.barrier, self.threads = threading.Barrier(count, timeout=20), set()

    def forward(self, x):
        self.threads.add(threading.get_ident())
        self.barrier.wait()
        return x


def test_the_parts_run_in_threads_at_one_time():
    parallel = nn.DataParallel(Meeting(3), 3)
    assert parallel(symgrad.arange(6)).tolist() == [0, 1, 2, 3, 4, 5]
    assert len(parallel.module.threads) == 3 and threading.get_ident() in parallel.module.threads


def test_there_is_a_thread_for_each_core():
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    assert nn.DataParallel(nn.Identity()).device_ids == ["cpu"] * cores


Out = namedtuple("Out", "a b")


class Structured(nn.Module):
    def forward(self, x, pair, flag=False, *, scale=None, options=None):
        return {"x": x, "out": Out(x.sum(), (pair[0] * 2, None))}, [scale, x if flag else -x]


def test_data_parallel_with_nested_arguments_and_results():
    x, scale = symgrad.arange(3.0), symgrad.tensor([10.0, 20.0, 30.0])
    found, (scales, negative) = nn.DataParallel(Structured(), 2)(x, (x + 1, "same"), scale=scale, options={"empty": {}, "x": [x]})
    assert found["x"].tolist() == [0, 1, 2] and isinstance(found["out"], Out)
    assert found["out"].a.tolist() == [1, 2] and found["out"].b[0].tolist() == [2, 4, 6] and found["out"].b[1] is None
    assert scales.tolist() == [10, 20, 30] and negative.tolist() == [0, -1, -2]


def test_data_parallel_along_another_dimension():
    x = symgrad.arange(6.0).reshape(2, 3)
    assert nn.DataParallel(nn.Identity(), 2, dim=1)(x).tolist() == x.tolist()


class Fails(nn.Module):
    def forward(self, x):
        raise ArithmeticError(f"a part of {len(x)}")


def test_an_exception_of_a_thread_reaches_the_caller_with_its_traceback():
    with pytest.raises(ArithmeticError, match="a part of [12]") as caught:
        nn.DataParallel(Fails(), 2)(symgrad.zeros(3))
    frames = traceback.extract_tb(caught.value.__traceback__)
    assert frames[-1].line.startswith("raise ArithmeticError")


def test_data_parallel_threads_inherit_the_modes_of_the_caller():
    parallel, x = nn.DataParallel(net(), 2), symgrad.ones(4, 5)
    assert parallel(x).requires_grad
    with symgrad.no_grad():
        assert not parallel(x).requires_grad
    modes = []
    parallel.module.register_forward_pre_hook(lambda *_: modes.append(symgrad.is_inference_mode_enabled()))
    with symgrad.inference_mode():
        parallel(x)
    assert modes == [True, True]
    packed = []
    with symgrad.autograd.graph.saved_tensors_hooks(lambda t: packed.append(tuple(t.shape)) or t, lambda t: t):
        parallel(x)
    assert packed.count((2, 5)) == 2  # the input of each part


def test_keys_of_the_state_dict_have_the_prefix_module():
    parallel = nn.DataParallel(net(), 2)
    assert list(parallel.state_dict()) == ["module.0.weight", "module.0.bias", "module.2.weight", "module.2.bias"]
    assert repr(parallel).startswith("DataParallel(\n  (module): Sequential(\n    (0): Linear(")
    parallel.load_state_dict(parallel.state_dict())
    assert nn.parallel.DataParallel is nn.DataParallel


@pytest.mark.parametrize("devices, message", [(0, "needs at least one device"), ([], "needs at least one device"),
                                              (["cpu", "cuda:1"], "the device cuda:1"), ([0, 1], "the device 0 is not there")])
def test_unavailable_devices_are_refused(devices, message):
    with pytest.raises(ValueError, match=message):
        nn.DataParallel(nn.Identity(), devices)


# Memory


def test_training_keeps_nothing_alive():
    import gc
    import weakref

    module = net()
    optimizer = symgrad.optim.SGD(module.parameters(), lr=0.1, momentum=0.9)
    gc.collect()
    gc.disable()
    try:
        loss = module(symgrad.ones(3, 5)).sum()
        node = weakref.ref(loss.grad_fn)
        loss.backward()
        optimizer.step()
        del loss
        assert node() is None
    finally:
        gc.enable()
