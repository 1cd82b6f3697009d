"""Pruned modules beside torch: states, values and gradients after each call, and what is refused."""

import copy

import numpy as np
import pytest
import torch
import torch.nn.utils.prune

import symgrad
from tests.parity.module_kit import agree, fill, made, same_state, to

pytestmark = pytest.mark.usefixtures("double_precision")
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
