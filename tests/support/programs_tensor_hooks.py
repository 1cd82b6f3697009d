"""Programs with hooks on tensors and nodes, for `sides`."""


def _leaf(torch, *numbers):
    return torch.tensor(list(numbers), requires_grad=True)


def _say(log, name, answer=None):
    """A hook that notes what it sees, and returns what `answer` makes of it."""
    def hook(grad):
        log(lambda: (name, grad))
        return None if answer is None else answer(grad)

    return hook


def on_a_tensor(torch, log):
    x = _leaf(torch, 1.0, 2.0)
    y = x * 3
    first = y.register_hook(_say(log, "first"))
    y.register_hook(_say(log, "second", lambda g: g * 10))
    y.register_hook(_say(log, "third"))
    x.register_hook(_say(log, "leaf"))
    last = x.register_hook(_say(log, "last", lambda g: g + 1))
    y.sum().backward(retain_graph=True)
    log(lambda: x.grad)
    first.remove()
    first.remove()
    last.remove()
    y.sum().backward(retain_graph=True)
    log(lambda: x.grad)
    with y.register_hook(_say(log, "with", lambda g: g * 0)) as handle:
        y.sum().backward(retain_graph=True)
    log(lambda: x.grad, lambda: type(handle).__name__)
    y.sum().backward()
    log(lambda: x.grad)


def what_may_have_one(torch, log):
    x, c = _leaf(torch, 1.0), torch.ones(1)
    y = x * 2
    for t in (c, y.detach(), torch.tensor([1]), (x > 0)):
        log(lambda: t.register_hook(lambda g: g) and 1, lambda: t.register_post_accumulate_grad_hook(lambda t: None) and 1, lambda: t.retain_grad())
    log(lambda: y.register_post_accumulate_grad_hook(lambda t: None), lambda: x.register_hook(None) and 1,
        lambda: x.register_hook(3) and 1)
    with torch.no_grad():
        z = x * 2
    log(lambda: z.register_hook(lambda g: g))


def wrong_answers(torch, log):
    class Callable:
        def __call__(self, grad):
            return "text"

    def named(grad):
        return 3.0

    answers = {"number": named, "text": Callable(), "list": lambda g: [g], "tuple": lambda g: (g,), "short": lambda g: g[:1],
               "scalar": lambda g: g.sum(),
               "row": lambda g: g[None], "single": lambda g: g.float(), "integer": lambda g: g.long(), "true": lambda g: True}
    for name, answer in answers.items():
        for target in (0, 1):
            x = _leaf(torch, 1.0, 2.0)
            y = x * 2
            (x, y)[target].register_hook(answer)
            log(lambda: (name, target), lambda: y.sum().backward(), lambda: x.grad)


def raising(torch, log):
    def fail(grad):
        raise KeyError("stop")

    x, w = _leaf(torch, 1.0), _leaf(torch, 2.0)
    y = x * w
    y.register_hook(fail)
    log(lambda: (y * 3).backward(), lambda: x.grad, lambda: w.grad, lambda: torch.is_grad_enabled())
    y = x * w
    x.register_hook(fail)
    log(lambda: (y * 3).backward(), lambda: x.grad, lambda: torch.is_grad_enabled())
    x = _leaf(torch, 1.0)
    x.register_hook(_say(log, "before", lambda g: g * 2))
    x.register_hook(fail)
    log(lambda: (x * 2).backward(), lambda: x.grad)
    x = _leaf(torch, 1.0)
    x.register_post_accumulate_grad_hook(lambda t: fail(t))
    log(lambda: (x * 2).backward(), lambda: x.grad)


def order(torch, log):
    """Hooks run newest node first; that of a leaf as soon as its gradient is complete."""
    a, b, c = _leaf(torch, 1.0), _leaf(torch, 2.0), _leaf(torch, 3.0)
    for t, name in ((a, "a"), (b, "b"), (c, "c")):
        t.register_hook(_say(log, name))

    def watched(t, name):
        t.register_hook(_say(log, name))
        return t

    u = watched(a * b, "u")
    v = watched(u + c, "v")
    w = watched(v * u, "w")
    w.backward()
    log(lambda: "second")
    p = watched(c * 2, "p")
    q = watched(a * 2, "q")
    r = watched(p + b, "r")
    s = watched(q * r, "s")
    s.backward()
    log(lambda: "third")
    x = watched(a * 2, "x")
    y = watched(x * 3, "y")
    z = watched(x + y, "z")
    (z + a).backward()
    log(lambda: "fourth")
    l1, l2 = watched(a * b, "l1"), watched(b * c, "l2")
    torch.autograd.backward([l1, l2])
    log(lambda: "fifth")
    l2, l1 = watched(b * c, "l2"), watched(a * b, "l1")
    torch.autograd.backward([l1, l2])
    log(lambda: "sixth")
    m = watched(a + a, "m")
    n = watched(m * m, "n")
    (n + m + a).backward()
    log(lambda: "seventh")
    t = watched(torch.cat([a, b, c]), "cat")
    watched(t.sum(), "sum").backward()
    log(lambda: "eighth")
    e = watched(a.exp(), "exp")
    f = watched(e.sin(), "sin")
    g = watched(b.log(), "log")
    watched(g * f, "product").backward()


def leaves_at_once(torch, log):
    """A leaf's hooks run before those of nodes that are older than its last use."""
    x, w1, w2 = _leaf(torch, 1.0), _leaf(torch, 2.0), _leaf(torch, 3.0)
    for t, name in ((x, "x"), (w1, "w1"), (w2, "w2")):
        t.register_hook(_say(log, name))
        t.register_post_accumulate_grad_hook(lambda t, name=name: log(lambda: ("done", name, t.grad)))
    h = x * w1
    h.register_hook(_say(log, "h"))
    y = h * w2
    y.register_hook(_say(log, "y"))
    y.backward()
    log(lambda: "again")
    h = x * w1
    h.register_hook(_say(log, "h"))
    (h * w2 + w1).backward()


def on_views(torch, log):
    x = _leaf(torch, 1.0, 2.0, 3.0)
    y = x * 1
    v = y[:2]
    v.register_hook(_say(log, "view"))
    y.register_hook(_say(log, "base"))
    (v * 2).sum().backward(retain_graph=True)
    y.sum().backward()
    log(lambda: x.grad)
    y = x * 1
    v = y[:2]
    v.register_hook(_say(log, "old view"))
    y.register_hook(_say(log, "old base"))
    v.mul_(5)
    v.register_hook(_say(log, "new view"))
    y.register_hook(_say(log, "new base"))
    y.sum().backward(retain_graph=True)
    (v * 3).sum().backward()
    y = x * 1
    y.register_hook(_say(log, "before"))
    y.mul_(2)
    y.register_hook(_say(log, "after"))
    y.sum().backward()
    u = (x * 1).unbind()
    u[1].register_hook(_say(log, "one"))
    (u[1] * 2).backward()
    r = x.reshape(3, 1)
    r.register_hook(_say(log, "reshaped", lambda g: g * 2))
    x.grad = None
    r.sum().backward()
    log(lambda: x.grad)


def retained(torch, log):
    x = _leaf(torch, 1.0, 2.0)
    y = x * 2
    log(lambda: y.retains_grad, lambda: x.retains_grad, lambda: y.retain_grad(), lambda: y.retain_grad(), lambda: x.retain_grad(),
        lambda: y.retains_grad, lambda: x.retains_grad)
    y.register_hook(lambda g: g * 10)
    (y * 3).sum().backward(retain_graph=True)
    log(lambda: y.grad, lambda: x.grad)
    (y * 3).sum().backward()
    log(lambda: y.grad, lambda: x.grad)
    y = x * 2
    y.register_hook(lambda g: g * 10)
    y.retain_grad()
    y.register_hook(lambda g: g + 1)
    y.sum().backward()
    log(lambda: y.grad)
    y = x * 2
    y.retain_grad()
    y.mul_(3)
    (y * 5).sum().backward()
    log(lambda: y.grad)
    y = x * 2
    y.mul_(3)
    y.retain_grad()
    y.add_(1)
    (y * 5).sum().backward()
    log(lambda: y.grad)
    y = x * 2
    v = y[:1]
    v.retain_grad()
    y.retain_grad()
    v.mul_(3)
    (y * 5).sum().backward()
    log(lambda: y.grad, lambda: v.grad)
    y = x * 2
    y.retain_grad()
    log(lambda: torch.autograd.grad(y.sum(), x), lambda: y.grad)
    y = x * 2
    y.retain_grad()
    log(lambda: torch.autograd.grad((y * y).sum(), y), lambda: y.grad)
    y = x * 2
    y.retain_grad()
    y.grad_fn.register_prehook(lambda grads: (grads[0] * 100,))
    y.sum().backward()
    log(lambda: y.grad)
    x.grad = None
    y = x * 2
    y.retain_grad()
    log(lambda: y.sum().backward(inputs=[x]), lambda: y.grad, lambda: y.requires_grad, lambda: y.grad.requires_grad)
    y = x * 2
    z = y * 3
    y.retain_grad()
    z.sum().backward()
    log(lambda: y.grad)
    y = x * 2
    y.retain_grad()
    (y * y).sum().backward(create_graph=True)
    g = y.grad
    log(lambda: g.requires_grad, lambda: torch.autograd.grad(g.sum(), x))
    x.grad = None
    u = x.unbind()
    u[0].retain_grad()
    (u[0] * 3 + u[1]).backward()
    log(lambda: u[0].grad)
    y = x * 2
    y.retain_grad()
    y = None
    (x * 2).sum().backward()
    log(lambda: x.grad)


def after_accumulation(torch, log):
    x = _leaf(torch, 1.0, 2.0)
    seen = []
    handle = x.register_post_accumulate_grad_hook(lambda t: seen.append((t is x, t.grad.tolist())))
    (x * 2).sum().backward()
    (x * 2).sum().backward()
    log(lambda: seen)
    handle.remove()
    (x * 2).sum().backward()
    log(lambda: seen, lambda: x.grad)
    x.grad = None

    def step(t):
        with torch.no_grad():
            t -= 0.1 * t.grad
        t.grad = None

    x.register_post_accumulate_grad_hook(step)
    for _ in range(3):
        (x * x).sum().backward()
        log(lambda: x.grad)
    log.numbers(x)
    w, v = _leaf(torch, 1.0), _leaf(torch, 2.0)
    w.register_hook(_say(log, "hook", lambda g: g * 2))
    w.register_post_accumulate_grad_hook(lambda t: log(lambda: ("one", t.grad)))
    w.register_post_accumulate_grad_hook(lambda t: log(lambda: ("two", t.grad, v.grad)))
    (w * v).backward()
    log(lambda: torch.autograd.grad(w * v, w))
    (w * v).backward(inputs=[w])
    (w * v).backward(inputs=[v])
    w = _leaf(torch, 1.0)
    log(lambda: w.register_post_accumulate_grad_hook(lambda t: "text") and 1, lambda: (w * 2).backward())


def on_nodes(torch, log):
    x, y = _leaf(torch, 2.0), _leaf(torch, 3.0)
    z = x * y
    node = z.grad_fn
    node.register_prehook(lambda grads: log(lambda: ("pre", grads)))
    node.register_hook(lambda inputs, outputs: log(lambda: ("post", inputs, outputs)))
    z.register_hook(_say(log, "tensor"))
    (2 * z).backward(retain_graph=True)
    log(lambda: (x.grad, y.grad))
    pre = node.register_prehook(lambda grads: (grads[0] * 10,))
    post = node.register_hook(lambda inputs, outputs: (inputs[0] + 1, None if len(inputs) > 2 else inputs[1] * 2))
    (2 * z).backward(retain_graph=True)
    log(lambda: (x.grad, y.grad))
    pre.remove()
    post.remove()
    x.grad = y.grad = None
    (2 * z).backward(retain_graph=True)
    log(lambda: (x.grad, y.grad))
    for answer in (lambda i, o: i[0], lambda i, o: (i[0],), lambda i, o: [i[0], i[1]], lambda i, o: "text", lambda i, o: (i[0], "text"),
                   lambda i, o: (i[0][:0], i[1]), lambda i, o: (None, i[1]), lambda i, o: (i[0], i[1], i[0])):
        with node.register_hook(answer):
            log(lambda: torch.autograd.grad(z, (x, y), retain_graph=True, allow_unused=True))
    for answer in (lambda o: o[0] * 5, lambda o: [o[0] * 5], lambda o: "text", lambda o: (o[0], o[0]), lambda o: (None,), lambda o: ("text",),
                   lambda o: ()):
        with node.register_prehook(answer):
            log(lambda: torch.autograd.grad(z, (x, y), retain_graph=True, allow_unused=True))
    c = torch.ones(1)
    s = (x + c) * c
    s.grad_fn.register_hook(lambda inputs, outputs: log(lambda: ("constant", inputs, outputs)))
    s.backward()
    t = x.sin()
    t.grad_fn.register_hook(lambda inputs, outputs: log(lambda: ("sin", inputs, outputs)))
    log(lambda: torch.autograd.grad(t, x, retain_graph=True))
    t.grad_fn.metadata["note"] = 1
    log(lambda: t.grad_fn.metadata)


def on_accumulation(torch, log):
    x = _leaf(torch, 2.0)
    y = x * 3
    node = y.grad_fn.next_functions[0][0]
    node.register_prehook(lambda grads: log(lambda: ("pre", grads, x.grad)))
    node.register_hook(lambda inputs, outputs: log(lambda: ("post", inputs, outputs, x.grad)))
    x.register_hook(_say(log, "tensor"))
    x.register_post_accumulate_grad_hook(lambda t: log(lambda: ("done", t.grad)))
    y.backward()
    log(lambda: x.grad)
    node.register_prehook(lambda grads: (grads[0] * 7,))
    (x * 3).backward()
    log(lambda: x.grad, lambda: torch.autograd.grad(x * 3, x), lambda: node.variable is x)
    x.grad = None
    (x * 3).backward(inputs=[x])
    log(lambda: x.grad)


def with_a_graph(torch, log):
    """What hooks compute is differentiated too."""
    x = _leaf(torch, 2.0)
    y = x * x
    y.register_hook(lambda g: g * g * 3)
    (first,) = torch.autograd.grad(2 * y, x, create_graph=True)
    log(lambda: first.item(), lambda: torch.autograd.grad(first, x))
    y = x * x
    y.register_hook(lambda g: g * x)
    (first,) = torch.autograd.grad(y, x, create_graph=True)
    log(lambda: first.item(), lambda: torch.autograd.grad(first, x))
    y = x * x
    y.grad_fn.register_hook(lambda inputs, outputs: (inputs[0] * x, inputs[1]))
    (first,) = torch.autograd.grad(y, x, create_graph=True)
    log(lambda: first.item(), lambda: torch.autograd.grad(first, x))
    y = x * x
    y.register_hook(lambda g: log(lambda: (g.requires_grad, torch.is_grad_enabled())))
    y.backward(create_graph=True)
    g = x.grad
    x.grad = None
    log(lambda: g.item())
    y = x.sin()
    y.register_hook(lambda g: log(lambda: (g.requires_grad, torch.is_grad_enabled())))
    y.backward()
    x.grad = None
    x.register_hook(lambda g: g * x)
    (first,) = torch.autograd.grad(x ** 3, x, create_graph=True)
    log(lambda: first.item(), lambda: torch.autograd.grad(first, x))


def for_inputs(torch, log):
    x, w = _leaf(torch, 2.0), _leaf(torch, 5.0)
    x.register_hook(_say(log, "x", lambda g: g * 10))
    w.register_hook(_say(log, "w"))
    y = x * w
    y.register_hook(_say(log, "y", lambda g: g + 1))
    z = y * 3
    log(lambda: torch.autograd.grad(z, x, retain_graph=True), lambda: torch.autograd.grad(z, y, retain_graph=True),
        lambda: torch.autograd.grad(z, (y, x), retain_graph=True), lambda: torch.autograd.grad(z, z, retain_graph=True))
    z.backward(inputs=[x], retain_graph=True)
    log(lambda: x.grad, lambda: w.grad)
    z.backward(inputs=[y])
    log(lambda: y.grad)
    z = x * 1
    z.register_hook(_say(log, "z"))
    z.backward(torch.ones(1) * 4)
    log(lambda: x.grad)


def while_running(torch, log):
    """Hooks that remove themselves, others, or add more."""
    x = _leaf(torch, 2.0)
    y = x * 3
    handles = {}

    def once(g):
        log(lambda: ("once", g))
        handles["once"].remove()

    def remover(g):
        log(lambda: ("remover", g))
        handles["victim"].remove()

    handles["once"] = y.register_hook(once)
    y.register_hook(remover)
    handles["victim"] = y.register_hook(_say(log, "victim"))
    y.register_hook(lambda g: log(lambda: ("adder", g)) or x.register_hook(_say(log, "added leaf")) and None)
    y.backward(retain_graph=True)
    log(lambda: "again")
    y.backward()
    z = x * 5

    def nested(g):
        with torch.enable_grad():
            (x * 7).backward()

    z.register_hook(nested)
    x2 = x.grad.clone()
    z.backward()
    log(lambda: x.grad - x2)


def several_graphs(torch, log):
    x = _leaf(torch, 1.0)
    x.register_hook(_say(log, "x"))
    y, z = x * 2, x * 3
    y.register_hook(_say(log, "y"))
    z.register_hook(_say(log, "z"))
    torch.autograd.backward([y, z], retain_graph=True)
    torch.autograd.backward([z * 1, x * 4])
    log(lambda: x.grad)
    torch.autograd.backward([x, x * 1])
    log(lambda: x.grad)
    x.backward()
    log(lambda: x.grad)


def zero_derivatives(torch, log):
    x = _leaf(torch, 1.5)
    x.register_hook(_say(log, "x"))
    y = x * 2
    y.register_hook(_say(log, "y"))
    y.floor().backward(retain_graph=True)
    log(lambda: x.grad)
    y.grad_fn.register_hook(lambda inputs, outputs: log(lambda: (inputs, outputs)))
    (y.floor() + y).backward(retain_graph=True)
    torch.where(torch.tensor([True]), torch.ones(1), y).backward()
    log(lambda: x.grad)


def handles(torch, log):
    x = _leaf(torch, 1.0)
    a, b = x.register_hook(_say(log, "a")), x.register_hook(_say(log, "b"))
    log(lambda: a.id < b.id, lambda: hasattr(a, "remove"))
    a.remove()
    (x * 2).backward()
    b.remove()
    (x * 2).backward()
    log(lambda: x.grad)


def broadcast(torch, log):
    x, s = _leaf(torch, 1.0, 2.0, 3.0), torch.tensor(2.0, requires_grad=True)
    for y in (x * s, x + s, x / s, torch.ones(2, 3) * x):
        y.grad_fn.register_hook(lambda inputs, outputs: log(lambda: (inputs, [o.shape for o in outputs])))
        y.sum().backward()

    class Named:
        def __call__(self, grad):
            return grad[:1]

    x.register_hook(Named())
    log(lambda: (x * 2).sum().backward())
