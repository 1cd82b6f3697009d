"""vmap: the errors with their remedies."""

import numpy as np
import pytest

import symgrad
from symgrad.func import vmap

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
