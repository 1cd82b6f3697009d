"""Programs with products, arithmetic of several tensors, rearrangements and complex numbers, for `sides`."""


from tests.support.programs_selection import _a, _derived


def arithmetic(torch, log):
    t, b = torch.tensor, torch.tensor([[1.5, -2.0, 0.5, 3.0]])
    c = t([[2.0], [-1.5], [4.0]])
    _derived(torch, log, lambda a: torch.addcmul(a, b, c), lambda a: a.addcmul(c, b, value=-2), lambda a: torch.addcmul(b, a, a, value=0.5),
        lambda a: torch.addcdiv(a, b, c), lambda a: torch.addcdiv(c, a, b, value=3), lambda a: torch.addcdiv(b, c, a, value=2.0),
        lambda a: torch.lerp(a, b, 0.25), lambda a: torch.lerp(c, a, 0.75), lambda a: torch.lerp(b, c, a), lambda a: a.lerp(b, t(0.5)),
        lambda a: torch.float_power(a.abs() + 1, 2), lambda a: torch.fmod(a, 2), lambda a: torch.fmod(a, b), lambda a: a.fmod(-1.3),
        lambda a: torch.frac(a), lambda a: torch.trunc(a), lambda a: torch.logaddexp(a, b), lambda a: torch.hypot(a, c), lambda a: torch.atan2(a, c),
        lambda a: torch.rsub(a, b, alpha=2), lambda a: torch.positive(a), lambda a: torch.square(a), lambda a: torch.clamp_min(a, 0.3),
        lambda a: a.clamp_max(1.2), lambda a: torch.diff(a), lambda a: torch.diff(a, 2, 0), lambda a: a.diff(prepend=c, append=c),
        lambda a: torch.remainder(a, 1.7))
    a = _a(torch).detach()
    log(lambda: torch.floor_divide(a, 2), lambda: torch.floor_divide(t([7, -7]), 2), lambda: torch.floor_divide(t([7.5, -7.5]), t([2.0, 2.0])),
        lambda: a // b, lambda: t([7, -7]).floor_divide(3), lambda: torch.div(t([7]), 2), lambda: torch.fmod(t([7, -7]), 3),
        lambda: torch.lerp(a, b, c).shape, lambda: torch.addcmul(t([1]), t([2]), t([3])), lambda: torch.addcdiv(t([1]), t([2]), t([3])),
        lambda: torch.logical_xor(t([True, False]), t([1, 0])), lambda: torch.float_power(t([2]), 3), lambda: torch.clamp_min(t([1, 5]), 3),
        lambda: torch.sgn(t([3 + 4j])), lambda: torch.add(t([1, 2]), 1, alpha=2), lambda: torch.sub(a, b, alpha=2))


def products(torch, log):
    t = torch.tensor
    m, v, w = t([[1.0, 2.0], [0.5, -1.0], [3.0, 1.0], [-2.0, 0.5]]), t([1.0, -2.0, 0.5, 3.0]), t([2.0, 1.0, -1.0])
    batch = torch.arange(24.0).reshape(2, 4, 3) / 10
    _derived(torch, log, lambda a: torch.outer(a[0], w), lambda a: torch.ger(a[0], w), lambda a: torch.addmv(w, a, v),
        lambda a: torch.addmv(a[:, 0], a, v, beta=0.5, alpha=2), lambda a: torch.addr(a, w, v),
        lambda a: torch.addr(torch.zeros(3, 4), a[:, 1], a[1], beta=2, alpha=-1), lambda a: torch.bmm(torch.stack([a, -a]), batch),
        lambda a: torch.baddbmm(a[:, :3], torch.stack([a, -a]), batch),
        lambda a: torch.baddbmm(t(1.0), torch.stack([a, -a]), batch, beta=2, alpha=0.5), lambda a: torch.tensordot(a, m, 1),
        lambda a: torch.tensordot(a, batch, ([1, 0], [1, 2])), lambda a: torch.tensordot(a, a, 2), lambda a: torch.kron(a, m),
        lambda a: torch.kron(a[0], t([1.0, 2.0])), lambda a: torch.cross(a[:, 0], w, 0), lambda a: torch.cross(a, a.flip(1), dim=0),
        lambda a: torch.inner(a[0], v), lambda a: torch.inner(a, v[None]), lambda a: torch.cumprod(a, 1),
        lambda a: torch.cumprod(a * t([1.0, 0.0, 1.0, 0.0]), 1), lambda a: a.cumprod(0), lambda a: torch.std_mean(a),
        lambda a: torch.std_mean(a, 1, keepdim=True), lambda a: torch.var_mean(a, 0, correction=0), lambda a: torch.var_mean(a)[1])
    a = _a(torch).detach()
    log(lambda: torch.addmv(w, a, w), lambda: torch.addr(a, v, v), lambda: torch.bmm(a, a),
        lambda: torch.bmm(batch, batch), lambda: torch.tensordot(a, m, ([1], [1])), lambda: torch.cross(v, v, 0), lambda: torch.cross(w, w),
        lambda: torch.inner(a, w), lambda: torch.kron(t([1, 2]), t([3, 4])), lambda: torch.cumprod(t([1, 2, 3]), 0),
        lambda: torch.cumprod(t([2, 3], dtype=torch.int32), 0), lambda: torch.std_mean(t([1, 2])), lambda: torch.baddbmm(a, batch, batch),
        lambda: torch.cumprod(a, 0, dtype=torch.float32))


def arranged(torch, log):
    t = torch.tensor
    _derived(torch, log, lambda a: torch.tile(a, (2,)), lambda a: a.tile(2, 1, 1), lambda a: a.repeat(1, 2), lambda a: a.repeat((2, 1, 2)),
        lambda a: a[0].repeat(2, 3), lambda a: torch.repeat_interleave(a, 2), lambda a: torch.repeat_interleave(a, 2, dim=1),
        lambda a: a.repeat_interleave(t([1, 0, 2]), 0), lambda a: a.unflatten(1, (2, 2)), lambda a: torch.unflatten(a, -1, (-1, 2)),
        lambda a: torch.ravel(a), lambda a: a.t().ravel(), lambda a: torch.swapaxes(a, 0, 1), lambda a: a.swapdims(0, -1),
        lambda a: torch.moveaxis(a, 0, 1), lambda a: torch.hstack([a, a]), lambda a: torch.hstack((a[0], a[1])), lambda a: torch.vstack([a, a[0]]),
        lambda a: torch.vstack([a[0, 0], a[0, 1]]), lambda a: torch.dstack([a, 2 * a]), lambda a: torch.column_stack([a, a[:, 0]]),
        lambda a: torch.row_stack([a, a]), lambda a: torch.tensor_split(a, 3, 1), lambda a: a.tensor_split((1, 3), dim=1),
        lambda a: torch.tensor_split(a, t([1])), lambda a: torch.hsplit(a, 2), lambda a: a.vsplit(3), lambda a: torch.dsplit(a[None], [1, 2]),
        lambda a: torch.atleast_1d(a[0, 0]), lambda a: torch.atleast_2d(a[0]), lambda a: torch.atleast_3d(a), lambda a: torch.atleast_3d(a[0]),
        lambda a: torch.rot90(a), lambda a: torch.rot90(a, 2), lambda a: a.rot90(-1, (1, 0)), lambda a: torch.fliplr(a), lambda a: torch.flipud(a),
        lambda a: torch.meshgrid(a[0], a[1], indexing="ij"), lambda a: torch.meshgrid(a[0], a[1, :2], indexing="xy"),
        lambda a: torch.cartesian_prod(a[0], a[1, :2]), lambda a: torch.cartesian_prod(a[0]), lambda a: torch.combinations(a[0]),
        lambda a: torch.combinations(a[0], 3, with_replacement=True), lambda a: torch.block_diag(a[:2, :1], a[0, 0], a[1, :3]), lambda a: a.adjoint(),
        lambda a: torch.broadcast_tensors(a[0], a[:, :1]), lambda a: a.expand_as(torch.ones(2, 3, 4)), lambda a: a.view_as(torch.ones(4, 3)))
    a = _a(torch).detach()
    log(lambda: a.repeat(2), lambda: a.repeat(-1, 1), lambda: torch.tile(t(1.0), (2, 2)), lambda: torch.repeat_interleave(t([1, 0, 2])),
        lambda: a.repeat_interleave(t([1, 2]), 0), lambda: a.repeat_interleave(-1), lambda: a.unflatten(1, (3, 2)), lambda: a.unflatten(1, ()),
        lambda: torch.hstack([]), lambda: torch.vstack([a, t([1.0])]), lambda: torch.tensor_split(a, 0), lambda: torch.hsplit(a, 3),
        lambda: torch.vsplit(a[0], 1), lambda: torch.dsplit(a, 1), lambda: torch.rot90(a[0]), lambda: torch.rot90(a, 1, (0, 0)),
        lambda: torch.fliplr(a[0]), lambda: torch.meshgrid(t([1]), t([1.0]), indexing="ij"),
        lambda: torch.meshgrid(t([1]), indexing="zz"), lambda: torch.meshgrid(t([1]), t([2])), lambda: torch.combinations(a),
        lambda: torch.block_diag(torch.ones(1, 1, 1)), lambda: torch.ravel(a).data_ptr() == a.data_ptr(), lambda: a.swapaxes(0, 1)._base is a,
        lambda: a.unflatten(1, (2, 2)).data_ptr() == a.data_ptr(), lambda: torch.tensor_split(a, 2)[1].data_ptr() - a.data_ptr(),
        lambda: torch.ravel(a.t()).data_ptr() == a.data_ptr(), lambda: a.adjoint().shape)


def complexes(torch, log):
    t = torch.tensor
    _derived(torch, log, lambda a: torch.complex(a, 2 * a).abs(), lambda a: torch.complex(a, a * a).real, lambda a: torch.complex(a, a * a).imag,
        lambda a: torch.view_as_real(torch.complex(a, a * a)), lambda a: torch.complex(a, a + 1).angle(), lambda a: torch.angle(a),
        lambda a: torch.real(a), lambda a: torch.view_as_real(torch.polar(a.abs(), a)), lambda a: torch.view_as_complex(a.reshape(3, 2, 2)).abs(),
        lambda a: torch.conj(a), lambda a: (torch.complex(a, a * a).conj() * torch.complex(a, a)).real, lambda a: (torch.complex(a, -a) ** 2).imag,
        lambda a: torch.complex(a, a).sgn().real, lambda a: torch.complex(a, a).exp().imag)
    z = t([3 + 4j, 1 - 2j], requires_grad=True)
    log(lambda: z.real, lambda: z.imag, lambda: z.conj(), lambda: z.abs(), lambda: z.angle(), lambda: torch.view_as_real(z), lambda: z.conj().conj(),
        lambda: z * z.conj())
    (z.real * 2 + z.imag * 3).sum().backward()
    log(lambda: z.grad)
    z.grad = None
    (z * z).abs().sum().backward()
    log(lambda: z.grad)
    y = t([1 + 2j, 3 - 1j])
    r = y.real
    r[0] = 9.0
    y.imag[1] = 5.0
    log(lambda: y, lambda: r._base is y, lambda: torch.view_as_real(y).data_ptr() == y.data_ptr(), lambda: y.real.stride(),
        lambda: y.imag.data_ptr() - y.data_ptr())
    x = torch.arange(4.0)
    log(lambda: torch.view_as_complex(x.reshape(2, 2)), lambda: torch.view_as_complex(x), lambda: torch.view_as_complex(x.reshape(1, 4)),
        lambda: torch.view_as_real(x), lambda: x.imag, lambda: x.real is x, lambda: x.conj() is x, lambda: torch.complex(x, x.float()),
        lambda: torch.complex(x.int(), x.int()), lambda: torch.real(y), lambda: torch.imag(y), lambda: torch.isreal(y), lambda: y.is_conj(),
        lambda: torch.conj_physical(y), lambda: y.resolve_conj() is y, lambda: torch.polar(x, x).dtype,
        lambda: torch.complex(x.float(), x.float()).dtype, lambda: y.mH if y.ndim > 1 else None, lambda: torch.is_complex(y), lambda: y.conj().dtype)


def names(torch, log):
    log(lambda: (torch.inf, torch.nan, torch.pi, torch.e, torch.newaxis), lambda: torch.float is torch.float32,
        lambda: torch.return_types.sort((1, 2)), lambda: torch.return_types.max((1, 2, 3)), lambda: torch.ones(2).max(0).values,
        lambda: len(torch.ones(2).sort()), lambda: [name for name in ("values", "indices") if hasattr(torch.ones(2).topk(1), name)],
        lambda: isinstance(torch.ones(2).max(0), tuple))
