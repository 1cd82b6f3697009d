"""Programs with vmap, for `sides`: dimensions in and out, trees, levels, derivatives inside and outside, per-sample gradients, errors."""

import collections

Point = collections.namedtuple("Point", ["x", "y"])


def _vmap(torch):
    return torch.func.vmap


def _data(torch, *shape):
    n = 1
    for size in shape:
        n *= size
    return torch.arange(float(n)).reshape(shape) / 4 - 1


def dimensions(torch, log):
    vmap, x, y = _vmap(torch), _data(torch, 2, 3), _data(torch, 3, 2)
    v = _data(torch, 3)
    log(lambda: vmap(torch.dot)(x, 2 * x), lambda: vmap(torch.dot, in_dims=(0, 1))(x, y), lambda: vmap(torch.dot, in_dims=(1, 0))(y, x),
        lambda: vmap(torch.dot, in_dims=(-2, -1))(x, y), lambda: vmap(torch.dot, (0, None))(x, v), lambda: vmap(torch.dot, (None, 0))(v, x),
        lambda: vmap(lambda a: a * 2, in_dims=1)(x), lambda: vmap(lambda a: a * 2, in_dims=1, out_dims=1)(x),
        lambda: vmap(lambda a: torch.outer(a, a), out_dims=2)(x).shape, lambda: vmap(lambda a: torch.outer(a, a), out_dims=-1)(x).shape,
        lambda: vmap(lambda a: torch.outer(a, a), out_dims=-2)(x).shape, lambda: vmap(lambda a: (a, a.sum()), out_dims=(1, 0))(x),
        lambda: vmap(lambda a: (a, v), out_dims=(0, None))(x), lambda: vmap(lambda a: [a, a + 1])(x), lambda: vmap(lambda a: {"s": a.sum()})(x),
        lambda: vmap(lambda a: v)(x), lambda: vmap(lambda a: torch.ones(2))(x), lambda: vmap(lambda a: a.shape[0] * a)(x),
        lambda: vmap(lambda a: {"u": a, "v": (a, a)}, out_dims=1)(x), lambda: vmap(lambda a: {"u": a, "v": a}, out_dims={"u": 0, "v": 1})(x),
        lambda: vmap(lambda a: Point(a, a.sum()))(x), lambda: vmap(lambda p: p.x * p.y)(Point(x, x)),
        lambda: vmap(lambda p: p["a"] + p["b"][0], in_dims=({"a": 0, "b": (None,)},))({"a": x, "b": (v,)}),
        lambda: vmap(lambda p: p["a"] + p["b"][0], in_dims=({"a": 0, "b": None},))({"a": x, "b": (v,)}),
        lambda: vmap(lambda p, q: p[0] + p[1] + q, in_dims=((0, 1), None))((x, y), v), lambda: vmap(lambda p: p[0] + p[1], in_dims=([0, 1],))([x, y]),
        lambda: vmap(lambda p: p[0] + p[1])((x, x)), lambda: vmap(lambda a, s: a * s, in_dims=(0, None))(x, 3.0),
        lambda: vmap(lambda a, *, b: a + b)(x, b=x), lambda: vmap(lambda a, b=2: a * b)(x), lambda: vmap(lambda a, *, c: a + c["k"])(x, c={"k": x}),
        lambda: vmap(lambda a: a)(torch.zeros(0, 3)).shape, lambda: vmap(lambda a: a.sum())(torch.zeros(1, 3)),
        lambda: vmap(lambda a: a.sum(), chunk_size=2)(y), lambda: vmap(lambda a: a * 2, in_dims=1, out_dims=1, chunk_size=1)(y),
        lambda: vmap(lambda a: (a.sum(), a), chunk_size=2)(y), lambda: vmap(vmap(lambda a: a * 3))(x),
        lambda: vmap(vmap(torch.mul, (0, None)), (None, 0))(v, v),
        lambda: vmap(vmap(torch.mul, (None, 0)), (0, None))(v, v), lambda: vmap(lambda a: vmap(lambda b: a @ b)(x))(x),
        lambda: vmap(lambda a: vmap(lambda b: b)(x))(x).shape, lambda: vmap(lambda a: vmap(lambda b: a)(x))(x),
        lambda: vmap(lambda a: a.shape, 0)(x), lambda: vmap(lambda a: torch.tensor(list(a.shape)))(x))


def inside(torch, log):
    vmap, x = _vmap(torch), _data(torch, 2, 3)
    seen = []

    def look(a):
        seen.extend([a.shape, a.ndim, a.dim(), a.numel(), a.size(), a.size(0), len(a), a.dtype, a.requires_grad, a.is_floating_point(), a.stride(),
                     a.is_contiguous(), len(list(a)), a[0].shape, torch.is_tensor(a), a.T.shape if a.ndim == 2 else None, a.device.type, a.is_leaf,
                     a.grad_fn, a.detach().shape, a.new_zeros(2).shape, torch.zeros_like(a).shape, a.element_size()])
        return a

    vmap(look)(x)
    log(*(lambda s=s: s for s in seen))
    told = []
    vmap(lambda a: told.append(repr(a)) or a)(x)
    vmap(lambda a: told.append(str(a)) or a, in_dims=0)(torch.tensor([1, 2]))
    vmap(vmap(lambda a: told.append(repr(a)) or a))(torch.ones(2, 2))
    log(*(lambda s=s: s for s in told))


def dtypes(torch, log):
    vmap, x, i = _vmap(torch), _data(torch, 2, 3), torch.arange(6).reshape(2, 3)
    f, h, b, c = x.float(), x.half(), x > 0, x + 1j * x
    log(*(lambda a=a, z=z: vmap(lambda p, q: p + q)(a, z).dtype for a in (x, f, i, b, c) for z in (x, f, i, b, c)),
        *(lambda a=a: vmap(lambda p: p * 2)(a).dtype for a in (x, f, h, i, b, c)),
        *(lambda a=a: vmap(lambda p: p * 2.5)(a).dtype for a in (f, h, i, b)),
        *(lambda a=a: vmap(lambda p: p.sum())(a) for a in (x, f, i, b, c)), lambda: vmap(lambda p, q: p + q)(f[:, 0], x[:, 0]).dtype,
        lambda: vmap(lambda p, q: p + q)(i[:, 0], f).dtype, lambda: vmap(lambda p, q: p + q, (0, None))(f, torch.tensor(1.0)).dtype,
        lambda: vmap(lambda p, q: p + q, (0, None))(i, torch.tensor(1.0, dtype=torch.float32)).dtype, lambda: vmap(lambda p: p / 2)(i),
        lambda: vmap(lambda p: p // 2)(i), lambda: vmap(lambda p: p % 2 == 0)(i), lambda: vmap(torch.argmax)(i), lambda: vmap(lambda p: p.float())(i),
        lambda: vmap(lambda p: p.to(torch.complex128))(f), lambda: vmap(lambda p: p.mean())(i.double()), lambda: vmap(torch.mul)(i, b),
        lambda: vmap(lambda p: ~p)(b), lambda: vmap(lambda p: p & 1)(i), lambda: vmap(lambda p: p << 1)(i), lambda: vmap(torch.bitwise_not)(i))


def refused(torch, log):
    vmap, x, y = _vmap(torch), _data(torch, 2, 3), _data(torch, 3, 2)
    s = torch.tensor(1.0)
    twice = lambda a: a * 2  # noqa: E731
    log(lambda: vmap(torch.mul)(x, y), lambda: vmap(torch.mul, in_dims=(0, 0, 0))(x, x), lambda: vmap(torch.mul, in_dims=(0,))(x, x),
        lambda: vmap(twice, in_dims=2)(x), lambda: vmap(twice, in_dims=-3)(x), lambda: vmap(twice)(s), lambda: vmap(twice)(2.0),
        lambda: vmap(twice, in_dims=None)(x), lambda: vmap(torch.mul, in_dims=(None, None))(x, x), lambda: vmap(twice, in_dims="0")(x),
        lambda: vmap(twice, in_dims=0.5)(x), lambda: vmap(twice, in_dims=(0.5,))(x), lambda: vmap(twice, in_dims=((0, 0),))(x),
        lambda: vmap(lambda p: p[0], in_dims=((0, 0),))((x, x, x)), lambda: vmap(lambda p: p["a"], in_dims=({"b": 0},))({"a": x}),
        lambda: vmap(lambda: s)(), lambda: vmap(twice, out_dims=2)(x), lambda: vmap(twice, out_dims=-3)(x), lambda: vmap(twice, out_dims=(0, 0))(x),
        lambda: vmap(lambda a: (a, a), out_dims=(0, 0, 0))(x), lambda: vmap(lambda a: (a, a), out_dims=(0,))(x), lambda: vmap(twice, out_dims="0")(x),
        lambda: vmap(twice, out_dims=None)(x), lambda: vmap(lambda a: 2.0)(x), lambda: vmap(lambda a: None)(x), lambda: vmap(lambda a: (a, 1))(x),
        lambda: vmap(lambda a: "x")(x), lambda: vmap(twice, randomness="always")(x), lambda: vmap(twice, chunk_size=0)(x),
        lambda: vmap(twice, chunk_size=-1)(x), lambda: vmap(lambda a: torch.rand(2))(x), lambda: vmap(lambda a: torch.randn_like(a))(x),
        lambda: vmap(lambda a: a + torch.randint(3, (3,)))(x), lambda: vmap(lambda a: torch.bernoulli(a.abs() / 2))(x),
        lambda: vmap(lambda a: torch.randperm(3))(x), lambda: vmap(lambda a: torch.normal(a, 1.0))(x))
    for call in (lambda a: a if a.sum() > 0 else -a, lambda a: a.item(), lambda a: float(a.sum()), lambda a: int(a.sum()), lambda a: a.tolist(),
                 lambda a: a[a > 0], lambda a: a.nonzero(), lambda a: torch.masked_select(a, a > 0), lambda a: a.unique(),
                 lambda a: torch.bincount(a.long()),
                 lambda a: torch.where(a > 0), lambda a: torch.equal(a, a), lambda a: torch.allclose(a, a), lambda a: max(a[0], a[1]),
                 lambda a: a.numpy(),
                 lambda a: torch.zeros(3).add_(a), lambda a: torch.zeros(3).copy_(a), lambda a: torch.repeat_interleave(a, (a > 0).long()),
                 lambda a: range(a[0].long()), lambda a: a.backward(), lambda a: bool(a[0]),
                 lambda a: torch.tensor_split(a, a.long()), lambda a: sorted(a), lambda a: not a[0], lambda a: 1.0 in a):
        try:
            kind = repr(vmap(call)(x.clone()))
        except Exception as error:
            kind = type(error).__name__
        log(lambda kind=kind: kind)


def derivatives(torch, log):
    f, vmap = torch.func, _vmap(torch)
    x, y = _data(torch, 3, 2), _data(torch, 3, 2).cos()
    a = _data(torch, 2, 2).sin()

    def energy(p):
        return (p.sin() * (a @ p)).sum() + p.prod()

    def many(p):
        return torch.stack([p[0] * p[1], p[0].exp(), (p * p).sum()])

    def pair(p, q):
        return {"s": (p * q).sum(), "t": p * q.cos()}

    log.numbers(vmap(f.grad(energy))(x), vmap(f.grad(f.grad(lambda t: t.sin() * t)))(x[:, 0]), vmap(f.jacrev(many))(x), vmap(f.jacfwd(many))(x),
                vmap(f.hessian(energy))(x), f.jacrev(vmap(many))(x), f.jacfwd(vmap(many))(x), f.grad(lambda p: vmap(energy)(p).sum())(x),
                f.hessian(lambda p: vmap(energy)(p).sum())(x), vmap(f.jacrev(f.jacrev(many)))(x), vmap(f.jacfwd(f.jacrev(many)))(x),
                vmap(f.grad_and_value(energy))(x), vmap(lambda p, q: f.jvp(many, (p,), (q,)))(x, y),
                vmap(lambda p, q: f.vjp(energy, p)[1](q[0]))(x, y),
                vmap(lambda t: f.jvp(many, (x[0],), (t,))[1])(torch.eye(2)), vmap(f.vjp(many, x[0])[1])(torch.eye(3)),
                vmap(f.grad(lambda p, q: (p * q).sum().sin(), argnums=(0, 1)))(x, y),
                vmap(f.grad(lambda p, q: (p * q).sum().sin(), 1), (0, None))(x, y[0]),
                vmap(f.jacrev(pair, argnums=1))(x, y), vmap(vmap(f.grad(lambda t: t.sin() * t)))(x), f.jacrev(vmap(f.grad(energy)))(x),
                f.grad(lambda p: vmap(f.grad(energy))(p).square().sum())(x), f.jacfwd(vmap(f.grad(energy)))(x),
                vmap(lambda p: vmap(lambda q: f.grad(lambda r: (r * p * q).sum())(q))(y))(x),
                f.grad(lambda p: vmap(lambda q: (p * q).sum())(y).prod())(x[0]),
                f.grad(lambda w: vmap(lambda q: (w @ q).sin().sum())(x).sum())(a), f.jacrev(lambda w: vmap(lambda q: (w @ q).sin())(x))(a),
                vmap(lambda p: f.jacrev(lambda w: (w @ p).sin())(a))(x), vmap(f.grad(lambda w, p: (w @ p).sin().sum()), (None, 0))(a, x),
                f.linearize(lambda p: vmap(many)(p), x)[1](y))


def per_sample(torch, log):
    f, vmap, nn = torch.func, _vmap(torch), torch.nn
    model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2))
    _numbered(model, torch)
    x, labels, targets = _data(torch, 5, 3).sin(), torch.tensor([0, 1, 1, 0, 1]), _data(torch, 5, 2).cos()
    parameters = {k: p.detach() for k, p in model.named_parameters()}

    def classified(parameters, sample, label):
        return nn.functional.cross_entropy(f.functional_call(model, parameters, (sample.unsqueeze(0),)), label.unsqueeze(0))

    def regressed(parameters, sample, target):
        return nn.functional.mse_loss(f.functional_call(model, parameters, (sample,)), target)

    log.numbers(vmap(f.grad(classified), (None, 0, 0))(parameters, x, labels), vmap(f.grad(regressed), in_dims=(None, 0, 0))(parameters, x, targets),
                vmap(f.grad_and_value(classified), (None, 0, 0), randomness="different")(parameters, x, labels)[1],
                vmap(f.grad(classified), (None, 0, 0), chunk_size=2)(parameters, x, labels), vmap(model)(x), vmap(f.jacrev(model))(x))
    out = vmap(lambda s, label: nn.functional.cross_entropy(model(s.unsqueeze(0)), label.unsqueeze(0)))(x, labels)
    out.sum().backward()
    log.numbers(out.detach(), [p.grad for p in model.parameters()])
    w = torch.tensor([[1.0, 2.0, 0.5], [0.0, -1.0, 1.0]], requires_grad=True)
    y = vmap(lambda s: (w @ s).sin())(x)
    (y * y).sum().backward()
    log.numbers(y.detach(), w.grad)
    leaf = x.clone().requires_grad_()
    vmap(lambda s: s.exp().sum() * w.detach()[0, 0])(leaf).backward(torch.arange(5.0))
    log.numbers(leaf.grad)
    log(lambda: vmap(lambda s: w @ s)(x).requires_grad, lambda: vmap(lambda s: s * 2)(x).requires_grad, lambda: vmap(lambda s: s * 2)(leaf).is_leaf)
    for loss in (nn.functional.l1_loss, nn.functional.mse_loss, nn.functional.binary_cross_entropy_with_logits):
        log.numbers(vmap(loss)(x, x.cos()), vmap(f.grad(loss))(x, x.cos()), vmap(loss, (0, None))(x, x[0].cos()))
    for loss in (nn.functional.cross_entropy, nn.functional.nll_loss):
        log.numbers(vmap(loss)(targets, labels), vmap(f.grad(loss))(targets, labels), vmap(loss, (None, 0))(targets[0], labels),
                    vmap(loss, (0, None))(targets, labels[0]), vmap(loss)(torch.stack([targets] * 2), torch.stack([labels, 1 - labels])),
                    vmap(lambda t, k: loss(t, k, reduction="none"))(torch.stack([targets] * 2), torch.stack([labels, 1 - labels])),
                    vmap(lambda t, k: loss(t, k, reduction="sum"))(torch.stack([targets] * 2), torch.stack([labels, 1 - labels])))


def _numbered(module, torch):
    from tests.support.sides import numbered

    numbered(module, torch)


def chosen(torch, log):
    vmap, x = _vmap(torch), _data(torch, 3, 4).mul(7).sin()
    i = torch.tensor([[0, 2, 1, 1], [3, 3, 0, 1], [2, 0, 0, 1]])
    k = torch.tensor([2, 0, 3])
    log.numbers(*(vmap(call)(x) for call in (
        torch.sort, torch.argsort, lambda a: torch.topk(a, 2), lambda a: torch.max(a, 0), lambda a: a.min(0), torch.median, lambda a: a.median(0),
        lambda a: torch.kthvalue(a, 2), lambda a: torch.cummax(a, 0), lambda a: a.cummin(0), torch.argmax, torch.argmin, lambda a: a.cumsum(0),
        lambda a: a.cumprod(0), lambda a: torch.where(a > 0, a, -a), lambda a: a.masked_fill(a > 0, 9.0), lambda a: a.flip(0),
        lambda a: a.roll(1), lambda a: torch.diff(a), torch.diag, lambda a: a.count_nonzero(),
        lambda a: torch.isin(a, a[:2]), lambda a: torch.clamp(a, -0.5, 0.5), lambda a: torch.clamp(a, a.mean()), lambda a: a.norm(),
        lambda a: a.norm(1),
        lambda a: a.norm(3), lambda a: a.std(), lambda a: a.var(correction=0), lambda a: a.logsumexp(0),
        lambda a: a.softmax(0), lambda a: a.prod(), lambda a: torch.stack([a, a]), lambda a: torch.cat([a, a[:1]]), lambda a: a.repeat(2),
        lambda a: a.repeat_interleave(2), lambda a: a.unfold(0, 2, 1), lambda a: torch.tril(torch.outer(a, a)), lambda a: torch.outer(a, a).trace(),
        lambda a: torch.outer(a, a).diagonal(), lambda a: a.split(2), lambda a: a.chunk(2), lambda a: a.unbind(), lambda a: a.reshape(2, -1),
        lambda a: torch.meshgrid(a, a[:2], indexing="ij"), lambda a: torch.searchsorted(a.sort().values, a),
        lambda a: torch.bucketize(a, x[0].sort().values),
        lambda a: torch.searchsorted(x[0].sort().values, a), lambda a: torch.signbit(a), lambda a: a.isfinite(), lambda a: a.nan_to_num(),
        lambda a: torch.lerp(a, a + 1, 0.25), lambda a: torch.hypot(a, a), lambda a: a.view(2, 2).T, lambda a: a.reshape(2, 2) @ a.reshape(2, 2),
        lambda a: torch.einsum("i,j->ij", a, a), lambda a: torch.einsum("i,i", a, a), lambda a: torch.bmm(a.view(1, 2, 2), a.view(1, 2, 2)),
        lambda a: torch.addmm(a[:2], a.view(2, 2), a.view(2, 2)), lambda a: a.amax(), lambda a: a.aminmax(), lambda a: a.nanmedian(),
        lambda a: torch.mode((a > 0).long()), lambda a: a.all(), lambda a: (a > 0).any(),
        lambda a: a.expand(2, 4), lambda a: a.contiguous(), lambda a: a.clone(), lambda a: a.movedim(0, -1), lambda a: a.unsqueeze(0).squeeze(0),
        lambda a: torch.tensor_split(a, 2), lambda a: a.tile((2,)), lambda a: torch.atleast_2d(a), lambda a: torch.broadcast_to(a, (2, 4)),
        lambda a: torch.block_diag(a, a), lambda a: torch.combinations(a))))
    log.numbers(vmap(lambda a, j: a.gather(0, j))(x, i), vmap(lambda a, j: a.gather(0, j), (None, 0))(x[0], i), vmap(lambda a, j: a[j])(x, i),
                vmap(lambda a, j: a[j], (0, None))(x, i[0]), vmap(lambda a, j: torch.index_select(a, 0, j))(x, i), vmap(torch.take)(x, i),
                vmap(lambda a, j: a.scatter(0, j[:2], 5.0))(x, i), vmap(lambda a, j: a.scatter_add(0, j, a))(x, i),
                vmap(lambda a, j: a.index_add(0, j, a))(x, i), vmap(lambda a, j: a.index_copy(0, j[1:3], a[:2]))(x, torch.tensor([[0, 1, 2, 3]] * 3)),
                vmap(lambda a, j: torch.take_along_dim(a, j, 0))(x, i), vmap(lambda a, j: a.index_fill(0, j[:1], 7.0))(x, i),
                vmap(lambda a, j: torch.index_put(a, (j[:1],), a[:1], accumulate=True))(x, i), vmap(lambda a, j: a * j)(x, k),
                vmap(lambda a, j: torch.outer(a, a)[:, j])(x, i), vmap(lambda a, j: torch.outer(a, a)[j, j])(x, i),
                vmap(lambda a, j: torch.outer(a, a)[j, None, 1:])(x, i), vmap(lambda a, j: torch.stack([torch.outer(a, a)] * 2)[:, j, :2])(x, i),
                vmap(lambda a, j: torch.outer(a, a)[j][:, j])(x, i))


def functions(torch, log):
    f, vmap = torch.func, _vmap(torch)
    calls = []

    class Cube(torch.autograd.Function):
        generate_vmap_rule = True

        @staticmethod
        def forward(x):
            return x * x * x

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.save_for_backward(*inputs)

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return 3 * g * x * x

    class Product(torch.autograd.Function):
        @staticmethod
        def forward(a, b, power):
            return (a @ b) ** power, a.sum()

        @staticmethod
        def setup_context(ctx, inputs, output):
            a, b, ctx.power = inputs
            ctx.save_for_backward(a, b)

        @staticmethod
        def backward(ctx, g, h):
            a, b = ctx.saved_tensors
            inner = ctx.power * (a @ b) ** (ctx.power - 1) * g
            return inner[..., None, :] * b.mT if a.ndim > 1 else (inner * b + h), inner * a, None

        @staticmethod
        def vmap(info, in_dims, a, b, power):
            calls.append((info.batch_size, info.randomness, in_dims, tuple(a.shape), tuple(b.shape), power))
            a = a if in_dims[0] is None else a.movedim(in_dims[0], 0)
            b = b if in_dims[1] is None else b.movedim(in_dims[1], 0)
            rows = [Product.apply(a if in_dims[0] is None else a[i], b if in_dims[1] is None else b[i], power) for i in range(info.batch_size)]
            return (torch.stack([r[0] for r in rows], -1), torch.stack([r[1] for r in rows])), (-1, 0)

    x, y = _data(torch, 2, 3).sin(), _data(torch, 2, 3).cos()
    log.numbers(vmap(Cube.apply)(x), vmap(f.grad(lambda a: Cube.apply(a).sum()))(x), f.grad(lambda a: vmap(Cube.apply)(a).sum())(x),
                vmap(f.jacrev(Cube.apply))(x), vmap(f.grad(f.grad(lambda a: Cube.apply(a))))(x[0]), vmap(vmap(Cube.apply))(x))
    leaf = x.clone().requires_grad_()
    vmap(lambda a: Cube.apply(a).sum())(leaf).sum().backward()
    log.numbers(leaf.grad)
    log.numbers(*vmap(Product.apply, (0, 0, None))(x, y, 2), *vmap(Product.apply, (0, None, None))(x, y[0], 2),
                *vmap(Product.apply, (None, 0, None))(x[0], y, 3), vmap(lambda a: Product.apply(a, y[0], 2)[0], randomness="same")(x),
                f.grad(lambda a: sum(t.sum() for t in vmap(Product.apply, (0, 0, None))(a, y, 2)))(x),
                vmap(f.grad(lambda a, b: Product.apply(a, b, 2)[0]))(x, y), vmap(lambda a: vmap(lambda b: Product.apply(a, b, 2)[0])(y))(x))
    log.numbers(calls[:4])
    kept = x.clone().requires_grad_()
    vmap(lambda a: Product.apply(a, y[0], 2)[0] * 2)(kept).sum().backward()
    log.numbers(kept.grad)


def wrong_functions(torch, log):
    vmap, x = _vmap(torch), _data(torch, 2, 3)

    def made(rule, generate=False):
        class Twice(torch.autograd.Function):
            generate_vmap_rule = generate

            @staticmethod
            def forward(x):
                return 2 * x

            @staticmethod
            def setup_context(ctx, inputs, output):
                pass

            @staticmethod
            def backward(ctx, g):
                return 2 * g

        Twice.vmap = staticmethod(rule)
        return Twice.apply

    log(lambda: vmap(made(lambda info, dims, x: x))(x), lambda: vmap(made(lambda info, dims, x: (x, 0, 0)))(x),
        lambda: vmap(made(lambda info, dims, x: (x, 0), True))(x), lambda: vmap(made(lambda info, dims, x: ((x, x), (0, 0, 0))))(x),
        lambda: vmap(made(lambda info, dims, x: (2 * x, 0)))(x), lambda: vmap(made(lambda info, dims, x: (2 * x, None)))(x))


def shared(torch, log):
    """Derivatives to third order by what all members of a batch share, captured or passed."""
    f, vmap = torch.func, _vmap(torch)
    x, a, b = (_data(torch, 3, 2) - 0.1).sin(), _data(torch, 2, 2).sin(), torch.tensor([0.3, 0.7])

    def summed(w):
        return vmap(lambda q: (w @ q).sin().sum())(x).sum()

    def nested(w):
        return vmap(lambda q: f.grad(lambda r: (w @ r).sin().sum() * r.prod())(q).square().sum())(x).sum()

    def chosen(w):
        return vmap(lambda q: (w * q).sum().exp() + (w + q).prod() + w.sum() / q[0] + torch.where(q[0] > 0, w, -w).pow(3).sum() * q[1])(x).sum()

    def squared(transform):
        return lambda w: transform(w).square().sum()

    log.numbers(f.hessian(summed)(a), f.jacfwd(f.jacrev(summed))(a), f.jacrev(f.jacrev(summed))(a), f.jacrev(f.jacfwd(summed))(a),
                f.grad(squared(f.grad(summed)))(a), f.grad(nested)(a), f.hessian(nested)(a), f.grad(squared(f.grad(nested)))(a), f.grad(chosen)(b),
                f.hessian(chosen)(b), f.grad(squared(f.grad(chosen)))(b), f.grad(squared(f.hessian(chosen)))(b),
                f.grad(squared(f.jacfwd(f.jacrev(chosen))))(b), vmap(lambda s: f.grad(lambda w: summed(w * s))(a))(b),
                vmap(lambda s: f.hessian(lambda w: chosen(w * s))(b))(b), vmap(f.grad(lambda s: f.grad(lambda w: chosen(w * s))(b).sum()))(b))
    w = a.clone().requires_grad_()
    (g,) = torch.autograd.grad(nested(w), w, create_graph=True)
    (h,) = torch.autograd.grad(g.square().sum(), w)
    each = vmap(f.grad(lambda w, q: (w @ q).sin().sum()), (None, 0))(w, x)
    log.numbers(g.detach(), h, torch.autograd.grad(each.square().sum(), w))


def batched_cotangents(torch, log):
    grad, functional = torch.autograd.grad, torch.autograd.functional
    x, w = torch.tensor([1.0, 2.0, 3.0], requires_grad=True), torch.tensor([2.0, 1.0, 0.5], requires_grad=True)
    y, z = (x * w).sin(), x.sum() * w[0]
    log(lambda: grad(y, (x, w), torch.eye(3), is_grads_batched=True, retain_graph=True),
        lambda: grad((y, z), (x, w), (torch.eye(3), torch.arange(3.0)), is_grads_batched=True, retain_graph=True),
        lambda: grad((y, z), x, (torch.eye(3), torch.arange(3.0)), True, False, True, None, True), lambda: grad(y, {"x": x}, torch.ones(3), True),
        lambda: grad(z * 1, x, torch.ones(2), is_grads_batched=True, allow_unused=True),
        lambda: grad(x.sum(), w, torch.ones(2), is_grads_batched=True, allow_unused=True), lambda: grad(y, x, torch.eye(2), is_grads_batched=True),
        lambda: grad((y, z), (x, w), (torch.eye(3), torch.arange(2.0)), is_grads_batched=True),
        lambda: grad(y * 1, x, torch.ones(3), only_inputs=False),
        lambda: grad(x.sum(), w, torch.ones(2), is_grads_batched=True),
        lambda: functional.jacobian(lambda x: x**2, x, strict=True, vectorize=True), lambda: functional.hessian(lambda x: x.sum(), x, vectorize=True))
    g = grad((x * w).sin(), x, torch.eye(3), is_grads_batched=True, create_graph=True)[0]
    log.numbers(g.detach(), grad(g.square().sum(), (x, w)))
    a = torch.tensor([[0.5, -1.0, 2.0], [1.5, 0.25, -0.5]])

    def many(x, w):
        return (a @ x).sin() * w.sum(), (x * w).prod()

    def one(x, w):
        return ((a @ x).sin() * w[:2]).sum() * w.prod()

    given = x.detach(), w.detach()
    log.numbers(functional.jacobian(many, given, vectorize=True), functional.jacobian(many, given, vectorize=True, strategy="forward-mode"),
                functional.hessian(one, given, vectorize=True),
                    functional.hessian(one, given, vectorize=True, outer_jacobian_strategy="forward-mode"),
                functional.jacobian(lambda x: x.expand(2, 3), given[0], vectorize=True),
                    functional.jacobian(lambda x: x.sum(), given[0], vectorize=True))
    kept = functional.jacobian(lambda x: (a @ x).sin(), x, create_graph=True, vectorize=True)
    log.numbers(grad(kept.square().sum(), x))
    log(lambda: torch.autograd.gradcheck(lambda x, w: (a @ x).sin() * w[:2], (x, w), check_batched_grad=True),
        lambda: torch.autograd.gradcheck(lambda x: (a @ x).sin(), x, check_batched_grad=True, check_forward_ad=True, check_batched_forward_grad=True),
        lambda: torch.autograd.gradgradcheck(lambda x: (a @ x).sin(), x, check_batched_grad=True))
