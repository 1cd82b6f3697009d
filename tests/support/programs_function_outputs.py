"""Programs with the outputs of Functions: several, dirty ones, views, and what was written meanwhile; for `sides`."""

from tests.support.programs_function import _leaf, _product


def several_outputs(torch, log):
    class Parts(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.set_materialize_grads(True)
            return x * 2, torch.tensor([3, 4]), "text", x * 3, None, x.long()

        @staticmethod
        def backward(ctx, *grads):
            log(lambda: grads)
            return grads[0] * 2 + grads[3] * 3

    x = _leaf(torch, 1.0, 2.0)
    out = Parts.apply(x)
    log(lambda: out, lambda: type(out), lambda: [getattr(y, "requires_grad", None) for y in out],
        lambda: [getattr(y, "output_nr", None) for y in out],
        lambda: out[0].grad_fn is out[3].grad_fn, lambda: out[0].grad_fn.name(), lambda: out[1].grad_fn)
    a, _, _, b, _, _ = out
    (a + b).sum().backward()
    log(lambda: x.grad)
    log(lambda: torch.autograd.grad(Parts.apply(x)[0].sum(), x), lambda: torch.autograd.grad(Parts.apply(x)[3].sum(), x))
    out = Parts.apply(x)
    log(lambda: torch.autograd.grad((out[0], out[3]), x, (torch.ones(2), torch.ones(2))))
    log(lambda: torch.autograd.grad(out[0].sum(), x))
    out = Parts.apply(x)
    y = out[3] * 1
    log(lambda: y.grad_fn.next_functions[0][0] is out[0].grad_fn, lambda: y.grad_fn.next_functions[0][1])
    log(lambda: torch.autograd.grad(out[0].sum(), out[0]), lambda: torch.autograd.grad(out[0].sum() + out[3].sum(), (x, out[3])))

    class Lazy(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.set_materialize_grads(False)
            return x * 2, x * 3

        @staticmethod
        def backward(ctx, a, b):
            log(lambda: (a, b))
            return sum((2 + i) * g for i, g in enumerate((a, b)) if g is not None)

    a, b = Lazy.apply(x)
    log(lambda: torch.autograd.grad(a.sum(), x), lambda: torch.autograd.grad(b.sum(), x), lambda: torch.autograd.grad((a + b).sum(), x))
    a, b = Lazy.apply(x)
    log(lambda: torch.autograd.grad((a + b).sum(), x))

    class One(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return (x * 2,)

        @staticmethod
        def backward(ctx, g):
            return g * 2

    y = One.apply(x)
    log(lambda: y, lambda: torch.autograd.grad(y[0].sum(), x))

    class Listed(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return [x * 2, x * 3]

        @staticmethod
        def backward(ctx, *gs):
            return gs[0]

    log(lambda: Listed.apply(x))

    class Nothing(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, what):
            return what

        @staticmethod
        def backward(ctx, g):
            return None, None

    log(lambda: Nothing.apply(x, None), lambda: Nothing.apply(x, 3.0), lambda: Nothing.apply(x, "a"), lambda: Nothing.apply(x, ()),
        lambda: Nothing.apply(x, (1.0, x * 2)), lambda: Nothing.apply(x, {"y": x}))

    class Twins(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            y = x * 2
            return y, y

        @staticmethod
        def backward(ctx, a, b):
            log(lambda: (a, b))
            return a * 2 + b * 2

    a, b = Twins.apply(x)
    log(lambda: (a, b), lambda: a is b, lambda: (a.output_nr, b.output_nr), lambda: torch.autograd.grad((3 * a + b).sum(), x))


def marks(torch, log):
    class Split(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            y, mask, z = x * 2, x > 1, x * 3
            ctx.mark_non_differentiable(mask, z)
            return y, mask, z

        @staticmethod
        def backward(ctx, *grads):
            log(lambda: grads)
            return grads[0] * 2

    x = _leaf(torch, 1.0, 2.0)
    y, mask, z = Split.apply(x)
    log(lambda: (y, mask, z), lambda: (y.requires_grad, mask.requires_grad, z.requires_grad), lambda: (z.is_leaf, z.grad_fn))
    log(lambda: torch.autograd.grad((y * z).sum(), x), lambda: z.sum().backward())
    z.requires_grad_()

    class All(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            y = x * 2
            ctx.mark_non_differentiable(y)
            return y

        @staticmethod
        def backward(ctx, grad):
            return grad

    y = All.apply(x)
    log(lambda: y, lambda: y.requires_grad, lambda: y.grad_fn)

    class Input(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.mark_non_differentiable(x)
            return x

        @staticmethod
        def backward(ctx, grad):
            return grad

    y = Input.apply(x * 1)
    log(lambda: y, lambda: y.requires_grad)
    y = Input.apply(x)
    log(lambda: y, lambda: y.requires_grad, lambda: x.requires_grad, lambda: y is x)


def _dirty(torch, mark=True, returned=True):
    class Dirty(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            x.mul_(2)
            if mark:
                ctx.mark_dirty(x)
            return x if returned else x + 0

        @staticmethod
        def backward(ctx, grad):
            return grad * 2

    return Dirty


def dirty(torch, log):
    x = _leaf(torch, 1.0, 2.0)
    D = _dirty(torch)
    y = x * 1
    z = D.apply(y)
    log(lambda: z is y, lambda: y, lambda: y.grad_fn.name(), lambda: y.grad_fn.next_functions[0][0].name(), lambda: y._version,
        lambda: torch.autograd.grad((y * y).sum(), x))
    log(lambda: D.apply(x), lambda: x)
    c = torch.ones(2)
    z = D.apply(c)
    log(lambda: z is c, lambda: c, lambda: c.requires_grad, lambda: c._version)
    y = x * 1
    v = y[:1]
    z = D.apply(v)
    log(lambda: z is v, lambda: y, lambda: v, lambda: y.grad_fn.name(), lambda: v.grad_fn.name())
    log(lambda: torch.autograd.grad((y * y).sum(), x))
    y = x * 1
    v = y[:1]
    z = D.apply(y)
    log(lambda: z is y, lambda: y.grad_fn.name(), lambda: v.grad_fn.name(), lambda: torch.autograd.grad((v * v).sum(), x))
    v = x[:1]
    log(lambda: D.apply(v), lambda: x)
    with torch.no_grad():
        z = D.apply(v)
        log(lambda: z, lambda: x)
    y = x * 1
    log(lambda: _dirty(torch, returned=False).apply(y))
    y = x * 1
    z = _dirty(torch, mark=False).apply(y)
    log(lambda: z is y, lambda: (y, z), lambda: y._version, lambda: torch.autograd.grad(z.sum(), x))
    y = x * 1
    w = y * y
    D.apply(y)
    log(lambda: torch.autograd.grad(w.sum(), x))
    y = x * 1
    y.retain_grad()
    D.apply(y)
    (3 * y).sum().backward()
    log(lambda: y.grad)
    y = x * 1
    seen = []
    y.register_hook(lambda g: seen.append(g))
    D.apply(y)
    y.register_hook(lambda g: seen.append(g))
    (3 * y).sum().backward()
    log(lambda: seen)

    class Two(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, w):
            ctx.mark_dirty(x)
            ctx.save_for_backward(w)
            x.add_(w)
            return w * 2, x

        @staticmethod
        def backward(ctx, a, b):
            log(lambda: (a, b))
            return b, 2 * a + b

    y, w = x * 1, _leaf(torch, 1.0, 5.0)
    a, b = Two.apply(y, w)
    log(lambda: b is y, lambda: (y.output_nr, a.output_nr), lambda: y.grad_fn.name(), lambda: torch.autograd.grad((a * b).sum(), (x, w)))
    c = torch.zeros(2)
    a, b = Two.apply(c, w)
    log(lambda: b is c, lambda: c, lambda: torch.autograd.grad((a * c).sum(), w))
    c = torch.zeros(4)
    v = c[1:3]
    log(lambda: Two.apply(v, w), lambda: c, lambda: v)


def as_it_is(torch, log):
    class Same(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x

        @staticmethod
        def backward(ctx, grad):
            return grad * 10

    class View(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.view(-1)

        @staticmethod
        def backward(ctx, grad):
            return grad * 10

    class Detached(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.detach()

        @staticmethod
        def backward(ctx, grad):
            return grad * 10

    class Pair(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x, x[:1]

        @staticmethod
        def backward(ctx, a, b):
            return a * 10

    x = _leaf(torch, 1.0, 2.0)
    for F in (Same, View, Detached):
        y = x * 1
        z = F.apply(y)
        log(lambda: z, lambda: z is y, lambda: z._is_view(), lambda: z._base is y, lambda: z.data_ptr() == y.data_ptr(), lambda: z.grad_fn.name(),
            lambda: torch.autograd.grad(z.sum(), x))
        z = F.apply(y)
        log(lambda: z.mul_(2), lambda: z._version)
        with torch.no_grad():
            z.mul_(2)
        log(lambda: z.grad_fn and z.grad_fn.name(), lambda: y, lambda: y._version)
        y = x * 1
        z = F.apply(y)
        y.mul_(3)
        log(lambda: z.grad_fn.name(), lambda: (z * 2).sum().item(), lambda: z._version)
        z = F.apply(x)
        log(lambda: z, lambda: z is x, lambda: torch.autograd.grad(z.sum(), x), lambda: z.mul_(2))
        c = torch.ones(2)
        z = F.apply(c)
        log(lambda: z, lambda: z is c, lambda: z._is_view(), lambda: z.mul_(2), lambda: c)
        with torch.no_grad():
            z = F.apply(x)
            log(lambda: z, lambda: z is x, lambda: z.requires_grad, lambda: z._is_view(), lambda: z.mul_(2).tolist())
        log(lambda: x)
        with torch.no_grad():
            x.copy_(torch.tensor([1.0, 2.0]))
    a, b = Pair.apply(x * 1)
    log(lambda: a, lambda: b, lambda: (a._is_view(), b._is_view()), lambda: b.mul_(2), lambda: a.mul_(2), lambda: torch.autograd.grad(a.sum(), x))


def written_meanwhile(torch, log):
    P = _product(torch)
    x = _leaf(torch, 1.0, 2.0)
    a, b = x * 1, x * 2
    z = P.apply(a, b)
    b.add_(1)
    log(lambda: z.grad_fn.saved_tensors, lambda: z.sum().backward())
    a, b = x * 1, torch.ones(2)
    z = P.apply(a, b)
    b.add_(1)
    b.add_(1)
    log(lambda: z.grad_fn.saved_tensors, lambda: z.sum().backward())
    z = P.apply(a, x)
    with torch.no_grad():
        x.add_(1)
    log(lambda: z.sum().backward())
    z = P.apply(a, b)
    b.data.add_(1)
    log(lambda: torch.autograd.grad(z.sum(), x))
    z = P.apply(a, b)
    b.detach().add_(1)
    log(lambda: torch.autograd.grad(z.sum(), x))

    class Exp(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            y = x.exp()
            ctx.save_for_backward(y)
            return y

        @staticmethod
        def backward(ctx, grad):
            return grad * ctx.saved_tensors[0]

    z = Exp.apply(torch.zeros(2, requires_grad=True))
    w = z * 1
    z.add_(1)
    log(lambda: w.sum().backward(), lambda: z.sum().backward())

    class Inside(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            y = x * 2
            ctx.y = y
            y.add_(1)
            return y

        @staticmethod
        def backward(ctx, grad):
            log(lambda: ctx.y)
            return grad * 2

    z = Inside.apply(x * 1)
    log(lambda: z, lambda: z._version, lambda: torch.autograd.grad(z.sum(), x))

    class Later(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            x.mul_(2)
            ctx.mark_dirty(x)
            return x

        @staticmethod
        def backward(ctx, grad):
            log(lambda: ctx.saved_tensors)
            return grad * 2

    z = Later.apply(x * 1)
    log(lambda: torch.autograd.grad(z.sum(), x))

    class Outputs(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            a, b = x * 2, x * 3
            ctx.save_for_backward(a, b)
            return a, b

        @staticmethod
        def backward(ctx, ga, gb):
            a, b = ctx.saved_tensors
            return ga * 2 + gb * 3

    a, b = Outputs.apply(x * 1)
    c = a.sum() + b.sum()
    b.add_(1)
    log(lambda: c.backward())
