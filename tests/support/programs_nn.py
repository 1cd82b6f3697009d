"""Programs with modules, parameters and containers, for `sides`."""

import copy
import pickle
from collections import OrderedDict

from tests.support.sides import numbered


def _net(torch):
    nn = torch.nn

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc = nn.Linear(2, 3)
            self.register_buffer("buf", torch.zeros(2))
            self.p = nn.Parameter(torch.ones(()))
            self.act = nn.ReLU()
            self.register_buffer("temporary", torch.ones(1), persistent=False)
            self.none = None
            self.register_parameter("q", None)

        def forward(self, x):
            return self.act(self.fc(x)) * self.p

    return numbered(Net(), torch)


def before_init(torch, log):
    nn = torch.nn

    def made(start):
        return lambda: type("Early", (nn.Module,), {"__init__": start})()

    log(made(lambda self: setattr(self, "w", nn.Parameter(torch.ones(1)))), made(lambda self: setattr(self, "layer", nn.Linear(1, 1))),
        made(lambda self: setattr(self, "b", nn.Buffer(torch.ones(1)))), made(lambda self: self.register_buffer("a", torch.ones(1))),
        made(lambda self: self.register_parameter("a", None)), made(lambda self: self.add_module("a", nn.Identity())))
    late = type("Late", (nn.Module,), {"__init__": lambda self: setattr(self, "n", 3)})()
    log(lambda: late.n, lambda: late(1), lambda: late.missing)
    log(lambda: nn.Module()(1), lambda: nn.Module().foo, lambda: nn.Module(1), lambda: nn.Module(a=1))


def attributes(torch, log):
    nn, net = torch.nn, _net(torch)
    for name, value in (("p", torch.ones(1)), ("p", 3), ("fc", torch.ones(1)), ("fc", 3), ("buf", 3), ("buf", "x"), ("q", 1.0), ("q", None)):
        log(lambda: setattr(net, name, value))
    log(lambda: net.p, lambda: net.q, lambda: net.buf, lambda: net.none, lambda: net.fc)
    log(lambda: [name for name in dir(net) if name in ("fc", "buf", "p", "q", "act", "temporary", "none")])
    net.none = nn.Parameter(torch.zeros(2))
    log(lambda: [name for name, _ in net.named_parameters()])
    net.buf = nn.Parameter(torch.zeros(2))
    net.act = nn.Tanh()
    net.temporary = torch.zeros(3)
    net.more = nn.Buffer(torch.arange(2.0))
    net.less = nn.Buffer(torch.arange(3.0), persistent=False)
    log(lambda: list(net.named_parameters()), lambda: list(net.named_buffers()), lambda: list(net.state_dict()), lambda: net)
    for name in ("buf", "act", "temporary", "q"):
        log(lambda: delattr(net, name), lambda: hasattr(net, name), lambda: delattr(net, name))
    net.fc = None
    log(lambda: net, lambda: list(net.children()), lambda: list(net.named_parameters()), lambda: isinstance(net.more, nn.Buffer))


def registering(torch, log):
    nn, net = torch.nn, _net(torch)
    for value in (torch.ones(1), 3, nn.Parameter(torch.ones(1)) * 2):
        log(lambda: net.register_parameter("x", value))
    for name in ("a.b", "", "forward", 3, "p", "x"):
        log(lambda: net.register_parameter(name, None), lambda: net.register_buffer(name, None), lambda: net.add_module(name, None))
    log(lambda: net.register_buffer("y", 3), lambda: net.add_module("y", 3), lambda: net.register_module("z", nn.Identity()), lambda: net)


def looking_up(torch, log):
    nn, net = torch.nn, _net(torch)
    for name in ("zz", "fc.zz", "p", "", "fc"):
        log(lambda: net.get_submodule(name), lambda: net.get_parameter(name), lambda: net.get_buffer(name))
    log(lambda: net.get_parameter("fc.weight"), lambda: net.get_parameter("buf"), lambda: net.get_buffer("buf"))
    log(lambda: net.set_submodule("zz.a", nn.Identity()), lambda: net.set_submodule("zz", nn.Identity()),
        lambda: net.set_submodule("", nn.Identity()), lambda: net.set_submodule("act", 3), lambda: net.set_submodule("act", nn.Tanh()), lambda: net)


def traversal(torch, log):
    nn, net = torch.nn, _net(torch)
    shared = nn.Linear(2, 2)
    whole = nn.Sequential(net, shared, nn.Sequential(shared, nn.ReLU()))
    log(lambda: [name for name, _ in whole.named_modules()], lambda: [name for name, _ in whole.named_modules(remove_duplicate=False)],
        lambda: [name for name, _ in whole.named_modules(prefix="top")], lambda: [type(m).__name__ for m in whole.modules()],
        lambda: [name for name, _ in whole.named_children()], lambda: len(list(whole.children())),
        lambda: [name for name, _ in whole.named_parameters()], lambda: [name for name, _ in whole.named_parameters(remove_duplicate=False)],
        lambda: [name for name, _ in whole.named_parameters("pre", recurse=False)], lambda: [name for name, _ in net.named_parameters("pre", False)],
        lambda: [name for name, _ in whole.named_buffers()], lambda: len(list(whole.parameters())), lambda: len(list(whole.buffers())))
    seen = []
    log(lambda: whole.apply(lambda m: seen.append(type(m).__name__)) is whole, lambda: seen)
    log(lambda: whole.training, lambda: whole.eval() is whole, lambda: [m.training for m in whole.modules()], lambda: whole.train(3),
        lambda: whole.train().training, lambda: [m.training for m in whole.modules()])
    log(lambda: whole.requires_grad_(False) is whole, lambda: [p.requires_grad for p in whole.parameters()],
        lambda: [p.requires_grad for p in whole.requires_grad_().parameters()])


def state(torch, log):
    net = _net(torch)
    log(lambda: list(net.state_dict().items()), lambda: list(net.state_dict()._metadata.items()),
        lambda: list(net.state_dict(prefix="pre.", keep_vars=True).items()))
    saved = copy.deepcopy(net.state_dict())
    with torch.no_grad():
        net.p.zero_()
    log(lambda: net.load_state_dict(saved), lambda: net.p, lambda: net.load_state_dict({"a": 1}), lambda: net.load_state_dict({"a": 1}, strict=False),
        lambda: net.load_state_dict(3))
    wrong = OrderedDict(saved)
    wrong.update({"fc.weight": torch.ones(3, 3), "p": 3, "fc.bias": torch.ones(4), "fc.extra": torch.ones(1), "temporary": torch.ones(1)})
    log(lambda: net.load_state_dict(wrong), lambda: net.load_state_dict(wrong, strict=False))
    old = OrderedDict(saved, p=torch.full((1,), 5.0))
    log(lambda: net.load_state_dict(old), lambda: net.p)
    single = OrderedDict((name, t.float()) for name, t in saved.items())
    log(lambda: net.load_state_dict(single), lambda: net.p.dtype, lambda: net.load_state_dict(single, assign=True), lambda: (net.p, net.p.dtype))
    part = net.state_dict()
    part["p"].fill_(7.0)
    log(lambda: net.p)


def extra_state(torch, log):
    class Counting(torch.nn.Module):
        count = 0

        def get_extra_state(self):
            return {"count": self.count}

        def set_extra_state(self, state):
            self.count = state["count"]

    module = torch.nn.Sequential(Counting(), torch.nn.ReLU())
    module[0].count = 3
    log(lambda: list(module.state_dict().items()), lambda: module.load_state_dict({"0._extra_state": {"count": 5}}),
        lambda: module[0].count, lambda: module.load_state_dict({}),
        lambda: module.load_state_dict({"0._extra_state": {"count": 5}, "1._extra_state": 2}))


def conversions(torch, log):
    net = _net(torch)
    net(torch.ones(1, 2)).sum().backward()
    weight = net.fc.weight
    log(lambda: net.to(torch.float32) is net, lambda: net.fc.weight is weight, lambda: (weight.dtype, weight.grad.dtype, net.buf.dtype),
        lambda: net(torch.ones(1, 2, dtype=torch.float32)).dtype, lambda: net.double().p.dtype, lambda: net.float().p.dtype,
        lambda: net.half().p.dtype, lambda: net.to(torch.ones(1)).p.dtype, lambda: net.to("cpu").p.dtype, lambda: net.cpu() is net,
        lambda: net.type(torch.float32).p.dtype, lambda: net.to(torch.long), lambda: net.to("foo"),
        lambda: net.to("cpu", torch.float64).buf.dtype)


def parameter(torch, log):
    nn = torch.nn
    source = torch.ones(2)
    p = nn.Parameter(source)
    log(lambda: p, lambda: str(p), lambda: f"{p}", lambda: nn.Parameter(torch.tensor(3.0)), lambda: nn.Parameter(torch.zeros(0)),
        lambda: nn.Parameter(), lambda: nn.Parameter([1.0]), lambda: nn.Parameter(torch.ones(2, dtype=torch.int64)),
        lambda: nn.Parameter(torch.ones(2, dtype=torch.int64), requires_grad=False), lambda: nn.Parameter(torch.ones(2), False),
        lambda: nn.Parameter(torch.arange(6.0).reshape(2, 3) * 1000 + 0.5))
    log(lambda: [type(x).__name__ for x in (p, p * 2, p.data, p.detach(), p.clone(), copy.copy(p), copy.deepcopy(p), p[0])])
    log(lambda: (isinstance(p, torch.Tensor), isinstance(source, nn.Parameter), p.is_leaf, p.grad, p.requires_grad, p.grad_fn))
    log(lambda: p.data_ptr() == source.data_ptr(), lambda: nn.Parameter(p) is p, lambda: copy.deepcopy(p).data_ptr() == p.data_ptr())
    source.mul_(3)
    log(lambda: p, lambda: pickle.loads(pickle.dumps(p)))
    (p * p).sum().backward()
    log(lambda: p.grad, lambda: copy.deepcopy(p).grad, lambda: p + 1, lambda: p * 2)


def prefixes(torch, log):
    strip = torch.nn.modules.utils.consume_prefix_in_state_dict_if_present
    state = torch.nn.Sequential(OrderedDict(module=torch.nn.Sequential(torch.nn.Linear(1, 1)), other=torch.nn.Linear(1, 1))).state_dict()
    log(lambda: strip(state, "module."), lambda: (list(state), list(state._metadata.items())), lambda: strip(state, "none."), lambda: list(state))
    plain = {"a.b": 1, "c": 2, "a.": 3}
    log(lambda: strip(plain, "a."), lambda: plain)


def copies(torch, log):
    net = _net(torch)
    twin = copy.deepcopy(net)
    log(lambda: twin, lambda: twin.fc.weight is net.fc.weight, lambda: twin.fc.weight, lambda: twin.p.data_ptr() == net.p.data_ptr())
    tied = torch.nn.Sequential(torch.nn.Linear(1, 1), torch.nn.Linear(1, 1))
    tied[1].weight = tied[0].weight
    log(lambda: copy.deepcopy(tied)[1].weight is copy.deepcopy(tied)[0].weight)
    other = copy.deepcopy(tied)
    log(lambda: other[1].weight is other[0].weight, lambda: len(list(other.parameters())))
    layer = numbered(torch.nn.Linear(2, 1), torch)
    log(lambda: pickle.loads(pickle.dumps(layer)).weight)


def hooks(torch, log):
    nn = torch.nn
    layer, said = nn.Identity(), []
    x = torch.tensor([1.0, 2.0])
    first = layer.register_forward_hook(lambda m, args, out: said.append(("a", len(args))))
    second = layer.register_forward_hook(lambda m, args, kwargs, out: out + 1, with_kwargs=True)
    third = layer.register_forward_hook(lambda m, args, out: said.append(("first", out.tolist())), prepend=True)
    pre = layer.register_forward_pre_hook(lambda m, args: args[0] * 10)
    log(lambda: layer(x), lambda: said)
    pre.remove()
    second.remove()
    second.remove()
    log(lambda: layer(x), lambda: said)
    first.remove()
    third.remove()
    log(lambda: layer(x), lambda: said)

    class Adds(nn.Module):
        def forward(self, x, other=1):
            return x + other

    adds = Adds()
    pre = adds.register_forward_pre_hook(lambda m, args, kwargs: (args, {"other": 5}), with_kwargs=True)
    log(lambda: adds(x, other=2))
    pre.remove()
    pre = adds.register_forward_pre_hook(lambda m, args, kwargs: 3, with_kwargs=True)
    log(lambda: adds(x))
    pre.remove()
    pre = adds.register_forward_pre_hook(lambda m, args: (args[0], 7))
    log(lambda: adds(x))
    with adds.register_forward_hook(lambda m, args, out: -out):
        log(lambda: adds(x))
    log(lambda: adds(x))
    always = adds.register_forward_hook(lambda m, args, out: said.append(out), always_call=True)
    log(lambda: adds("no"), lambda: said[-1], lambda: always.remove())


def backward_hooks(torch, log):
    nn = torch.nn
    net, said = nn.Sequential(nn.Linear(2, 3), nn.Tanh(), nn.Linear(3, 1)), []
    numbered(net, torch)

    def note(name):
        return lambda module, grad_input, grad_output: said.append((name, [g if g is None else [round(v, 9) for v in g.flatten().tolist()]
                                                                           for g in (*grad_input, *grad_output)]))

    for i, layer in enumerate(net):
        layer.register_full_backward_hook(note(i))
    x = torch.tensor([[0.5, -1.0]])
    log(lambda: net(x).sum().backward(), lambda: said)
    said.clear()
    x.requires_grad_()
    net(x).sum().backward()
    log(lambda: said, lambda: x.grad)
    scale = net[1].register_full_backward_hook(lambda module, grad_input, grad_output: (grad_input[0] * 10,))
    x.grad = None
    net(x).sum().backward()
    log(lambda: x.grad)
    scale.remove()
    before = net[1].register_full_backward_pre_hook(lambda module, grad_output: (grad_output[0] * 100,))
    x.grad = None
    net(x).sum().backward()
    log(lambda: x.grad, lambda: before.remove(), lambda: net(x).grad_fn.name())


def inheritance(torch, log):
    class Mixin:
        def __init__(self, *args, **kwargs):
            super().__init__(*args, **kwargs)
            self.mixed = (args, kwargs)

    class Before(Mixin, torch.nn.Module):
        pass

    class After(torch.nn.Module, Mixin):
        pass

    log(lambda: Before().mixed, lambda: After().mixed, lambda: Before(1), lambda: After(1, b=2), lambda: After(1))
    After.call_super_init = True
    log(lambda: After().mixed, lambda: After(1, b=2))

    class Renames(torch.nn.Module):
        def register_buffer(self, name, value):
            super().register_buffer(name, value, True)

    module = Renames()
    module.b = torch.nn.Buffer(torch.ones(1))
    module.b = torch.zeros(1)
    log(lambda: module.b, lambda: list(module.state_dict()))


def replacing(torch, log):
    nn, module = torch.nn, torch.nn.Module()
    module.name = 5
    log(lambda: setattr(module, "name", nn.Buffer(torch.ones(1))), lambda: module.register_parameter("name", nn.Parameter(torch.ones(1))))
    module.name = nn.Parameter(torch.ones(1))
    log(lambda: setattr(module, "name", nn.Buffer(torch.ones(1))), lambda: module.register_buffer("name", torch.ones(1)), lambda: module.name,
        lambda: module.add_module("name", nn.Tanh()), lambda: list(module.__dict__)[:1])
    log(lambda: setattr(module, "name", "text"))
    del module.name
    module.name = nn.Tanh()
    log(lambda: module.name, lambda: len(module._parameters), lambda: setattr(module, "name", torch.ones(1)),
        lambda: setattr(module, "name", nn.Buffer(torch.ones(1))))
    module.name = None
    log(lambda: module, lambda: module.name)
    module.other = nn.Buffer(torch.ones(1), persistent=False)
    module.other = torch.zeros(1)
    log(lambda: list(module.state_dict()))
    module.other = nn.Buffer(torch.ones(1))
    log(lambda: list(module.state_dict()))


def _beginning(call, text):
    """Whether a call raises a TypeError whose text begins so."""
    try:
        call()
    except TypeError as error:
        return str(error).startswith(text)


def arguments_of_to(torch, log):
    net, cpu = torch.nn.Linear(2, 2), torch.device("cpu")
    for args, kwargs in (((), {}), ((None,), {}), ((torch.float32, True), {}), ((cpu, torch.float64, True), {}), ((cpu, torch.long, True), {}),
                         ((), {"tensor": torch.ones(1, dtype=torch.float32)}), ((torch.tensor(3),), {"non_blocking": True}),
                         (("cpu",), {"copy": True}), (("cpu", None, False, True), {}), ((), {"device": None, "dtype": torch.float64}),
                         ((torch.float32,), {"memory_format": torch.channels_last})):
        log(lambda: net.to(*args, **kwargs).weight.dtype)
    for args, kwargs in (((cpu, True), {}), ((None, True), {}), (([],), {}), (({},), {"non_blocking": True}), ((cpu, torch.tensor(3)), {})):
        for x in (net, torch.ones(1)):
            log(lambda: _beginning(lambda: x.to(*args, **kwargs), "to() received an invalid combination of arguments - got ("))
    weight, bias = net.weight, net.bias
    with torch.no_grad():
        product = weight.mul(weight)
    version = weight._version
    log(lambda: net._apply(lambda t: t.add_(1.0)) is net, lambda: weight._version > version, lambda: product.requires_grad,
        lambda: net.weight is weight and net.bias is bias, lambda: net.to_empty(device="cpu").weight.shape,
        lambda: [type(m).__name__ for m in torch.nn.Sequential(net, net).modules(remove_duplicate=False)],
        lambda: torch.nn.Sequential(net)._apply(lambda t: t.to(torch.float16), recurse=False)[0].weight.dtype)


def linear_and_shape(torch, log):
    nn = torch.nn
    layer = numbered(nn.Bilinear(2, 3, 2), torch)
    x, y = torch.arange(4.0).reshape(2, 2) + 1, torch.arange(6.0).reshape(2, 3) - 2
    log.numbers(layer(x, y), numbered(nn.Bilinear(2, 3, 2, bias=False), torch)(x[0], y[0]))
    log(lambda: layer, lambda: nn.Bilinear(0, 1, 1), lambda: nn.Unflatten(1, (2, 3)), lambda: nn.Unflatten(1, [2, 3])(torch.zeros(1, 6)).shape,
        lambda: nn.Unflatten(1, 3), lambda: nn.Unflatten(1, (2, 3.0)), lambda: nn.Unflatten(0, (2, 2))(torch.zeros(5)))


def loading(torch, log):
    nn, net = torch.nn, torch.nn.Sequential(torch.nn.Linear(1, 1), torch.nn.Linear(1, 1))

    class Refuses(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("b", torch.ones(1))

        def __setattr__(self, name, value):
            if name == "b" and hasattr(self, "b"):
                raise ValueError("no other b", 3)
            super().__setattr__(name, value)

    log(lambda: Refuses().load_state_dict({"b": torch.zeros(1)}, assign=True), lambda: Refuses().load_state_dict({"b": torch.zeros(1)}))
    frozen = net[0].requires_grad_(False).weight
    given = OrderedDict((name, nn.Parameter(torch.full_like(t, 3.0))) for name, t in net.state_dict().items())
    log(lambda: net.load_state_dict(given, assign=True), lambda: net[0].weight is given["0.weight"], lambda: net[0].weight is frozen,
        lambda: [(p.requires_grad, p.tolist()) for p in net.parameters()])
    log(lambda: net.load_state_dict(OrderedDict([("0.weight", torch.ones(1, 1)), ("2.weight", torch.ones(1)), ("0.more.weight", torch.ones(1))])),
        lambda: net.load_state_dict({}, strict=False), lambda: net.load_state_dict([("0.weight", 3)]),
        lambda: nn.Sequential(nn.Identity()).load_state_dict({"0._extra_state": 3}, strict=False))


def zero_grad(torch, log):
    layer = numbered(torch.nn.Linear(1, 1), torch)
    layer(torch.ones(1, 1)).sum().backward()
    log(lambda: layer.zero_grad(set_to_none=False), lambda: layer.weight.grad, lambda: layer.zero_grad(), lambda: layer.weight.grad)
    layer(torch.ones(1, 1)).square().sum().backward(create_graph=True)
    log(lambda: layer.weight.grad.requires_grad, lambda: layer.zero_grad(set_to_none=False), lambda: layer.weight.grad)


def clipping(torch, log):
    utils = torch.nn.utils
    x, y = (torch.nn.Parameter(torch.tensor(v)) for v in ([3.0, -4.0], [[12.0]]))

    def gradients():
        x.grad, y.grad = torch.tensor([3.0, -4.0]), torch.tensor([[12.0]])
        return [x, y]

    for kind in (2.0, 1.0, float("inf"), 3):
        log.numbers(utils.clip_grad_norm_(gradients(), 2.0, kind), x.grad, y.grad)
    log.numbers(utils.clip_grad_norm_(gradients(), 100.0), x.grad, utils.get_total_norm([x.grad, y.grad]))
    log(lambda: utils.clip_grad_norm_(iter(gradients()), 1.0), lambda: utils.clip_grad_norm_(x, 1.0), lambda: utils.clip_grad_norm_([], 1.0),
        lambda: utils.clip_grad_value_(gradients(), 3.5), lambda: (x.grad, y.grad))
    x.grad = torch.tensor([float("inf"), 1.0])
    log(lambda: utils.clip_grad_norm_(x, 1.0, error_if_nonfinite=True), lambda: x.grad)
    log(lambda: utils.clip_grad_norm(y, 1.0), lambda: utils.clip_grad.clip_grad_norm_ is utils.clip_grad_norm_,
        lambda: utils.convert_parameters.parameters_to_vector is utils.parameters_to_vector)
    log(lambda: utils.parameters_to_vector([x, y]), lambda: utils.vector_to_parameters(torch.arange(3.0), [x, y]), lambda: (x, y),
        lambda: utils.vector_to_parameters(3, [x]))
