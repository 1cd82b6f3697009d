"""Weights that are computed before each forward, fused modules, and orders in memory, beside torch."""

import warnings

import pytest
import torch

import symgrad
from tests.parity.module_kit import agree, close, fill, inputs, made, to

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
