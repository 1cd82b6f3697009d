"""vmap of composite functions, indices, losses and layers, each equal to a loop over the members; what depends on data or writes is refused."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import symgrad
from symgrad import autograd
from symgrad.func import grad, jvp, vjp, vmap
from symgrad.nn import functional as F

EPSILON = np.finfo(float).eps
COUNT = 3


def drawn(*shapes, seed=0, low=0.2, high=2.0):
    """Tensors of several members each, no two elements alike."""
    rng = np.random.default_rng(seed)
    return [symgrad.tensor(rng.uniform(low, high, (COUNT, *shape)) * rng.choice([-1.0, 1.0], (COUNT, *shape))) for shape in shapes]


def parts(tree):
    if isinstance(tree, dict):
        tree = list(tree.values())
    return [x for t in tree for x in parts(t)] if isinstance(tree, (tuple, list)) else [tree]


def agree(got, rows, what):
    """A batch equal to its members, to 32 ULP of the largest element."""
    for a, *each in zip(parts(got), *map(parts, rows)):
        a, b = a.detach().numpy(), np.stack([t.detach().numpy() for t in each])
        assert a.shape == b.shape and a.dtype == b.dtype, (what, a.shape, b.shape, a.dtype, b.dtype)
        if a.dtype.kind in "fc":
            assert np.all(np.abs(a - b) <= 32 * EPSILON * np.max(np.abs(b), initial=0.0)) or np.array_equal(a, b, equal_nan=True), (what, a, b)
        else:
            assert np.array_equal(a, b), (what, a, b)


def some(n):
    return [s for size in range(1, n + 1) for s in itertools.combinations(range(n), size)]


def check(f, *xs, derivatives=True):
    """Values, gradients inside and outside, and tangents, for every choice of the arguments that are batched."""
    for chosen in some(len(xs)):
        dims = tuple(0 if i in chosen else None for i in range(len(xs)))
        args = [x if i in chosen else x[0] for i, x in enumerate(xs)]
        members = [[x[k] if i in chosen else x[0] for i, x in enumerate(xs)] for k in range(COUNT)]
        got = vmap(f, dims)(*args)
        rows = [f(*m) for m in members]
        agree(got, rows, f"value batched at {chosen}")
        floats = [i for i, x in enumerate(xs) if x.is_floating_point()]
        if not derivatives or not floats or not any(t.is_floating_point() for t in parts(got)):
            continue

        def total(*given):
            return sum((t * t.detach().cos()).sum() for t in parts(f(*given)) if t.is_floating_point())

        agree(vmap(grad(total, tuple(floats)), dims)(*args), [grad(total, tuple(floats))(*m) for m in members], f"gradient batched at {chosen}")
        leaves = [a.detach().clone().requires_grad_(a.is_floating_point()) for a in args]
        found = autograd.grad(vmap(total, dims)(*leaves).sum(), [leaves[i] for i in floats], materialize_grads=True)
        each = [grad(total, tuple(floats))(*m) for m in members]
        for i, g, *rows in zip(floats, found, *each):
            stack = np.stack([r.numpy() for r in rows])
            expected, size = (stack, np.abs(stack)) if i in chosen else (stack.sum(0), np.abs(stack).sum(0))
            assert np.all(np.abs(g.numpy() - expected) <= 32 * EPSILON * np.max(size, initial=0.0)), (chosen, i, g, expected)

        def along(*given, floats=floats):
            def of(*moving):
                call = dict(zip(floats, moving))
                return [t for t in parts(f(*(call.get(i, x) for i, x in enumerate(given)))) if t.is_floating_point()]

            return jvp(of, tuple(given[i] for i in floats), tuple(given[i].cos() for i in floats))[1]

        agree(vmap(along, dims)(*args), [along(*m) for m in members], f"tangent batched at {chosen}")


V, M, T3, S = (4,), (3, 4), (2, 3, 3), ()
ONE = {
    "norm": lambda a: (a.norm(), a.norm(1), a.norm(3, 0), a.norm(float("inf"), -1), a.norm(dim=1, keepdim=True)), "sort": lambda a: a.sort(0, True),
    "stable sort": lambda a: a.sort(stable=True), "argsort": lambda a: a.argsort(1), "topk": lambda a: a.topk(2),
    "kthvalue": lambda a: a.kthvalue(2, 0),
    "median": lambda a: (a.median(), a.median(0), a.nanmedian(1)), "mode": lambda a: a.round().mode(1), "cummax": lambda a: a.cummax(1),
    "cummin": lambda a: a.cummin(0), "max": lambda a: (a.max(), a.max(1), a.argmax(), a.argmin(0)),
    "min": lambda a: (a.min(), a.min(0, keepdim=True)),
    "aminmax": lambda a: a.aminmax(dim=1), "cumprod": lambda a: a.cumprod(1), "cumsum": lambda a: a.cumsum(0),
    "logsumexp": lambda a: a.logsumexp((0, 1)),
    "softmax": lambda a: (a.softmax(0), a.log_softmax(1)), "var": lambda a: (a.var(), a.std(1), symgrad.var_mean(a, 0), symgrad.std_mean(a)),
    "mean": lambda a: (a.mean(), a.sum(1), a.prod(0)), "reshape": lambda a: (a.reshape(-1), a.view(4, 3), a.flatten(), a.ravel(), a.T),
    "permute": lambda a: (a.permute(1, 0), a.movedim(0, 1), a.transpose(0, 1), a.unsqueeze(-1).squeeze(-1), a.mT, a.swapaxes(0, 1)),
    "expand": lambda a: (a.expand(2, 3, 4), a.repeat(2, 1), a.tile((2,)), a.repeat_interleave(2, 1), symgrad.broadcast_to(a, (2, 3, 4))),
    "split": lambda a: (a.split(2, 1), a.chunk(2, 1), a.unbind(), symgrad.tensor_split(a, 3, 1), symgrad.hsplit(a, 2)),
    "flip": lambda a: (a.flip(0), a.rot90()),
    "roll": lambda a: (a.roll(1), a.roll((1, -1), (0, 1))), "diagonal": lambda a: (a.diagonal(), a.diag(1), symgrad.diag_embed(a), a[:, :3].trace()),
    "tril": lambda a: (a.tril(), a.triu(1)), "unfold": lambda a: a.unfold(1, 2, 1), "clamp": lambda a: (a.clamp(-0.5, 0.5), a.clamp(min=a.mean())),
    "iteration": lambda a: [row * i for i, row in enumerate(a)], "len": lambda a: a * len(a) * a.shape[1] * a.numel() * a.size(0),
    "numpy": lambda a: (np.sin(a), np.exp(a) * 2, np.sum(a), np.maximum(a, 0.1)),
    "operators": lambda a: (2 - a, 1 / a, a**2, abs(a), -a, a // 1, a % 1),
    "powers": lambda a: (abs(a) ** a, 2**a, a**3, a**-1), "comparisons": lambda a: (a > 0, (a > 0) & (a < 1), ~(a > 0), a.ne(a), a.isfinite()),
    "like": lambda a: (symgrad.zeros_like(a) + a, symgrad.ones_like(a), a.new_zeros(2), a.new_full((2,), 3.0), symgrad.full_like(a, 2.0)),
    "conversions": lambda a: (a.float(), a.double(), a.long(), a.bool(), a.to(symgrad.complex128), a.half()),
    "cat": lambda a: (symgrad.cat([a, a], 1),
    symgrad.stack([a, a[0].expand(3, 4)]), symgrad.hstack([a, a]), symgrad.vstack([a, a])), "counts": lambda a: (a.count_nonzero(), (a > 0).sum(1),
    symgrad.isin(a, a[0]), symgrad.signbit(a), a.isposinf()),
    "where": lambda a: (symgrad.where(a > 0, a, 0.0), a.masked_fill(a < 0, 1.0), a.where(a > 1, -a)),
    "diff": lambda a: a.diff(), "outer": lambda a: (symgrad.outer(a[0], a[1]), symgrad.meshgrid(a[0], a[:, 0], indexing="ij")), "nan_to_num":
    lambda a: (a / (a - a)).nan_to_num(), "detach": lambda a: a * a.detach(),
        "cartesian": lambda a: (symgrad.cartesian_prod(a[0], a[1]), symgrad.block_diag(a, a)),
    "clone": lambda a: (a.clone(), a.contiguous(), +a), "searchsorted": lambda a: symgrad.searchsorted(a[0].sort().values, a[1]), "no_grad": lambda a:
    quiet(a) * a, "constant": lambda a: symgrad.eye(3) @ a, "shared": lambda a: a * symgrad.arange(4.0),
        "round": lambda a: (a.round(), a.floor(), a.sign()),
    "activations": lambda a: (F.relu(a), F.tanh(a), F.sigmoid(a), F.softmax(a, 1), F.log_softmax(a, 0), symgrad.softplus(a), symgrad.sinc(a)),
    "lerp": lambda a: symgrad.lerp(a, a + 1, a.cos()), "addcmul": lambda a: symgrad.addcmul(a, a, a, value=2),
    "complex": lambda a: symgrad.complex(a, a).abs(),
    "polar": lambda a: (symgrad.polar(a.abs(), a).real, symgrad.complex(a, a).angle(), symgrad.view_as_real(symgrad.complex(a, a))),
}


def quiet(a):
    with symgrad.no_grad():
        return a * 2


@pytest.mark.parametrize("name", ONE)
def test_functions_of_one_tensor(name):
    check(ONE[name], *drawn(M))


PRODUCTS = [(V, V), (M, V), (V, (4, 2)), (M, (4, 2)), (T3, (3,)), ((3,), T3), (T3, (3, 2)), ((2, 3), (2, 3, 4)), (T3, (2, 3, 1)), (T3, (1, 3, 2)),
            ((2, 1, 3, 2), (3, 2, 2))]


@pytest.mark.parametrize("shapes", PRODUCTS, ids=str)
def test_matmul_of_all_ranks(shapes):
    check(lambda a, b: a @ b, *drawn(*shapes))


TWO = {
    "einsum": (lambda a, b: symgrad.einsum("ij,kj->ik", a, b), M, (2, 4)),
        "einsum of a diagonal": (lambda a, b: symgrad.einsum("ii,i->i", a, b), (3, 3), (3,)),
    "einsum summed": (lambda a, b: symgrad.einsum("...i,i", a, b), M, V),
    "einsum of three": (lambda a, b: symgrad.einsum("i,ij,j->", b[:3], a, b), M, V),
    "addmm": (lambda a, b: symgrad.addmm(b[:3, :1], a, b), M, (4, 2)), "bmm": (lambda a, b: symgrad.bmm(a, b), T3, (2, 3, 2)),
    "baddbmm": (lambda a, b: symgrad.baddbmm(a, a, b), T3, (2, 3, 3)), "addmv": (lambda a, b: symgrad.addmv(b[:3], a, b), M, V),
    "tensordot": (lambda a, b: symgrad.einsum("ijk,kl->ijl", a, b), T3, (3, 2)),
    "maximum": (lambda a, b: (symgrad.maximum(a, b), a.minimum(b)), M, V),
    "broadcast": (lambda a, b: (a + b, a - b, a * b, a / b, symgrad.atan2(a, b), symgrad.hypot(a, b), a.remainder(b), a.fmod(b)), M, V),
    "more dimensions on the right": (lambda a, b: (a + b, a * b, b - a, b / a), V, M), "where": (lambda a, b: symgrad.where(a > b, a, b), M, (4,)),
    "scalar": (lambda a, b: (a * b, a / b, a + b, b - a, symgrad.maximum(a, b)), M, S), "stack": (lambda a, b: symgrad.stack([a, b], 1), V, V),
    "cat": (lambda a, b: symgrad.cat([a, b]), M, (2, 4)), "outer": (lambda a, b: symgrad.outer(a, b), V, (3,)),
    "clamp": (lambda a, b: a.clamp(min=b), M, V),
    "mse": (lambda a, b: (F.mse_loss(a, b), F.mse_loss(a, b, reduction="none"), F.l1_loss(a, b), F.mse_loss(a, b, reduction="sum")), M, M),
    "bce": (lambda a, b: F.binary_cross_entropy(a.sigmoid(), b.sigmoid()), M, M),
    "logits": (lambda a, b: F.binary_cross_entropy_with_logits(a, b), M, M),
    "weighted bce": (lambda a, b: F.binary_cross_entropy_with_logits(a, a.sigmoid(), weight=b, pos_weight=b.exp()), M, V),
    "linear": (F.linear, M, (2, 4)),
    "put": (lambda a, b: a.index_put((symgrad.tensor([0, 2]),), b), M, V), "copy": (lambda a, b: symgrad.select_scatter(a, b, 0, 1), M, V),
    "scatter": (lambda a, b: a.scatter(0, symgrad.tensor([[0, 1, 2, 0]]), b[None]), M, V),
    "index_add": (lambda a, b: a.index_add(0, symgrad.tensor([1, 1]), b),
    M, (2, 4)), "slice_scatter": (lambda a, b: symgrad.slice_scatter(a, b, 1, 0, 2), M, (3, 2)), "pow": (lambda a, b: abs(a) ** b, M, V),
        "cross entropy":
    (lambda a, b: F.cross_entropy(a, b.softmax(1)), M, M), "masked_fill": (lambda a, b: a.masked_fill(a > 0, b), M, S), "lerp": (symgrad.lerp_, M, M)
    if hasattr(symgrad, "lerp_") else (lambda a, b: symgrad.lerp(a, b, 0.25), M, M), "logaddexp": (symgrad.logaddexp, M, V),
}


@pytest.mark.parametrize("name", TWO)
def test_functions_of_two_tensors(name):
    f, *shapes = TWO[name]
    check(f, *drawn(*shapes))


PLACES = {
    "gather": lambda a, i: a.gather(0, i), "index_select": lambda a, i: a.index_select(1, i[0]), "take": lambda a, i: a.take(i),
        "getitem": lambda a, i: a[i],
    "take_along_dim": lambda a, i: symgrad.take_along_dim(a, i, 0), "scatter": lambda a, i: a.scatter(0, i, 5.0), "scatter of a tensor": lambda a, i:
    a.scatter(1, i[:, :1], a), "scatter_add": lambda a, i: a.scatter_add(0, i, a), "index_add": lambda a,
        i: a.index_add(0, i[0], symgrad.stack([a[0]] * 4)),
    "index_fill": lambda a, i: a.index_fill(1, i[0], 2.0), "index_put": lambda a, i: symgrad.index_put(a, (i[0],), a[0]), "accumulate": lambda a, i:
    symgrad.index_put(a, (i[0],), a[0], accumulate=True), "index_copy": lambda a, i: a.index_copy(1, i[0, :1], a[:, :1]), "by one": lambda a,
        i: a[i[0, 0]],
    "column": lambda a, i: a[:, i[0, 0]], "with None": lambda a, i: a[i[0], None, 1:], "twice": lambda a, i: a[i, i], "apart": lambda a, i:
    a.unsqueeze(1)[i[0], :, i[1]], "behind slices": lambda a, i: a[1:, i[0]], "a mask that is shared": lambda a,
        i: a[:, symgrad.tensor([True, False, True,
    True])] * i[0, 0], "dots": lambda a, i: a[..., i[0]], "logits": lambda a, i: F.cross_entropy(a, i[:, 0]), "nll": lambda a, i:
    F.nll_loss(a, i[:, 0], reduction="none"), "weights": lambda a, i: F.cross_entropy(a, i[:, 0], a[0].exp(), label_smoothing=0.1),
        "ignored": lambda a, i:
    F.cross_entropy(a, i[:, 0], ignore_index=1, reduction="sum", label_smoothing=0.2), "one": lambda a, i: F.cross_entropy(a[0], i[0, 0]),
}


@pytest.mark.parametrize("name", PLACES)
def test_batched_indices(name):
    (a,) = drawn(M)
    i = symgrad.tensor(np.random.default_rng(1).integers(0, 3, (COUNT, 3, 4)))
    i[:, 0, 0] = symgrad.tensor([2, 0, 0])  # some class that is not ignored
    check(PLACES[name], a, i)


PARTS = st.one_of(st.integers(-2, 1), st.just(slice(None)), st.slices(3), st.none(), st.just("batched 0"), st.just("batched 1"), st.just("batched 2"),
                  st.lists(st.integers(-2, 1), min_size=1, max_size=1), st.lists(st.integers(-2, 1), min_size=3, max_size=3))


@settings(max_examples=400)
@given(index=st.lists(PARTS, min_size=1, max_size=4), dots=st.integers(-1, 3), seed=st.integers(0, 99), shared=st.booleans())
def test_every_index(index, dots, seed, shared):
    """Reading and adding at any index, some parts of which differ between the members: the same elements as NumPy's for each."""
    rng = np.random.default_rng(seed)
    x = symgrad.tensor(rng.standard_normal((COUNT, 2, 3, 2, 2)))
    if 0 <= dots < len(index):
        index = [*index[:dots], ..., *index[dots:]]
    batched = [symgrad.tensor(rng.integers(-2, 2, (COUNT, *(3,) * int(p[-1])))) for p in index if isinstance(p, str)]

    def read(x, *places):
        left = iter(places)
        return x[tuple(next(left) if isinstance(p, str) else symgrad.tensor(p) if isinstance(p, list) else p for p in index)]

    def member(k):
        return read(x[0] if shared else x[k], *(b[k] for b in batched))

    try:
        rows = [member(k) for k in range(COUNT)]
    except (IndexError, RuntimeError, ValueError):
        return
    dims = (None if shared else 0, *(0 for _ in batched))
    if shared and not batched:
        return
    got = vmap(read, dims)(x[0] if shared else x, *batched)
    assert np.array_equal(got.numpy(), np.stack([r.numpy() for r in rows]))
    for seeds, own in ((got.cos(), 0), (got[0].cos().expand(got.shape), None)):
        found = vmap(lambda x, g, *b: vjp(lambda x: read(x, *b), x)[1](g)[0], (dims[0], own, *dims[1:]))(x[0] if shared else x,
            seeds if own == 0 else seeds[0], *batched)
        rows = [vjp(lambda x, k=k: read(x, *(b[k] for b in batched)), x[0] if shared else x[k])[1](seeds[k])[0] for k in range(COUNT)]
        np.testing.assert_allclose(found.numpy(), np.stack([r.numpy() for r in rows]), rtol=1e-15, atol=1e-15)


# What depends on the data of a member, and what is written

X = symgrad.tensor([[1.0, -2.0, 3.0], [4.0, 5.0, -6.0]])
INDEX = symgrad.tensor([[0, 1], [2, 2]])
DATA = {
    "if": lambda a: a if a.sum() > 0 else -a, "while": lambda a: next(a for _ in iter(lambda: bool(a.sum() > 9), True)), "not": lambda a: not a[0],
    "and": lambda a: (a > 0).all() and a, "item": lambda a: a.sum().item(), "float": lambda a: float(a[0]), "int": lambda a: int(a[0]),
    "complex": lambda a: complex(a[0]), "range": lambda a: list(range(a[0].long())), "tolist": lambda a: a.tolist(), "numpy": lambda a: a.numpy(),
    "np.asarray": lambda a: np.asarray(a), "bool": lambda a: bool(a[0]), "in": lambda a: 1.0 in a, "max of two": lambda a: max(a[0], a[1]),
    "sorted": lambda a: sorted(a), "mask": lambda a: a[a > 0], "masked_select": lambda a: a.masked_select(a > 0),
    "masked_scatter": lambda a: a.masked_scatter(a > 0, a), "nonzero": lambda a: a.nonzero(), "nonzero as_tuple": lambda a: a.nonzero(as_tuple=True),
    "where of one": lambda a: symgrad.where(a > 0), "argwhere": lambda a: np.argwhere(a), "unique": lambda a: a.unique(),
    "unique_consecutive": lambda a: a.unique_consecutive(), "bincount": lambda a: symgrad.bincount(a.abs().long()),
    "histc": lambda a: symgrad.histc(a, 3),
    "repeat_interleave": lambda a: a.repeat_interleave((a > 0).long()), "equal": lambda a: symgrad.equal(a, a),
    "allclose": lambda a: symgrad.allclose(a, a),
    "is_nonzero": lambda a: symgrad.is_nonzero(a[0]), "tensor_split": lambda a: symgrad.tensor_split(a, a.long()),
    "slice": lambda a: a[: a[0].long()],
    "linspace": lambda a: symgrad.linspace(0.0, a[0], 3), "full": lambda a: symgrad.full((2,), a[0]), "narrow": lambda a: a.narrow(0, a[0].long(), 1),
    "math.sin": lambda a: __import__("math").sin(a[0]), "round": lambda a: round(float(a[0])), "format": lambda a: f"{a[0]:.2f}",
    "tensor of a tensor": lambda a: symgrad.tensor([a[0].item()]), "save": lambda a: symgrad.save(a, "/nowhere"),
    "data pointer": lambda a: a.data_ptr(), "select": lambda a: a.select(0, a[0].long()),
}


@pytest.mark.parametrize("name", DATA)
def test_dependence_on_the_data_of_a_member_is_refused(name):
    with pytest.raises(RuntimeError, match=r"^(\w+(\(\))?: )?vmap: .*depends on the data of each"):
        vmap(DATA[name])(X)
    with pytest.raises(RuntimeError, match=r"^(\w+(\(\))?: )?vmap: .*depends on the data of each"):
        vmap(vmap(DATA[name]))(X[None])


WRITES = {
    "add_": lambda a: (a * 1).add_(1), "augmented": lambda a: augmented(a * 1), "setitem": lambda a: setitem(a * 1, 0, 1.0), "shared += batched":
    lambda a: symgrad.zeros(3).add_(a), "copy_": lambda a: symgrad.zeros(3).copy_(a),
        "setitem of a shared tensor": lambda a: setitem(symgrad.zeros(3), 0, a[0]),
    "fill_": lambda a: symgrad.zeros(3).fill_(a[0]), "zero_": lambda a: (a * 1).zero_(), "out=": lambda a: symgrad.add(a, a, out=symgrad.zeros(3)),
    "exp_": lambda a: (a * 1).exp_(), "clamp_": lambda a: (a * 1).clamp_(0, 1), "index_put_": lambda a: (a * 1).index_put_((INDEX[0],), a[:2]),
    "scatter_": lambda a: (a * 1).scatter_(0, INDEX[0], 1.0), "copysign through data": lambda a: a.data.mul_(2),
    "uniform_": lambda a: (a * 1).uniform_(),
    "setitem by a mask": lambda a: setitem(symgrad.zeros(3), a > 0, 1.0),
}


def augmented(a):
    a += 1
    return a


def setitem(a, index, value):
    a[index] = value
    return a


@pytest.mark.parametrize("name", WRITES)
def test_writes_are_refused(name):
    before = X.clone()
    with pytest.raises(RuntimeError, match="vmap: .*(writes in place|depends on the data)"):
        vmap(WRITES[name], randomness="same")(X)
    assert symgrad.equal(X, before)


# Random numbers

HALF = symgrad.ones(4, 30) * 0.5
DRAWN = {
    "rand": lambda a: symgrad.rand(3), "randn": lambda a: symgrad.randn(2, 3), "randint": lambda a: symgrad.randint(0, 10**6, (5,)),
    "randperm": lambda a: symgrad.randperm(30), "rand_like": symgrad.rand_like, "randn_like": symgrad.randn_like,
    "randint_like": lambda a: symgrad.randint_like(a, 10**6), "bernoulli": symgrad.bernoulli, "normal": lambda a: symgrad.normal(a, 1.0),
    "bernoulli of what is shared": lambda a: symgrad.bernoulli(HALF[0]), "multinomial": lambda a: symgrad.multinomial(a, 20),
    "multinomial with replacement": lambda a: symgrad.multinomial(a, 20, True), "scalar": lambda a: symgrad.rand(()),
    "poisson of what is shared": lambda a: symgrad.poisson(100 * HALF[0]),
    "generator": lambda a: symgrad.rand(3, generator=symgrad.default_generator),
}


@pytest.mark.parametrize("name", DRAWN)
def test_random_numbers_are_the_same_or_different(name):
    """For all members of a batch, of two batches one in the other, and of two of which one asks for the same and one for different numbers."""
    f = DRAWN[name]
    symgrad.manual_seed(1)
    with pytest.raises(RuntimeError, match="random numbers are drawn inside"):
        vmap(f)(HALF)
    same, different = (vmap(f, randomness=how)(HALF) for how in ("same", "different"))
    assert symgrad.equal(same[0], same[3]) and not symgrad.equal(different[0], different[3])
    grid = HALF.expand(2, 4, 30)
    for outer, inner in (("same", "different"), ("different", "same"), ("different", "different"), ("same", "same")):
        found = vmap(vmap(f, randomness=inner), randomness=outer)(grid)
        assert found.shape == (2, *different.shape) and found.dtype is different.dtype
        assert symgrad.equal(found[0], found[1]) == (outer == "same") and symgrad.equal(found[0, 0], found[0, 3]) == (inner == "same")


def test_rates_that_differ_have_no_common_numbers():
    rates = symgrad.tensor([1.0, 1000.0])
    found = vmap(lambda a: symgrad.poisson(a.expand(50)), randomness="different")(rates)
    assert found[0].max() < 20 < 700 < found[1].min()
    with pytest.raises(RuntimeError, match="no equal random numbers"):
        vmap(symgrad.poisson, randomness="same")(rates)
