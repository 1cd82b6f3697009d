"""Hooks of modules: what is ours alone."""

import gc
import pickle
import weakref
from collections import OrderedDict

import pytest

import symgrad
from symgrad import nn
from symgrad.graph.handles import RemovableHandle
from tests.support.words import called

of_all = nn.modules.module


@pytest.mark.parametrize("register, other", [(of_all.register_module_backward_hook, of_all.register_module_full_backward_hook),
                                             (of_all.register_module_full_backward_hook, of_all.register_module_backward_hook)])
def test_global_backward_hooks_are_of_one_kind_at_a_time(register, other):
    x = symgrad.ones(2, requires_grad=True)
    seen = []
    with register(lambda module, grad_input, grad_output: seen.append(len(grad_input))):
        module = nn.Tanh()
        module(x * 0).sum().backward()
        with pytest.raises(RuntimeError, match="either full backward hooks"):
            other(print)
    assert x.grad.tolist() == [0.0, 0.0] and seen == [1]
    other(print).remove()
    module = nn.Tanh()
    module.register_backward_hook(print).remove()
    module.register_full_backward_hook(print).remove()


def test_a_hook_that_is_registered_after_unpickling_replaces_none():
    layer = nn.Identity()
    ours = layer.register_forward_hook(called).id
    del layer._forward_hooks[ours]
    for key in range(ours + 1, ours + 300):  # ids of another process, in which more hooks were registered
        layer._forward_hooks[key] = called
    revived = pickle.loads(pickle.dumps(layer))
    for _ in range(3):
        revived.register_forward_hook(print)
    assert len(revived._forward_hooks) == 302


def test_a_handle_removes_its_id_from_every_dictionary():
    hooks, extra, more = OrderedDict(), OrderedDict(), OrderedDict()
    handle = RemovableHandle(hooks, extra_dict=[extra, more])
    for table in (hooks, extra, more):
        table[handle.id] = table[-1] = print
    handle.remove()
    handle.remove()
    assert [list(table) for table in (hooks, extra, more)] == [[-1]] * 3
    del hooks
    handle.remove()


def test_hooks_keep_no_module_alive():
    layer, x = nn.Sigmoid(), symgrad.ones(2, requires_grad=True)
    layer.register_load_state_dict_pre_hook(called)
    layer.register_backward_hook(called)
    y, alive = layer(x * 1), weakref.ref(layer)
    (hook,) = layer._load_state_dict_pre_hooks.values()
    gc.disable()
    try:
        del layer
        assert alive() is None
    finally:
        gc.enable()
    with pytest.raises(RuntimeError, match="^hook: its module"):
        y.sum().backward()
    with pytest.raises(RuntimeError, match="^hook: its module"):
        pickle.loads(pickle.dumps(hook))
