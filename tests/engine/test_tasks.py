"""Backwards inside of backwards, functions queued for the end of one, and what a user's code can ask about the one that runs."""

import threading

import pytest

import symgrad
from symgrad import autograd, tensor
from symgrad.autograd import Variable
from symgrad.engine import tasks
from symgrad.graph.node import all_threads

queue_callback = Variable._execution_engine.queue_callback


def leaf(value):
    return tensor(value, requires_grad=True)


def acting(action):
    """The identity, whose backward calls `action` first."""

    class Acting(autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, g):
            action()
            return g

    return Acting.apply


def by_hook(action):
    def apply(x):
        y = x * 1
        y.register_hook(lambda g: action() and None)
        return y

    return apply


def by_saved(action):
    def apply(x):
        def unpack(t):
            action()
            return t

        with autograd.graph.saved_tensors_hooks(lambda t: t.clone(), unpack):
            return x.cos()

    return apply


WAYS = pytest.mark.parametrize("way", [acting, by_hook, by_saved], ids=["a Function", "a hook", "an unpack hook"])


def test_deep_backwards_inside_of_backwards():
    x, depth, threads = leaf(1.0), 500, set()

    def descend():
        nonlocal depth
        threads.add(threading.get_ident())
        if depth := depth - 1:
            with symgrad.enable_grad():
                acting(descend)(x * 1).backward()

    with symgrad.inference_mode(False), symgrad.no_grad(), symgrad.enable_grad():
        acting(descend)(x).backward()
    assert x.grad == 500 and len(threads) > 1


def test_an_error_in_a_deep_backward_reaches_its_caller():
    x, depth = leaf(1.0), 300

    def descend():
        nonlocal depth
        depth -= 1
        if not depth:
            raise KeyError("deepest")
        with symgrad.enable_grad():
            acting(descend)(x * 1).backward()

    with pytest.raises(KeyError, match="deepest"):
        acting(descend)(x).backward()
    assert x.grad is None and symgrad.is_grad_enabled()


@WAYS
@pytest.mark.parametrize("call", [lambda y, x: y.backward(), lambda y, x: autograd.grad(y, x)], ids=["backward", "grad"])
def test_queued_functions_run_once_after_their_own_backward(way, call):
    log, x, z = [], leaf(3.0), leaf(5.0)

    def queue(name):
        log.append(f"queue {name}")
        queue_callback(lambda: log.append((name, None if x.grad is None else x.grad.item())))

    def outer():
        queue("outer")
        with symgrad.enable_grad():
            way(lambda: queue_callback(lambda: queue("inner")))(z * 1).backward()
        log.append("inner is done")

    y = way(outer)(x)
    call(2 * y, x)
    accumulated = None if x.grad is None else x.grad.item()
    assert log == ["queue outer", "queue inner", ("inner", None), "inner is done", ("outer", accumulated)]
    with pytest.raises(RuntimeError, match="no backward is running"):
        queue_callback(print)


def test_a_failed_backward_forgets_its_functions():
    log, x = [], leaf(1.0)

    def fail():
        queue_callback(lambda: log.append("failed"))
        raise KeyError

    with pytest.raises(KeyError):
        acting(fail)(x).backward()
    acting(lambda: queue_callback(lambda: log.append("good")))(x).backward()
    assert log == ["good"]


@WAYS
def test_modes_that_a_users_code_changes_end_with_the_backward(way):
    def change():
        symgrad.set_grad_enabled(False)
        autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t).__enter__()

    way(change)(leaf(1.0)).backward()
    assert symgrad.is_grad_enabled()
    leaf(1.0).exp().grad_fn._raw_saved_result.register_hooks(lambda t: t, lambda t: t)  # no pair is active


@WAYS
def test_the_running_backward(way):
    seen = []

    def look():
        seen.append((tasks.current_graph_task_id(), [tasks.will_engine_execute_node(node) for node in nodes]))
        with autograd.set_multithreading_enabled(False):
            order.extend(tasks.current_graph_task_execution_order())
        with pytest.raises(RuntimeError, match="a grad_fn, not Tensor"):
            tasks.will_engine_execute_node(x)
        with pytest.raises(RuntimeError, match="multithreading"):
            tasks.current_graph_task_execution_order()

    x, z, order = leaf(1.0), leaf(2.0), []
    inner = x * z
    y = way(look)(inner)
    out, other = y.exp(), y.sin()
    nodes = [out.grad_fn, y.grad_fn, inner.grad_fn, other.grad_fn]
    out.backward(retain_graph=True)
    assert seen[0][1] == [True, True, True, False]
    assert [node.name().split(":")[-1] for node in order] == [*(node.name() for node in nodes[:3]), "AccumulateGrad", "AccumulateGrad"]
    autograd.grad(other, x)
    assert seen[1][1] == [False, True, True, True] and seen[1][0] > seen[0][0]
    assert tasks.current_graph_task_id() == -1
    for ask in (tasks.current_graph_task_execution_order, lambda: tasks.will_engine_execute_node(nodes[0])):
        with pytest.raises(RuntimeError, match="no backward is running"):
            ask()


def test_a_leaf_is_not_run_by_grad():
    x = leaf(1.0)
    node = (x * 1).grad_fn.next_functions[0][0]

    def look():
        with pytest.raises(RuntimeError, match="no gradient reaches a leaf"):
            tasks.will_engine_execute_node(node)

    autograd.grad(acting(look)(x), x)
    found = []
    acting(lambda: found.append(tasks.will_engine_execute_node(node)))(x).backward()
    assert found == [True]


def test_a_leaf_that_gets_its_first_hooks_during_a_backward():
    x, log = leaf(2.0), []

    def hook():
        if not log:
            log.append("registered")
            x.register_hook(lambda g: log.append("tensor") or 3 * g)
            x.register_post_accumulate_grad_hook(lambda t: log.append(t.grad.item()))

    assert not all_threads.hooked
    acting(hook)(x).backward()
    assert log == ["registered", "tensor", 3.0] and x.grad == 3.0


def test_a_gradient_has_its_formula_if_its_leaf_gets_its_first_hook_during_the_backward(monkeypatch):
    x = tensor(2.0, requires_grad=True, symbol="x")
    monkeypatch.setattr(all_threads, "hooked", False)
    acting(lambda: x.register_post_accumulate_grad_hook(lambda t: None))(x.sin()).backward()
    assert str(x.grad.expr) == "cos(x)"
