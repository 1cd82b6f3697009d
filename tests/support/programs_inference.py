"""Programs about inference mode, for `sides`."""


def _made(torch, *values):
    with torch.inference_mode():
        return torch.tensor(values)


def _asks(torch, *values):
    return torch.tensor(values, requires_grad=True)


def told_apart(torch, log):
    """Which tensors are inference tensors."""
    x, n = _asks(torch, 1.0, 2.0), torch.ones(2)
    with torch.inference_mode():
        for make in (lambda: torch.ones(2), lambda: torch.tensor(1.0), lambda: torch.rand(2), lambda: torch.empty(2), lambda: x * 2,
                     lambda: x.clone(),
                     lambda: n + 1, lambda: x.sum(), lambda: x.reshape(2), lambda: torch.from_numpy(n.numpy()), lambda: torch.cat([x, x]),
                     lambda: torch.zeros_like(x),
                     lambda: x[:1], lambda: x.view(2, 1), lambda: n.t(), lambda: n.unbind()[0], lambda: n.contiguous(), lambda: x.exp(),
                     lambda: torch.ones(2, requires_grad=True), lambda: torch.ones(2).requires_grad_(), lambda: n.requires_grad_()):
            log(lambda make=make: (make().is_inference(), make().requires_grad))
    t = _made(torch, 1.0, 2.0)
    log(lambda: [f(t).is_inference() for f in (lambda t: t[:1], lambda t: t.view(2, 1), lambda t: t.t(), lambda t: t.unbind()[0],
                                               lambda t: t.reshape(2),
                                               lambda t: t.contiguous(), lambda t: t.clone(), lambda t: t * 2, lambda t: t.float(), lambda t: t + x,
                                               lambda t: torch.ones_like(t), lambda t: t.new_ones(2))])
    log(lambda: torch.is_inference(t), lambda: t, lambda: t.requires_grad, lambda: t.is_leaf, lambda: t.grad_fn, lambda: t.tolist(), lambda: t.grad,
        lambda: (t > 1).tolist(), lambda: t.numpy(), lambda: bool(t[0]), lambda: t.sum().item())


def recorded(torch, log):
    """What may meet a graph, and what may not, because it would be saved."""
    t, s = _made(torch, 1.0, 2.0), _made(torch, 3.0)
    for call in (lambda x: x * t, lambda x: t * x, lambda x: x + t, lambda x: x - t, lambda x: x / t, lambda x: t / x, lambda x: x.pow(t),
                 lambda x: t.pow(x),
                 lambda x: x * t[:1], lambda x: x * s, lambda x: torch.where(x > 0, x, t), lambda x: torch.cat([x, t]), lambda x: torch.stack([x, t]),
                 lambda x: x.maximum(t), lambda x: x * t.clone(), lambda x: x.exp() + t.exp(), lambda x: x.dot(t), lambda x: x * 2,
                 lambda x: (x * 1).mul_(t),
                 lambda x: (x * 1).add_(t), lambda x: (x * 1).copy_(t), lambda x: x + t.sum(), lambda x: x.atan2(t), lambda x: x.expand_as(t)):
        x = _asks(torch, 3.0, 4.0)

        def gradient(x=x, call=call):
            y = call(x)
            y.sum().backward()
            return y.is_inference(), y.grad_fn.name().rstrip("01"), x.grad

        log(gradient)


def refused(torch, log):
    """What an inference tensor is refused outside of the mode."""
    def outside(call):
        def run():
            t = _made(torch, 1.0, 2.0)
            call(t)
            return t, t.is_inference()

        return run

    def no_grad(t):
        with torch.no_grad():
            t.add_(1)

    def item(t):
        t[0] = 1.0

    def asks(t):
        t.requires_grad = True

    log(*map(outside, (lambda t: t.add_(1), lambda t: t.mul_(t), lambda t: t.zero_(), lambda t: t.fill_(3.0), lambda t: t.copy_(torch.zeros(2)), item,
                       lambda t: t[:1].add_(1), lambda t: t.exp_(), lambda t: t.clamp_(0, 1), lambda t: torch.add(t, 1, out=t), no_grad,
                       lambda t: t.requires_grad_(), asks, lambda t: t.requires_grad_(False), lambda t: t._version, lambda t: t.retain_grad(),
                       lambda t: t.add_(_asks(torch, 1.0, 2.0)), lambda t: t.backward(), lambda t: t.clone().add_(1), lambda t: (t * 2).add_(1),
                       lambda t: t.detach_(), lambda t: t.clone().requires_grad_())))


def allowed(torch, log):
    """What is done inside the mode."""
    n, x = torch.ones(2), _asks(torch, 1.0, 2.0)
    y = x * 1
    s = y.sum()
    with torch.inference_mode():
        t = torch.ones(2)
        log(lambda: t.add_(1), lambda: t[:1].zero_(), lambda: t, lambda: t._version, lambda: t.requires_grad_().is_inference(), lambda: n.add_(1),
            lambda: n[:1].mul_(5), lambda: (n.is_inference(), n._version), lambda: n.copy_(t), lambda: x.add_(1),
            lambda: (x.requires_grad, x._version),
            lambda: y.mul_(2).requires_grad, lambda: (x * 2).sum().backward(), lambda: (x * x).requires_grad, lambda: (x * x).grad_fn,
            lambda: torch.add(t, 1, out=n), lambda: torch.autograd.grad(s, x, retain_graph=True)[0].tolist())
        s.backward()
    log(lambda: x.grad, lambda: n, lambda: n.add_(1), lambda: n.is_inference())
    x.grad = None
    log(lambda: (n * x).sum().backward(), lambda: x.grad)


def again(torch, log):
    """Inside the mode once more, an inference tensor is one like others."""
    t = _made(torch, 1.0, 2.0)
    with torch.inference_mode():
        t.add_(1)
    log(lambda: t)
    with torch.inference_mode(), torch.inference_mode(False):
        x = _asks(torch, 1.0, 2.0)
        log(lambda: x.is_inference(), lambda: (x + t).requires_grad, lambda: x * t, lambda: t.add_(1))


def views(torch, log):
    """Views of ordinary tensors that are made in inference mode."""
    def of(x, call):
        with torch.inference_mode():
            v = x[:1]
        call(x, v)
        return x, v, v._is_view(), v.requires_grad, v.is_leaf, v._version

    log(lambda: of(_asks(torch, 1.0, 2.0), lambda x, v: None), lambda: of(_asks(torch, 1.0, 2.0) * 1, lambda x, v: v.add_(1)),
        lambda: of(_asks(torch, 1.0, 2.0) * 1, lambda x, v: [x.add_(1), v.grad_fn]), lambda: of(torch.ones(2), lambda x, v: v.add_(1)),
        lambda: of(_asks(torch, 1.0, 2.0), lambda x, v: (v * 2).backward()))

    def written_inside():
        x = _asks(torch, 1.0, 2.0) * 1
        with torch.inference_mode():
            v = x[:1]
            v.add_(1)
        return x, v

    log(written_inside)


def leaves(torch, log):
    """Leaves that are made in inference mode."""
    with torch.inference_mode():
        x = torch.tensor([1.0, 2.0], requires_grad=True)
    log(lambda: x.is_inference(), lambda: (x + 2).sum().backward(), lambda: x.grad, lambda: (x * 3).requires_grad, lambda: x._version)


def modes(torch, log):
    """What the modes make of one another."""
    def now():
        return torch.is_grad_enabled(), torch.is_inference_mode_enabled()

    with torch.no_grad():
        with torch.inference_mode():
            pass
        log(now)
        with torch.inference_mode(False):
            log(now)
    with torch.inference_mode():
        log(now)
        with torch.inference_mode(False):
            log(now)
        with torch.no_grad():
            log(now)
            with torch.inference_mode(False):
                log(now)
    log(now)

    @torch.inference_mode()
    def twice(x):
        return 2 * x

    @torch.inference_mode
    def thrice(x):
        return 3 * x

    log(lambda: (twice(torch.ones(1)).is_inference(), twice.__name__), lambda: thrice(torch.ones(1)).is_inference())
    with torch.inference_mode(), torch.enable_grad():
        x = torch.ones(1, requires_grad=True)
        log(lambda: (x * 2).requires_grad)
