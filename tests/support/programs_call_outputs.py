"""Programs about the one node of a call with several outputs, for `sides`."""

CALLS = {
    "unbind": lambda torch, a: a.unbind(), "unbind dim": lambda torch, a: a.unbind(-1), "iteration": lambda torch, a: tuple(a),
    "split": lambda torch, a: a.split(2), "split sizes": lambda torch, a: a.split([1, 2], 1), "chunk": lambda torch, a: a.chunk(2),
    "split_with_sizes": lambda torch, a: a.split_with_sizes([2, 1]), "unsafe_split": lambda torch, a: torch.unsafe_split(a, 2),
    "unsafe_chunk": lambda torch, a: torch.unsafe_chunk(a, 2), "tensor_split": lambda torch, a: a.tensor_split(2),
    "unsafe_split_with_sizes": lambda torch, a: torch.unsafe_split_with_sizes(a, [1, 2]), "one": lambda torch, a: a.reshape(1, 9).unbind(),
    "var_mean": lambda torch, a: torch.var_mean(a, 0), "std_mean": lambda torch, a: torch.std_mean(a),
    "aminmax": lambda torch, a: torch.aminmax(a),
    "aminmax dim": lambda torch, a: torch.aminmax(a, dim=1),
    "max": lambda torch, a: a.max(0), "sort": lambda torch, a: a.sort(), "topk": lambda torch, a: a.topk(2)}
INNER = {  # calls whose node is reached in several steps, or that choose signs or have complex gradients, so that only the outputs are compared
    "eigh": lambda torch, a: torch.linalg.eigh(a), "eig": lambda torch, a: torch.linalg.eig(a),
    "svd": lambda torch, a: torch.linalg.svd(a), "qr": lambda torch, a: torch.linalg.qr(a), "wide qr": lambda torch, a: torch.linalg.qr(a[:2]),
    "lu": lambda torch, a: torch.linalg.lu(a), "lu_unpack": lambda torch, a: torch.lu_unpack(*torch.linalg.lu_factor(a)),
    "unbind_copy": lambda torch, a: torch.unbind_copy(a), "split_copy": lambda torch, a: torch.split_copy(a, 2)}


def _matrix(torch):
    return torch.tensor([[4.0, 1.0, 0.5], [1.0, 3.0, 0.25], [0.5, 0.25, 2.0]], requires_grad=True)


def _two(torch):
    x = torch.tensor([[1.0, 2.0], [3.0, 5.0]], requires_grad=True)
    return x, *torch.var_mean(x, 0)


def _seen(log, name):
    """A hook that says what it is called with, and changes nothing."""
    def hook(*given):
        log(lambda: name)
        _numbers(log, *given)

    return hook


def _numbers(log, *given):
    """Elements without their last digits, so that those that are nearly zero are equal, of tensors and tuples of them."""
    for each in given:
        tensors = each if isinstance(each, tuple) else (each,)
        log.numbers([t if t is None else [round(x, 12) for x in t.flatten().tolist()] for t in tensors])


def outputs(torch, log):
    """Names, output numbers, identity, next functions and the metadata of gradients."""
    for name, call in {**CALLS, **INNER}.items():
        found = [y for y in call(torch, _matrix(torch)) if y.requires_grad]
        node = found[0].grad_fn
        log(lambda: (name, [(y.grad_fn.name(), y.output_nr, y.grad_fn is node) for y in found]),
            lambda: [tuple(each.shape) for each in node._input_metadata],
            lambda: [(f.name(), k) for f, k in (found[-1] * 1).grad_fn.next_functions][:1])
        if name in CALLS:
            log(lambda: [(f.name(), k) for f, k in node.next_functions])


def hooks(torch, log):
    """Each hook is called once, with the gradients of all outputs."""
    for name, call in CALLS.items():
        a = _matrix(torch)
        found = [y for y in call(torch, a) if y.requires_grad]
        for k, y in enumerate(found):
            y.register_hook(_seen(log, f"{name}: output {k}"))
        found[-1].grad_fn.register_prehook(_seen(log, "pre"))
        found[0].grad_fn.register_hook(_seen(log, "post"))
        for taken in (found[:1], found[-1:], found):
            sum((abs(y) * k).sum() for k, y in enumerate(taken, 2)).backward(retain_graph=True)
            _numbers(log, a.grad)


def inner_hooks(torch, log):
    """The prehooks of a node that is reached in several steps."""
    for name, call in INNER.items():
        a = _matrix(torch)
        found = [y for y in call(torch, a) if y.requires_grad]
        found[-1].grad_fn.register_prehook(lambda given: log(lambda: (name, [g if g is None else tuple(g.shape) for g in given])))
        found[0].register_hook(lambda g: log(lambda: g if g is None else tuple(g.shape)))
        for taken in (found[:1], found[-1:], found):
            sum(abs(y * y).sum() for y in taken).backward(retain_graph=True)


def replaced(torch, log):
    """What hooks return, for each output and for all."""
    x, v, m = _two(torch)
    v.grad_fn.register_prehook(lambda g: (g[0] * 2, g[1] * 3))
    m.grad_fn.register_hook(lambda given, g: (given[0] * 10,))
    m.register_hook(lambda g: g * 5)
    v.retain_grad()
    m.retain_grad()
    (v * m).sum().backward(retain_graph=True)
    log.numbers(x.grad, v.grad, m.grad)
    log.numbers(torch.autograd.grad((v * m).sum(), [m, x, v]))
    for hook in (lambda g: g[0], lambda g: g[:1], lambda g: (torch.ones(3), g[1]), lambda g: (None, g[1]), lambda g: (None, None)):
        x, v, m = _two(torch)
        v.grad_fn.register_prehook(hook)
        log(lambda: (v + m).sum().backward())
        log(lambda: x.grad)
    for change in (lambda v, m: v.grad_fn.register_prehook(lambda g: (torch.ones(2), g[1])), lambda v, m: v.register_hook(lambda g: torch.ones(2)),
                   lambda v, m: v.grad_fn.register_hook(lambda given, g: (None,)),
                   lambda v, m: v.grad_fn.register_hook(lambda given, g: given + given)):
        x, v, m = _two(torch)
        change(v, m)
        log(lambda: m.sum().backward())
        log(lambda: x.grad)


def undefined(torch, log):
    """A hook that is called with None must return None."""
    class Nothing(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, g):
            return None

    for attach in (lambda y, z: y.register_hook(lambda g: torch.ones(2)), lambda y, z: z.grad_fn.register_hook(lambda given, g: (torch.ones(2),)),
                   lambda y, z: y.grad_fn.register_prehook(lambda g: (torch.ones(2),))):
        x = torch.ones(2, requires_grad=True)
        y = x * 3
        z = Nothing.apply(y)
        attach(y, z)
        log(lambda: z.sum().backward(), lambda: x.grad)


def twice(torch, log):
    """Hooks of the node in a pass that is recorded."""
    x, v, m = _two(torch)
    v.grad_fn.register_prehook(lambda g: tuple(h if h is None else h * h for h in g))
    m.grad_fn.register_hook(lambda given, g: (given[0] * 3,))
    (first,) = torch.autograd.grad((v ** 2).sum() + m.sin().sum(), x, create_graph=True)
    log.numbers(first.detach(), torch.autograd.grad(first.sin().sum(), x))


def edges(torch, log):
    """Places in the graph by node and output number, as inputs and outputs of a pass."""
    class Pair(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2, x * 3

        @staticmethod
        def backward(ctx, g, h):
            return 2 * g + 3 * h

    Edge, at = torch.autograd.graph.GradientEdge, torch.autograd.graph.get_gradient_edge
    x = torch.tensor([[1.0, 2.0], [3.0, 5.0]], requires_grad=True)
    for a, b in (torch.var_mean(x, 0), x.unbind(), Pair.apply(x)):
        log(lambda: at(b).node is a.grad_fn, lambda: at(b).output_nr, lambda: at(a) == at(b))
        y, first, second = (a * b * b).sum(), Edge(a.grad_fn, 0), Edge(a.grad_fn, 1)
        log.numbers(*torch.autograd.grad(y, [first, second, x], retain_graph=True), *torch.autograd.grad(y, at(b), retain_graph=True))
        log.numbers(*torch.autograd.grad([second, first], x, [torch.ones_like(b), 2 * torch.ones_like(a)], retain_graph=True))
        for mode in ("all", "any"):
            handle = torch.autograd.graph.register_multi_grad_hook((a, b, x), lambda g: log.numbers(g), mode=mode)
            y.backward(retain_graph=True)
            if mode == "all":
                b.sum().backward(retain_graph=True)
            handle.remove()


def asked(torch, log):
    """Inputs of `backward` that are outputs of one call, and anomaly mode."""
    x, v, m = _two(torch)
    v.grad_fn.register_prehook(_seen(log, "pre"))
    m.grad_fn.register_hook(_seen(log, "post"))
    y = (v.sin() * m + v).sum()
    y.backward(inputs=[m], retain_graph=True)
    log.numbers(m.grad)
    log(lambda: x.grad)
    y.backward(inputs=[m, x], retain_graph=True)
    log.numbers(m.grad, x.grad)
    log.numbers(torch.autograd.grad(y, [v, x], retain_graph=True))
    with torch.autograd.detect_anomaly(check_nan=True):
        y.backward()
    log.numbers(x.grad)


def node(torch, log):
    """What is shared by all outputs: data of a user, hooks of saved tensors, the order of leaves, and the call of the node itself."""
    x, v, m = _two(torch)
    v.grad_fn.metadata["note"] = 1
    log(lambda: m.grad_fn.metadata, lambda: m.grad_fn(torch.ones(2)), lambda: x.unbind()[1].grad_fn.name())
    log.numbers(m.grad_fn(torch.ones(2), None), m.grad_fn(torch.ones(2), torch.ones(2)))
    x.register_hook(_seen(log, "leaf"))
    z = torch.ones(2, requires_grad=True)
    older = z.exp()
    older.grad_fn.register_hook(_seen(log, "older"))
    v, m = torch.var_mean(x, 0)
    v.grad_fn.register_hook(_seen(log, "post"))
    x.register_post_accumulate_grad_hook(lambda t: log(lambda: "accumulated"))
    (v + m + older).sum().backward(retain_graph=True)
    (v + m + x.sum(0)).sum().backward(retain_graph=True)
    m.sum().backward()


def unpacked(torch, log):
    """A posthook that an unpack hook registers holds for all outputs."""
    calls = {"before": lambda x: torch.var_mean(x, 0), "after": lambda x: torch.var_mean(x, 0)[::-1]}
    for name, call in calls.items():
        x, added = torch.tensor([[1.0, 2.0], [3.0, 5.0]], requires_grad=True), []

        def unpack(t):
            if not added:
                added.append(pair[0].grad_fn.register_hook(lambda given, g: (log.numbers(g), tuple(each / 2 for each in given))[1]))
            return t

        with torch.autograd.graph.saved_tensors_hooks(lambda t: t, unpack):
            pair = call(x)
        (pair[0] + pair[1]).sum().backward()
        log(lambda: name)
        log.numbers(x.grad)
