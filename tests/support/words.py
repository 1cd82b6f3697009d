"""The words of recorded programs: functions that steps call, besides the library's. A parameter `torch` or `log` in front is given by `sides`."""

import inspect
import math
import pickle
import warnings
from collections import OrderedDict, namedtuple
from functools import partial
from types import SimpleNamespace

Pair = namedtuple("Pair", "first second")
Point = namedtuple("Point", "x y")


def words(torch, log):
    """The functions and types of this module by name, for a library and a log."""
    given = {"torch": torch, "log": log}
    found = {"Pair": Pair, "Point": Point}
    for name, function in globals().items():
        if inspect.isfunction(function) and function.__module__ == __name__:
            front = [given[name] for name in inspect.signature(function).parameters if name in given]
            found[name] = partial(function, *front) if front else function
    return found


# Tensors


def leaf(torch, *values):
    return torch.tensor(values, requires_grad=True)


def inference_tensor(torch, *values):
    with torch.inference_mode():
        return torch.tensor(values)


def quarters(torch, *shape):
    return torch.arange(float(math.prod(shape))).reshape(shape) / 4 - 1


def wave(torch, *shape, phase=0.0, requires_grad=True):
    return torch.tensor([math.sin(1.3 * i + phase) for i in range(math.prod(shape))]).reshape(shape).requires_grad_(requires_grad)


def probabilities(torch, *shape):
    return torch.tensor([(i * 7 % 11 + 0.5) / 12 for i in range(math.prod(shape))]).reshape(shape)


def matrix(torch):
    return torch.tensor([[4.0, 1.0, 0.5], [1.0, 3.0, 0.25], [0.5, 0.25, 2.0]], requires_grad=True)


def rows(torch):
    return torch.tensor([[3.0, -1.0, 2.0, 2.0], [0.5, 7.0, -4.0, 1.5], [2.0, 2.0, 9.0, -3.0]], requires_grad=True)


def var_mean(torch):
    """A matrix, and the two outputs of one node."""
    x = torch.tensor([[1.0, 2.0], [3.0, 5.0]], requires_grad=True)
    return x, *torch.var_mean(x, 0)


def valued(log, y):
    """The elements of a tensor, and its dtype."""
    log.numbers([y, str(y.dtype)])


# Derivatives


def derived(torch, log, call):
    """What a call gives of a leaf, and the gradient of a weighted sum of its first floating-point part."""
    a = rows(torch)
    log(lambda: call(a))
    try:
        y = call(a)
    except Exception:
        y = ()
    y = next((part for part in (y if isinstance(y, (tuple, list)) else (y,)) if part.requires_grad), None)
    if y is None:
        log.numbers("no gradient")
    else:
        weights = torch.tensor([math.cos(k) for k in range(y.numel())], dtype=y.dtype).reshape(y.shape)
        (y * weights).sum().backward()
        log.numbers(a.grad + torch.zeros(3, 4))  # torch gives some zeros without memory


def differentiated(torch, log, call, *inputs, twice=True):
    """Value, name of the node, gradients, and, if `twice`, the gradients of their squares' sum."""
    y = call(*inputs)
    total = (y * torch.cos(torch.arange(float(y.numel())).reshape(y.shape))).sum()
    gradients = torch.autograd.grad(total, inputs, create_graph=True)
    log.numbers([y.grad_fn.name(), list(y.shape)], y, *gradients)
    if twice:
        log.numbers(*torch.autograd.grad(sum((g * g).sum() for g in gradients), inputs))


# Hooks


def noting(torch, log):
    """A pack and an unpack hook that say what they see, and change nothing."""
    def pack(x):
        node = x.grad_fn
        log(lambda: ("pack", x.tolist(), x.requires_grad, x.is_leaf, node and node.name().rstrip("01"), torch.is_grad_enabled()))
        return x

    def unpack(x):
        log(lambda: ("unpack", x.tolist(), torch.is_grad_enabled()))
        return x

    return pack, unpack


def rounded(log, *given):
    """Elements without their last digits, so that those that are nearly zero are equal, of tensors and tuples of them."""
    for each in given:
        tensors = each if isinstance(each, tuple) else (each,)
        log.numbers([t if t is None else [round(x, 12) for x in t.flatten().tolist()] for t in tensors])


def telling(log, name):
    """A hook that says what it is called with, and changes nothing."""
    def hook(*given):
        log(lambda: name)
        rounded(log, *given)

    return hook


def saying(log, name, answer=None):
    """A hook that notes what it sees, and returns what `answer` makes of it."""
    def hook(grad):
        log(lambda: (name, grad))
        return None if answer is None else answer(grad)

    return hook


def noted(said, name, result=None):
    """A hook that notes its name, with the texts of its arguments after the module, and returns `result`."""
    def hook(module, *args):
        said.append((name, *(repr(dict(a) if isinstance(a, OrderedDict) else a) for a in args)))  # the repr of an OrderedDict depends on Python
        return result
    return hook


def drained(said):
    found = list(said)
    said.clear()
    return found


def called(module, args, *rest):
    """A hook that can be pickled."""


# Functions


def function_of(torch, name, forward, backward):
    return type(name, (torch.autograd.Function,), {"forward": staticmethod(forward), "backward": staticmethod(backward)})


def scaled(torch):
    """A Function of a tensor and a number."""
    def forward(ctx, x, factor):
        ctx.factor = factor
        return x * factor

    return function_of(torch, "Scaled", forward, lambda ctx, grad: (grad * ctx.factor, None))


def product(torch):
    """A Function of two tensors that saves both."""
    def forward(ctx, x, y):
        ctx.save_for_backward(x, y)
        return x * y

    def backward(ctx, grad):
        x, y = ctx.saved_tensors
        return grad * y, grad * x

    return function_of(torch, "Product", forward, backward)


def answering(torch, answer, count=1):
    """A Function of one tensor (the sum with a constant, `count` times) whose backward returns what `answer` says."""
    def forward(ctx, x, *rest):
        out = tuple(x + i for i in range(count))
        return out if count > 1 else out[0]

    return function_of(torch, "Answering", forward, lambda ctx, *grads: answer(ctx, *grads))


def dirty(torch, mark=True, returned=True):
    """A Function that writes into its input."""
    def forward(ctx, x):
        x.mul_(2)
        if mark:
            ctx.mark_dirty(x)
        return x if returned else x + 0

    return function_of(torch, "Dirty", forward, lambda ctx, grad: grad * 2)


# Modules


def numbered(torch, module):
    """Give every parameter of a module numbers that are the same everywhere."""
    count = 0
    with torch.no_grad():
        for parameter in module.parameters():
            n = parameter.numel()
            parameter.copy_(torch.tensor([math.sin(count + i) for i in range(n)]).reshape(parameter.shape))
            count += n
    return module


def module_of(torch, forward):
    return type("Named", (torch.nn.Module,), {"forward": forward})()


def small_net(torch):
    """A module with a part, a parameter, two buffers and two attributes that are None."""
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

    return numbered(torch, Net())


def parametrizations(torch):
    """A symmetric matrix of its upper triangle, twice a tensor, and a sum of two."""
    symmetric = {"forward": lambda self, x: x.triu() + x.triu(1).T, "right_inverse": lambda self, x: x.triu()}
    both = {"forward": lambda self, a, b: a + b, "right_inverse": lambda self, x: (x / 4, 3 * x / 4)}
    return [type(name, (torch.nn.Module,), body)() for name, body in (
        ("Symmetric", symmetric), ("Doubled", {"forward": lambda self, x: 2 * x}), ("Sum", both))]


def returning(torch, value=None, inverse=None):
    """A parametrization that gives a value, with a right inverse that gives another."""
    body = {"forward": lambda self, *x: x[0] if value is None else value}
    if inverse is not None:
        body["right_inverse"] = lambda self, x: inverse(x)
    return type("Given", (torch.nn.Module,), body)()


# Optimizers and schedules


def train(torch, log, make, dtype="float64"):
    """The parameters of a small problem after each of twelve steps, and the state."""
    p = torch.nn.Parameter(torch.tensor([1.5, -0.3, 2.0], dtype=getattr(torch, dtype)))
    q = torch.nn.Parameter(torch.tensor(0.7, dtype=getattr(torch, dtype)))
    unused = torch.nn.Parameter(torch.ones(2))
    optimizer = make([p, q, unused])
    for _ in range(12):
        optimizer.zero_grad()
        loss = (p * p * p * q).sum() + (q * q * p[0])
        loss.backward()
        optimizer.step()
        log.numbers(p, q)
    log.numbers({i: dict(optimizer.state[x]) for i, x in enumerate([p, q, unused]) if x in optimizer.state})
    log(lambda: [(x._version > 0, x.requires_grad, x.is_leaf) for x in (p, q, unused)])
    log(lambda: optimizer)


def in_order(state):
    """A dictionary, and those in lists in it, by their keys."""
    if isinstance(state, dict):
        return {key: in_order(state[key]) for key in sorted(state)}
    return [in_order(each) for each in state] if isinstance(state, list) else state


def two_rates(torch, kind="SGD", rates=(0.5, 2.0), **options):
    """An optimizer with a group for each rate."""
    groups = [{"params": [torch.nn.Parameter(torch.ones(1))], "lr": rate} for rate in rates]
    return getattr(torch.optim, kind)(groups, **({"momentum": 0.9} if kind == "SGD" else {}), **options)


def follow(torch, log, make, epochs=14, **options):
    """The learning rates and other options in each epoch, and a schedule that goes on from a saved state."""
    optimizer, scheduler = scheduled(torch, make, options)
    for epoch in range(epochs):
        log.numbers(scheduler.get_last_lr(), [[group["lr"], group.get("betas", group.get("momentum"))] for group in optimizer.param_groups])
        optimizer.step()
        scheduler.step()
        if epoch == epochs // 2:
            saved = pickle.loads(pickle.dumps(scheduler.state_dict())), optimizer.state_dict()
            log(partial(sorted, saved[0]))
    optimizer, scheduler = scheduled(torch, make, options)
    scheduler.load_state_dict(saved[0])
    optimizer.load_state_dict(saved[1])
    optimizer.step()
    for _ in range(3):
        scheduler.step()
        log.numbers(scheduler.get_last_lr(), [group["lr"] for group in optimizer.param_groups])


def scheduled(torch, make, options):
    optimizer = two_rates(torch, **options)
    with warnings.catch_warnings():  # a sequence whose first member is a sequence steps that in the constructor
        warnings.simplefilter("ignore")
        return optimizer, make(optimizer)


# Data


def data_sets(torch):
    """Data sets with and without a length, that can be indexed or only iterated, one broken and one shared by workers."""
    data = torch.utils.data

    class Five(data.Dataset):
        def __len__(self):
            return 5

        def __getitem__(self, i):
            return i

    class Stream(data.IterableDataset):
        def __iter__(self):
            return iter(range(5))

    class Counted(Stream):
        def __len__(self):
            return 5

    class Unmeasured(data.Dataset):
        def __getitem__(self, i):
            return i

    class Broken(Five):
        def __getitem__(self, i):
            if i == 2:
                raise ValueError("a broken example")
            return i

    class Shared(data.IterableDataset):
        def __iter__(self):
            info = data.get_worker_info()
            return iter(range(7)) if info is None else iter(range(info.id, 7, info.num_workers))

    tensors = data.TensorDataset(torch.arange(6).reshape(3, 2), torch.arange(3))
    return SimpleNamespace(five=Five(), stream=Stream(), counted=Counted(), unmeasured=Unmeasured(), broken=Broken(), tensors=tensors,
                           shared=Shared())
