"""Every optimizer against torch: random gradients, shapes and options; the state of each can be loaded by the other at any step."""

import random

import numpy as np
import pytest
import torch

import symgrad
from tests.support.tables import table

from .database import each

pytestmark = pytest.mark.usefixtures("double_precision")

RATES = {"lr": [1e-3, 0.03, 0.7]}
COMMON = {**RATES, "maximize": [False, True], "weight_decay": [0, 0.05, 0.9], "differentiable": [False, True]}
BETAS = {"betas": [(0.9, 0.999), (0.3, 0.5), (0.0, 0.9)], "eps": [1e-8, 1e-2], **COMMON}
# The optimizer, with the choices for each option
OPTIONS = table(globals(), "OPTIONS")
REAL = ("Adafactor", "Muon")
SHAPES = [(), (3,), (2, 3), (4, 2), (2, 3, 2)]


def arrays(state):
    """A state dict with arrays for tensors."""
    return each(state, lambda v: v.detach().numpy().copy() if hasattr(v, "detach") else v)


def tensors(state, library):
    return each(state, lambda v: library.tensor(v) if isinstance(v, np.ndarray) else v)


def agree(a, b):
    """The same dictionaries, with numbers up to rounding."""
    if isinstance(b, dict):
        assert isinstance(a, dict) and set(a) == set(b)
        return all(agree(a[key], b[key]) for key in b)
    if isinstance(b, (list, tuple)):
        assert len(a) == len(b)
        return all(map(agree, a, b))
    if isinstance(b, (np.ndarray, float, complex)):
        if isinstance(b, np.ndarray):
            assert a.dtype == b.dtype and a.shape == b.shape
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-12)
        return True
    assert a == b
    return True


@pytest.mark.parametrize("name", OPTIONS)
@pytest.mark.parametrize("seed", range(4))
def test_optimizers_agree(name, seed, monkeypatch):
    monkeypatch.setattr(torch.Tensor, "bfloat16", lambda t: t.clone())  # Muon: compared in the precision of the parameter
    choose, rng = random.Random(f"{name}{seed}"), np.random.default_rng(seed)
    options = {key: choose.choice(values) for key, values in OPTIONS[name].items()}
    kinds = [np.float64, np.complex128] if name not in REAL else [np.float64]
    shapes = [shape for shape in SHAPES if len(shape) == 2 or name != "Muon"]
    values = [(rng.normal(size=shape) + (1j * rng.normal(size=shape) if kind is np.complex128 else 0)).astype(kind)
              for shape in shapes for kind in kinds]

    def start(library):
        made = [library.tensor(x) for x in values]
        if options.get("differentiable"):  # torch records the steps, which needs parameters that are no leaves
            made = [t.requires_grad_().clone() for t in made]
            for t in made:
                t.retain_grad()
        cut = 1 + seed % (len(made) - 1)
        groups = [{"params": made[:cut]}, {"params": made[cut:], "lr": 0.05}]
        return made, getattr(library.optim, name)(groups, **options)

    sides = {library: start(library) for library in (torch, symgrad)}
    for step in range(12):
        gradients = [rng.normal(size=x.shape) + (1j * rng.normal(size=x.shape) if x.dtype.kind == "c" else 0) for x in values]
        for library, (made, optimizer) in sides.items():
            for p, g in zip(made, gradients):
                p.grad = library.tensor(g)
            optimizer.step()
        (theirs, of_torch), (ours, of_symgrad) = sides.values()
        assert agree(arrays(ours), arrays(theirs))
        assert agree(arrays(of_symgrad.state_dict()), arrays(of_torch.state_dict()))
        if step == 5:
            for library, other in ((torch, of_symgrad), (symgrad, of_torch)):
                sides[library][1].load_state_dict(tensors(arrays(other.state_dict()), library))


@pytest.mark.parametrize("options", [{"max_iter": 4}, {"line_search_fn": "strong_wolfe"},
                                     {"line_search_fn": "strong_wolfe", "history_size": 2, "lr": 0.3},
                                     {"history_size": 3, "max_iter": 7, "lr": 0.1}, {"max_eval": 3, "line_search_fn": "strong_wolfe"},
                                     {"tolerance_grad": 0.1, "lr": 0.5}, {"tolerance_change": 1e-2, "lr": 0.5}])
def test_lbfgs_agrees(options):
    """Step by step from equal states and parameters, within what rounding of the parameters changes in torch's own step."""
    def start(library):
        x = library.tensor([-1.2, 1.0, 0.5, -0.3], requires_grad=True)
        z = library.tensor([0.5 + 1j, -0.2j], requires_grad=True)
        optimizer = library.optim.LBFGS([x, z], **options)

        def closure():
            optimizer.zero_grad()
            loss = (10 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum() * 0.1 + ((z - 1).abs() ** 2).sum() + (z.real**4).sum()
            loss.backward()
            return loss

        return library, [x, z], optimizer, closure

    def begin(side, state, values):
        library, made, optimizer, _ = side
        optimizer.load_state_dict(tensors(state, library))
        with library.no_grad():
            for p, value in zip(made, values):
                p.copy_(library.tensor(value))

    def stepped(side):
        _, made, optimizer, closure = side
        loss = optimizer.step(closure).item()
        return np.concatenate([[loss], *[p.detach().numpy() for p in made]])

    rng = np.random.default_rng(0)
    theirs, ours, twins = start(torch), start(symgrad), [start(torch) for _ in range(4)]
    for step in range(4):
        source = (ours, theirs)[step % 2]
        state, values = arrays(source[2].state_dict()), arrays(source[1])
        for side in (theirs, ours):
            begin(side, state, values)
        for side in twins:
            begin(side, state, [v * (1 + 2.2e-16 * rng.choice([-1, 1], v.shape)) for v in values])
        expected, found, others = stepped(theirs), stepped(ours), [stepped(side) for side in twins]
        sensitive = max(abs(other - expected).max() for other in others)
        assert sensitive < 1e-8, "the step cannot tell an error from rounding"
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-14 + 50 * sensitive)
        (one,), (two,) = (arrays(side[2].state_dict()["state"]).values() for side in (ours, theirs))
        assert set(one) == set(two) and (one["n_iter"], one["func_evals"]) == (two["n_iter"], two["func_evals"])
