"""Programs with the hooks of modules, for `sides`."""

import copy
import pickle
from collections import OrderedDict, namedtuple

from tests.support.sides import numbered

Pair = namedtuple("Pair", "first second")


def _of(torch, forward):
    """A module with a forward."""
    return type("Named", (torch.nn.Module,), {"forward": forward})()


def _noted(said, name, result=None):
    """A hook that notes its name, with the texts of its arguments after the module, and returns `result`."""
    def hook(module, *args):
        said.append((name, *(repr(dict(a) if isinstance(a, OrderedDict) else a) for a in args)))  # the repr of an OrderedDict depends on Python
        return result
    return hook


def _drained(said):
    found = list(said)
    said.clear()
    return found


def global_hooks(torch, log):
    of_all, said = torch.nn.modules.module, []
    module, x = torch.nn.Tanh(), torch.zeros(2, requires_grad=True)
    handles = [of_all.register_module_forward_pre_hook(_noted(said, "all before")), module.register_forward_pre_hook(_noted(said, "before")),
               module.register_forward_hook(_noted(said, "after")), of_all.register_module_forward_hook(_noted(said, "all after")),
               of_all.register_module_forward_hook(_noted(said, "all with kwargs"), with_kwargs=True),
               module.register_full_backward_pre_hook(_noted(said, "backward before")),
               of_all.register_module_full_backward_pre_hook(_noted(said, "all backward before")),
               module.register_full_backward_hook(_noted(said, "backward after")),
               of_all.register_module_full_backward_hook(_noted(said, "all backward after"))]
    log(lambda: module(x).sum().backward(), lambda: _drained(said))
    log(lambda: of_all.register_module_backward_hook(print), lambda: torch.nn.Identity()(torch.zeros(1)), lambda: _drained(said))
    for handle in handles:
        handle.remove()
    log(lambda: module(x).sum().backward(), lambda: _drained(said))
    with of_all.register_module_forward_pre_hook(lambda m, args: args[0] + 1), of_all.register_module_forward_hook(lambda m, args, y: -y):
        log(lambda: torch.nn.Identity()(torch.ones(1)))


def hooks_called_after_errors(torch, log):
    of_all, said = torch.nn.modules.module, []

    def forward(self, x, fail=True):
        return x / 0 if fail else x + 1

    def raises(module, *args):
        said.append(len(args))
        raise ValueError("in a hook")

    module = _of(torch, forward)
    handles = [module.register_forward_hook(_noted(said, "plain")), module.register_forward_hook(_noted(said, "always"), always_call=True),
               module.register_forward_hook(_noted(said, "with kwargs", 5), always_call=True, with_kwargs=True),
               of_all.register_module_forward_hook(_noted(said, "all", 4), always_call=True)]
    log(lambda: module(3), lambda: _drained(said), lambda: module(3, fail=False), lambda: _drained(said))
    handles.append(module.register_forward_hook(raises, always_call=True))
    log(lambda: module(3), lambda: _drained(said), lambda: module(3, fail=False), lambda: _drained(said))
    with of_all.register_module_forward_hook(raises, always_call=True), module.register_forward_pre_hook(lambda m, args: {}[3]):
        log(lambda: module(3, fail=False), lambda: _drained(said))
    for handle in handles:
        handle.remove()
    log(lambda: module(3), lambda: [len(table) for table in (module._forward_hooks, module._forward_hooks_with_kwargs,
                                                            module._forward_hooks_always_called)])


def removal_during_a_call(torch, log):
    module, said = torch.nn.Identity(), []
    handles = []
    for register in (module.register_forward_pre_hook, module.register_forward_hook):
        for i in range(2):
            n = 2 * (register == module.register_forward_hook) + i
            handles.append(register(lambda *args, n=n: (said.append(n), handles[n].remove())[1]))
    log(lambda: module(1), lambda: said, lambda: module(2), lambda: said, lambda: [len(handle.hooks_dict_ref()) for handle in handles])


def backward_hooks_of_parts(torch, log):
    said = []
    a, b = (torch.ones(2, requires_grad=True) for _ in range(2))
    module = _of(torch, lambda self, a, b, flag=None: Pair(a * 2, b * 3))
    after = module.register_full_backward_hook(_noted(said, "after"))
    before = module.register_full_backward_pre_hook(_noted(said, "before"))
    log(lambda: type(module(a, b)).__name__, lambda: module(a, b).first.sum().backward(), lambda: _drained(said),
        lambda: module(a, b, "no tensor").second.sum().backward(), lambda: _drained(said), lambda: module(a, b.detach()).second.requires_grad)
    before.remove()
    after.remove()

    def gradients(register, result):
        a.grad = b.grad = None
        with register(lambda *args: result):
            x = module(a, b)
            (x[0] + x[1]).sum().backward()
        return a.grad, b.grad

    two = torch.full((2,), 2.0)
    for result in (3, two, (two,), (two, None), [two, two], (two, torch.ones(3)), (1, 2), (two.float(), None)):
        for register in (module.register_full_backward_hook, module.register_full_backward_pre_hook):
            log(lambda: gradients(register, result))


def backward_hooks_without_gradients(torch, log):
    said = []
    for forward in (lambda self, x: {"y": x * 2}, lambda self, x: [x * 2], lambda self, x: None):
        module = _of(torch, forward)
        module.register_full_backward_hook(_noted(said, "after"))
        log(lambda: type(module(torch.ones(2, requires_grad=True))).__name__)
    layer = numbered(torch.nn.Linear(1, 1), torch)
    with layer.register_full_backward_hook(lambda *args: args[2]):
        log(lambda: layer(torch.ones(1, 1)).sum().backward())
    with layer.register_full_backward_hook(lambda *args: (None,)):
        log(lambda: layer(torch.ones(1, 1)).sum().backward(), lambda: layer.weight.grad)
    keyword = _of(torch, lambda self, *, x: x * 2)
    keyword.register_full_backward_hook(_noted(said, "after"))
    log(lambda: keyword(x=torch.ones(1, requires_grad=True)).sum().backward(), lambda: _drained(said))
    with torch.no_grad():
        log(lambda: keyword(x=torch.ones(1, requires_grad=True)).requires_grad)


def backward_hooks_and_views(torch, log):
    def forward(self, x, write):
        self.x = x
        if write:
            x += 1
        return x.clone()

    module, x = _of(torch, forward), torch.ones(3, requires_grad=True)
    module.register_full_backward_hook(_noted([], "after"))

    def written_later():
        copy = x.clone()
        module(copy, False)
        copy[0] *= 1
        return module.x + 2

    log(lambda: module(x.clone(), True), written_later, lambda: module(x, False).add_(1))


def hooks_on_the_last_node(torch, log):
    said = []
    a, b = (torch.ones(2, requires_grad=True) for _ in range(2))

    def called(forward, *args):
        module = _of(torch, forward)
        module.register_backward_hook(_noted(said, "last"))
        out = module(*args)
        while not isinstance(out, torch.Tensor):
            out = out["y"] if isinstance(out, dict) else out[0]
        out.sum().backward()
        return _drained(said)

    for forward, args in ((lambda self, x: x * 2, (a,)), (lambda self, x: (x * 2) * 3, (a,)), (lambda self, x, y: (x * 2, y * 2), (a, b)),
                          (lambda self, x: [x * 2], (a,)), (lambda self, x: {"n": 1, "y": x * 2}, (a,)), (lambda self, x: x[0] * 2, ([a],))):
        log(lambda: called(forward, *args))
    module = torch.nn.Sigmoid()
    with module.register_backward_hook(lambda module, grad_input, grad_output: grad_input[:-1]):
        log(lambda: module(a).sum().backward(), lambda: module.register_full_backward_hook(print))
    full = torch.nn.Sigmoid()
    full.register_full_backward_hook(print)
    log(lambda: full.register_backward_hook(print))


def state_hooks(torch, log):
    net, said = numbered(torch.nn.Sequential(OrderedDict(inner=torch.nn.Linear(1, 1))), torch), []
    inner = net.inner
    handles = [m.register_state_dict_pre_hook(_noted(said, "before")) for m in (net, inner)]
    handles += [m.register_state_dict_post_hook(_noted(said, "after")) for m in (net, inner)]
    log(lambda: list(net.state_dict(prefix="p.", keep_vars=True).items()), lambda: _drained(said))
    for handle in handles:
        handle.remove()
    hook = _noted(said, "returns", OrderedDict())
    with inner._register_state_dict_hook(hook):
        log(lambda: list(net.state_dict()))
    with net._register_state_dict_hook(hook):
        log(lambda: list(net.state_dict()))
    with net.register_state_dict_post_hook(hook):
        log(lambda: net.state_dict(), lambda: net._register_state_dict_hook(hook))
    log(lambda: list(net.state_dict(OrderedDict(), "q.")), lambda: list(net.state_dict(None, "q.", True).values()))


def hooks_on_loading(torch, log):
    net, said = numbered(torch.nn.Sequential(OrderedDict(inner=torch.nn.Linear(1, 1))), torch), []
    state = copy.deepcopy(net.state_dict())

    def renames(module, state_dict, prefix, metadata, strict, missing, unexpected, errors):
        said.append((type(module).__name__, list(state_dict), prefix, metadata, strict, missing, unexpected, errors))
        if prefix + "old" in state_dict:
            state_dict[prefix + "bias"] = state_dict.pop(prefix + "old")

    handles = [m.register_load_state_dict_pre_hook(renames) for m in (net, net.inner)]
    handles.append(net._register_load_state_dict_pre_hook(lambda *args: said.append(len(args))))
    old = OrderedDict([("inner.weight", torch.ones(1, 1)), ("inner.old", torch.full((1,), 7.0))])
    log(lambda: net.load_state_dict(old), lambda: _drained(said), lambda: net.inner.bias, lambda: list(old))
    for handle in handles:
        handle.remove()
    with net.inner.register_load_state_dict_post_hook(lambda module, keys: keys.missing_keys.append("m")):
        log(lambda: net.load_state_dict(state), lambda: net.load_state_dict(state, strict=False))
    with net.register_load_state_dict_post_hook(lambda module, keys: keys.unexpected_keys.clear()):
        log(lambda: net.load_state_dict(OrderedDict(state, extra=torch.ones(1))))
    with net.register_load_state_dict_post_hook(lambda module, keys: 3):
        log(lambda: net.load_state_dict(state))


def registration_hooks(torch, log):
    nn, said = torch.nn, []
    of_all = nn.modules.module

    def note(module, name, member):
        said.append((name, member is None))

    handles = [of_all.register_module_parameter_registration_hook(note), of_all.register_module_buffer_registration_hook(note),
               of_all.register_module_module_registration_hook(note)]
    net = nn.Sequential(nn.Linear(1, 1, bias=False), nn.Tanh())
    net.buffer = nn.Buffer(torch.ones(1))
    net.buffer = torch.zeros(1)
    net.buffer = None
    net.extra = nn.Identity()
    net.extra = None
    net.p = nn.Parameter(torch.ones(1))
    net.p = None
    log(lambda: said)
    for handle in handles:
        handle.remove()
    with of_all.register_module_parameter_registration_hook(lambda module, name, p: nn.Parameter(p * 10)):
        log(lambda: nn.ParameterList([torch.ones(1)])[0])
    with of_all.register_module_module_registration_hook(lambda module, name, m: nn.Identity() if name == "0" else None):
        log(lambda: nn.Sequential(nn.Tanh(), nn.Tanh()), lambda: nn.ModuleDict({"0": nn.Tanh(), "a": nn.Tanh()}))
    with of_all.register_module_buffer_registration_hook(lambda module, name, b: None if b is None else b + 1):
        log(lambda: nn.BCEWithLogitsLoss(pos_weight=torch.ones(1)).pos_weight)


def _called(module, args, *rest):
    """A hook that can be pickled."""


def copies_with_hooks(torch, log):
    layer = torch.nn.Identity()
    handle = layer.register_forward_hook(_called)
    layer.register_load_state_dict_pre_hook(_called)
    for made in (copy.deepcopy, copy.copy, lambda m: pickle.loads(pickle.dumps(m))):
        other = made(layer)
        log(lambda: (list(other._forward_hooks.values()) == [_called], len(other._load_state_dict_pre_hooks)), lambda: other.load_state_dict({}),
            lambda: other._load_state_dict_pre_hooks is layer._load_state_dict_pre_hooks)
    revived, again = pickle.loads(pickle.dumps((layer, handle)))
    log(lambda: len(revived._forward_hooks), lambda: again.remove(), lambda: len(revived._forward_hooks), lambda: len(layer._forward_hooks))
    old = torch.nn.Linear(1, 1)
    for name in ("_state_dict_pre_hooks", "_load_state_dict_post_hooks", "_forward_hooks_always_called"):
        del old.__dict__[name]
    old = pickle.loads(pickle.dumps(old))
    log(lambda: list(old.state_dict()), lambda: old.load_state_dict(old.state_dict()), lambda: old(torch.ones(1)).shape)
