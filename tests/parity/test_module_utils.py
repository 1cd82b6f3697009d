"""Weights that are computed before each forward, orthogonal and pruned ones, fused modules, and orders in memory, beside torch."""

import copy
import warnings

import numpy as np
import pytest
import torch
import torch.nn.utils.prune

import symgrad
from tests.parity.module_kit import agree, close, fill, inputs, made, same_state, to

pytestmark = [pytest.mark.usefixtures("double_precision"), pytest.mark.filterwarnings("ignore:.*nn.utils.* is deprecated:FutureWarning")]
WEIGHTS = {
    "nn.utils.weight_norm(nn.Linear(3, 2))": ("wave(4, 3)", "nn.utils.remove_weight_norm"),
    "nn.utils.weight_norm(nn.Linear(3, 2), dim=None)": ("wave(4, 3)", "nn.utils.remove_weight_norm"),
    "nn.utils.weight_norm(nn.LSTM(2, 3), 'weight_hh_l0', 1)": ("wave(4, 1, 2)", "lambda m: nn.utils.remove_weight_norm(m, 'weight_hh_l0')"),
    "nn.utils.spectral_norm(nn.Linear(3, 2))": ("wave(4, 3)", "nn.utils.remove_spectral_norm"),
    "nn.utils.spectral_norm(nn.ConvTranspose1d(3, 2, 2), n_power_iterations=3)": ("wave(1, 3, 4)", "nn.utils.remove_spectral_norm"),
    "nn.utils.spectral_norm(nn.Bilinear(2, 2, 3), eps=1e-3, dim=2)": ("wave(4, 2), wave(4, 2)", "nn.utils.remove_spectral_norm"),
}


@pytest.mark.parametrize("text", WEIGHTS)
def test_weights_that_are_computed(text):
    given, remove = WEIGHTS[text]
    ours, theirs = made(symgrad, text), made(torch, text)
    assert [k for k, _ in ours.named_parameters()] == [k for k, _ in theirs.named_parameters()] and repr(ours) == repr(theirs)
    fill(theirs)
    assert str(ours.load_state_dict(to(symgrad, theirs.state_dict()))) == "<All keys matched successfully>"
    right = "weight_norm" not in text or "dim=None" in text  # torch's second derivatives are wrong where the norms are over an axis
    agree(ours, theirs, text, (True, False, True), [given], right)
    assert str(theirs.load_state_dict(to(torch, ours.state_dict()))) == "<All keys matched successfully>"
    made(symgrad, remove)(ours), made(torch, remove)(theirs)
    agree(ours, theirs, text, (True,), [given], True)
    assert not (ours._forward_pre_hooks or ours._state_dict_hooks or ours._load_state_dict_pre_hooks)


def test_a_state_before_version_1_gets_its_vector():
    found = []
    for m in (symgrad, torch):
        layer = m.nn.utils.spectral_norm(m.nn.Linear(3, 2))
        weight, vectors = m.tensor([[1.0, 2.0, -1.0], [0.5, 0.0, 3.0]]), m.tensor([0.6, 0.8])
        state = {"weight_orig": weight, "weight": weight / 2.5, "weight_u": vectors, "bias": m.zeros(2)}
        layer.load_state_dict(state)
        found.append(layer.weight_v)
        with pytest.raises(RuntimeError, match='Missing key.*"weight_u"'):
            layer.load_state_dict({key: value for key, value in state.items() if key != "weight_u"} | {"weight": weight})
    close(*found, "v")


FUSED = {
    "Linear(2, 3)": ("BatchNorm1d(3)", "fuse_linear_bn_eval", "wave(4, 2)"),
    "Linear(2, 3, False)": ("BatchNorm1d(3, bias=False)", "fuse_linear_bn_eval", "wave(4, 2)"),
    "Conv1d(2, 3, 2)": ("BatchNorm1d(3, affine=False)", "fuse_conv_bn_eval", "wave(1, 2, 4)"),
    "ConvTranspose2d(2, 3, 2)": ("BatchNorm2d(3)", "lambda a, b: nn.utils.fuse_conv_bn_eval(a, b, True)", "wave(1, 2, 3, 3)"),
}


@pytest.mark.parametrize("text", FUSED)
def test_fused_modules(text):
    second, fuse, given = FUSED[text]
    layer, norm = made(symgrad, text), made(symgrad, second)
    args, _ = inputs(symgrad, given)
    for _ in range(3):
        norm(layer(*args))
    layer.eval(), norm.eval()
    fused = made(symgrad, fuse if fuse.startswith("lambda") else f"nn.utils.{fuse}")(layer, norm)
    close(fused(*args), norm(layer(*args)), text)
    assert type(fused) is type(layer) and fused.weight.requires_grad and fused.bias.requires_grad == (layer.bias is not None)


def test_orders_in_memory():
    found = []
    for m in (symgrad, torch):
        net = m.nn.Sequential(m.nn.Conv2d(3, 2, 2), m.nn.Sequential(m.nn.ConvTranspose2d(2, 2, 3), m.nn.Conv3d(2, 2, 2)), m.nn.Linear(2, 2))
        assert m.nn.utils.convert_conv2d_weight_memory_format(net, m.channels_last) is net
        m.nn.utils.convert_conv3d_weight_memory_format(net, m.channels_last_3d)
        found.append([(p.stride(), p.requires_grad) for p in net.parameters()])
    assert found[0] == found[1]


def test_a_module_with_parameters_still_to_be_set():
    for m in (symgrad, torch):
        assert repr(m.nn.utils.skip_init(m.nn.Linear, 3, 2, dtype=m.float32)) == "Linear(in_features=3, out_features=2, bias=True)"


def test_a_call_with_other_parameters_under_its_former_name():
    found = []
    for m in (symgrad, torch):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            y = m.nn.utils.stateless.functional_call(m.nn.Linear(2, 1), {"weight": m.ones(1, 2), "bias": m.ones(1)}, m.ones(2))
        found.append((y.item(), caught[0].category))
    assert found[0] == found[1]


SCORES = "importance_scores=wave(2, 3).detach()"
CALLS = [  # each line in turn to one network
    ["identity(m[0], 'weight')", "l1_unstructured(m[0], 'weight', 2)", "l1_unstructured(m[0], 'weight', 0.5)", "l1_unstructured(m[0], 'bias', 0)",
     "remove(m[0], 'weight')", "l1_unstructured(m[0], 'weight', 5)"],
    ["ln_structured(m[0], 'weight', 1, 2, 0)", "ln_structured(m[0], 'weight', 0.4, 1, -1)", f"l1_unstructured(m[0], 'weight', 1, {SCORES})"],
    ["custom_from_mask(m[0], 'bias', t([1, 0]))", f"ln_structured(m[0], 'weight', 1, float('inf'), 1, {SCORES})",
     "custom_from_mask(m[0], 'weight', t([[1, 0, 1], [1, 1, 0]]))"],
    ["global_unstructured([(m[0], 'weight'), (m[2], 'weight'), (m[2], 'bias')], P.L1Unstructured, amount=0.4)",
     "global_unstructured([(m[0], 'weight'), (m[2], 'weight')], P.L1Unstructured, {(m[0], 'weight'): wave(2, 3).detach()}, amount=2)"],
    ["random_unstructured(m[0], 'weight', 1.0)", "random_structured(m[2], 'weight', 3, 0)"],  # all of them
]
REFUSED = ["l1_unstructured(m[0], 'weight', -1)", "l1_unstructured(m[0], 'weight', 1.5)", "l1_unstructured(m[0], 'weight', 7)",
           "random_unstructured(m[0], 'weight', 'half')", "ln_structured(m[0], 'bias', 1, 2, 0)", "ln_structured(m[0], 'weight', 3, 2, 0)",
           "random_structured(m[0], 'weight', 1, 2)", "remove(m[0], 'weight')", "custom_from_mask(m[0], 'weight', t([1, 0]))",
           "l1_unstructured(m[0], 'weight', 1, wave(3))", "l1_unstructured(m[0], 'no', 1)", "global_unstructured(3, P.L1Unstructured, amount=1)",
           "global_unstructured([(m[0], 'weight')], P.L1Unstructured, [], amount=1)",
           "global_unstructured([(m[0], 'weight')], P.LnStructured, amount=1, n=2)", "PruningContainer().add_pruning_method(3)"]


def networks():
    ours, theirs = (made(m, "nn.Sequential(nn.Linear(3, 2), nn.Tanh(), nn.Linear(2, 3))") for m in (symgrad, torch))
    fill(theirs)
    ours.load_state_dict(to(symgrad, theirs.state_dict()))
    return ours, theirs


def call(m, network, text):
    return made(type("Library", (), {"nn": m.nn, "tensor": staticmethod(m.tensor), "float64": m.float64}), f"lambda m, P: P.{text}")(
        network, m.nn.utils.prune)


@pytest.mark.parametrize("texts", CALLS)
def test_pruned_modules(texts):
    ours, theirs = networks()
    for text in texts:
        call(symgrad, ours, text), call(torch, theirs, text)
        agree(ours, theirs, text, (True,), ["wave(4, 3)"], True)
        assert ours[0].weight.tolist() == theirs[0].weight.tolist()
        assert symgrad.nn.utils.prune.is_pruned(ours) == torch.nn.utils.prune.is_pruned(theirs)


@pytest.mark.parametrize("text", REFUSED)
def test_what_cannot_be_pruned_and_is_as_before(text):
    ours, theirs = networks()
    before = copy.deepcopy(ours.state_dict())
    errors = []
    for m, network in ((symgrad, ours), (torch, theirs)):
        with pytest.raises(Exception) as caught:  # noqa: PT011  the same as torch's
            call(m, network, text)
        errors.append(caught.type)
    assert issubclass(*errors), errors
    same_state(ours.state_dict(), before, text)
    assert not symgrad.nn.utils.prune.is_pruned(ours)


def test_random_elements_and_slices():
    layer = symgrad.nn.Linear(6, 20)
    prune = symgrad.nn.utils.prune
    prune.random_structured(layer, "weight", 0.25, 0)
    prune.random_unstructured(layer, "weight", 0.5)
    mask = np.array(layer.weight_mask.tolist())
    assert mask.sum() == 45 and (mask.sum(1) == 0).sum() >= 5


def test_a_method_of_a_user():
    class Odd(symgrad.nn.utils.prune.BasePruningMethod):
        PRUNING_TYPE = "unstructured"

        def compute_mask(self, t, default_mask):
            mask = default_mask.clone()
            mask.view(-1)[::2] = 0
            return mask

    layer = symgrad.nn.Linear(3, 2)
    Odd.apply(layer, "weight")
    assert layer.weight_mask.tolist() == [[0, 1, 0], [1, 0, 1]]
    Odd.apply(layer, "weight")
    assert layer.weight_mask.tolist() == [[0, 0, 0], [1, 0, 0]]
    assert [type(method) for method in next(iter(layer._forward_pre_hooks.values()))] == [Odd, Odd]


@pytest.mark.parametrize("shape", [(3, 3), (4, 2), (2, 4)])
@pytest.mark.parametrize("kind", [None, "matrix_exp", "cayley", "householder"])
@pytest.mark.parametrize("trivial", [True, False])
def test_orthogonal_weights(shape, kind, trivial):
    numbers, found = np.random.default_rng(0).normal(size=shape), []
    state = None
    for m in (torch, symgrad):
        layer = m.nn.Linear(*shape[::-1], bias=False)
        with m.no_grad():
            layer.weight.copy_(m.nn.init.orthogonal_(m.empty(shape)) if m is torch and trivial else m.tensor(numbers.tolist()))
        inverse = trivial or kind == "householder" or kind is None and shape[0] != shape[1]
        m.nn.utils.parametrizations.orthogonal(layer, orthogonal_map=kind, use_trivialization=trivial)
        small = min(shape)
        rows = layer.weight if shape[0] == small else layer.weight.T
        np.testing.assert_allclose((rows @ rows.T).detach().numpy(), np.eye(small), atol=1e-12)
        if not inverse:
            with pytest.raises(NotImplementedError, match="use_trivialization"):
                layer.weight = m.ones(shape)
        state = layer.state_dict() if m is torch else state
        if m is symgrad:
            layer.load_state_dict(to(symgrad, state))
        w = layer.weight
        weights = m.arange(float(w.numel())).reshape(w.shape).cos()
        (g,) = m.autograd.grad((w * weights).sum(), layer.parametrizations.weight.original, create_graph=True)
        found.append((w.detach(), g.detach(), m.autograd.grad((g * g).sum(), layer.parametrizations.weight.original)[0]))
    for theirs, ours in zip(*found):
        close(ours, theirs, f"{shape} {kind}")


def test_an_orthogonal_weight_stays_as_it_was():
    for shape in ((3, 3), (5, 2), (2, 5)):
        layer = symgrad.nn.Linear(*shape[::-1])
        symgrad.nn.init.orthogonal_(layer.weight)
        before = layer.weight.detach().clone()
        symgrad.nn.utils.parametrizations.orthogonal(layer)
        assert symgrad.allclose(layer.weight, before)
        layer.weight = -before
        assert symgrad.allclose(layer.weight, -before)
