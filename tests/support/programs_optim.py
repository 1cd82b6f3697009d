"""Programs with optimizers, for `sides`. They were recorded without fused multiplication (ATEN_CPU_CAPABILITY=default): NumPy has none either."""

import copy
import pickle

from tests.support.sides import numbered

STEPS = 12


def _train(torch, log, make, dtype="float64"):
    """The parameters of a small problem and the state after each of some steps."""
    p = torch.nn.Parameter(torch.tensor([1.5, -0.3, 2.0], dtype=getattr(torch, dtype)))
    q = torch.nn.Parameter(torch.tensor(0.7, dtype=getattr(torch, dtype)))
    unused = torch.nn.Parameter(torch.ones(2))
    optimizer = make([p, q, unused])
    for _ in range(STEPS):
        optimizer.zero_grad()
        loss = (p * p * p * q).sum() + (q * q * p[0])
        loss.backward()
        optimizer.step()
        log.numbers(p, q)
    log.numbers({i: dict(optimizer.state[x]) for i, x in enumerate([p, q, unused]) if x in optimizer.state})
    log(lambda: [(x._version > 0, x.requires_grad, x.is_leaf) for x in (p, q, unused)], lambda: optimizer)


def sgd(torch, log):
    for options in ({}, {"momentum": 0.9}, {"momentum": 0.9, "dampening": 0.5}, {"momentum": 0.9, "nesterov": True}, {"weight_decay": 0.1},
                    {"momentum": 0.8, "weight_decay": 0.05, "nesterov": True}, {"maximize": True, "momentum": 0.5}):
        _train(torch, log, lambda params: torch.optim.SGD(params, lr=0.01, **options))
    _train(torch, log, lambda params: torch.optim.SGD(params), "float32")
    _train(torch, log, lambda params: torch.optim.SGD(params, torch.tensor(0.02), momentum=0.9, weight_decay=0.01), "float32")


def adam(torch, log):
    for options in ({}, {"betas": (0.8, 0.99)}, {"weight_decay": 0.1}, {"amsgrad": True}, {"maximize": True, "eps": 1e-3}, {"betas": (0.3, 0.5)},
                    {"decoupled_weight_decay": True, "weight_decay": 0.1}, {"lr": 0.1, "betas": (0.0, 0.0)}):
        _train(torch, log, lambda params: torch.optim.Adam(params, **options))
    _train(torch, log, lambda params: torch.optim.Adam(params, lr=torch.tensor(0.01)))


def adam_w(torch, log):
    for options in ({}, {"weight_decay": 0.5, "amsgrad": True}, {"weight_decay": 0.0}, {"maximize": True}):
        _train(torch, log, lambda params: torch.optim.AdamW(params, lr=0.05, **options))


def single_precision(torch, log):
    _train(torch, log, lambda params: torch.optim.Adam(params, lr=0.01), "float32")
    _train(torch, log, lambda params: torch.optim.AdamW(params, lr=0.01), "float32")


def complex_numbers(torch, log):
    for make in (lambda params: torch.optim.SGD(params, lr=0.1, momentum=0.9), lambda params: torch.optim.Adam(params, lr=0.1, amsgrad=True)):
        z = torch.nn.Parameter(torch.tensor([1 + 2j, -0.5j]))
        optimizer = make([z])
        for _ in range(3):
            optimizer.zero_grad()
            z.abs().square().sum().backward()
            optimizer.step()
            log.numbers([part for c in z.tolist() for part in (c.real, c.imag)])
        log(lambda: [t.dtype for t in optimizer.state[z].values()])


def network(torch, log):
    nn = torch.nn
    x = torch.linspace(-1, 1, 8).reshape(4, 2)
    y = torch.tensor([0, 1, 1, 0])
    for make in (lambda params: torch.optim.SGD(params, lr=0.5, momentum=0.9), lambda params: torch.optim.Adam(params, lr=0.05)):
        net = numbered(nn.Sequential(nn.Linear(2, 4), nn.Tanh(), nn.Linear(4, 2)), torch)
        optimizer = make(net.parameters())
        losses = []
        for _ in range(20):
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(net(x), y)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        log.numbers(losses, *net.parameters())


def groups(torch, log):
    optim = torch.optim
    a, b, c = (torch.nn.Parameter(torch.tensor([float(i)])) for i in range(3))
    optimizer = optim.SGD([{"params": [a]}, {"params": b, "lr": 0.5}], lr=0.1, momentum=0.9)
    log(lambda: optimizer, lambda: [len(group["params"]) for group in optimizer.param_groups], lambda: list(optimizer.param_groups[0]),
        lambda: optimizer.add_param_group({"params": [c], "weight_decay": 1.0}), lambda: optimizer, lambda: optimizer.state_dict(),
        lambda: optimizer.defaults)
    for p in (a, b, c):
        p.grad = torch.ones(1)
    log(lambda: optimizer.step(), lambda: (a, b, c), lambda: optimizer.state_dict())
    optimizer.param_groups[1]["lr"] = 0.0
    log(lambda: optimizer.step(), lambda: (a, b, c))
    named = optim.SGD([("a", a), ("b", b)], lr=0.1)
    log(lambda: named.param_groups[0]["param_names"], lambda: named.state_dict(), lambda: named.add_param_group({"params": [c]}),
        lambda: optim.SGD([("a", a), b]))


def errors(torch, log):
    optim = torch.optim
    a, b = torch.nn.Parameter(torch.ones(1)), torch.nn.Parameter(torch.ones(1))
    for make in (optim.SGD, optim.Adam, optim.AdamW):
        log(lambda: make(a), lambda: make([]), lambda: make([3]), lambda: make([a * 2]), lambda: make([{"params": {a}}]), lambda: make([a, a]),
            lambda: make([{"params": [a]}, {"params": [a]}]), lambda: make([a], lr=-1.0), lambda: make([a], weight_decay=-1.0),
            lambda: make([a], lr=torch.ones(2)), lambda: make([a]).add_param_group(3),
            lambda: make([a]).add_param_group({"params": a}), lambda: make([a], fused=True, foreach=True),
            lambda: make([a], fused=True, differentiable=True), lambda: make([{"params": a}, 3]), lambda: make(3))
    log(lambda: optim.SGD([a], momentum=-1.0), lambda: optim.SGD([a], nesterov=True),
        lambda: optim.SGD([a], momentum=0.9, dampening=1.0, nesterov=True), lambda: optim.Adam([a], eps=-1.0),
        lambda: optim.Adam([a], betas=(1.0, 0.9)), lambda: optim.Adam([a], betas=(0.9, -0.1)))
    one, two = optim.SGD([a, b], lr=0.1), optim.SGD([{"params": [a]}, {"params": [b]}], lr=0.1)
    log(lambda: one.load_state_dict(two.state_dict()), lambda: one.load_state_dict(optim.SGD([a], lr=0.1).state_dict()))


def errors_of_the_others(torch, log):
    optim = torch.optim
    a, z = torch.nn.Parameter(torch.ones(2, 2)), torch.nn.Parameter(torch.ones(2, 2, dtype=torch.complex128))
    wrong = {"lr": -1.0, "eps": -1.0, "weight_decay": -0.5, "momentum": -1.0, "alpha": -2.0, "lr_decay": -1.0, "initial_accumulator_value": -3.0,
             "rho": 1.5, "betas": (0.5, 1.0), "momentum_decay": -1.0, "etas": (1.0, 0.5), "beta2_decay": 1.0, "d": 0.5,
             "adjust_lr_fn": "other"}
    for make, names in ((optim.RMSprop, "lr eps weight_decay momentum alpha"),
                        (optim.Adagrad, "lr lr_decay weight_decay initial_accumulator_value eps"),
                        (optim.Adadelta, "lr rho eps weight_decay"), (optim.Adamax, "lr eps betas weight_decay"),
                        (optim.NAdam, "lr eps betas weight_decay momentum_decay"), (optim.RAdam, "lr eps betas weight_decay"),
                        (optim.ASGD, "lr weight_decay"), (optim.Rprop, "lr etas"), (optim.LBFGS, "lr"),
                        (optim.Adafactor, "lr beta2_decay weight_decay d"), (optim.Muon, "lr momentum weight_decay adjust_lr_fn")):
        log(lambda: make([a]), lambda: make([a], lr=torch.ones(2)), *(lambda name=name: make([a], **{name: wrong[name]}) for name in names.split()))
    z.grad = torch.ones(2, 2, dtype=torch.complex128)
    log(lambda: optim.Adafactor([z], eps=(-1.0, 1.0)), lambda: optim.Adafactor([z], eps=(None, -1.0)), lambda: optim.Adafactor([z]).step(),
        lambda: optim.Muon([z]).step(), lambda: optim.Muon([torch.nn.Parameter(torch.ones(3))]),
        lambda: optim.LBFGS([{"params": [a]}, {"params": [z]}]), lambda: optim.LBFGS([a]).step(),
        lambda: optim.Adagrad([a], fused=True, foreach=True))


def hooks_of_the_state(torch, log):
    a = torch.nn.Parameter(torch.ones(1))
    optimizer, said = torch.optim.SGD([a], lr=0.5, momentum=0.9), []
    handles = [optimizer.register_state_dict_pre_hook(lambda o: said.append("saving")),
               optimizer.register_state_dict_post_hook(lambda o, saved: {**saved, "more": 1}),
               optimizer.register_state_dict_post_hook(lambda o, saved: said.append(list(saved)), prepend=True),
               optimizer.register_load_state_dict_pre_hook(lambda o, saved: {**saved, "param_groups": [{**saved["param_groups"][0], "lr": 7.0}]}),
               optimizer.register_load_state_dict_post_hook(lambda o: said.append("loaded"))]
    saved = optimizer.state_dict()
    log(lambda: saved, lambda: optimizer.load_state_dict(saved), lambda: optimizer, lambda: said, lambda: [handle.remove() for handle in handles],
        lambda: optimizer.state_dict(), lambda: optimizer.load_state_dict(saved), lambda: optimizer)


def swapping(torch, log):
    swap = torch.optim.swap_in_optimizer_params_and_state
    a, b, c = (torch.nn.Parameter(torch.tensor([float(i)])) for i in range(3))
    optimizer = torch.optim.SGD([{"params": [a]}, {"params": [b], "lr": 0.5}], lr=0.1, momentum=0.9)
    log(lambda: swap(optimizer, {}, {}).__enter__())
    a.grad = b.grad = torch.ones(1)
    optimizer.step()
    kept, other = optimizer.state_dict(), torch.optim.SGD([{"params": [a]}, {"params": [b]}], lr=2.0, momentum=0.5).state_dict()
    others = {name: torch.nn.Parameter(torch.tensor([7.0])) for name in "ab"}
    for p in others.values():
        p.grad = torch.ones(1)
    with swap(optimizer, others, other):
        optimizer.step()
        log(lambda: optimizer.state_dict(), lambda: others, lambda: (a, b))
    log(lambda: optimizer.state_dict() == kept, lambda: optimizer.param_groups[0]["params"][0] is a, lambda: other)
    other_groups = other["param_groups"]
    for params, given in (
            (others, 3), (others, {"state": [], "param_groups": other_groups}), (others, {"state": {}, "param_groups": 4}),
            (others, {"state": {}, "param_groups": other_groups[:1]}), (others, {"state": {}, "param_groups": [1, 2]}),
            (others, {"state": {}, "param_groups": optimizer.param_groups}), (others, {"state": {a: {}}, "param_groups": other_groups}),
            (others, {"state": {0: 1}, "param_groups": other_groups}), (others, {"state": {5: {}}, "param_groups": other_groups}),
            (others, {"state": {}, "param_groups": [{**other_groups[0], "params": [0, 1]}, other_groups[1]]}),
            (others, {"state": {}, "param_groups": [{**other_groups[0], "more": 1}, other_groups[1]]}), ({"a": c}, other)):
        log(lambda: swap(optimizer, params, given).__enter__())


def closures_and_hooks(torch, log):
    a = torch.nn.Parameter(torch.ones(1))
    optimizer, said = torch.optim.SGD([a], lr=0.1), []

    def closure():
        optimizer.zero_grad()
        loss = (a * a).sum()
        loss.backward()
        return loss

    log(lambda: optimizer.step(closure), lambda: a, lambda: optimizer.step(), lambda: a)
    first = optimizer.register_step_pre_hook(lambda o, args, kwargs: said.append(("pre", o is optimizer, len(args), list(kwargs))))
    second = optimizer.register_step_post_hook(lambda o, args, kwargs: said.append(("post", len(args), list(kwargs))))
    with torch.no_grad():
        log(lambda: optimizer.step(closure), lambda: optimizer.step(closure=closure), lambda: said)
    first.remove()
    third = optimizer.register_step_pre_hook(lambda o, args, kwargs: (args[:1], {}))
    log(lambda: optimizer.step(closure), lambda: said, lambda: (second.remove(), third.remove()), lambda: optimizer.step(), lambda: len(said))


def zero_grad(torch, log):
    a = torch.nn.Parameter(torch.ones(2))
    optimizer = torch.optim.SGD([a], lr=0.1)
    a.sum().backward()
    kept = a.grad
    log(lambda: optimizer.zero_grad(set_to_none=False), lambda: (a.grad, a.grad is kept), lambda: optimizer.zero_grad(), lambda: a.grad)


def state(torch, log):
    optim = torch.optim
    a, b = torch.nn.Parameter(torch.ones(2)), torch.nn.Parameter(torch.zeros(1))
    for make in (lambda p: optim.SGD(p, lr=0.1, momentum=0.5), lambda p: optim.Adam(p, lr=0.1, amsgrad=True)):
        optimizer = make([a, b])
        a.grad, b.grad = torch.tensor([1.0, 2.0]), None
        optimizer.step()
        saved = optimizer.state_dict()
        log(lambda: saved, lambda: saved["state"][0].keys())
        optimizer.step()
        log(lambda: saved)
        other = make([torch.nn.Parameter(torch.ones(2, dtype=torch.float32)), torch.nn.Parameter(torch.zeros(1))])
        log(lambda: other.load_state_dict(saved), lambda: other.state_dict(), lambda: [t.dtype for t in other.state_dict()["state"][0].values()])
        restored = pickle.loads(pickle.dumps(optimizer))
        log(lambda: restored, lambda: restored.state_dict(), lambda: copy.deepcopy(optimizer).state_dict())


def memory(torch, log):
    base = torch.arange(6.0).reshape(2, 3)
    p = torch.nn.Parameter(base[:, 1])
    view = p.detach()
    optimizer = torch.optim.SGD([p], lr=1.0)
    y = (p * p).sum()
    y.backward(retain_graph=True)
    address = p.data_ptr()
    log(lambda: optimizer.step(), lambda: (base, view, p), lambda: p.data_ptr() == address, lambda: type(p).__name__)
    try:
        y.backward()
    except RuntimeError as error:
        log.said.append("modified by an inplace operation" in str(error) and "is at version 1; expected version 0" in str(error))


def own(torch, log):
    class Steepest(torch.optim.Optimizer):
        def __init__(self, params, lr=0.5):
            super().__init__(params, {"lr": lr})

        @torch.no_grad()
        def step(self, closure=None):
            for group in self.param_groups:
                for p in group["params"]:
                    p.add_(p.grad.sign(), alpha=-group["lr"])
                    self.state[p]["n"] = self.state[p].get("n", 0) + 1

    a = torch.nn.Parameter(torch.tensor([1.0, -2.0]))
    optimizer = Steepest([a])
    a.grad = torch.tensor([3.0, -4.0])
    said = []
    optimizer.register_step_post_hook(lambda *args: said.append(1))
    log(lambda: optimizer.step(), lambda: a, lambda: optimizer, lambda: optimizer.state_dict(), lambda: said)

