"""Programs with Functions of one's own, for `sides`."""

import threading


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

    for function, name in ((Old, "Old"), (New, "New"), (Instance, "Instance")):
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
               "integers": lambda ctx, g: g.long(), "single": lambda ctx, g: g.float(), "complex": lambda ctx, g: g * 1j,
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
    log(lambda: out, lambda: type(out), lambda: [getattr(y, "requires_grad", None) for y in out], lambda: [getattr(y, "output_nr", None) for y in out],
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
    a, b = Two.apply(v, w)
    log(lambda: b is v, lambda: c, lambda: v)

    class Unrelated(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            y = x * 2
            ctx.mark_dirty(y)
            return y

        @staticmethod
        def backward(ctx, grad):
            return grad * 2

    log(lambda: Unrelated.apply(x * 1), lambda: torch.autograd.grad(Unrelated.apply(x * 1).sum(), x))


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
        log(lambda: z.grad_fn, lambda: y, lambda: y._version)
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
            log(lambda: z, lambda: z is x, lambda: z.requires_grad, lambda: z._is_view(), lambda: z.mul_(2))
        log(lambda: z, lambda: x)
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
        log(lambda: second)
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

    for used in ((0,), (1,), (0, 1)):
        out = Two.apply(x)
        for i, t in enumerate(out):
            t.register_hook(lambda g, i=i: log(lambda: ("output", i, g)))
            t.register_hook(lambda g: g * 10)
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
    x = _leaf(torch, 3.0)
    log(lambda: torch.autograd.grad(_answering(torch, lambda ctx, g: g * (1 + 2j)).apply(x), x))
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
    log(lambda: g.item(), lambda: g.requires_grad, lambda: g.grad_fn.name(), lambda: torch.autograd.grad(g, x))
    (g,) = torch.autograd.grad(Cube.apply(x), x, torch.ones(1, requires_grad=True), create_graph=True)
    log(lambda: g.item(), lambda: g.requires_grad, lambda: torch.autograd.grad(g, x))
    (g,) = torch.autograd.grad(Cube.apply(x) * x, x, create_graph=True)
    log(lambda: g.item(), lambda: torch.autograd.grad(g, x))


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

    class Without(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.detach() * 2

        @staticmethod
        def backward(ctx, g):
            return g


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
