"""Modules, hooks and parametrizations beyond what is recorded of PyTorch's and compared with them."""

import gc
import itertools
import pickle
import threading
import weakref
from collections import OrderedDict

import pytest

import symgrad
from symgrad import nn
from symgrad.graph.handles import RemovableHandle
from symgrad.nn.utils import parametrizations, parametrize
from tests.support.words import called


@pytest.mark.parametrize("size", [1, 3, 5, 7])
def test_both_norms_over_neighbouring_channels_agree_for_odd_sizes(size):
    x = symgrad.randn(2, 6, 2, 2, requires_grad=True)
    found = [nn.CrossMapLRN2d(size, 0.5, 0.6, 2.0)(x), nn.LocalResponseNorm(size, 0.5, 0.6, 2.0)(x)]
    assert symgrad.allclose(*found) and symgrad.allclose(*(symgrad.autograd.grad(y.sum(), x)[0] for y in found))


def test_dropout_keeps_the_mean_and_drops_whole_channels():
    symgrad.manual_seed(0)
    x = symgrad.ones(40, 50, 4)
    y, z = nn.Dropout(0.25)(x), nn.Dropout1d(0.25)(x)
    assert set(y.unique().tolist()) == set(z.unique().tolist()) == {0.0, 4 / 3} and abs(y.mean() - 1) < 0.05 and abs(z.mean() - 1) < 0.1
    assert (z == z[..., :1]).all() and not (y == y[..., :1]).all()
    assert nn.Dropout(0.5, inplace=True)(x) is x and (x == 0).any()


def alignments(labels, steps):
    """All sequences of labels and blanks (0) that become the labels where repetitions are one and blanks vanish."""
    for path in itertools.product(range(3), repeat=steps):
        if [label for label, _ in itertools.groupby(path) if label] == labels:
            yield path


@pytest.mark.parametrize("labels", [[], [1], [1, 2], [2, 2], [1, 2, 1]])
def test_an_alignment_loss_sums_over_all_alignments(labels):
    """The definition itself, with derivatives of two orders by the log-probabilities."""
    logs = symgrad.randn(4, 1, 3, generator=symgrad.Generator().manual_seed(2)).requires_grad_()
    paths = list(alignments(labels, 4))

    def defined(x):
        return -symgrad.stack([sum(x[t, 0, label] for t, label in enumerate(path)) for path in paths]).logsumexp(0)

    def ours(x):
        return nn.functional.ctc_loss(x, symgrad.tensor([labels], dtype=symgrad.int64), (4,), (len(labels),), reduction="sum")

    for order in (lambda f: f, symgrad.func.grad, symgrad.func.hessian):
        assert symgrad.allclose(order(ours)(logs), order(defined)(logs), rtol=1e-9, atol=1e-9)


def test_a_target_without_an_alignment_has_no_derivative():
    logs = symgrad.randn(2, 1, 3, requires_grad=True)
    for zero, value in ((False, float("inf")), (True, 0.0)):
        loss = nn.CTCLoss(zero_infinity=zero, reduction="sum")(logs, symgrad.tensor([[1, 1]]), (2,), (2,))
        assert loss == value and (symgrad.autograd.grad(loss, logs)[0] == 0).all()
    with pytest.raises(RuntimeError, match="targets must be labels from 0 to 2"):
        nn.CTCLoss()(logs, symgrad.tensor([[3]]), (2,), (1,))
    impossible = logs.detach().clone()
    impossible[:, :, 1] = -float("inf")
    assert nn.CTCLoss()(impossible, symgrad.tensor([[1]]), (2,), (1,)) == float("inf")


def test_an_adaptive_softmax_is_a_softmax_over_all_classes():
    layer, x = nn.AdaptiveLogSoftmaxWithLoss(4, 9, [2, 5], div_value=2.0), symgrad.randn(9, 4)
    logs = layer.log_prob(x)
    assert symgrad.allclose(logs.exp().sum(1), symgrad.ones(9)) and symgrad.allclose(layer(x, symgrad.arange(9)).output, logs.diagonal())
    assert (layer.predict(x)[:, None] == symgrad.arange(9)).any(1).all()
    head = layer.head(x).argmax(1)
    assert (layer.predict(x) == symgrad.where(head < 2, head, logs.argmax(1))).all()


@pytest.mark.sweep
def test_batch_normalisation_is_differentiable_by_the_statistics_that_it_is_given():
    def f(mean, var):
        return nn.functional.batch_norm(symgrad.tensor([[1.0, -2.0], [0.5, 3.0]]), mean, var).pow(3).sum()

    statistics = symgrad.tensor([0.25, -1.0], requires_grad=True), symgrad.tensor([0.5, 2.0], requires_grad=True)
    assert symgrad.autograd.gradcheck(f, statistics, check_forward_ad=True) and symgrad.autograd.gradgradcheck(f, statistics)


def test_attributes_of_subclasses_do_not_change_what_modules_of_the_table_compute():
    class Named(nn.ReLU):
        def __init__(self):
            super().__init__()
            self.names = self.called = self.shown = self.function = 1

    assert Named()(symgrad.tensor([-1.0, 2.0])).tolist() == [0.0, 2.0]
    assert repr(Named()) == "Named()"


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


@pytest.mark.sweep
@pytest.mark.parametrize("shape", [(4, 3), (3, 5), (2, 3, 2), (1, 1)])
def test_spectral_norm_gives_norm_1_and_keeps_it(shape):
    symgrad.manual_seed(0)
    module = nn.Module()
    module.weight = nn.Parameter(symgrad.randn(*shape))
    parametrizations.spectral_norm(module, n_power_iterations=300)
    weight = module.weight
    assert symgrad.linalg.matrix_norm(weight.flatten(1), 2).item() == pytest.approx(1, rel=1e-9)
    module.weight = weight.detach()
    assert symgrad.allclose(module.weight, weight, rtol=1e-9)


@pytest.mark.parametrize("given, message", [(lambda x: (x, 3), "must be a tensor, not int"), (lambda x: (x, x.float()), "must keep the dtype")])
def test_an_assignment_that_is_refused_changes_no_original(given, message):
    class Sum(nn.Module):
        def forward(self, a, b):
            return a + b

        def right_inverse(self, x):
            return x / 2, x / 2

    layer = parametrize.register_parametrization(nn.Linear(2, 2), "weight", Sum())
    before, Sum.right_inverse = layer.weight, lambda self, x: given(x)
    with pytest.raises(ValueError, match=message):
        layer.weight = symgrad.ones(2, 2)
    assert layer.weight.tolist() == before.tolist()


@pytest.mark.parametrize("inverse, message", [(lambda x: x[0], "must keep the shape"), (lambda x: 2 * x.T, "must keep the shape"),
                                              (lambda x: x.float(), "must keep the dtype")])
def test_a_parametrization_that_is_refused_changes_no_weight(inverse, message):
    class Changes(nn.Identity):
        def right_inverse(self, x):
            return inverse(x)

    layer = nn.Linear(2, 1)
    weight, before = layer.weight, layer.weight.tolist()
    with pytest.raises(ValueError, match=message):
        parametrize.register_parametrization(layer, "weight", Changes())
    assert layer.weight is weight and weight.tolist() == before and type(layer) is nn.Linear


def test_the_cache_is_that_of_its_thread():
    layer, found = parametrize.register_parametrization(nn.Linear(2, 2), "weight", nn.Tanh()), []
    with parametrize.cached():
        mine = layer.weight
        thread = threading.Thread(target=lambda: found.append(layer.weight is layer.weight))
        thread.start()
        thread.join()
        assert layer.weight is mine and found == [False]


def test_the_power_iteration_starts_close_and_runs_in_training_only():
    symgrad.manual_seed(3)
    module = nn.Module()
    module.weight = nn.Parameter(symgrad.randn(2, 5, 3))
    parametrizations.spectral_norm(module, dim=-2)
    state = module.parametrizations.weight[0]
    assert state._u.shape == (5,) and state._v.shape == (6,)
    before = state._u.tolist()
    module.eval()
    matrix = module.weight.transpose(0, 1).flatten(1)
    assert symgrad.linalg.matrix_norm(matrix, 2).item() == pytest.approx(1, rel=0.05)
    assert module.weight.shape == (2, 5, 3) and state._u.tolist() == before
    module.train()
    both = module.weight + module.weight  # the second reading moves the vectors that the first one used
    assert state._u.tolist() != before
    both.sum().backward()


@pytest.mark.sweep
def test_a_parametrized_weight_is_differentiated_to_the_second_order():
    layer = parametrizations.weight_norm(nn.Linear(3, 2, bias=False))
    parametrization, originals = layer.parametrizations.weight[0], tuple(layer.parametrizations.weight.parameters())
    assert symgrad.autograd.gradgradcheck(lambda g, v: (parametrization(g, v) ** 3).sum(), originals)


# Weights that are computed or pruned: what is ours alone


@pytest.mark.parametrize("call", [
    lambda p, m: p.l1_unstructured(m, "weight", 1.5), lambda p, m: p.random_unstructured(m, "weight", "half"),
    lambda p, m: p.ln_structured(m, "bias", 1, 2, 0), lambda p, m: p.ln_structured(m, "weight", 3, 2, 0),
    lambda p, m: p.random_structured(m, "weight", 1, 2), lambda p, m: p.remove(m, "weight"), lambda p, m: p.l1_unstructured(m, "no", 1),
    lambda p, m: p.custom_from_mask(m, "weight", symgrad.tensor([1, 0])), lambda p, m: p.l1_unstructured(m, "weight", 1, symgrad.ones(3)),
    lambda p, m: p.global_unstructured([(m, "weight")], p.L1Unstructured, [], amount=1),
    lambda p, m: p.global_unstructured([(m, "weight")], p.LnStructured, amount=1, n=2)])
def test_what_cannot_be_pruned_is_as_before(call):
    layer, prune = nn.Linear(3, 2), nn.utils.prune
    before = repr(layer.state_dict())
    with pytest.raises((ValueError, TypeError, IndexError, AttributeError, RuntimeError, AssertionError)):
        call(prune, layer)
    assert repr(layer.state_dict()) == before and not prune.is_pruned(layer)


def test_random_elements_and_slices_are_pruned():
    layer, prune = nn.Linear(6, 20), nn.utils.prune
    prune.random_structured(layer, "weight", 0.25, 0)
    prune.random_unstructured(layer, "weight", 0.5)
    assert layer.weight_mask.sum() == 45 and (layer.weight_mask.sum(1) == 0).sum() >= 5


def test_an_orthogonal_weight_stays_as_it_was():
    for shape in ((3, 3), (5, 2), (2, 5)):
        layer = nn.Linear(*shape[::-1])
        before = nn.init.orthogonal_(layer.weight).detach().clone()
        parametrizations.orthogonal(layer)
        assert symgrad.allclose(layer.weight, before)
        layer.weight = -before
        assert symgrad.allclose(layer.weight, -before)


def test_a_normalization_without_a_bias_is_fused():
    layer, norm, x = nn.Linear(2, 3, False), nn.BatchNorm1d(3, bias=False), symgrad.rand(4, 2)
    norm(layer(x))
    assert symgrad.allclose(nn.utils.fuse_linear_bn_eval(layer.eval(), norm.eval())(x), norm(layer(x)))
