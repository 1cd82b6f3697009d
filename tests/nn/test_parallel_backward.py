"""The pullback of `DataParallel`: the parts run in threads, and gradients are those of the module itself, whatever else is attached to the graph."""

import gc
import threading

import numpy as np
import pytest

import symgrad as torch
from symgrad import autograd, nn
from symgrad.engine import passes, tasks
from symgrad.utils.checkpoint import checkpoint

X = np.sin(np.arange(60.0)).reshape(12, 5)


class Net(nn.Module):
    """A module with several outputs, a branch, and a parameter that is used twice."""

    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(5, 4), nn.Linear(4, 4)
        for p in self.parameters():
            nn.init.constant_(p, 0.1)
        self.kept, self.shared, self.seen = None, None, []

    def forward(self, x):
        hidden = torch.where(x.sum(1, keepdim=True) > 0, self.first(x), self.first(x).sin())
        return {"out": self.second(hidden), "hidden": (hidden * self.second.weight[0], None)}


class Keeping(Net):
    """A part of it is used outside, too."""

    def forward(self, x):
        found = super().forward(x)
        self.seen.append(found["hidden"][0].exp())
        return found


class Sharing(Net):
    """A tensor that one part has computed is used by all parts."""

    lock = threading.Lock()

    def forward(self, x):
        with self.lock:
            if self.shared is None:
                self.shared = self.first.weight.exp()
        return self.second(x @ self.shared.t())


class Checkpointed(Net):
    def forward(self, x):
        return checkpoint(super().forward, x, use_reentrant=False)


def loss(out):
    if isinstance(out, torch.Tensor):
        return out.square().sum()
    return (out["out"] ** 3).sum() + out["hidden"][0].cos().sum()


@pytest.fixture
def parallel(monkeypatch):
    """How often the parts were pulled back in threads."""
    monkeypatch.setattr(tasks, "LEAST", 0)
    found = []

    def counted(*args):
        found.append(tasks.pull_parts(*args))
        return found[-1]

    monkeypatch.setattr(passes, "pull_parts", counted)
    return lambda: sum(x is not None for x in found)


def plain(call, net, x):
    loss(call(x)).backward()


def of_an_input(call, net, x):
    (g,) = autograd.grad(loss(call(x.sin())), x)
    net.first.bias.grad = g.sum(0)[:4]


def of_some_parameters(call, net, x):
    loss(call(x)).backward(inputs=[net.first.weight])


def accumulated(call, net, x):
    for _ in range(3):
        loss(call(x)).backward()


def twice(call, net, x):
    y = loss(call(x))
    y.backward(retain_graph=True)
    y.backward()
    with pytest.raises(RuntimeError, match="second time"):
        y.backward()


def second(call, net, x):
    grads = autograd.grad(loss(call(x)), [net.first.weight, net.second.weight], create_graph=True)
    sum(g.square().sum() for g in grads).backward()


def chained(call, net, x):
    out = call(x)["out"]
    (loss(call(torch.cat([out, out[:, :1]], 1))) + out.sum()).backward()


def hooks_of_parameters(call, net, x):
    calls = []
    net.first.weight.register_hook(lambda g: calls.append("hook") or 2 * g)
    net.second.weight.register_post_accumulate_grad_hook(lambda p: calls.append("accumulated"))
    loss(call(x)).backward()
    assert sorted(calls) == ["accumulated", "hook"]


def hooks_inside(call, net, x):
    net.first.register_full_backward_hook(lambda module, given, found: (given[0] * 3,))
    loss(call(x)).backward()


def hooks_of_results(call, net, x):
    out = call(x)
    out["out"].register_hook(lambda g: g * 2)
    out["out"].retain_grad()
    loss(out).backward()
    net.first.bias.grad += out["out"].grad.sum(0)


def a_part_used_outside(call, net, x):
    net.seen.clear()
    out = call(x)
    (loss(out) + sum(part.sum() for part in net.seen)).backward()


SCENARIOS = [  # with how many parallel pullbacks there are
    (plain, Net, 1), (of_an_input, Net, 1), (of_some_parameters, Net, 1), (accumulated, Net, 3), (twice, Net, 2), (second, Net, 1), (chained, Net, 2),
    (hooks_of_parameters, Net, 1), (hooks_inside, Net, 0), (hooks_of_results, Net, 0), (a_part_used_outside, Keeping, 0), (plain, Sharing, 0),
    (plain, Checkpointed, 0)]


@pytest.mark.parametrize("parts", [2, 3])
@pytest.mark.parametrize("scenario, kind, times", SCENARIOS, ids=lambda x: getattr(x, "__name__", None))
def test_gradients_are_those_of_the_module_itself(scenario, kind, times, parts, parallel):
    found = []
    for wrap in (lambda net: net, lambda net: nn.DataParallel(net, parts)):
        net, x = kind(), torch.tensor(X, requires_grad=True)
        scenario(wrap(net), net, x)
        found.append([g for g in (x.grad, *(p.grad for p in net.parameters()))])
    for alone, split in zip(*found):
        assert (alone is None) is (split is None)
        assert alone is None or np.allclose(alone.detach(), split.detach(), rtol=1e-12, atol=1e-12)
    assert parallel() == times


def test_the_parts_run_in_other_threads_and_the_sum_has_their_order(monkeypatch, parallel):
    threads, pull = [], passes._pull

    def noted(*args):
        threads.append(threading.get_ident())
        return pull(*args)

    monkeypatch.setattr(passes, "_pull", noted)
    net, found = Net(), []
    for _ in range(5):
        net.zero_grad()
        threads.clear()
        loss(nn.DataParallel(net, 3)(torch.tensor(X))).backward()
        assert len(set(threads)) > 1
        found.append([p.grad.numpy().tobytes() for p in net.parameters()])
    assert all(each == found[0] for each in found) and parallel() == 5


def test_small_parts_are_pulled_back_by_the_caller():
    net = Net()
    y = loss(nn.DataParallel(net, 2)(torch.tensor(X)))
    before = threading.active_count()
    y.backward()
    assert threading.active_count() == before and net.first.weight.grad is not None


def test_errors_of_a_part_reach_the_caller(parallel):
    net = nn.Sequential(nn.Linear(5, 4), nn.Sigmoid())
    inner = []
    net[1].register_forward_hook(lambda module, given, out: inner.append(out))
    y = nn.DataParallel(net, 2)(torch.tensor(X)).sum()
    with torch.no_grad():
        inner[1].zero_()
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.backward()


def test_graphs_of_parts_are_freed(parallel):
    gc.collect()
    before = len(tasks._parts)
    y = loss(nn.DataParallel(Net(), 2)(torch.tensor(X)))
    assert len(tasks._parts) == before + 4
    del y
    assert len(tasks._parts) == before


class Weighted(nn.Module):
    """x w, whose gradient is a sum over the rows of x; what it computes is kept."""

    def __init__(self):
        super().__init__()
        self.w, self.seen = nn.Parameter(torch.ones(1)), {}

    def forward(self, x):
        self.seen[x[0, 0].item()] = out = x * self.w
        return out


def test_cotangents_are_added_in_the_order_of_the_parts(monkeypatch):
    """(1e16 - 1e16) + 1 is 1, and every other order loses the 1."""
    monkeypatch.setattr(tasks, "LEAST", 0)
    model = Weighted()
    for rows, sums in (([1e16, -1e16, 1.0], 1.0), ([1.0, 1e16, -1e16], 0.0)):
        model.w.grad = None
        nn.DataParallel(model, 3)(torch.tensor(rows)[:, None]).sum().backward()
        assert model.w.grad.item() == sums


def test_gradients_of_what_a_part_has_computed(monkeypatch):
    monkeypatch.setattr(tasks, "LEAST", 0)
    model = Weighted()
    out = nn.DataParallel(model, 2)(torch.tensor([[2.0], [3.0]]))
    inner, weight = autograd.grad(out.square().sum(), (model.seen[2.0], model.w), retain_graph=True)
    assert inner.tolist() == [[4.0]] and weight.tolist() == [26.0]
    both = autograd.grad(out.square().sum(), (model.seen[2.0], model.seen[3.0]), retain_graph=True)
    assert [g.tolist() for g in both] == [[[4.0]], [[6.0]]] and autograd.grad(out.square().sum(), model.seen[3.0])[0].tolist() == [[6.0]]
