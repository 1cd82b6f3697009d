"""Programs with Functions of one's own, for `sides`."""


def _scaled(torch):
    """A Function of a tensor and a number."""
    class Scaled(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, factor):
            ctx.factor = factor
            return x * factor

        @staticmethod
        def backward(ctx, grad):
            return grad * ctx.factor, None

    return Scaled


def _product(torch):
    """A Function of two tensors that saves both."""
    class Product(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, y):
            ctx.save_for_backward(x, y)
            return x * y

        @staticmethod
        def backward(ctx, grad):
            x, y = ctx.saved_tensors
            return grad * y, grad * x

    return Product


def _answering(torch, answer, count=1):
    """A Function of one tensor (the sum with a constant, `count` times) whose backward returns what `answer` says."""
    class Answering(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, *rest):
            out = tuple(x + i for i in range(count))
            return out if count > 1 else out[0]

        @staticmethod
        def backward(ctx, *grads):
            return answer(ctx, *grads)

    return Answering


def _leaf(torch, *numbers):
    return torch.tensor(list(numbers), requires_grad=True)


def styles(torch, log):
    F = torch.autograd.Function

    class Old(F):
        @staticmethod
        def forward(ctx, x, y=2.0):
            ctx.save_for_backward(x)
            ctx.y = y
            return x ** y

        @staticmethod
        def backward(ctx, grad):
            (x,) = ctx.saved_tensors
            return grad * ctx.y * x ** (ctx.y - 1), None

    class New(F):
        @staticmethod
        def forward(x, y=2.0):
            return x ** y

        @staticmethod
        def setup_context(ctx, inputs, output):
            x, ctx.y = inputs
            ctx.count, ctx.kind = len(inputs), type(output).__name__
            ctx.save_for_backward(x)

        @staticmethod
        def backward(ctx, grad):
            (x,) = ctx.saved_tensors
            log(lambda: (ctx.count, ctx.kind, ctx.needs_input_grad))
            return grad * ctx.y * x ** (ctx.y - 1), None

    class Instance(F):
        def forward(ctx, x, y):
            ctx.save_for_backward(x)
            ctx.y = y
            return x ** y

        def backward(ctx, grad):
            (x,) = ctx.saved_tensors
            return grad * ctx.y * x ** (ctx.y - 1), None

    for function in (Old, New, Instance):
        x = _leaf(torch, 1.0, 2.0)
        y = function.apply(x, 3.0)
        log(lambda: y, lambda: y.grad_fn.name(), lambda: type(y.grad_fn).__name__, lambda: repr(y.grad_fn).split(" object")[0])
        y.sum().backward()
        log(lambda: x.grad)
    x = _leaf(torch, 3.0)
    log(lambda: New.apply(x), lambda: New.apply(x, y=3.0), lambda: New.apply(y=3.0, x=x))
    z = New.apply(x)
    log(lambda: torch.autograd.grad(z, x))
    log(lambda: Old.apply(x, y=3.0), lambda: Old.apply(x), lambda: New.apply(x, 1.0, 2.0))
    Old.apply(x)
    log(lambda: torch.autograd.grad(Old.apply(x, 2.0), x), lambda: torch.autograd.grad(Old.apply(x), x))
    log(lambda: torch.autograd.grad(Old.apply(x, y=3.0), x))


def without_methods(torch, log):
    F = torch.autograd.Function

    class Nothing(F):
        pass

    class OnlyForward(F):
        @staticmethod
        def forward(ctx, x):
            return x * 2

    class WithVjp(F):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def vjp(ctx, grad):
            return grad * 2

    class Both(WithVjp):
        @staticmethod
        def backward(ctx, grad):
            return grad * 3

    x = _leaf(torch, 1.0)
    log(lambda: Nothing.apply(x), lambda: F.apply(x), lambda: OnlyForward.apply(x), lambda: OnlyForward.apply(x).backward(), lambda: x.grad)
    y = WithVjp.apply(x)
    log(lambda: torch.autograd.grad(y, x), lambda: torch.autograd.grad(Both.apply(x), x))
    log(lambda: WithVjp()(x), lambda: Nothing.jvp(None), lambda: Nothing.vmap(None, None), lambda: Nothing.setup_context(None, (), None),
        lambda: Nothing.backward(None), lambda: Nothing.vjp(None), lambda: Nothing.generate_vmap_rule)


def subclasses(torch, log):
    Product = _product(torch)

    class Signed(Product):
        @staticmethod
        def backward(ctx, grad):
            a, b = Product.backward(ctx, grad)
            return -a, b

    class Doubled(Product):
        @staticmethod
        def forward(ctx, x, y):
            return 2 * Product.forward(ctx, x, y)

        @staticmethod
        def backward(ctx, grad):
            return super(Doubled, Doubled).backward(ctx, 2 * grad)

    for function in (Signed, Doubled):
        x, y = _leaf(torch, 2.0), _leaf(torch, 3.0)
        z = function.apply(x, y)
        log(lambda: z, lambda: z.grad_fn.name(), lambda: torch.autograd.grad(z, (x, y)))
    log(lambda: isinstance(z.grad_fn, Product), lambda: issubclass(Signed, torch.autograd.Function))


def saving(torch, log):
    class Saver(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, w, i):
            inner, out = x * 2, x * w
            ctx.save_for_backward(x, None, w, inner, out, i)
            return out

        @staticmethod
        def backward(ctx, grad):
            x, nothing, w, inner, out, i = ctx.saved_tensors
            log(lambda: (x, nothing, w, inner, out, i), lambda: (x.requires_grad, w.requires_grad, inner.requires_grad, out.requires_grad),
                lambda: (x.is_leaf, inner.is_leaf, out.is_leaf), lambda: out.grad_fn is ctx, lambda: len(ctx.saved_tensors),
                lambda: x is ctx.saved_tensors[0], lambda: torch.is_grad_enabled(), lambda: grad)
            return grad * w, grad * x, None

    x, w, i = _leaf(torch, 2.0), _leaf(torch, 3.0), torch.tensor([1])
    y = Saver.apply(x, w, i)
    log(lambda: y.grad_fn.saved_tensors, lambda: y.grad_fn.needs_input_grad, lambda: y.grad_fn.saved_tensors[4].grad_fn is y.grad_fn,
        lambda: y.grad_fn.saved_tensors[0] is x, lambda: y.grad_fn.next_functions[0][0].variable is x, lambda: len(y.grad_fn.next_functions),
        lambda: y.grad_fn.next_functions[2])
    y.backward(retain_graph=True)
    y.backward()
    log(lambda: x.grad, lambda: w.grad, lambda: y.grad_fn.saved_tensors, lambda: y.backward(), lambda: y.grad_fn.needs_input_grad)

    class Wrong(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, what):
            ctx.save_for_backward(x, what)
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            return grad * 2, None

    log(lambda: Wrong.apply(x, 3.0), lambda: Wrong.apply(x, "a"), lambda: Wrong.apply(x, [x]), lambda: Wrong.apply(x, None).item())
    Scaled = _scaled(torch)
    z = Scaled.apply(x, 2.0)
    log(lambda: z.grad_fn.saved_tensors, lambda: z.backward(), lambda: z.backward(), lambda: x.grad, lambda: z.grad_fn.factor)

    class Twice(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            ctx.save_for_backward(x * 3)
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            return grad * ctx.saved_tensors[0]

    log(lambda: torch.autograd.grad(Twice.apply(x), x), lambda: Twice.apply(x).grad_fn.saved_tensors)


def needs(torch, log):
    class Need(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, n, y, i):
            log(lambda: ctx.needs_input_grad, lambda: (x.requires_grad, y.requires_grad), lambda: torch.is_grad_enabled(),
                lambda: (x * y).requires_grad)
            return x * y * n

        @staticmethod
        def backward(ctx, grad):
            log(lambda: ctx.needs_input_grad)
            return grad, None, grad, None

    a, b, i = _leaf(torch, 2.0), torch.tensor([3.0]), torch.tensor([1])
    for x, y in ((a, b), (b, a), (a, a), (b, b), (a * 1, b), (a.detach(), b)):
        z = Need.apply(x, 2, y, i)
        log(lambda: z, lambda: z.requires_grad, lambda: z.is_leaf)
        if z.requires_grad:
            log(lambda: torch.autograd.grad(z, a))
    with torch.no_grad():
        z = Need.apply(a, 2, b, i)
        log(lambda: z, lambda: z.requires_grad, lambda: z.grad_fn)
    with torch.inference_mode():
        z = Need.apply(a, 2, b, i)
        log(lambda: z, lambda: z.requires_grad, lambda: z.is_inference())
    z = Need.apply(a, 2, a * 1, i)
    log(lambda: torch.autograd.grad(z, a))
    z = Need.apply(a, n=2, y=a, i=i)


def arguments(torch, log):
    class Many(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, words, numbers, tensors, nothing, flag=True):
            log(lambda: (words, numbers, nothing, flag), lambda: ctx.needs_input_grad)
            return x * numbers[0] + sum(tensors)

        @staticmethod
        def backward(ctx, grad):
            return grad * 2, None, None, None, None

    x, t = _leaf(torch, 1.0), _leaf(torch, 5.0)
    y = Many.apply(x, "words", [2, 3], [t, t], None)
    log(lambda: y, lambda: torch.autograd.grad(y, (x, t), allow_unused=True))
    y = Many.apply(x, {"a": 1}, (2,), (), None, False)
    log(lambda: torch.autograd.grad(y, x))
    log(lambda: Many.apply(), lambda: Many.apply(x), lambda: Many.apply(2.0, "", [1], [t], None).requires_grad)

    class Same(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, y):
            return x * y

        @staticmethod
        def backward(ctx, grad):
            return grad * 10, grad * 1

    log(lambda: torch.autograd.grad(Same.apply(x, x), x))

    class NoArguments(torch.autograd.Function):
        @staticmethod
        def forward(ctx):
            return torch.ones(2)

        @staticmethod
        def backward(ctx, grad):
            return ()

    y = NoArguments.apply()
    log(lambda: y, lambda: y.requires_grad)


def numbers_of_gradients(torch, log):
    x, w = _leaf(torch, 1.0, 2.0), _leaf(torch, 3.0, 4.0)
    answers = {"one": lambda ctx, g: g, "tuple": lambda ctx, g: (g,), "list": lambda ctx, g: [g], "two": lambda ctx, g: (g, g),
               "two, None": lambda ctx, g: (g, None), "three, None": lambda ctx, g: (g, None, None), "none": lambda ctx, g: None,
               "empty": lambda ctx, g: (), "nones": lambda ctx, g: (None, None), "number": lambda ctx, g: 2.0, "array": lambda ctx, g: "grad",
               "integers": lambda ctx, g: g.long(), "single": lambda ctx, g: g.float(), 
               "short": lambda ctx, g: g[:1], "scalar": lambda ctx, g: g.sum(), "long": lambda ctx, g: torch.ones(3), "row": lambda ctx, g: g[None],
               "column": lambda ctx, g: g[:, None], "matrix": lambda ctx, g: torch.ones(3, 2), "cube": lambda ctx, g: torch.ones(4, 3, 2),
               "dict": lambda ctx, g: {"x": g}, "nan": lambda ctx, g: g * float("nan")}
    for name, answer in answers.items():
        y = _answering(torch, answer).apply(x)
        log(lambda: (name, torch.autograd.grad(y.sum(), x)))
        x.grad = None
        y = _answering(torch, answer).apply(x)
        log(lambda: y.sum().backward(), lambda: x.grad)
    for answer in (lambda ctx, g: (g, g), lambda ctx, g: g, lambda ctx, g: (g, None), lambda ctx, g: (None, g), lambda ctx, g: (g, g, None),
                   lambda ctx, g: (g, g, g), lambda ctx, g: (None, None)):
        y = _answering(torch, answer).apply(x, w)
        log(lambda: torch.autograd.grad(y.sum(), (x, w), allow_unused=True))
        y = _answering(torch, answer).apply(x, "text")
        log(lambda: torch.autograd.grad(y.sum(), x, allow_unused=True))
        y = _answering(torch, answer).apply(x, torch.tensor([1, 2]))
        log(lambda: torch.autograd.grad(y.sum(), x, allow_unused=True))
    m = torch.ones(3, 1, requires_grad=True)
    y = _answering(torch, lambda ctx, g: torch.ones(2, 3, 4)).apply(m)
    log(lambda: torch.autograd.grad(y.sum(), m))
    s = torch.tensor(2.0, requires_grad=True)
    for answer in (lambda ctx, g: torch.ones(3), lambda ctx, g: g[None], lambda ctx, g: torch.ones(0), lambda ctx, g: g.expand(2, 3)):
        y = _answering(torch, answer).apply(s)
        log(lambda: torch.autograd.grad(y, s))


def no_gradient(torch, log):
    x, w = _leaf(torch, 1.0), _leaf(torch, 2.0)
    N = _answering(torch, lambda ctx, g: (None, g))
    y = N.apply(x, w)
    y.backward()
    log(lambda: x.grad, lambda: w.grad)
    y = N.apply(x * 2, w * 3)
    y.backward()
    log(lambda: x.grad, lambda: w.grad)
    y = N.apply(x * 2, w) + x
    y.backward()
    log(lambda: x.grad, lambda: w.grad)
    y = N.apply(x, w)
    log(lambda: torch.autograd.grad(y, x), lambda: torch.autograd.grad(y, x, allow_unused=True))
    y = N.apply(x, w)
    log(lambda: torch.autograd.grad(y, (x, w), materialize_grads=True))
    seen = []
    a = x * 2
    a.register_hook(lambda g: seen.append(g))
    x.register_hook(lambda g: seen.append(g))
    N.apply(a, w).backward()
    log(lambda: seen)

    class Inner(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            log(lambda: grad)
            return grad

    y = N.apply(Inner.apply(x), w)
    y.backward()
    log(lambda: x.grad)
