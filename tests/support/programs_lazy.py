"""Programs with the data of parameters, and with parameters that have no shape yet, for `sides`."""

import copy
import pickle

from tests.support.sides import numbered


def lazy_linear(torch, log):
    nn = torch.nn
    net = nn.Sequential(nn.LazyLinear(2), nn.Tanh(), nn.LazyLinear(1, bias=False))
    log(lambda: net, lambda: net[0].weight, lambda: list(net.state_dict().items()), lambda: net[0].has_uninitialized_params(),
        lambda: net[0].cls_to_become.__name__, lambda: len(list(net.parameters())), lambda: net[0].in_features, lambda: net[0].reset_parameters(),
        lambda: (net.train(False), net.double(), net.float())[1:], lambda: net(torch.ones(5, 3, dtype=torch.float32)).shape, lambda: net,
        lambda: [(type(p).__name__, p.shape, p.dtype, p.requires_grad) for p in net.parameters()], lambda: hasattr(net[0], "_load_hook"),
        lambda: len(net[0]._forward_pre_hooks), lambda: len(net[0]._load_state_dict_pre_hooks), lambda: type(net[0]).__name__)
    layer = numbered(net.double()[0], torch)
    log(lambda: layer(torch.ones(1, 3)), lambda: nn.LazyLinear(2, dtype=torch.float32)(torch.ones(1, 3, dtype=torch.float32)).dtype)


def states(torch, log):
    nn = torch.nn
    full = numbered(nn.Linear(3, 2), torch)
    lazy = nn.LazyLinear(2)
    log(lambda: full.load_state_dict(lazy.state_dict()), lambda: lazy.load_state_dict(full.state_dict()), lambda: lazy,
        lambda: lazy.has_uninitialized_params(), lambda: lazy.weight, lambda: lazy(torch.ones(1, 4)), lambda: lazy(torch.ones(1, 3)), lambda: lazy)
    other = nn.LazyLinear(2)
    log(lambda: other.load_state_dict(nn.LazyLinear(2).state_dict()), lambda: other.weight, lambda: other.load_state_dict({}), lambda: other.bias)


def copies(torch, log):
    nn = torch.nn
    for made in (copy.deepcopy, lambda m: pickle.loads(pickle.dumps(m))):
        layer = nn.LazyLinear(2)
        other = made(layer)
        log(lambda: (other, other.weight, other.weight is layer.weight), lambda: other(torch.ones(1, 3)).shape, lambda: (other, layer),
            lambda: made(other), lambda: layer(torch.ones(1, 5)).shape)
    frozen = nn.UninitializedParameter(False)
    log(lambda: copy.deepcopy(frozen).requires_grad, lambda: pickle.loads(pickle.dumps(frozen)).requires_grad)
    single = nn.LazyLinear(2, dtype=torch.float32)
    log(lambda: copy.deepcopy(single)(torch.ones(1, 3, dtype=torch.float32)).dtype)


def parameters(torch, log):
    nn = torch.nn
    for made in (nn.UninitializedParameter, nn.UninitializedBuffer):
        p = made(dtype=torch.float32)
        log(lambda: p, lambda: p.requires_grad, lambda: [isinstance(p, kind) for kind in (torch.Tensor, nn.Parameter, nn.Buffer)],
            lambda: p.data.dtype, lambda: nn.parameter.is_lazy(p), lambda: p.is_leaf, lambda: p.shape)
        p.materialize((2, 1))
        log(lambda: p.shape, lambda: p.dtype, lambda: nn.parameter.is_lazy(p), lambda: type(p) is nn.UninitializedParameter,
            lambda: p.fill_(3.0)[0, 0].item())
    trained = nn.UninitializedParameter()
    optimizer = torch.optim.SGD([trained], lr=0.5)
    trained.materialize(2, dtype=torch.float64)
    with torch.no_grad():
        trained.fill_(1.0)
    (trained * 3).sum().backward()
    log(lambda: optimizer.step(), lambda: trained)


def own_modules(torch, log):
    nn = torch.nn

    class Scale(nn.modules.lazy.LazyModuleMixin, nn.Module):
        def __init__(self):
            super().__init__()
            self.scale = nn.UninitializedParameter()
            self.register_buffer("seen", nn.UninitializedBuffer(), persistent=False)

        def initialize_parameters(self, x, *, fill=2.0):
            self.scale.materialize(x.shape)
            if fill:
                self.seen.materialize(x.shape)
                with torch.no_grad():
                    self.scale.fill_(fill)

        def forward(self, x, *, fill=2.0):
            return x * self.scale

    module = Scale()
    module.register_forward_pre_hook(lambda m, args: args[0] + 1)
    log(lambda: module, lambda: list(module.state_dict().items()), lambda: module(torch.ones(2), fill=5.0), lambda: module(torch.ones(2), fill=7.0),
        lambda: Scale()(torch.ones(2), fill=0.0))

    class Nothing(nn.modules.lazy.LazyModuleMixin, nn.Module):
        pass

    log(lambda: Nothing()(3), lambda: Nothing().has_uninitialized_params())


def data_of_a_leaf(torch, log):
    layer, x = torch.nn.Linear(1, 1), torch.ones(2, requires_grad=True)
    log(lambda: layer.type(torch.int64), lambda: layer.weight.dtype, lambda: setattr(x, "data", torch.arange(2)), lambda: setattr(x, "data", 3),
        lambda: setattr(x, "data", torch.zeros(3)), lambda: x, lambda: setattr(x.detach(), "data", torch.arange(2)),
        lambda: x.requires_grad_(None), lambda: layer.requires_grad_(1), lambda: torch.nn.Parameter(torch.ones(1), "yes"))
    noted = torch.nn.Parameter(torch.ones(1))
    noted.note = [3]
    log(lambda: pickle.loads(pickle.dumps(noted)).note, lambda: vars(copy.deepcopy(noted)))
