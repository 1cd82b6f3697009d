"""Parametrized modules: what holds for any weight."""

import threading

import pytest

import symgrad
from symgrad import nn
from symgrad.nn.utils import parametrizations, parametrize


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


def test_what_the_cache_keeps_ends_with_its_block():
    layer = parametrize.register_parametrization(nn.Linear(2, 2), "weight", nn.Tanh())
    for value in (1.0, 2.0):
        nn.init.constant_(layer.parametrizations.weight.original, value)
        with parametrize.cached():
            assert layer.weight[0, 0].item() == pytest.approx(symgrad.tensor(value).tanh().item())


class Affine(nn.Module):
    def __init__(self, factor, term):
        super().__init__()
        self.factor, self.term = factor, term

    def forward(self, x):
        return self.factor * x + self.term

    def right_inverse(self, y):
        return (y - self.term) / self.factor


def test_parametrizations_are_composed_and_inverted_in_reverse():
    layer = nn.Linear(2, 2).eval()
    before = layer.weight.tolist()
    for each in (Affine(2.0, 1.0), Affine(-3.0, 5.0)):
        parametrize.register_parametrization(layer, "weight", each, unsafe=each.factor < 0)
        assert not each.training
    assert layer.parametrizations.weight.unsafe and not nn.Linear(1, 1).eval().training
    assert symgrad.allclose(layer.weight, -3 * symgrad.tensor(before) + 5)
    layer.weight = symgrad.full((2, 2), 11.0)
    assert layer.weight.tolist() == [[11.0, 11.0]] * 2 and layer.parametrizations.weight.original.tolist() == [[-1.5, -1.5]] * 2


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


def test_a_parametrized_weight_is_differentiated_to_the_second_order():
    layer = parametrizations.weight_norm(nn.Linear(3, 2, bias=False))
    parametrization, originals = layer.parametrizations.weight[0], tuple(layer.parametrizations.weight.parameters())
    assert symgrad.autograd.gradgradcheck(lambda g, v: (parametrization(g, v) ** 3).sum(), originals)
