"""Programs about saved tensors that hooks keep, hooks for several gradients and places in the graph, for `sides`."""


def _leaf(torch, *values):
    return torch.tensor(values, requires_grad=True)


def _noting(torch, log):
    """A pack and an unpack hook that say what they see, and change nothing."""
    def pack(x):
        node = x.grad_fn
        log(lambda: ("pack", x.tolist(), x.requires_grad, x.is_leaf, node and node.name().rstrip("01"), torch.is_grad_enabled()))
        return x

    def unpack(x):
        log(lambda: ("unpack", x.tolist(), torch.is_grad_enabled()))
        return x

    return pack, unpack


def order(torch, log):
    """Which tensors are kept, in which order, and when they are read."""
    calls = [lambda a, b: a * b, lambda a, b: a * a, lambda a, b: a * b.detach(), lambda a, b: a ** b, lambda a, b: a ** 2,
             lambda a, b: (a * 2).exp(), lambda a, b: (a * 2).exp().sin().pow(2), lambda a, b: a.sqrt(), lambda a, b: a.atan2(b),
             lambda a, b: a + b, lambda a, b: a.sum(),
             lambda a, b: a.view(-1), lambda a, b: a / 3, lambda a, b: a[0], lambda a, b: -a, lambda a, b: a.log(), lambda a, b: a.prod(),
             lambda a, b: torch.cat([a, b]), lambda a, b: a.mean(), lambda a, b: a.logaddexp(b), lambda a, b: a.abs()]
    for call in calls:
        a, b = _leaf(torch, 2.0), _leaf(torch, 3.0)
        with torch.autograd.graph.saved_tensors_hooks(*_noting(torch, log)):
            y = call(a, b)
        log(lambda: "recorded")
        y.sum().backward()
        log.numbers(a.grad)


def nothing(torch, log):
    """What saves nothing calls no hook."""
    with torch.autograd.graph.saved_tensors_hooks(*_noting(torch, log)):
        with torch.no_grad():
            _leaf(torch, 2.0) * _leaf(torch, 2.0)
        torch.ones(3) * torch.ones(3)
        log(lambda: "nothing")


def some(torch, log):
    """A backward reads all that a node saved, also for one of its inputs."""
    a, b = _leaf(torch, 2.0), _leaf(torch, 3.0)
    with torch.autograd.graph.saved_tensors_hooks(*_noting(torch, log)):
        y = a * b
    log(lambda: torch.autograd.grad(y, a))


def nested(torch, log):
    hooks, a = torch.autograd.graph.saved_tensors_hooks, _leaf(torch, 2.0)
    with hooks(lambda x: 10 * x, lambda x: x):
        with hooks(lambda x: 3 * x, lambda x: x):
            inner = a * a
        outer = a * a
    plain = a * a
    for y in inner, outer, plain:
        log(lambda y=y: torch.autograd.grad(y, a))


def replaced(torch, log):
    """What the unpack hook returns is what the backward uses."""
    hooks = torch.autograd.graph.saved_tensors_hooks

    def gradient(pack, unpack):
        a = _leaf(torch, 2.0)
        with hooks(pack, unpack):
            y = a * a
        y.sum().backward()
        return a.grad

    def fail(x):
        raise ValueError("no")

    log(lambda: gradient(lambda x: x * 10, lambda x: x), lambda: gradient(lambda x: None, lambda x: torch.ones(3)),
        lambda: gradient(lambda x: None, lambda x: torch.ones(1, dtype=torch.float32)), lambda: gradient(lambda x: x, lambda x: 3.0),
        lambda: gradient(lambda x: x.mul_(2), lambda x: x), lambda: gradient(fail, lambda x: x), lambda: gradient(lambda x: x, fail),
        lambda: gradient(lambda x: x.detach().numpy().copy(), torch.from_numpy))


def orders(torch, log):
    """Derivatives of derivatives through hooks that lose the graph, or say what they see."""
    grad = torch.autograd.grad
    for pack, unpack in (lambda x: x.detach().clone(), lambda x: x), (lambda x: x.detach().numpy().copy(), torch.from_numpy):
        for call in lambda a: a * a * a, lambda a: a.exp(), lambda a: a.sin() ** 3, lambda a: (a * a).sqrt():
            a = _leaf(torch, 2.0)
            with torch.autograd.graph.saved_tensors_hooks(pack, unpack):
                y = call(a)
            (first,) = grad(y.sum(), a, create_graph=True)
            (second,) = grad(first.sum(), a, create_graph=True)
            log.numbers(first, second, *grad(second.sum(), a))
    a = _leaf(torch, 2.0)
    with torch.autograd.graph.saved_tensors_hooks(*_noting(torch, log)):
        y = a * a
        log(lambda: "first")
        (first,) = grad(y.sum(), a, create_graph=True)
        log(lambda: "second")
        log(lambda: grad(first.sum(), a))


def again(torch, log):
    """A retained graph is read again; a freed one is not."""
    a = _leaf(torch, 2.0)
    with torch.autograd.graph.saved_tensors_hooks(*_noting(torch, log)):
        y = a * a
    y.sum().backward(retain_graph=True)
    log(lambda: y.grad_fn._saved_self, lambda: y.grad_fn._saved_other)
    log(lambda: y.sum().backward(), lambda: y.sum().backward(), lambda: y.grad_fn._saved_self)


def written(torch, log):
    """What hooks keep is not checked for writes."""
    def gradients(pack):
        a = _leaf(torch, 2.0)
        y = a * 1
        with torch.autograd.graph.saved_tensors_hooks(pack, lambda x: x):
            z = y * y
            e = y.exp()
        y.add_(1)
        log(lambda: z.sum().backward(), lambda: a.grad)
        e.add_(1)
        log(lambda: e.sum().backward(), lambda: a.grad)

    gradients(lambda x: x)
    gradients(lambda x: x.clone())


def alone(torch, log):
    """Hooks on one saved tensor of a node."""
    a, b = _leaf(torch, 2.0), _leaf(torch, 3.0)
    y = a * b
    saved = y.grad_fn._raw_saved_self
    saved.register_hooks(lambda x: x * 5, lambda x: x)
    log(lambda: saved.register_hooks(lambda x: x, lambda x: x), lambda: y.backward(), lambda: a.grad, lambda: b.grad,
        lambda: y.grad_fn._raw_saved_other.register_hooks(lambda x: x, lambda x: x))


def custom(torch, log):
    """What a Function saves goes through the hooks, too."""
    class Product(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, y):
            out = x * y
            ctx.save_for_backward(x, y, out)
            log(lambda: "saved")
            return out

        @staticmethod
        def backward(ctx, g):
            log(lambda: "backward")
            x, y, out = ctx.saved_tensors
            log(lambda: out)
            return g * y, g * x

    a, b = _leaf(torch, 2.0), _leaf(torch, 3.0)
    with torch.autograd.graph.saved_tensors_hooks(*_noting(torch, log)):
        y = Product.apply(a, b)
    log(lambda: "applied")
    y.backward()
    log.numbers(a.grad, b.grad)


def disabled(torch, log):
    g = torch.autograd.graph

    def inside():
        with g.disable_saved_tensors_hooks("first"), g.saved_tensors_hooks(lambda x: x, lambda x: x):
            pass

    def around():
        with g.saved_tensors_hooks(lambda x: x, lambda x: x), g.disable_saved_tensors_hooks("first"):
            pass

    def twice():
        with g.disable_saved_tensors_hooks("first"), g.disable_saved_tensors_hooks("second"), g.saved_tensors_hooks(lambda x: x, lambda x: x):
            pass

    def after():
        with g.disable_saved_tensors_hooks("first"):
            with g.disable_saved_tensors_hooks("second"):
                pass
            with g.saved_tensors_hooks(lambda x: x, lambda x: x):
                pass

    log(inside, around, twice, after)
    with g.saved_tensors_hooks(lambda x: x, lambda x: x):
        log(lambda: "allowed again")


def on_cpu(torch, log):
    a = _leaf(torch, 2.0)
    for pin in False, True:
        with torch.autograd.graph.save_on_cpu(pin_memory=pin):
            y = a * a * a
        (first,) = torch.autograd.grad(y.sum(), a, create_graph=True)
        log.numbers(first, *torch.autograd.grad(first.sum(), a))


def several(torch, log):
    """A hook that waits for several gradients, or takes the first of them."""
    grad, register = torch.autograd.grad, torch.autograd.graph.register_multi_grad_hook
    for mode in "all", "any":
        a, b, c, d = (_leaf(torch, x) for x in (1.0, 2.0, 3.0, 4.0))

        def fn(grads):
            log(lambda: (grads, torch.is_grad_enabled()))
            return "nothing that is used"

        handle = register((a, b, c, d), fn, mode=mode)
        (a * b + c).sum().backward()
        (a * b + c + d).sum().backward()
        log(lambda: "some")
        (a * b * c + d).sum().backward(inputs=[b, c])
        y = (a * b * c).sum()
        y.backward(retain_graph=True)
        y.backward()
        log(lambda: "intermediate")
        y, z = a * 2, a * 3
        both = register((y, z), fn, mode=mode)
        grad((y * z).sum(), [y, z], create_graph=True)
        (y * 2).sum().backward()
        both.remove()
        handle.remove()
        (a * b).sum().backward()
        log.numbers(a.grad)
    log(lambda: register((a,), print, mode="foo"), lambda: register((a, torch.ones(1)), print), lambda: register((), print) and None)


def edges(torch, log):
    """Places in the graph in place of tensors."""
    at, grad = torch.autograd.graph.get_gradient_edge, torch.autograd.grad
    a = _leaf(torch, 1.0, 2.0)
    y = a * 2
    edge, leaf = at(y), at(a)
    log(lambda: edge.node is y.grad_fn, lambda: edge.output_nr, lambda: edge._fields, lambda: leaf.node.name(), lambda: at(torch.ones(1)),
        lambda: isinstance(edge.node, torch.autograd.graph.Node), lambda: isinstance(y, torch.autograd.graph.Node),
        lambda: at(y.unbind()[1]).output_nr, lambda: y.grad_fn._sequence_nr() < (y * 1).grad_fn._sequence_nr(), lambda: y.grad_fn.metadata)
    log(lambda: grad((y * y).sum(), [edge, leaf]), lambda: grad(at((a * 3).sum()), a), lambda: grad(edge, leaf, torch.ones(2)))
    torch.autograd.backward(at(a * 4), torch.ones(2))
    torch.autograd.backward((a * 5).sum(), inputs=[leaf])
    log(lambda: a.grad)


def versions(torch, log):
    count = torch.autograd.graph.increment_version
    a, b = torch.ones(1), torch.ones(2)
    count(a)
    count([a, b])
    log(lambda: (a._version, b._version))
    x = _leaf(torch, 1.0)
    y = x * x
    count(x)
    log(lambda: y.backward())


def mutated(torch, log):
    """Tensors that were saved and are written: by an op, in views, twice, leaves, results, `.data`, by `out=`."""
    allow = torch.autograd.graph.allow_mutation_on_saved_tensors

    def gradient(call):
        def run():
            a = _leaf(torch, 2.0, 3.0)
            with allow():
                call(a, a.clone()).sum().backward()
            return a.grad

        return run

    def op(a, b):
        y = b**2
        b.sin_()
        return y

    def twice(a, b):
        y = b**2
        b.sin_()
        z = b**3
        b.mul_(2)
        return y + z

    def result(a, b):
        y = b.exp()
        y.add_(1)
        return y

    def view(a, b):
        v = b[:1]
        y = b * b
        v.mul_(10)
        return y

    def of_view(a, b):
        v = b[:1]
        y = v * v
        b.zero_()
        return y

    def leaf(a, b):
        y = a * a
        with torch.no_grad():
            a.mul_(10)
        return y

    def data(a, b):
        y = b * b
        b.data.mul_(10)
        return y

    def out(a, b):
        c = torch.ones(2)
        y = b * c
        torch.mul(c, 7, out=c)
        return y

    def itself(a, b):
        y = b * b
        b.mul_(b)
        return y

    def item(a, b):
        y = b * b
        b[0] = 100.0
        return y

    log(*map(gradient, (op, twice, result, view, of_view, leaf, data, out, itself, item)))

    def outside():
        a = _leaf(torch, 2.0)
        with allow():
            y = a * a
        y.backward()

    def inside_itself():
        with allow(), allow():
            pass

    def before():
        a = _leaf(torch, 2.0) * 1
        y = a * a
        with allow():
            a.mul_(2)
            y.backward()

    def second():
        a = _leaf(torch, 2.0)
        with allow():
            b = a.clone()
            y = b * b * b
            b.zero_()
            (first,) = torch.autograd.grad(y, a, create_graph=True)
            return first, torch.autograd.grad(first, a)

    log(outside, inside_itself, before, second)
