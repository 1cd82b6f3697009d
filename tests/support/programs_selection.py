"""Programs that pick, place, sort and count elements, for `sides`: values, node names, gradients and errors."""

import math


def _a(torch):
    return torch.tensor([[3.0, -1.0, 2.0, 2.0], [0.5, 7.0, -4.0, 1.5], [2.0, 2.0, 9.0, -3.0]], requires_grad=True)


def _derived(torch, log, *calls):
    """Each call of a leaf: what it gives, and the gradient of a weighted sum of its first floating-point part."""
    for call in calls:
        a = _a(torch)
        log(lambda a=a, call=call: call(a))
        try:
            y = call(a)
        except Exception:
            y = ()
        y = next((part for part in (y if isinstance(y, (tuple, list)) else (y,)) if part.requires_grad), None)
        if y is None:
            log.numbers("no gradient")
        else:
            weights = torch.tensor([math.cos(k) for k in range(y.numel())], dtype=y.dtype).reshape(y.shape)
            (y * weights).sum().backward()
            log.numbers(a.grad + torch.zeros(3, 4))  # torch gives some zeros without memory


def pick(torch, log):
    i, t = torch.tensor([[0, 2, 1, 1], [2, 2, 0, 1]]), torch.tensor
    _derived(torch, log, lambda a: torch.gather(a, 0, i), lambda a: a.gather(1, t([[3], [0], [1]])),
        lambda a: torch.gather(a, -1, t([[3, 3], [0, 0], [1, 1]])), lambda a: torch.take(a, t([0, 5, 5, -1])), lambda a: a.take(t([[1, 2]])),
        lambda a: torch.take_along_dim(a, t([[3], [0], [1]]), 1), lambda a: torch.take_along_dim(a, t([3, 0, 3])),
        lambda a: torch.index_select(a, 1, t([0, 0, 3])), lambda a: a.index_select(0, t(1)), lambda a: torch.masked_select(a, a.detach() > 2),
        lambda a: a.masked_select(t([True, False, True, True])), lambda a: torch.narrow(a, 1, 1, 2), lambda a: a.narrow(0, -2, 2),
        lambda a: torch.select(a, 1, -1), lambda a: a.select(0, 1), lambda a: torch.diagonal(a), lambda a: a.diagonal(1),
        lambda a: a.diagonal(-1, 1, 0), lambda a: torch.stack([a, 2 * a]).diagonal(0, 1, 2), lambda a: torch.diag_embed(a),
        lambda a: torch.diag_embed(a[0], 1), lambda a: torch.diag_embed(a, -1, 0, 2), lambda a: torch.diagflat(a, 1), lambda a: a.unfold(1, 2, 1),
        lambda a: a.unfold(0, 2, 2), lambda a: torch.where(a > 1), lambda a: torch.where(a > 1, a, 0.0))
    a = _a(torch).detach()
    log(lambda: torch.gather(a, 0, t([[0.0]])), lambda: torch.gather(a, 2, i), lambda: torch.gather(a, 0, t([0, 1])),
        lambda: torch.gather(a, 0, t([[5]])), lambda: torch.gather(a, 1, t([[0], [0], [0], [0]])), lambda: torch.gather(a, 0, t([[-1]])),
        lambda: torch.take(a, t([99])), lambda: torch.take(a, t([0.5])), lambda: torch.index_select(a, 0, t([[0]])),
        lambda: torch.index_select(a, 0, t([7])), lambda: torch.index_select(a, 5, t([0])), lambda: torch.index_select(a, 0, t([0.5])),
        lambda: torch.masked_select(a, t([1, 0, 1, 0])), lambda: torch.masked_select(a, t([True, False])), lambda: torch.narrow(a, 1, 3, 2),
        lambda: torch.narrow(a, 1, 0, -1), lambda: torch.narrow(a, 1, 9, 0), lambda: torch.select(a, 1, 4), lambda: torch.select(a, 3, 0),
        lambda: torch.select(t(1.0), 0, 0), lambda: torch.diagonal(a, 0, 0, 0), lambda: torch.diagonal(a[0]), lambda: a.diagonal(9),
        lambda: torch.diag_embed(a, 0, 0, 0), lambda: a.unfold(1, 9, 1), lambda: a.unfold(1, 2, 0), lambda: torch.take_along_dim(a, t([0]), 1),
        lambda: torch.diagonal(a).data_ptr() == a.data_ptr(), lambda: a.narrow(1, 1, 2).storage_offset(), lambda: a.select(1, 2)._base is a,
        lambda: a.diagonal().stride(), lambda: a.unfold(1, 2, 1)._base is a, lambda: a.unfold(1, 3, 1).stride())


def place(torch, log):
    t = torch.tensor
    m = t([[True, False, True, False], [False, False, True, True], [True, True, False, False]])
    i, s = t([[0, 2, 1, 1], [2, 2, 0, 1]]), t([[10.0, 20.0, 30.0, 40.0], [50.0, 60.0, 70.0, 80.0]])
    _derived(torch, log, lambda a: torch.masked_fill(a, m, 5.0), lambda a: a.masked_fill(m, t(2.0)), lambda a: a.masked_fill(m[0], -1),
             lambda a: torch.masked_scatter(a, m, torch.arange(10.0)), lambda a: torch.zeros(3, 4).masked_scatter(m, a),
             lambda a: torch.index_add(a, 0, t([0, 2]), s), lambda a: a.index_add(1, t([1, 1]), torch.ones(3, 2), alpha=2),
             lambda a: torch.zeros(5, 4).index_add(0, t([0, 4, 0]), a), lambda a: torch.index_copy(a, 0, t([2, 0]), s),
             lambda a: torch.zeros(5, 4).index_copy(0, t([4, 1, 0]), a), lambda a: torch.index_fill(a, 1, t([0, 3]), 7.0),
             lambda a: a.index_fill(0, t([1]), t(2.0)), lambda a: torch.scatter(a, 0, i, s), lambda a: a.scatter(1, t([[0], [3], [1]]), 9.0),
             lambda a: torch.zeros(3, 4).scatter(1, t([[0, 1, 2, 3], [3, 2, 1, 0], [1, 0, 3, 2]]), a), lambda a: torch.scatter_add(a, 0, i, s),
             lambda a: torch.zeros(2, 4).scatter_add(0, t([[0, 1, 0, 1], [0, 0, 1, 1], [1, 1, 1, 1]]), a),
             lambda a: torch.select_scatter(a, t([1.0, 2.0, 3.0]), 1, 2), lambda a: torch.slice_scatter(a, torch.ones(3, 2), 1, 0, 4, 2),
             lambda a: torch.diagonal_scatter(a, t([1.0, 2.0, 3.0])), lambda a: torch.zeros(3, 3, 4).select_scatter(a, 0, 1),
             lambda a: torch.zeros(6, 4).slice_scatter(a, 0, 1, 4), lambda a: torch.zeros(4, 4).diagonal_scatter(a[1]),
             lambda a: torch.index_put(a, (t([0, 2]), t([1, 1])), t([8.0, 9.0])), lambda a: torch.index_put(a, (t([0, 0]),), t(1.0), accumulate=True))
    a = _a(torch).detach()
    log(lambda: a.masked_fill(m, torch.ones(2)), lambda: a.masked_fill(t([1, 0, 1, 0]), 0.0), lambda: torch.masked_scatter(a, m, torch.ones(2)),
        lambda: torch.index_add(a, 0, t([0]), s), lambda: torch.index_add(a, 0, t([9, 0]), s), lambda: torch.index_copy(a, 0, t([0]), s),
        lambda: torch.index_fill(a, 0, t([9]), 1.0), lambda: torch.index_fill(a, 0, t([0]), s), lambda: torch.scatter(a, 0, i, s.float()),
        lambda: torch.scatter(a, 0, t([[9]]), s), lambda: torch.scatter(a, 0, t([0, 1]), s), lambda: torch.scatter(a, 0, t([[0.0]]), s),
        lambda: torch.scatter_add(a, 0, i, s[:1]), lambda: torch.select_scatter(a, t([1.0]), 1, 2), lambda: torch.index_add(a, 0, t([0, 1]), s[0]))


def order(torch, log):
    t = torch.tensor
    _derived(torch, log, lambda a: torch.sort(a), lambda a: a.sort(0, descending=True), lambda a: a.sort(stable=True, dim=1),
        lambda a: torch.sort(a[0], 0, True), lambda a: torch.topk(a[:2], 2), lambda a: a[:, :1].topk(2, 0, largest=False),
        lambda a: torch.topk(a[1:2], 2, dim=1, largest=True, sorted=True), lambda a: torch.kthvalue(a[1], 2),
        lambda a: a.kthvalue(1, 0, keepdim=True), lambda a: torch.median(a), lambda a: torch.median(a, 1), lambda a: a.median(0, keepdim=True),
        lambda a: torch.msort(a), lambda a: torch.cummax(a, 1), lambda a: torch.cummin(a, 0), lambda a: a[2].mode(0), lambda a: torch.max(a[1:], 1),
        lambda a: torch.min(a[1:], dim=0), lambda a: torch.aminmax(a[1:2], dim=1), lambda a: torch.max(a, t(1.0)), lambda a: torch.nanmedian(a),
        lambda a: torch.min(a[1]))
    a = _a(torch).detach()
    log(lambda: torch.argsort(a), lambda: a.argsort(0, descending=True), lambda: torch.argsort(a, stable=True), lambda: torch.argmax(a),
        lambda: a.argmin(1), lambda: torch.argmax(a, 0, keepdim=True), lambda: torch.sort(t([3, 1, 2])), lambda: torch.sort(t([True, False])),
        lambda: torch.sort(t(3.0)), lambda: torch.topk(a, 5), lambda: torch.topk(a, 0), lambda: torch.topk(t(3.0), 1), lambda: torch.kthvalue(a, 0),
        lambda: torch.kthvalue(a, 9), lambda: torch.sort(a, 5), lambda: torch.median(t([])), lambda: torch.median(t([1.0, math.nan, 3.0])),
        lambda: torch.nanmedian(t([1.0, math.nan, 3.0])), lambda: torch.sort(t([1.0, math.nan, -math.inf, 3.0])),
        lambda: torch.sort(t([1.0, math.nan, 3.0]), descending=True), lambda: torch.sort(t([])), lambda: torch.max(a, 1, keepdim=True),
        lambda: torch.max(t([1, 5, 5]), 0), lambda: torch.max(t([])), lambda: torch.max(t([]), 0), lambda: torch.max(t([1.0, math.nan]), 0),
        lambda: a.max(1).values, lambda: torch.min(a, 0)[1], lambda: torch.cummax(t([1.0, 3.0, 2.0, 3.0]), 0), lambda: torch.median(t([4, 1, 3, 2])),
        lambda: torch.median(t([[4, 1], [3, 2]]), 0), lambda: torch.mode(t([[1, 2, 2], [3, 3, 1]])), lambda: torch.aminmax(a),
        lambda: torch.aminmax(a, dim=0, keepdim=True), lambda: torch.sort(a, dim=1).indices.dtype, lambda: torch.topk(a, 2)[0].shape)


def count(torch, log):
    t, nan, inf = torch.tensor, math.nan, math.inf
    x = t([[1, 2, 2], [3, 1, 1]])
    log(lambda: torch.unique(x), lambda: torch.unique(x, return_inverse=True), lambda: torch.unique(x, return_counts=True),
        lambda: torch.unique(x, True, True, True), lambda: x.unique(dim=0),
        lambda: torch.unique(t([[1, 2], [1, 2], [0, 1]]), dim=0, return_inverse=True),
        lambda: torch.unique(t([[1, 2], [1, 2], [0, 1]]), dim=0, return_counts=True), lambda: torch.unique(t([[1, 1, 0], [2, 2, 1]]), dim=1),
        lambda: torch.unique(t([2.5, 1.0, 2.5]), sorted=True), lambda: torch.unique(t([])), lambda: torch.unique(t([True, True])),
        lambda: torch.unique(t(3)), lambda: torch.unique(t([1.0, nan, nan])), lambda: torch.unique_consecutive(t([1, 1, 2, 2, 3, 1, 1])),
        lambda: torch.unique_consecutive(t([1, 1, 2, 2, 3, 1, 1]), return_inverse=True, return_counts=True),
        lambda: torch.unique_consecutive(t([[1, 2], [1, 2], [0, 1]]), dim=0), lambda: x.unique_consecutive())
    y = t([1.0, 0.5, 1.0], requires_grad=True)
    log(lambda: torch.unique(y), lambda: torch.unique(y, return_inverse=True), lambda: torch.unique(y).is_leaf,
        lambda: torch.unique(y).sum().backward(), lambda: torch.unique(y.detach()).backward(), lambda: torch.ne(y, y).sum().backward(),
        lambda: torch.argmax(y).backward(), lambda: y.unique(dim=0), lambda: torch.unique_consecutive(y), lambda: torch.unique(y[None]),
        lambda: torch.nonzero(y), lambda: torch.histc(y), lambda: torch.sign(y))
    log(lambda: torch.nonzero(x > 1), lambda: (x > 1).nonzero(), lambda: torch.nonzero(x > 1, as_tuple=True), lambda: torch.nonzero(t(5)),
        lambda: torch.nonzero(t(0)), lambda: torch.nonzero(t([0.0, 1.5])), lambda: torch.count_nonzero(x > 1), lambda: torch.count_nonzero(x, dim=0),
        lambda: x.count_nonzero((0, 1)), lambda: torch.bincount(t([0, 1, 1, 3])), lambda: torch.bincount(t([0, 1, 1]), t([0.5, 1.0, 2.0])),
        lambda: torch.bincount(t([0, 1]), minlength=4), lambda: torch.bincount(t([])), lambda: torch.bincount(t([-1])),
        lambda: torch.bincount(t([1.0])), lambda: torch.bincount(x), lambda: torch.bincount(t([], dtype=torch.int64)),
        lambda: torch.bincount(t([1]), minlength=-1), lambda: torch.bincount(t([1]), t([1.0, 2.0])))
    e = t([1.0, 3.0, 5.0, 7.0])
    log(lambda: torch.searchsorted(e, t([3.0, 4.0, 9.0])), lambda: torch.searchsorted(e, t([3.0, 4.0]), right=True),
        lambda: torch.searchsorted(e, 3.0), lambda: torch.searchsorted(torch.stack([e, e + 1]), t([[3.0], [4.0]])),
        lambda: torch.searchsorted(e, t([3.0]), side="right"), lambda: torch.searchsorted(e, t([3.0]), out_int32=True),
        lambda: torch.searchsorted(t([3.0, 1.0]), t([2.0]), sorter=t([1, 0])), lambda: torch.bucketize(t([[3.0, 6.0]]), e),
        lambda: torch.bucketize(3.0, e, right=True), lambda: torch.searchsorted(e, t([3])), lambda: torch.searchsorted(torch.stack([e, e]), t([3.0])),
        lambda: torch.histc(t([1.0, 2.0, 1.0]), bins=4, min=0, max=3), lambda: torch.histc(t([1.0, 2.0])).shape,
        lambda: torch.histc(t([1.0, 2.0, 9.0]), 2, 0, 2), lambda: torch.histc(t([1, 2])), lambda: torch.histc(t([1.0]), -1),
        lambda: torch.histc(t([1.0]), 2, 3, 1), lambda: torch.histc(t([2.0, 2.0]), 3), lambda: torch.isin(t([1, 2, 3]), t([2, 3])),
        lambda: torch.isin(t([1, 2, 3]), 2), lambda: torch.isin(2, t([1, 2])), lambda: torch.isin(t([1, 2, 3]), t([2]), invert=True))
    z = t([1.0, nan, inf, -inf, 0.0, -0.0])
    log(lambda: torch.isnan(z), lambda: z.isinf(), lambda: torch.isfinite(z), lambda: torch.isposinf(z), lambda: z.isneginf(),
        lambda: torch.isreal(t([1j, 1.0])), lambda: torch.signbit(z), lambda: torch.sign(z[2:]), lambda: torch.sgn(t([1j, 0.0])),
        lambda: torch.logical_and(z, z > 0), lambda: torch.logical_or(z, z > 0), lambda: torch.logical_not(z),
        lambda: torch.logical_xor(z > 0, z < 1), lambda: torch.any(x), lambda: x.all(), lambda: torch.any(x > 2, dim=1),
        lambda: torch.all(x > 0, 0, keepdim=True), lambda: torch.all(x > 0, dim=(0, 1)), lambda: torch.any(t([])), lambda: torch.all(t([])),
        lambda: x.any(0), lambda: torch.isnan(x), lambda: torch.nan_to_num(z), lambda: z.nan_to_num(0.5, 1.0, -1.0), lambda: torch.bitwise_and(x, 3),
        lambda: torch.bitwise_or(x, x), lambda: torch.bitwise_xor(x, 1), lambda: torch.bitwise_not(x), lambda: torch.bitwise_left_shift(x, 1),
        lambda: x.bitwise_right_shift(1), lambda: torch.bitwise_and(x, 1.5), lambda: x << 1, lambda: x >> 1, lambda: torch.gcd(t([6, 9]), t([4, 3])),
        lambda: torch.lcm(t([6, 9]), t([4, 3])), lambda: torch.bitwise_not(t([True])))
