"""Write down what torch keeps of each op for its backward pass: `python -m tests.parity.saved` writes tests/support/data/saved.json.

The file maps the text of a call over the names `a`, `b`, `c` to, for each set of arguments that require grad, the name of the node and its
`_saved_*` attributes. A tensor reads as the name of the argument it is (`a`, `b`, `c` or `result`; `view of ..` if only the memory is the same,
`new` if it is neither and `number 2.0` if it is a number), anything else as its value.
"""

import itertools
import json
import pathlib

import torch

VECTOR, SMALL = [0.3, 0.6, 0.9], [0.2, 0.5, 0.8]
MATRIX, SQUARE, TALL = [[0.1, 0.5, 0.9], [0.4, 0.2, 0.7]], [[2.0, 0.3], [0.3, 1.0]], [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]
UNARY = """
    a.neg() a.abs() a.sign() a.exp() a.exp2() a.expm1() a.log() a.log2() a.log10() a.log1p() a.sqrt() a.rsqrt() a.square() a.reciprocal() a.sin()
    a.cos() a.tan() a.asin() a.acos() a.atan() a.sinh() a.cosh() a.tanh() a.asinh() (a+2).acosh() a.atanh() a.sigmoid() a.relu() a.erf() a.erfc()
    a.erfinv() a.lgamma() a.digamma() a.floor() a.ceil() a.round() a.trunc() a.frac() a.sinc() a.logit() a.hardshrink() a.sgn() a.clone()
    a.contiguous() a.nan_to_num() a.positive() a.deg2rad() a.rad2deg() a.i0() a.softmax(0) a.log_softmax(0) F.softplus(a) F.elu(a) F.gelu(a) F.silu(a)
    F.leaky_relu(a) F.hardtanh(a) F.relu6(a) F.selu(a) F.logsigmoid(a) F.softsign(a) F.tanhshrink(a) F.hardsigmoid(a) F.hardswish(a) F.mish(a)
    F.celu(a) F.threshold(a,0.5,0.) a.clamp(min=0.4) a.clamp(max=0.4) a.clamp(0.4,0.7) a.clamp_min(0.4) a.clamp_max(0.4) a.pow(2) a.pow(3) a.pow(1)
    a.pow(0) a.pow(0.5) a**2 2**a a+1 1+a a-1 1-a 2*a a*2 a/2 1/a a//2 a%2 a.remainder(2) a.fmod(2) a.eq(1) a.ne(1) a.add(1,alpha=2)
    a.div(2,rounding_mode='trunc') a.sum() a.sum(0) a.mean() a.mean(0) a.prod() a.prod(0) a.std() a.std(0) a.var() a.var(0) a.max() a.min() a.amax(0)
    a.amin(0) a.max(0)[0] a.min(0)[0] a.median() a.median(0)[0] a.logsumexp(0) a.norm() a.norm(1) a.norm(3) torch.linalg.vector_norm(a,3) a.cumsum(0)
    a.cumprod(0) a.logcumsumexp(0) a.sort()[0] a.topk(2)[0] a.cummax(0)[0] a.kthvalue(1)[0] a.mode()[0] a.aminmax()[0] a.argmax() a.nansum()
    torch.trapezoid(a) a.quantile(0.5) torch.diff(a)
""".split()
SHAPE = """
    a.view(3,2) a.view(-1) a.reshape(3,2) a.reshape(-1) a.t() a.T a.transpose(0,1) a.permute(1,0) a.unsqueeze(0) a.unsqueeze(0).squeeze()
    a.unsqueeze(0).squeeze(0) a.expand(4,2,3) a.flatten() a.ravel() a[0] a[0,1] a[:,1] a[0:1] a[...,None] a[:,::2] a.select(0,1) a.narrow(1,0,2)
    a.diagonal() a.diag() a.diag_embed() a.unbind()[0] a.split(1)[0] a.split([1,1])[1] a.chunk(2)[0] a.tril() a.triu() a.flip(0) a.roll(1,0)
    a.repeat(2,1) a.as_strided((2,),(1,)) a.view_as(a) a.expand_as(a) a.movedim(0,1) a.swapaxes(0,1) a.unfold(1,2,1) a.detach() a.to(torch.float32)
    a.double() a.float() torch.stack([a,a]) torch.cat([a,a]) torch.hstack([a,a]) a.repeat_interleave(2) a.trace() a.tile(2) torch.rot90(a)
    a[torch.tensor([0,0])] a[a>0.4] a[[0,1],[0,2]] a.index_select(0,torch.tensor([1])) a.gather(1,torch.tensor([[0],[1]])) a.take(torch.tensor([0,3]))
    a.masked_select(a>0.4) a.masked_fill(a>0.4,1.) a.where(a>0.4,0.) torch.where(a>0.4,a,0.) a.index_fill(0,torch.tensor([0]),1.) a.fill_diagonal_(1.)
    F.pad(a,(1,1)) a.nonzero() a.renorm(2,0,0.5) F.normalize(a) F.one_hot(torch.tensor([0,1])) F.layer_norm(a,(3,)) F.dropout(a,0.5) F.glu(a[:,:2])
    F.cross_entropy(a,torch.tensor([0,2])) F.nll_loss(a,torch.tensor([0,2])) F.softmax(a,1) F.log_softmax(a,1) a.sum(1) a.sum((0,1),keepdim=True)
    a.mean(1) a.var(1) a.amax((0,1)) a.prod(1) a.view(torch.int64)
""".split()
BINARY = """
    a+b a-b a*b a/b a**b a@b a%b a//b a.pow(b) a.add(b,alpha=2) a.sub(b,alpha=2) a.div(b,rounding_mode='floor') a.maximum(b) a.minimum(b) a.fmax(b)
    a.fmin(b) a.atan2(b) a.hypot(b) a.fmod(b) a.remainder(b) a.logaddexp(b) a.logaddexp2(b) a.copysign(b) a.lerp(b,0.25) a.dot(b) a.vdot(b) a.outer(b)
    a.ger(b) a.inner(b) a.xlogy(b) a.heaviside(b) a.ldexp(b) a.nextafter(b) a.dist(b) a.clamp(min=b) a.clamp(max=b) torch.where(a>b,a,b)
    torch.cat([a,b]) torch.stack([a,b]) torch.cross(a,b,0) torch.einsum('i,i->',a,b) torch.tensordot(a,b,1) torch.linalg.norm(a-b) F.mse_loss(a,b)
    F.mse_loss(a,b,reduction='none') F.l1_loss(a,b) F.smooth_l1_loss(a,b) F.huber_loss(a,b) F.binary_cross_entropy(a,b)
    F.binary_cross_entropy_with_logits(a,b) F.kl_div(a,b) F.soft_margin_loss(a,b) F.cosine_similarity(a,b,0) F.prelu(a,b[:1]) a.eq(b) a>b
    a.masked_scatter(a>0.4,b) a.index_put((torch.tensor([0]),),b[:1]) a.index_add(0,torch.tensor([0]),b[:1]) a.scatter(0,torch.tensor([0]),b)
    a.scatter_add(0,torch.tensor([0]),b) a.index_copy(0,torch.tensor([0]),b[:1]) a.float()+b a*b.sum() a.addcmul(a,b) torch.kron(a,b)
""".split()
MATRICES = """
    a@b a.mm(b) a.matmul(b) a.mm(b.T) F.linear(a,b.T) torch.einsum('ij,jk->ik',a,b) a.unsqueeze(0).bmm(b.unsqueeze(0)) a.mv(b[:,0]) a*b[:1].T
""".split()
SQUARES = """
    a.inverse() torch.linalg.inv(a) a.det() a.logdet() a.slogdet()[1] torch.linalg.cholesky(a) torch.linalg.solve(a,b) torch.linalg.eigh(a)[0]
    torch.linalg.svd(a)[1] torch.linalg.qr(a)[1] a.matrix_exp() torch.linalg.matrix_power(a,2) torch.linalg.pinv(a)
    torch.linalg.solve_triangular(a,b,upper=True) torch.linalg.norm(a) torch.linalg.matrix_norm(a,'nuc') torch.addmm(b,a,a) a.cov()
    torch.linalg.eigvalsh(a) torch.linalg.svdvals(a) torch.linalg.multi_dot([a,b,a])
""".split()
TERNARY = """
    torch.addcmul(a,b,c) torch.addcdiv(a,b,c) torch.lerp(a,b,c) torch.where(c>0.4,a,b) a.clamp(b,c)
""".split()
INPLACE = """
    a.add_(b) a.sub_(b) a.mul_(b) a.div_(b) a.pow_(b) a.pow_(2) a.pow_(3) a.add_(1) a.mul_(2) a.div_(2) a.neg_() a.abs_() a.exp_() a.log_() a.log1p_()
    a.expm1_() a.sqrt_() a.rsqrt_() a.square_() a.reciprocal_() a.sin_() a.cos_() a.tan_() a.sinh_() a.cosh_() a.tanh_() a.asin_() a.acos_() a.atan_()
    a.sigmoid_() a.relu_() a.erf_() a.erfc_() a.floor_() a.round_() a.sign_() a.clamp_(0.4,0.7) a.clamp_(min=b) a.clamp_min_(0.4) a.zero_()
    a.fill_(2.) a.fill_(b[0]) a.copy_(b) a.masked_fill_(m,1.) a.masked_fill_(m,b[0]) a.index_fill_(0,i,1.) a.index_put_((i,),b[:1])
    a.index_add_(0,i,b[:1]) a.index_copy_(0,i,b[:1]) a.scatter_(0,i,b) a.scatter_add_(0,i,b) a.masked_scatter_(m,b) a.addcmul_(b,b) a.addcdiv_(b,b)
    a.lerp_(b,0.25) a.remainder_(2) a.fmod_(2) a.atan2_(b) a.cumsum_(0) a.cumprod_(0) a.frac_() a.trunc_() a.sgn_() a.sinc_() a.i0_() a.logit_()
    a.hypot_(b) a.copysign_(b) a.floor_divide_(2) a.nan_to_num_() a.unsqueeze_(0) a.squeeze_() a.detach_() a.eq_(b) a.__setitem__(0,2.)
    a.__setitem__(0,b[0]) a.__setitem__(slice(1,2),b[:1]) a.__setitem__(m,1.) a.__setitem__(m,b[0]) a.__setitem__(i,b[:1]) F.relu(a,inplace=True)
    F.elu_(a) F.leaky_relu_(a) F.hardtanh_(a) F.selu_(a) F.threshold_(a,0.5,0.) a.uniform_() a.normal_() a.bernoulli_() a.exponential_()
""".split()
GROUPS = [(UNARY, (VECTOR,), False), (SHAPE, (MATRIX,), False), (BINARY, (VECTOR, SMALL), False), (MATRICES, (MATRIX, TALL), False),
          (SQUARES, (SQUARE, SQUARE), False), (TERNARY, (VECTOR, SMALL, [0.5, 0.4, 0.3]), False),
          (INPLACE, (VECTOR, SMALL), True),
          (["a.t_()", "a.transpose_(0,1)", "a.tril_()", "a.triu_()", "a.fill_diagonal_(1.)"], (MATRIX,), True)]


def read(value, known):
    """One saved attribute, for the file."""
    if isinstance(value, torch.Tensor):
        for name, t in known.items():
            if isinstance(t, torch.Tensor) and t.untyped_storage().data_ptr() == value.untyped_storage().data_ptr():
                same = t.shape == value.shape and t.stride() == value.stride() and t.data_ptr() == value.data_ptr()
                return name if same else f"view of {name}"
        return f"number {value.item()}" if value.dim() == 0 else "new"
    if isinstance(value, (tuple, list)):
        return [read(v, known) for v in value]
    return value if value is None or isinstance(value, (bool, int, float, str)) else str(value)


def record(text, data, in_place):
    """What one call saves, for each set of arguments that require grad."""
    entry = {}
    names = [name for name, _ in zip("abc", data) if name in text.replace("abs", "").replace("torch", "") or name == "a"]
    for count in range(1, len(names) + 1):
        for chosen in itertools.combinations(names, count):
            leaves = {n: torch.tensor(d, dtype=torch.float64, requires_grad=n in chosen) for n, d in zip(names, data)}
            known = {n: (t.clone() if in_place and n == "a" else t) for n, t in leaves.items()}
            scope = {"torch": torch, "F": torch.nn.functional, "m": torch.tensor([True, False, False]), "i": torch.tensor([0]), **known}
            try:
                result = eval(text, scope)  # noqa: S307  the texts are those above
            except Exception as error:
                entry[",".join(chosen)] = {"error": f"{type(error).__name__}: {str(error).splitlines()[0]}"}
                continue
            result = known["a"] if "__setitem__" in text else result
            node = result.grad_fn
            if node is None:
                entry[",".join(chosen)] = {"grad_fn": None, "requires_grad": result.requires_grad}
                continue
            seen = {("result" if in_place and n == "a" else n): t for n, t in known.items()} | ({} if in_place else {"result": result})
            saved = {"grad_fn": node.name()}
            for name in sorted(n for n in dir(node) if n.startswith("_saved_")):
                try:
                    saved[name] = read(getattr(node, name), seen)
                except RuntimeError as error:
                    saved[name] = f"error: {str(error).splitlines()[0]}"
            entry[",".join(chosen)] = saved
    return entry


def main():
    """Record every call."""
    out = {text: record(text, data, in_place) for texts, data, in_place in GROUPS for text in texts}
    path = pathlib.Path(__file__).parents[1] / "support" / "data" / "saved.json"
    lines = [f"{json.dumps(text)}: {json.dumps(entry)}" for text, entry in out.items()]
    path.write_text("{\n" + ",\n".join(lines) + "\n}\n")
    print(len(out), "calls;", sum("error" in e for v in out.values() for e in v.values()), "errors")


if __name__ == "__main__":
    main()
