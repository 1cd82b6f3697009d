"""The memory order of results: the strides of an op's results are torch's, `.view(-1)` works where it works there, and as much memory is shared."""

import pytest
import torch

import symgrad
from symgrad.graph.op import REGISTRY

LAYOUTS = {
    "contiguous": lambda t: t.arange(24.0).reshape(2, 3, 4),
    "transposed": lambda t: t.arange(24.0).reshape(2, 4, 3).transpose(1, 2),
    "reversed": lambda t: t.arange(24.0).reshape(4, 3, 2).permute(2, 1, 0),
    "permuted": lambda t: t.arange(24.0).reshape(3, 4, 2).permute(2, 0, 1),
    "sliced": lambda t: t.arange(96.0).reshape(4, 3, 8)[::2, :, ::2],
    "permuted slice": lambda t: t.arange(96.0).reshape(8, 3, 4)[::2, :, ::2].permute(2, 1, 0),
    "expanded": lambda t: t.arange(8.0).reshape(2, 1, 4).expand(2, 3, 4),
    "expanded last": lambda t: t.arange(6.0).reshape(3, 2).t().unsqueeze(2).expand(2, 3, 4),
    "size one": lambda t: t.arange(8.0).reshape(4, 1, 2).permute(2, 1, 0),
    "no dimensions": lambda t: t.tensor(1.0),
    "empty": lambda t: t.zeros(4, 0, 2).permute(2, 1, 0),
}

# Of x, which lies in one of these ways, and y, of its shape and contiguous; i and j are indices, w is a vector that broadcasts.
CALLS = """
x.add(2.0); x + 1; 2 - x; 1 / x; x**2; 2**x; x % 2; x // 2; -x; abs(x); x.clamp(1.0, 2.0); x.clamp(y, y); x.clamp_min(1.0); x.clamp_max(1.0)
x.clamp(min=y)
t.isclose(x, y); t.where(x > 1, x, y); t.where(y > 1, x, y); t.where(x > 1, 0.0, x); t.where(y > 1, y, x); t.nn.functional.softplus(x)
t.nn.functional.relu(x); t.nn.functional.logsigmoid(x); t.sinc(x); x.sigmoid(); t.float_power(x, 2); t.fmod(x, 2.0); t.positive(x); x.nan_to_num()
t.addcmul(x, y, y); t.addcmul(y, x, x); t.addcmul(y, y, x); t.addcmul(x, x, x); t.addcdiv(x, y, y); t.addcdiv(y, y, x)
t.lerp(x, y, 0.5); t.lerp(y, x, 0.5); t.lerp(x, y, y); t.lerp(y, x, y); t.lerp(y, y, x); t.nn.functional.mse_loss(x, y, reduction="none")
t.nn.functional.mse_loss(x, y); t.nn.functional.mse_loss(y, x, reduction="none"); x.bool() & y.bool(); ~x.bool(); x.long() + 1; x.long() // 2
x.repeat(1, 2, 1); x.repeat(2, 1, 1, 1); x.tile(2, 1); x.repeat_interleave(2); x.repeat_interleave(2, 1); x.repeat_interleave(t.tensor([1, 2]), 0)
x.unflatten(2, (2, 2)); x.ravel(); t.atleast_1d(x); t.atleast_2d(x); t.atleast_3d(x); t.hstack([x, y]); t.vstack([x, x]); t.dstack([x, x])
t.column_stack([x, x]); t.block_diag(x[0], x[1]); x.tensor_split(2, 2); x.hsplit([1]); x.vsplit([1]); x.dsplit([1])
x.rot90(); x.rot90(2); x.rot90(3); x.rot90(0); x.fliplr(); x.flipud(); x.flip(0); x.flip((0, 2)); x.roll(1); x.roll(1, 0); x.roll((1, 1), (0, 2))
t.meshgrid(x[0, 0], x[0, 1], indexing="ij"); t.cartesian_prod(x[0, 0], x[0, 1]); t.combinations(x[0, 0]); t.combinations(x[0, 0], 0); x[0].adjoint()
x.select(1, 0); x.narrow(2, 1, 2); x.diagonal(0, 1, 2); x.diag_embed(); x.diag_embed(1, 0, 2); x[0].diagflat(); x.unfold(1, 2, 1); x[0].diag()
x[0, 0].diag()
t.mm(x[0], x[1].t()); t.mm(x[0].t(), x[1]); t.mv(x[0], x[0, 0]); t.mv(x[0].t(), x[0, :, 0]); t.dot(x[0, 0], x[0, 1]); t.addmm(x[0], y[0, :, :3], x[1])
t.addmm(x[0], x[0, :, :3], x[1], beta=2.0, alpha=3.0); t.matmul(x, x[0].t()); t.matmul(x, x.mT); t.matmul(x, x[0, 0]); t.matmul(x.mT, x)
t.outer(x[0, 0], x[0, 1]); t.einsum("ij,kj->ik", x[0], x[1]); t.einsum("ijk,ljk->il", x, x); t.einsum("ijk->ik", x); t.einsum("ijk,ijl->ikl", x, y)
x[0].trace(); x.tril(); x.triu(1); x[0].tril(); x.diff(); x.diff(dim=0); x.diff(n=0); x.cumprod(1); x.cumprod(0); x.cumsum(1); x.cumsum(2)
x.long().cumsum(1)
t.addmv(x[0, :, 0], x[0], x[0, 0]); t.addr(x[0], x[0, :, 0], x[0, 0]); t.addr(y[0], x[0, :, 0], x[0, 0]); t.baddbmm(x[:, :, :3], x, x.mT)
t.bmm(x, x.mT); t.bmm(x.mT, x); t.cross(x, y, dim=1); t.cross(y, x, dim=1); t.cross(x, x, dim=1); t.nn.functional.linear(x, y[0])
t.tensordot(x, x, ([1, 2], [1, 2])); t.tensordot(x, x, ([0], [0])); t.tensordot(x, y, ([1], [1])); t.inner(x, x); t.kron(x[0], x[1]); t.kron(x, x)
x.softmax(1); x.softmax(2); x.log_softmax(1); x.log_softmax(0); t.nn.functional.cross_entropy(x, t.tensor([[0] * 4] * 2))
t.nn.functional.nll_loss(x, t.tensor([[0] * 4] * 2), reduction="none"); t.nn.functional.binary_cross_entropy_with_logits(x, y, reduction="none")
t.complex(x, y); t.complex(x, x); t.polar(x, y); t.real(x); t.view_as_real(t.complex(x, x)); t.real(t.complex(x, y)); t.imag(t.complex(x, y))
x.conj()
t.angle(x); t.angle(t.complex(x, x)); t.sgn(x); t.sgn(t.complex(x, x)); t.complex(x, x).abs(); t.complex(x, x).conj().resolve_conj()
t.complex(x, x) * x
t.scatter(x, 2, i, 9.0); t.scatter(x, 2, i, y); x.scatter_add(2, i, y); x.index_add(1, j, y[:, :2]); x.index_copy(1, j, y[:, :2])
x.index_fill(1, j, 7.0)
x.index_fill(1, j, t.tensor(7.0)); x.select_scatter(y[0], 0, 0); x.slice_scatter(y[:, :, 1:], 2, 1); x.diagonal_scatter(t.zeros(4, 2))
x.masked_fill(x > 2, 0.0); x.masked_fill(y > 2, 0.0); x.masked_fill(y > 2, t.tensor(0.0)); x.masked_scatter(x > 2, t.zeros(24))
t.index_put(x, (t.tensor([0]),), t.tensor(1.0)); t.index_put(x, (t.tensor([0]),), t.tensor(1.0), True)
x.sum(); x.sum(0); x.sum(1); x.sum(2); x.sum((0, 2)); x.sum(1, keepdim=True); x.bool().sum(1); x.long().sum(1); x.mean(1); x.prod(1); x.prod(0)
x.amax(1); x.amax((0, 1)); x.amin(0); x.max(); x.max(1); x.min(2); x.max(1, True); x.aminmax(dim=1); x.argmax(1); x.argmax(0); x.argmin()
x.argmin(2, True)
(x > 1).all(1); (x > 1).any(0); x.all(2); x.var(1); x.std(0); t.var_mean(x, 1); t.std_mean(x, 1); x.logsumexp(1); x.logsumexp(0)
x.norm(); x.norm(dim=1); x.norm(1, dim=0); x.norm(3, dim=0); x.norm(float("inf"), dim=1); x.norm(0, dim=1); x.sum_to_size(1, 3, 1)
x.sum_to_size(2, 3, 4)
x.gather(2, i); x.take(t.tensor([0, 5])); x.take(t.tensor(0)); x.take(i); x.index_select(1, j); x.index_select(2, j); x.index_select(0, j)
x.masked_select(x > 2); x.take_along_dim(x.argsort(2), 2); x.sort(); x.sort(1); x.sort(0, descending=True); x.sort(stable=True, dim=1); x.msort()
x.argsort(1); x.argsort(0); x.topk(2); x.topk(2, 1); x.topk(1, 0); x.kthvalue(2); x.kthvalue(1, 0); x.kthvalue(2, 1, True); x.median(); x.median(1)
x.median(0, True); x.nanmedian(1); x.mode(); x.mode(1); x.mode(0, True); x.cummax(1); x.cummax(0); x.cummin(2)
x.reshape(4, 6); x.reshape(6, 4); x.reshape(-1); x.view(2, 12); x.view(6, 4); x.view_as(y); x.reshape_as(y); x[0, 0].expand_as(y); x.flatten()
x.flatten(1)
x.flatten(0, 1); x.flatten(1, 1); x.squeeze(); x.unsqueeze(1); x.permute(2, 0, 1); x.transpose(0, 1); x[0].t(); x.movedim(0, 2); x.expand(2, *x.shape)
t.broadcast_to(x, (2, *x.shape)); x.T; x.mT; x.mH; x[0].H
t.cat([x, x]); t.cat([x, y]); t.cat([x, x], 1); t.cat([y, x], 2); t.cat([x, y], 2); t.stack([x, x]); t.stack([x, x], 1); t.stack([x, x], 3)
t.stack([x, y])
x.split(2, 1); x.split([1, 2], 1); x.split_with_sizes([1, 2], 1); x.chunk(2, 2); x.unbind(1); x.clone(); t.clone(x, memory_format=t.contiguous_format)
x[0]; x[:, 1]; x[..., ::2]; x[..., None]; x[()]; x[...]; x[t.tensor(0)]; x[:, t.tensor(0)]; x[j]; x[:, j]; x[..., j]; x[j, :, j]; x[:, j, j]
x[j, j, j]
x[t.tensor([[0, 1], [1, 0]])]; x[:, t.tensor([[0, 1], [1, 0]])]; x[:, :, t.tensor([[0, 1], [1, 0]])]; x[j.unsqueeze(1), j]; x[j, None]; x[None, j]
x[:, None, j]; x[0, j]; x[j, 0]; x[:, 0, j]; x[j, :, 0]; x[0, :, j]; x[None, 0, :, j]; x[0, None, j]; x[t.tensor(0), :, j]; x[j, ..., 0]
x[-1, ..., j]
x[x > 2]; x[t.tensor([True, False])]; x[:, t.tensor([True, False, True])]; x[1, :, t.tensor([True, False, True, False])]; x[x[..., 0] > 2]
x[[0, 1], ...]; x[[1], :, [0]]; x[j, 1:, j]; x[:, :2][:, j]
x.to(t.float64); x.to(t.float32); x.to(t.int64); x.to(t.float32, copy=True); x.float().double(); x.bool(); x.long(); x.contiguous(); x.type_as(y)
x.cpu()
t.zeros_like(x); t.ones_like(x); t.empty_like(x); t.full_like(x, 2.0); t.rand_like(x); t.randn_like(x); t.zeros_like(x, dtype=t.float32)
t.zeros_like(x, memory_format=t.contiguous_format); x.new_zeros(2, 3); x.new_tensor([1.0]); x.new_full((2, 3), 1.0); x.detach(); x.data
t.bernoulli(x / 100)
""".replace("\n", "; ")
NUMBERS = {"maximum", "minimum", "atan2", "hypot", "logaddexp", "logical_and", "logical_or", "logical_xor"}  # which take no number in torch
COPIED = ("x.select_scatter(y[0], 0, 0)", "x.slice_scatter(y[:, :, 1:], 2, 1)", "x.diagonal_scatter(t.zeros(4, 2))")
KNOWN = {**{(call, layout): "torch copies the gaps between the elements, too" for call in COPIED for layout in ("sliced", "permuted slice")},
         **{("2**x", layout): "torch writes the powers of a number row by row" for layout in LAYOUTS},
         ("t.einsum(\"ijk,ijl->ikl\", x, y)", "size one"): "where nothing is summed torch multiplies elements, in the order of the operands"}


def elementwise():
    """The calls of the ops of which every one has the same arguments."""
    for op in REGISTRY.values():
        if op.surface.public and op.kind == "elementwise" and hasattr(torch, op.name):
            for given in ("x",) if op.arity == 1 else ("x, y", "y, x", "x, w", "w, x", "x, x") + ("x, 2.0",) * (op.name not in NUMBERS):
                yield f"t.{op.name}({given})"


def flat(y):
    return [z for part in y for z in flat(part)] if isinstance(y, (tuple, list)) else [y]


def viewable(y):
    try:
        y.view(-1)
    except RuntimeError:
        return False
    return True


def seen(t, call, layout):
    """What is seen of the results of a call; the name of the error where it is refused. Strides along dimensions of one element mean nothing."""
    t.set_default_dtype(t.float64)
    x = LAYOUTS[layout](t)
    y = t.arange(24.0).reshape(2, 3, 4) + 1 if tuple(x.shape) == (2, 3, 4) else t.ones(tuple(x.shape))
    w = t.arange(4.0) + 1 if x.ndim else t.ones(())
    i, j = t.tensor([[[0, 1], [1, 0], [2, 1]], [[1, 2], [3, 1], [0, 0]]]), t.tensor([0, 1])
    try:
        found = flat(eval(call, {"t": t, "x": x, "y": y, "w": w, "i": i, "j": j}))
    except (RuntimeError, IndexError, ValueError, TypeError) as error:
        return type(error).__name__
    return [{"shape": tuple(z.shape), "strides": tuple(s for s, n in zip(z.stride(), z.shape) if n != 1) if z.numel() else (),
             "contiguous": z.is_contiguous(), "view(-1)": viewable(z),
             "shared": z.numel() > 0 and z.untyped_storage().data_ptr() == x.untyped_storage().data_ptr()} for z in found]


@pytest.fixture
def usual_dtype():
    before = torch.get_default_dtype(), symgrad.get_default_dtype()
    yield
    torch.set_default_dtype(before[0])
    symgrad.set_default_dtype(before[1])


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("layout", LAYOUTS)
def test_results_lie_in_memory_as_in_torch(layout, usual_dtype):
    wrong, compared = [], 0
    for call in (*elementwise(), *(c.strip() for c in CALLS.split(";") if c.strip())):
        theirs, ours = seen(torch, call, layout), seen(symgrad, call, layout)
        if isinstance(theirs, str) or (call, layout) in KNOWN:
            continue
        compared += 1
        if ours != theirs:
            wrong.append(f"{call}: torch {theirs}; symgrad {ours}")
    assert not wrong, "\n".join(wrong)
    assert compared > (250 if layout == "no dimensions" else 400 if layout in ("empty", "size one") else 500)
