"""Programs with Functions in graphs: differentiated twice, nested, with hooks, in modes and in threads; for `sides`."""

import threading

from tests.support.programs_function import _answering, _leaf, _product, _scaled


def twice(torch, log):
    class Cube(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x ** 3

        @staticmethod
        def backward(ctx, grad):
            (x,) = ctx.saved_tensors
            log(lambda: torch.is_grad_enabled(), lambda: (x.requires_grad, grad.requires_grad))
            return grad * 3 * x ** 2

    class CubeBackward(torch.autograd.Function):
        @staticmethod
        def forward(ctx, grad, x):
            ctx.save_for_backward(grad, x)
            return grad * 3 * x ** 2

        @staticmethod
        def backward(ctx, gg):
            grad, x = ctx.saved_tensors
            log(lambda: ctx.needs_input_grad)
            return gg * 3 * x ** 2, gg * grad * 6 * x

    class Nested(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x ** 3

        @staticmethod
        def backward(ctx, grad):
            (x,) = ctx.saved_tensors
            return CubeBackward.apply(grad, x)

    for F in (Cube, Nested):
        x = _leaf(torch, 2.0)
        y = F.apply(x)
        (first,) = torch.autograd.grad(y, x, create_graph=True)
        log(lambda: first, lambda: first.requires_grad, lambda: first.grad_fn.name())
        (second,) = torch.autograd.grad(first, x, create_graph=True)
        log(lambda: second.item())
        log(lambda: torch.autograd.grad(second, x))
        y = F.apply(x)
        y.backward(create_graph=True)
        g = x.grad
        log(lambda: g.item(), lambda: g.requires_grad)
        x.grad = None
        g.backward()
        log(lambda: x.grad)
        z = F.apply(F.apply(x) * x)
        log(lambda: torch.autograd.grad(torch.autograd.grad(z, x, create_graph=True)[0], x))
        g = torch.ones(1, requires_grad=True)
        (first,) = torch.autograd.grad(F.apply(x), x, g, create_graph=True)
        log(lambda: torch.autograd.grad(first, (x, g)))

    class Result(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            y = x.exp()
            ctx.save_for_backward(y)
            return y

        @staticmethod
        def backward(ctx, grad):
            return grad * ctx.saved_tensors[0]

    x = torch.zeros(1, requires_grad=True)
    y = Result.apply(x)
    for _ in range(4):
        (y,) = torch.autograd.grad(y, x, create_graph=True)
        log(lambda: y.item())


def nested(torch, log):
    P, S = _product(torch), _scaled(torch)

    class Outer(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, y):
            z = P.apply(x, y)
            log(lambda: z.requires_grad, lambda: z.grad_fn)
            ctx.save_for_backward(x, y)
            return S.apply(z, 3.0)

        @staticmethod
        def backward(ctx, grad):
            x, y = ctx.saved_tensors
            log(lambda: P.apply(grad, y).requires_grad)
            return S.apply(P.apply(grad, y), 3.0), S.apply(P.apply(grad, x), 3.0)

    x, y = _leaf(torch, 2.0), _leaf(torch, 5.0)
    z = Outer.apply(x, y)
    log(lambda: z, lambda: [fn.name() for fn, _ in z.grad_fn.next_functions])
    gx, gy = torch.autograd.grad(z, (x, y), create_graph=True)
    log(lambda: (gx, gy), lambda: torch.autograd.grad(gx, y), lambda: torch.autograd.grad(gy, x))

    class Graded(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            with torch.enable_grad():
                inner = x.detach().requires_grad_()
                out = inner.sin() * inner
            ctx.inner, ctx.out = inner, out
            return out.detach()

        @staticmethod
        def backward(ctx, grad):
            with torch.enable_grad():
                (g,) = torch.autograd.grad(ctx.out, ctx.inner, grad)
            return g

    z = Graded.apply(x)
    log(lambda: z.requires_grad, lambda: z.grad_fn.name(), lambda: torch.autograd.grad(z, x))

    class Checkpoint(torch.autograd.Function):
        @staticmethod
        def forward(ctx, run, x):
            ctx.run = run
            ctx.save_for_backward(x)
            return run(x)

        @staticmethod
        def backward(ctx, grad):
            (x,) = ctx.saved_tensors
            inner = x.detach().requires_grad_()
            with torch.enable_grad():
                out = ctx.run(inner)
            torch.autograd.backward(out, grad)
            return None, inner.grad

    w = _leaf(torch, 3.0)
    z = Checkpoint.apply(lambda x: (x * w).sin(), x)
    z.backward()
    log(lambda: (x.grad, w.grad))


def modes(torch, log):
    P = _product(torch)
    x, y = _leaf(torch, 2.0), _leaf(torch, 5.0)
    with torch.no_grad():
        z = P.apply(x, y)
        log(lambda: z, lambda: z.requires_grad)
        with torch.enable_grad():
            z = P.apply(x, y)
        log(lambda: z)
    log(lambda: torch.autograd.grad(z, x))

    class Enabled(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            with torch.enable_grad():
                y = x * 2
            log(lambda: y.requires_grad)
            ctx.y = y
            return y

        @staticmethod
        def backward(ctx, grad):
            return grad * 10

    z = Enabled.apply(x)
    log(lambda: z.grad_fn.name(), lambda: torch.autograd.grad(z, x))
    with torch.inference_mode():
        z = P.apply(x, y)
        log(lambda: z, lambda: z.is_inference())
    before = torch.is_grad_enabled()

    class Failing(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            raise ValueError("no")

        @staticmethod
        def backward(ctx, grad):
            raise KeyError("never")

    log(lambda: Failing.apply(x), lambda: torch.is_grad_enabled() == before)
    B = _answering(torch, lambda ctx, g: [][0])
    log(lambda: B.apply(x).backward(), lambda: torch.is_grad_enabled(), lambda: x.grad)


def hooked(torch, log):
    P = _product(torch)
    x, y = _leaf(torch, 2.0), _leaf(torch, 5.0)
    z = P.apply(x, y)
    z.retain_grad()
    z.register_hook(lambda g: log(lambda: ("tensor", g)))
    z.register_hook(lambda g: g * 2)
    z.grad_fn.register_prehook(lambda grads: log(lambda: ("pre", grads)))
    z.grad_fn.register_hook(lambda inputs, outputs: log(lambda: ("post", inputs, outputs)))
    (3 * z).backward()
    log(lambda: (x.grad, y.grad, z.grad))

    class Two(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2, x * 3

        @staticmethod
        def backward(ctx, a, b):
            log(lambda: ("backward", a, b))
            return a * 2 + b * 3

    for used in ((0,), (0, 1)):
        out = Two.apply(x)
        for i, t in enumerate(out):
            t.register_hook(lambda g, i=i: log(lambda: ("output", i, g)))
            t.register_hook(lambda g: None if g is None else g * 10)
            t.retain_grad()
        node = out[0].grad_fn
        node.register_prehook(lambda grads: log(lambda: ("pre", grads)))
        node.register_hook(lambda inputs, outputs: log(lambda: ("post", inputs, outputs)))
        x.grad = None
        sum(out[i] for i in used).backward()
        log(lambda: x.grad, lambda: [t.grad for t in out])
    a, b = Two.apply(x)
    a.grad_fn.register_prehook(lambda grads: (grads[0] * 100, grads[1]))
    a.grad_fn.register_hook(lambda inputs, outputs: (inputs[0] + 1000,))
    log(lambda: torch.autograd.grad(a + b, x))


def threads(torch, log):
    class Square(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            ctx.thread = threading.get_ident()
            return x * x

        @staticmethod
        def backward(ctx, grad):
            return grad * 2 * ctx.saved_tensors[0]

    x = _leaf(torch, 1.0, 2.0)

    def work():
        for _ in range(20):
            Square.apply(x).sum().backward()

    workers = [threading.Thread(target=work) for _ in range(3)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    log(lambda: x.grad)


def complex_numbers(torch, log):
    class Square(torch.autograd.Function):
        @staticmethod
        def forward(ctx, z):
            ctx.save_for_backward(z)
            return z * z

        @staticmethod
        def backward(ctx, grad):
            (z,) = ctx.saved_tensors
            log(lambda: (z, grad))
            return grad * (2 * z).conj()

    z = torch.tensor([1.0 + 2.0j], requires_grad=True)
    y = Square.apply(z)
    log(lambda: y, lambda: torch.autograd.grad(y, z, torch.ones(1, dtype=torch.complex128)))
    log(lambda: torch.autograd.grad((Square.apply(z) * z).abs().sum(), z))
    log(lambda: torch.autograd.grad((Square.apply(z) * z).real.sum(), z))

    class Length(torch.autograd.Function):
        @staticmethod
        def forward(ctx, z):
            ctx.save_for_backward(z)
            return z.abs()

        @staticmethod
        def backward(ctx, grad):
            (z,) = ctx.saved_tensors
            return grad * z / z.abs()

    log(lambda: torch.autograd.grad(Length.apply(z), z))
    log(lambda: torch.autograd.grad(_answering(torch, lambda ctx, g: g.real).apply(z).real.sum(), z))


def once(torch, log):
    once_differentiable = torch.autograd.function.once_differentiable

    class Cube(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x ** 3

        @staticmethod
        @once_differentiable
        def backward(ctx, grad):
            log(lambda: torch.is_grad_enabled(), lambda: grad.requires_grad)
            return grad * 3 * ctx.saved_tensors[0] ** 2

    x = _leaf(torch, 2.0)
    log(lambda: torch.autograd.grad(Cube.apply(x), x))
    (g,) = torch.autograd.grad(Cube.apply(x), x, create_graph=True)
    log(lambda: g.item())
    (g,) = torch.autograd.grad(Cube.apply(x), x, torch.ones(1, requires_grad=True), create_graph=True)
    log(lambda: g.item(), lambda: g.requires_grad)
    (g,) = torch.autograd.grad(Cube.apply(x) * x, x, create_graph=True)
    log(lambda: g.item())


def forward_mode(torch, log):
    fwAD = torch.autograd.forward_ad

    class Sine(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, n):
            ctx.save_for_backward(x)
            ctx.save_for_forward(x)
            ctx.n = n
            return (n * x).sin()

        @staticmethod
        def backward(ctx, grad):
            return grad * ctx.n * (ctx.n * ctx.saved_tensors[0]).cos(), None

        @staticmethod
        def jvp(ctx, t, n):
            log(lambda: (t, n))
            (x,) = ctx.saved_tensors
            return t * ctx.n * (ctx.n * x).cos()

    x = torch.tensor([0.5], requires_grad=True)
    with fwAD.dual_level():
        d = fwAD.make_dual(x, torch.ones(1))
        y = Sine.apply(d, 2)
        log(lambda: [round(v.item(), 12) for v in fwAD.unpack_dual(y)])
        y = Sine.apply(d, 2) * d
        log(lambda: [round(v.item(), 12) for v in fwAD.unpack_dual(y)])

    class Two(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, y):
            ctx.save_for_forward(x, y)
            return x * y, x + y

        @staticmethod
        def jvp(ctx, tx, ty):
            x, y = ctx.saved_tensors
            log(lambda: (tx, ty))
            return tx * y + x * ty, tx + ty

        @staticmethod
        def backward(ctx, a, b):
            return None, None

    with fwAD.dual_level():
        d = fwAD.make_dual(torch.tensor([3.0]), torch.ones(1))
        log(lambda: [fwAD.unpack_dual(v).tangent for v in Two.apply(d, torch.tensor([5.0]))])
        log(lambda: [fwAD.unpack_dual(v).tangent for v in Two.apply(d, d * 2)])


def repeated(torch, log):
    S = _scaled(torch)
    x = _leaf(torch, 2.0)
    y = S.apply(x, 3.0)
    y.grad_fn.note = "seen"
    log(lambda: y.grad_fn.note, lambda: y.grad_fn.factor, lambda: y.grad_fn is y.grad_fn, lambda: hasattr(y.grad_fn, "nothing"),
        lambda: y.grad_fn.metadata, lambda: isinstance(y.grad_fn, torch.autograd.Function))
    y.grad_fn.factor = 100.0
    log(lambda: torch.autograd.grad(y, x))
    node = S.apply(x, 3.0).grad_fn
    log(lambda: node.next_functions[0][0].variable is x, lambda: node.name())
    z = x
    for _ in range(5):
        z = S.apply(z, 2.0)
    z.backward()
    log(lambda: x.grad)
