"""Programs that are interrupted, with what must hold afterwards.

A case is a generator: it sets the state up, yields the action that is interrupted, and asserts afterwards what must hold. Nothing is between old and
new: gradients, parameters and files; a value that was written has its new history, or its use raises.
"""

import contextlib
import gc
import io
import multiprocessing
import time
import warnings

import numpy as np

import symgrad as torch
from symgrad import func, nn
from symgrad.autograd import forward_ad
from symgrad.autograd.graph import allow_mutation_on_saved_tensors, save_on_cpu, saved_tensors_hooks
from symgrad.cli import main
from symgrad.graph.op import REGISTRY
from symgrad.methods import extending
from symgrad.program.cache import programs
from symgrad.program.native import store
from symgrad.utils.checkpoint import checkpoint
from symgrad.utils.data import DataLoader, TensorDataset
from tests.support.interrupts import Cube, leaf

X = np.array([0.5, 1.5])
REFUSED = ("a write in place was interrupted before it was recorded", "modified by an inplace operation")


def either(found, *allowed):
    """The place of the value among the allowed ones."""
    places = [i for i, each in enumerate(allowed) if (each is None) == (found is None) and (found is None or np.array_equal(found, each))]
    assert places, f"{found} is none of {allowed}"
    return places[0]


def values(tensors):
    return [t.detach().numpy().copy() for t in tensors]


def gradients(folder):
    x, w = leaf(), leaf()
    y = (x * x).sum() + (w.sin() * 0 + w).sum()
    calls = []
    x.register_hook(calls.append)
    w.register_post_accumulate_grad_hook(calls.append)
    y.backward(retain_graph=True)
    yield lambda: y.backward(retain_graph=True)
    either(x.grad, 2 * X, 4 * X), either(w.grad, X * 0 + 1, X * 0 + 2)
    x.grad = w.grad = None
    calls.clear()
    y.backward()
    assert np.array_equal(x.grad, 2 * X) and np.array_equal(w.grad, X * 0 + 1) and len(calls) == 2


def higher_gradients(folder):
    x = leaf()
    y = (x**3).sum()
    yield lambda: torch.autograd.grad(torch.autograd.grad(y, x, create_graph=True)[0].sum(), x)
    (g,) = torch.autograd.grad(y, x, create_graph=True)
    (h,) = torch.autograd.grad(g.sum(), x)
    assert np.array_equal(h, 6 * X) and x.grad is None


def written(write, factor):
    def case(folder):
        x = leaf()
        y = x * 1
        view = y.view(-1)
        square = (y * y).sum()
        yield lambda: write(y, view)
        place = either(y.detach(), X, factor * X)
        assert np.array_equal(view.detach(), y.detach())
        for result, expected in ((y, (1.0, factor)[place] * np.ones(2)), (view, (1.0, factor)[place] * np.ones(2)), (square, 2 * X)):
            try:
                (g,) = torch.autograd.grad(result.sum(), x, retain_graph=True)
            except RuntimeError as error:
                assert any(text in str(error) for text in REFUSED), str(error)
            else:
                assert np.array_equal(g, expected) and not (place and result is square), f"{result} at {y.detach()}: {g}"

    return case


def hooks(folder):
    x = leaf()
    y, calls = x * 2, []
    first = y.register_hook(lambda g: calls.append(1))

    def change():
        y.register_hook(lambda g: calls.append(2)).remove()
        y.register_hook(lambda g: calls.append(3))
        first.remove()
        y.register_hook(lambda g: calls.append(4))

    yield change
    y.sum().backward()
    assert calls in ([1], [1, 2], [1, 3], [3], [3, 4]) and np.array_equal(x.grad, [2.0, 2.0])


def saved_tensor_hooks(folder):
    x, packed, unpacked = leaf(), [], []

    def work():
        with saved_tensors_hooks(lambda t: packed.append(1) or t.numpy().copy(), lambda a: unpacked.append(1) or torch.from_numpy(a)):
            y = (x * x).sum()
        y.backward()

    yield work
    either(x.grad, None, 2 * X)
    count = len(packed)
    (x * x).sum().backward()
    assert len(packed) == count
    either(x.grad, 2 * X, 4 * X)


def compiled(folder):
    captured = torch.tensor([2.0, 3.0], requires_grad=True)
    programs.clear()
    f = torch.compile(lambda z: (captured * z.sin()).sum(), backend="numpy")

    def work():
        f(torch.tensor(X))
        f.gradient(torch.tensor(X))
        f.hessian(torch.tensor(X))

    yield work
    assert np.array_equal(captured.detach().numpy(), [2.0, 3.0]) and captured.is_leaf
    assert np.allclose(f(torch.tensor(X)).detach(), (np.sin(X) * [2, 3]).sum(), rtol=1e-15)
    assert np.allclose(f.gradient(torch.tensor(X)), np.cos(X) * [2, 3], rtol=1e-15)
    assert np.allclose(np.diag(f.hessian(torch.tensor(X))), -np.sin(X) * [2, 3], rtol=1e-15)


def objects_on_disk(folder):
    key = "0" * 8 + str(len(list(folder.iterdir())))

    def build(path):
        path.write_bytes(b"object")
        return b"notes"

    def work():
        for _ in range(2):
            assert store.stored(key, build)[1] == b"notes"

    yield work
    assert not list(folder.glob("*.part"))
    work()


def files(folder):
    path = folder / "saved"
    torch.save([torch.ones(3)], path)
    yield lambda: torch.save([torch.zeros(4), {"a": 1}], path)
    assert [p.name for p in folder.iterdir() if "saved" in p.name] == ["saved"]
    found = torch.load(path)
    either(found[0], np.ones(3), np.zeros(4))
    torch.save([torch.ones(3)], path)


def hessians(folder):
    programs.clear()
    f = func.hessian(lambda z: (z**4).sum())

    def work():
        for _ in range(3):
            f(torch.tensor(X))

    yield work
    for _ in range(3):
        assert np.allclose(np.diag(f(torch.tensor(X))), 12 * X**2, rtol=1e-15)


def transforms(folder):
    f = func.vmap(func.jacfwd(func.grad(lambda z: (z**3).sum())), randomness="different")
    yield lambda: f(torch.tensor([X, 2 * X]))
    assert np.allclose(f(torch.tensor([X]))[0], np.diag(6 * X))
    assert torch.rand(2).shape == (2,)


def optimisers(kind, **options):
    def case(folder):
        parameters = [nn.Parameter(torch.tensor(X)) for _ in range(2)]
        rule = kind(parameters, lr=0.1, **options)
        twin = [nn.Parameter(torch.tensor(X)) for _ in range(2)]
        other = kind(twin, lr=0.1, **options)
        for each, ps in ((rule, parameters), (other, twin)):
            for p in ps:
                p.grad = torch.ones(2)
            each.step()
        old = values(parameters)
        other.step()
        yield rule.step
        for p, before, after in zip(parameters, old, values(twin)):
            either(p.detach(), before, after)
            assert p.is_leaf and p.requires_grad and np.array_equal(p.grad, np.ones(2))
        rule.load_state_dict(rule.state_dict())
        rule.step()

    return case


def loading(folder):
    layer, other = nn.Linear(2, 2), nn.Linear(2, 2)
    old, state = values(layer.parameters()), other.state_dict()
    parameters = list(layer.parameters())
    yield lambda: layer.load_state_dict(state)
    for p, q, before, after in zip(parameters, layer.parameters(), old, values(state.values())):
        assert p is q and p.requires_grad
        either(p.detach(), before, after)


def batches(workers):
    def case(folder):
        data = TensorDataset(torch.arange(6))
        loader = DataLoader(data, batch_size=2, num_workers=workers, shuffle=True)

        def work():
            for _ in loader:
                pass

        yield work
        gc.collect()
        while multiprocessing.active_children():  # a process of the loader that runs on is a hang
            time.sleep(0.001)
        assert sorted(int(i) for (batch,) in loader for i in batch) == list(range(6))

    return case


def checkpoints(reentrant):
    def case(folder):
        x = leaf()
        torch.manual_seed(3)
        y = checkpoint(lambda z: z * torch.rand(2), x, use_reentrant=reentrant)
        expected = y.detach().numpy() / X
        state = torch.get_rng_state()
        yield lambda: y.sum().backward(retain_graph=True)
        assert np.array_equal(torch.get_rng_state(), state), "the state of the random numbers was not restored"
        either(x.grad, None, expected)
        x.grad = None
        y.sum().backward()
        assert np.allclose(x.grad, expected, rtol=1e-15)

    return case


def random_state(folder):
    torch.manual_seed(5)
    torch.rand(1)
    state = torch.get_rng_state()

    def work():
        with torch.random.fork_rng():
            torch.manual_seed(1)
            torch.rand(3)

    yield work
    assert np.array_equal(torch.get_rng_state(), state)


def declared(folder):
    def declare():
        torch.elementwise("interrupted_op", lambda xp, x: xp.sin(x), lambda xp, y, x: xp.cos(x))

    yield declare
    if "interrupted_op" in REGISTRY:
        extending._unregister("interrupted_op")
    op = torch.elementwise("interrupted_op", lambda xp, x: xp.sin(x), lambda xp, y, x: xp.cos(x))
    x = leaf()
    op(x).sum().backward()
    assert np.allclose(x.grad, np.cos(X), rtol=1e-15)
    extending._unregister("interrupted_op")
    assert not hasattr(torch.Tensor, "interrupted_op") and "interrupted_op" not in REGISTRY


def modules(folder):
    layer, calls = nn.Linear(2, 1), []
    layer.register_forward_hook(lambda *_: calls.append("forward"))
    layer.register_full_backward_hook(lambda *_: calls.append("backward"))
    yield lambda: layer(leaf()).sum().backward()
    layer.zero_grad()
    calls.clear()
    layer(leaf()).sum().backward()
    assert calls == ["forward", "backward"] and np.array_equal(layer.weight.grad, [X])


def formulas(folder):
    x = torch.tensor(2.0, requires_grad=True, symbol="x")
    y = x * x.exp()
    yield lambda: (y.expr, y.assignments(), y.backward(retain_graph=True), x.grad.expr)
    x.grad = None
    y.backward()
    assert str(y.expr) == "x*exp(x)" and str(x.grad.expr) in ("x*exp(x) + exp(x)", "(x + 1)*exp(x)")


def checks(folder):
    yield lambda: torch.check(lambda z: z * z, 0.5, points=1)
    assert str(torch.check(lambda z: z * z, 0.5, points=1).verdict) == "proved"


def derived(folder):
    def work():
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            code = main(["derive", "x*exp(x)", "--at", "x=1", "--quiet", "--points", "1"])
        if code == 130:  # the command line ends so
            raise KeyboardInterrupt
        assert code == 0

    yield work
    work()


class Doubled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.mark_dirty(x)
        return x.mul_(2)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, g):
        return g * 2


def functions():
    x = leaf()
    (g,) = torch.autograd.grad(Cube.apply(x).sum(), x, create_graph=True)
    g.sum().backward()
    Doubled.apply(x * 1).sum().backward()


def modes():
    x, switch = leaf(), torch.no_grad()
    with switch, switch, torch.enable_grad():
        x * 2
    with torch.set_grad_enabled(False):
        x * 2
    torch.no_grad()(lambda: x * 2)()
    with torch.inference_mode():
        y = x * 2
        y.add_(1)
    with torch.autograd.set_detect_anomaly(True):
        (x * x).sum().backward()
    with warnings.catch_warnings(action="ignore"), torch.autograd.detect_anomaly():
        (x * x).sum().backward()


def saved():
    x = leaf()
    with saved_tensors_hooks(lambda t: t.numpy(force=True).copy(), torch.from_numpy), save_on_cpu():
        y = (x * x).sum()
    y.backward()
    with allow_mutation_on_saved_tensors():
        z = x.clone()
        w = (z * z).sum()
        z.zero_()
        w.backward()


def forward_mode():
    x = leaf()
    with forward_ad.dual_level():
        forward_ad.unpack_dual(Cube.apply(forward_ad.make_dual(x, torch.ones(2))).exp())
    func.jvp(torch.sin, (x.detach(),), (torch.ones(2),))
    torch.autograd.functional.jvp(lambda z: z * z, x.detach(), torch.ones(2))


layer = nn.Linear(2, 1)


def transforms_of_modules():
    func.functional_call(layer, {name: torch.ones_like(p) for name, p in layer.named_parameters()}, (torch.ones(2),))
    nn.init.zeros_(nn.Linear(2, 1).weight)
    torch.autograd.functional.hessian(lambda z: (z * z * z).sum(), torch.tensor(X))
    func.jacrev(Cube.apply)(torch.tensor(X))


def alone(program):
    """What leaves nothing to be asked but that every mode is as it was."""
    def case(folder):
        yield program

    return case


CASES = {
    **{program.__name__: alone(program) for program in (functions, modes, saved, forward_mode, transforms_of_modules)},
    "gradients": gradients, "higher gradients": higher_gradients, "hooks": hooks, "saved-tensor hooks": saved_tensor_hooks, "compiled": compiled,
    "written": written(lambda y, view: y.mul_(3), 3.0), "written by a view": written(lambda y, view: view.mul_(3), 3.0),
    "written by an element": written(lambda y, view: view.__setitem__(slice(None), view * 3), 3.0),
    "written under no_grad": written(lambda y, view: torch.no_grad()(y.mul_)(1), 1.0),
    "objects on disk": objects_on_disk, "files": files, "hessians": hessians, "transforms": transforms, "loading": loading,
    "SGD": optimisers(torch.optim.SGD, momentum=0.9), "Adam": optimisers(torch.optim.Adam),
    "batches": batches(0), "batches of processes": batches(2), "checkpoint": checkpoints(False), "reentrant checkpoint": checkpoints(True),
    "random state": random_state, "declared": declared, "modules": modules, "formulas": formulas, "checks": checks,
    "derived": derived}
