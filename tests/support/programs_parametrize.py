"""Programs with parametrized modules, for `sides`."""

import copy
import pickle

from tests.support.sides import numbered


def _modules(torch):
    nn = torch.nn

    class Symmetric(nn.Module):
        def forward(self, x):
            return x.triu() + x.triu(1).T

        def right_inverse(self, x):
            return x.triu()

    class Doubled(nn.Module):
        def forward(self, x):
            return 2 * x

    class Sum(nn.Module):
        def forward(self, a, b):
            return a + b

        def right_inverse(self, x):
            return x / 4, 3 * x / 4

    return Symmetric(), Doubled(), Sum()


def _returning(torch, value=None, inverse=None):
    """A parametrization that gives a value, with a right inverse that gives another."""
    body = {"forward": lambda self, *x: x[0] if value is None else value}
    if inverse is not None:
        body["right_inverse"] = lambda self, x: inverse(x)
    return type("Given", (torch.nn.Module,), body)()


def registering(torch, log):
    parametrize = torch.nn.utils.parametrize
    symmetric, doubled, _ = _modules(torch)
    layer = numbered(torch.nn.Linear(2, 2), torch)
    weight = layer.weight
    log(lambda: parametrize.is_parametrized(layer), lambda: parametrize.register_parametrization(layer, "weight", symmetric), lambda: layer.weight,
        lambda: list(layer.state_dict().items()), lambda: layer.parametrizations.weight.original is weight, lambda: type(layer).__name__,
        lambda: parametrize.type_before_parametrizations(layer) is torch.nn.Linear, lambda: isinstance(layer, torch.nn.Linear),
        lambda: [parametrize.is_parametrized(layer, name) for name in ("weight", "bias", "none")], lambda: layer(torch.ones(1, 2)))
    layer(torch.ones(1, 2)).sum().backward()
    log(lambda: weight.grad, lambda: setattr(layer, "weight", torch.tensor([[1.0, 2.0], [2.0, 3.0]])), lambda: layer.weight, lambda: weight,
        lambda: setattr(layer, "weight", torch.nn.Parameter(torch.ones(2, 2))))
    log(lambda: parametrize.register_parametrization(layer, "weight", doubled).weight, lambda: layer,
        lambda: setattr(layer, "weight", torch.ones(2, 2)),
        lambda: parametrize.register_parametrization(layer, "none", doubled), lambda: pickle.dumps(layer), lambda: copy.deepcopy(layer).weight,
        lambda: copy.deepcopy(layer).parametrizations.weight.original is weight)
    with parametrize.cached():
        log(lambda: layer.weight is layer.weight)
        with parametrize.cached():
            log(lambda: layer.weight is layer.weight)
    log(lambda: layer.weight is layer.weight)
    other = numbered(torch.nn.Linear(2, 2), torch)
    log(lambda: parametrize.transfer_parametrizations_and_params(layer, other).weight, lambda: other.parametrizations.weight.original is weight)
    log(lambda: parametrize.remove_parametrizations(layer, "weight"), lambda: layer.weight, lambda: layer.weight is weight,
        lambda: type(layer).__name__, lambda: hasattr(layer, "parametrizations"), lambda: parametrize.remove_parametrizations(layer, "weight"),
        lambda: pickle.loads(pickle.dumps(layer)).weight)


def several_originals(torch, log):
    parametrize = torch.nn.utils.parametrize
    _, doubled, both = _modules(torch)
    layer = numbered(torch.nn.Linear(2, 1), torch)
    log(lambda: parametrize.register_parametrization(layer, "weight", both), lambda: list(layer.state_dict().items()), lambda: layer.weight,
        lambda: parametrize.register_parametrization(layer, "bias", doubled), lambda: layer.bias,
        lambda: [name for name, _ in layer.named_parameters()],
        lambda: setattr(layer, "weight", torch.ones(1, 2)), lambda: layer.weight, lambda: layer.parametrizations.weight.original1)
    target = torch.nn.Module()
    log(lambda: parametrize.transfer_parametrizations_and_params(layer, target, "weight").weight, lambda: list(target.state_dict()),
        lambda: parametrize.remove_parametrizations(layer, "weight", leave_parametrized=False), lambda: type(layer).__name__,
        lambda: parametrize.remove_parametrizations(layer, "weight").weight, lambda: parametrize.remove_parametrizations(layer, "bias", False).bias,
        lambda: layer)
    module = torch.nn.Module()
    module.register_buffer("b", torch.ones(2))
    log(lambda: parametrize.register_parametrization(module, "b", doubled).b, lambda: list(module.named_buffers()), lambda: list(module.parameters()))


def errors(torch, log):
    parametrize = torch.nn.utils.parametrize
    _, doubled, both = _modules(torch)
    wrong = (_returning(torch, 3), _returning(torch, torch.ones(1, 2, dtype=torch.float32)), _returning(torch, torch.ones(3)),
             _returning(torch, inverse=lambda x: 3), _returning(torch, inverse=lambda x: x.float()), _returning(torch, inverse=lambda x: (x, 3)),
             _returning(torch, inverse=lambda x: x[0]))
    for given in wrong:
        layer = numbered(torch.nn.Linear(2, 1), torch)
        log(lambda: parametrize.register_parametrization(layer, "weight", given), lambda: layer)
        log(lambda: parametrize.register_parametrization(parametrize.register_parametrization(layer, "weight", doubled), "weight", given))
    layer = numbered(torch.nn.Linear(2, 1), torch)
    log(lambda: parametrize.register_parametrization(layer, "weight", wrong[2], unsafe=True).weight,
        lambda: parametrize.ParametrizationList([], layer.bias))
    for later in (lambda x: 3, lambda x: x.float()):
        changing = _returning(torch, inverse=lambda x: x)
        layer = parametrize.register_parametrization(numbered(torch.nn.Linear(2, 1), torch), "weight", changing)
        type(changing).right_inverse = lambda self, x, later=later: later(x)
        log(lambda: setattr(layer, "weight", torch.ones(1, 2)))
    for later in (lambda x: 3, lambda x: (x,), lambda x: (x, x.float())):
        layer = parametrize.register_parametrization(numbered(torch.nn.Linear(2, 1), torch), "weight", both)
        type(both).right_inverse = lambda self, x, later=later: later(x)
        log(lambda: setattr(layer, "weight", torch.ones(1, 2)))
        type(both).right_inverse = lambda self, x: (x / 4, 3 * x / 4)


def norms(torch, log):
    weight_norm, spectral_norm = torch.nn.utils.parametrizations.weight_norm, torch.nn.utils.parametrizations.spectral_norm
    for dim in (0, 1, -1, None):
        layer = weight_norm(numbered(torch.nn.Linear(3, 2), torch), dim=dim)
        log.numbers(layer.weight, *layer.state_dict().values())
        layer.weight = torch.arange(6.0).reshape(2, 3) + 1
        log.numbers(layer.weight, *layer.state_dict().values())
        layer(torch.ones(1, 3)).sum().backward()
        log.numbers(layer.parametrizations.weight.original0.grad, layer.parametrizations.weight.original1.grad)
    log(lambda: list(layer.state_dict()), lambda: layer, lambda: layer.load_state_dict({"bias": torch.zeros(2), "weight_g": torch.tensor(2.0),
                                                                                       "weight_v": torch.ones(2, 3)}))
    log.numbers(layer.weight)
    log(lambda: weight_norm(torch.nn.Linear(1, 1), "none"), lambda: spectral_norm(torch.nn.Linear(1, 1), "none"),
        lambda: spectral_norm(torch.nn.Linear(1, 1), dim=2), lambda: spectral_norm(torch.nn.Linear(1, 1), n_power_iterations=0))
    for dim in (0, 1):
        layer = spectral_norm(numbered(torch.nn.Linear(3, 2), torch), n_power_iterations=200, dim=dim)
        log.numbers(layer.weight.abs())
        (layer.weight * torch.arange(6.0).reshape(2, 3)).sum().backward()
        log.numbers(layer.parametrizations.weight.original.grad)
        layer.eval()
        before = layer.weight
        log(lambda: torch.equal(layer.weight, before), lambda: list(layer.state_dict()), lambda: layer)
    bias = spectral_norm(numbered(torch.nn.Linear(3, 2), torch), "bias")
    log.numbers(bias.bias)
