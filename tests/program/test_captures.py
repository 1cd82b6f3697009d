"""What a program depends on besides its arguments: globals that methods read, attributes of classes, arrays; and what constants become."""

from __future__ import annotations

import copy
import dataclasses
import decimal
import functools
import io
import math
import sys
import threading
import time
import types
import warnings

import numpy as np
import pytest

import symgrad
from symgrad import nn
from symgrad.carriers.duck import Unrecordable
from symgrad.func import grad

X = symgrad.tensor([0.3, -0.7, 1.9])


def test_products_with_rows_of_the_identity_are_products_and_those_with_unit_vectors_of_derivatives_select():
    eye, values = np.eye(4), np.arange(12.0).reshape(4, 3) - 5
    values[1, 2], values[3, 0] = np.inf, np.nan
    for x in (symgrad.tensor(np.arange(12.0).reshape(4, 3)), symgrad.tensor(values)):
        for matrix in (eye, eye[1:3], eye[[2, 0, 0]], eye[::-1]):
            m = symgrad.tensor(matrix)
            for other in (lambda x, m=m: m @ x, lambda x, m=m: x.T @ m.T):
                f = symgrad.compile(lambda x, matrix=matrix, other=other: other(x, symgrad.tensor(matrix)))
                assert all(np.array_equal(f(x).numpy(), other(x).numpy(), equal_nan=True) for _ in range(2))
    a, x = symgrad.tensor(np.arange(16.0).reshape(4, 4) / 7), symgrad.tensor([0.3, -1.1, 0.7, 2.0])
    for f in (lambda x, a: x @ a @ x, lambda x, a: x @ (a @ x)):
        hessian = symgrad.compile(f, argnums=0)
        assert symgrad.allclose(hessian.hessian(x, a), a + a.T) and "matmul" not in str(hessian.program("hessian"))
        infinite = a.clone()
        infinite[1, 2] = math.inf
        for _ in range(8):  # later ones run a recorded pass
            np.testing.assert_array_equal(symgrad.func.hessian(lambda x, f=f, a=infinite: f(x, a))(x).numpy(), (infinite + infinite.T).numpy())


def test_a_pullback_reads_the_arguments_of_its_own_call():
    f = symgrad.compile(lambda x, y: (x * symgrad.as_tensor(y)).sum())
    for make in (lambda k: symgrad.ones(3) * k, lambda k: np.ones(3) * k, lambda k: k / 3):
        for k in range(3):
            x, y = X.clone().requires_grad_(), make(k)
            f(x, y).backward()
            assert symgrad.equal(x.grad, X * 0 + symgrad.as_tensor(y))
    assert [row["runs"] for row in f.report.programs] == [3] * 6


def test_a_variable_may_get_another_tensor_before_the_pullback():
    def loss(function):
        nonlocal weight
        total = symgrad.tensor(0.0)
        for w in weights:
            weight = w
            total = total + function(x)
        return total

    def f(x):
        return ((x * weight) ** 2).sum()

    weight = symgrad.ones(3)
    compiled = symgrad.compile(f)
    for k in range(3):
        found = []
        for function in (compiled, f):
            weights, x = [symgrad.ones(3).mul_(i + k / 3).requires_grad_() for i in range(3)], X.clone().requires_grad_()
            loss(function).backward()
            found.append([x.grad, *[w.grad for w in weights]])
        assert all(symgrad.allclose(a, b, rtol=1e-14) for a, b in zip(*found))
    assert len(compiled.report.programs) == 2


def test_a_number_that_changes_before_the_pullback_is_an_error():
    scale, rest = 2.0, symgrad.ones(3)
    f, x = symgrad.compile(lambda x, y: (x * rest * y).sum() * scale), X.clone().requires_grad_()
    y = f(x, 2.0 * rest)
    scale = 3.0
    with pytest.raises(RuntimeError, match="captured value scale was changed between the call"):
        y.backward()
    z = symgrad.ones(3)
    y = f(x, z)
    z.mul_(2.0)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.backward()


def test_a_branch_that_reads_no_clock_is_recorded():
    f = symgrad.compile(lambda x, measure: x.sum() * time.time() if measure else x.sum())
    assert [f(X, False).item() for _ in range(2)] == [X.sum().item()] * 2 and len(f.report.programs) == 1


def test_generators_of_which_nothing_is_drawn_are_captured():
    def f(x):
        return x.sum() * (rng.normal() if x.sum() < 0 else 1.0)

    rng = np.random.default_rng(3)
    before, compiled = rng.bit_generator.state, symgrad.compile(f)
    assert compiled(X) == X.sum() and not compiled.report.uncompiled
    with pytest.raises(Unrecordable, match="random numbers are drawn from rng"):
        compiled(-X)
    assert rng.bit_generator.state == before


@pytest.mark.parametrize("act", ["data_ptr", "as_strided", "numpy.interp", "shapes"])
def test_a_caught_exception_is_honoured_or_refused(act):
    acts = {"data_ptr": lambda x: x.data_ptr(), "as_strided": lambda x: symgrad.as_strided(x, (2,), (1,)),
            "numpy.interp": lambda x: np.interp(0.5, [0.0, 1.0], x[:2]), "shapes": lambda x: x @ symgrad.ones(7, 7)}

    def f(x):
        try:
            acts[act](x)
        except Exception:
            return x.sum() * 3.0
        return x.sum()

    compiled = symgrad.compile(f)
    for x in (X, X * 2, X / 3):
        assert compiled(x) == f(x) and symgrad.equal(compiled.gradient(x), grad(f)(x))
    assert bool(compiled.report.programs) == (act in ("shapes", "numpy.interp"))


def test_objects_among_the_arguments_are_compared_by_content():
    def f(x, o):
        return (x * o.rate).sum()

    compiled, o = symgrad.compile(f), types.SimpleNamespace(rate=2.0)
    for rate in (2.0, 1 / 3, -0.0, 3, symgrad.tensor(0.7), symgrad.tensor([1.0, 2.0, 0.1])):
        o.rate = rate
        for x in (X, -X):
            assert compiled(x, o) == f(x, o) and symgrad.equal(compiled.gradient(x, o), grad(f)(x, o))
    count = len(compiled.report.programs)
    assert all(compiled(X, types.SimpleNamespace(rate=2.0)) == 2.0 * X.sum() for _ in range(3)) and len(compiled.report.programs) == count
    first, second = (nn.Linear(3, 1) for _ in range(2))
    call = symgrad.compile(lambda x, m: m(x).sum())
    for m in (first, second, first):
        assert symgrad.allclose(call(X, m), m(X).sum(), rtol=1e-14)
        m.weight.data.mul_(1.5)
        m.register_forward_hook(lambda m, x, y: y * 2)
        assert symgrad.allclose(call(X, m), m(X).sum(), rtol=1e-14)


def test_attributes_of_captured_tensors_are_compared():
    w = symgrad.tensor([1.0, 2.0, 3.0], requires_grad=True)
    w.grad = symgrad.ones(3)
    by_gradient, by_flag = symgrad.compile(lambda x: (x * w.grad).sum()), symgrad.compile(lambda x: x.sum() * (2.0 if w.requires_grad else 3.0))
    for factor in (1.0, 1 / 3):
        w.grad = symgrad.ones(3) * factor
        assert by_gradient(X) == (X * w.grad).sum() and by_flag(X) == 2.0 * X.sum()
    w.requires_grad_(False)
    assert by_flag(X) == 3.0 * X.sum()


@pytest.mark.parametrize("make", [
    lambda y: types.SimpleNamespace(y=y), lambda y: types.SimpleNamespace(y=[y]), lambda y: lambda: y, lambda y: lambda y=y: y,
    lambda y: lambda *, y=y: y, lambda y: functools.wraps(make_result)(functools.partial(make_result, y)), lambda y: with_attribute(make_result, y)],
    ids=["object", "list", "closure", "default", "keyword", "partial", "attribute"])
def test_results_that_hold_tensors_belong_to_the_call(make):
    f = symgrad.compile(lambda x: make(x * 2.0))
    for x in (X, -X):
        found = f(x)
        found = found.y if hasattr(found, "y") else found()
        assert symgrad.equal(found[0] if isinstance(found, list) else found, x * 2.0)


class Pair(tuple):
    """A tuple that may have attributes."""


def make_result(y):
    return y


def with_attribute(f, y):
    def out():
        return out.y

    out.y = y
    return out


def pair(value):
    out = Pair((1.5,))
    out.rate = value
    return out


def with_gradient(x):
    x.grad = symgrad.ones(3)
    return x


@pytest.mark.parametrize("reads", ["requires_grad", "is_leaf", "grad", "contiguous", "stride", "type", "type of a number", "match", "identity",
                                   "attribute"])
def test_properties_of_arguments_are_those_of_the_call(reads):
    def matches(y):
        match y:
            case nn.Parameter():
                return True
        return False

    x, y = symgrad.tensor([0.3, -0.7, 1.9]), symgrad.tensor([[1 / 3, 2.0], [0.1, 7.0]])
    tracked, other = x.clone().requires_grad_(), x / 3
    condition, calls = {
        "requires_grad": (lambda y: y.requires_grad, (x, tracked, tracked * 2)), "is_leaf": (lambda y: y.is_leaf, (x, tracked, tracked * 2)),
        "grad": (lambda y: y.grad is None, (x, with_gradient(x.clone()))), "contiguous": (lambda y: y.is_contiguous(), (y, y.T, y.T.clone())),
        "stride": (lambda y: y.stride()[0] == 2, (y, y.T)), "type": (lambda y: isinstance(y, nn.Parameter), (x, nn.Parameter(x), x)),
        "type of a number": (lambda y: type(y) is float, (2.5, x, 0.1, np.ones(3))), "match": (matches, (x, nn.Parameter(x))),
        "identity": (lambda y: y is other, (x, other, x)),
        "attribute": (lambda y: getattr(y, "rate", 0.0) == 2.5, (pair(2.5), pair(1.0), (1.5,)))}[reads]

    def f(x, y):
        return (x * x).sum() * (2.0 if condition(y) else 3.0)

    for order in (calls, calls[::-1]):
        compiled = symgrad.compile(f)
        for given in (*order, *order):
            assert compiled(X, given) == f(X, given) and symgrad.equal(compiled.gradient(X, given), grad(f)(X, given))


def test_the_same_argument_twice_is_one_object():
    compiled = symgrad.compile(lambda x, y: x.sum() * (2.0 if x is y else 3.0))
    for y in (X / 3, X, X / 7):
        assert compiled(X, y) == X.sum() * (2.0 if y is X else 3.0)
    assert len(compiled.report.programs) == 1


L = symgrad.linalg
FAILING = {
    "cholesky": lambda a: L.cholesky(a), "inv": lambda a: L.inv(a), "solve": lambda a: L.solve(a, a[0]), "eigh": lambda a: L.eigh(a),
    "eigvalsh": lambda a: L.eigvalsh(a), "eigvals": lambda a: L.eigvals(a), "svd": lambda a: L.svd(a), "svdvals": lambda a: L.svdvals(a),
    "pinv": lambda a: L.pinv(a), "lstsq": lambda a: L.lstsq(a, a), "index": lambda a: a[(a[0, 0] * 3).nan_to_num(0.0, 0.0, 0.0).long()],
    "take": lambda a: symgrad.take(a, a[0].nan_to_num(0.0, 0.0, 0.0).long() * 5), "divisor": lambda a: 7 // a[0].nan_to_num(0.0, 0.0, 0.0).long(),
}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", FAILING)
def test_a_step_without_use_still_fails(name):
    def caught(x):
        try:
            FAILING[name](symgrad.outer(x, x) + symgrad.diag(x))
            return (x ** 2).nan_to_num(0.1, 0.2, 0.3).sum()
        except (RuntimeError, IndexError):
            return (x ** 3).nan_to_num(0.1, 0.2, 0.3).sum()

    def raised(x):
        FAILING[name](symgrad.outer(x, x) + symgrad.diag(x))
        return (x ** 2).sum()

    for f in (caught, raised):
        compiled, seen = symgrad.compile(f, backend="numpy"), set()
        for x in ([1.1, 1 / 3, 0.7], [-1.3, 0.4, 0.2], [0.0, 0.0, 0.0], [5.25, 7.3, 6.1], [float("nan"), 0.4, 1.0], [1.2, 1 / 7, 0.3]):
            outcomes = []
            for way in (f, compiled, grad(f), compiled.gradient):
                try:
                    outcomes.append(way(symgrad.tensor(x)).tolist())
                except (RuntimeError, IndexError) as error:
                    outcomes.append(type(error).__name__)
            for found, expected in zip(outcomes[1::2], outcomes[::2]):
                if isinstance(expected, str):
                    assert found == expected
                else:
                    np.testing.assert_allclose(found, expected, rtol=1e-14)
            seen.add(type(outcomes[0]))
        assert f is caught or name in ("take", "divisor") or len(seen) == 2


def test_steps_of_derivatives_alone_are_not_kept():
    for f in (lambda x: L.solve(symgrad.diag(x) + 1.0, x).sum(), lambda x: L.inv(symgrad.diag(x) + 1.0).sum(), lambda x: x[(x[0] * 2).long()],
              lambda x: L.eigvalsh(symgrad.outer(x, x) + symgrad.diag(x)).sum()):
        compiled = symgrad.compile(f)
        compiled.gradient(symgrad.tensor([1.1, 0.4, 0.7]))
        words = str(compiled.program("gradient"))
        assert words.count("getitem(") + words.count("solve_system(") + words.count("matrix_inverse(") + words.count("hermitian_") <= 2


def test_attributes_of_a_thread_are_those_of_the_thread_that_calls():
    store = threading.local()
    f = symgrad.compile(lambda x: (x * getattr(store, "rate", 5.0)).sum())

    def call(rate):
        if rate is not None:
            store.rate = rate
        found.append(f(X) / X.sum())

    found: list[symgrad.Tensor] = []
    for rate in (1 / 3, 2.5, None):
        thread = threading.Thread(target=call, args=(rate,))
        thread.start()
        thread.join()
    assert [round(x.item(), 12) for x in found] == [round(1 / 3, 12), 2.5, 5.0]


def test_attributes_that_are_only_written_when_an_object_is_made_are_no_reads():
    class Logged:
        def __init__(self, file):
            self.file, self.rate = file, 2.0
            self.start = self.file.tell()

        def __del__(self):
            self.gone = self.file

        def __repr__(self):
            return f"{self.file}"

        def f(self, x):
            return (x ** 2).sum() * self.rate

    @dataclasses.dataclass
    class Data(Logged):
        file: object
        rate: float = 2.0

        def __post_init__(self):
            self.file.tell()

    class Made(Logged):
        def f(self, x):
            return (x ** 2).sum() * type(self)(self.file).rate

    class Counting(Logged):
        def f(self, x):
            self.file = None
            return (x ** 2).sum() * self.rate

    for kind in (Logged, Data, Counting):
        o = kind(io.StringIO())
        compiled = symgrad.compile(o.f)
        for rate in (2.0, 1 / 3):
            o.rate = rate
            assert compiled(X) == o.f(X) and symgrad.equal(compiled.gradient(X), grad(o.f)(X))
    with pytest.raises(Unrecordable, match="self.file"):
        symgrad.compile(Made(io.StringIO()).f)(X)


def test_settings_of_libraries_are_compared(monkeypatch):
    f = symgrad.compile(lambda x: (x * float(decimal.Decimal(1) / decimal.Decimal(3))).sum())
    for digits in (28, 3, 5):
        with decimal.localcontext() as context:
            context.prec = digits
            assert all(f(X).item() == (X * float(decimal.Decimal(1) / 3)).sum().item() for _ in range(2))
    g = symgrad.compile(lambda x: x.sum() * len(sys.argv) + (0.5 if np.geterr()["over"] == "raise" else 0.25))
    for count, mode in ((1, "warn"), (3, "warn"), (3, "raise")):
        monkeypatch.setattr(sys, "argv", ["name"] * count)
        with np.errstate(over=mode):
            assert g(X) == X.sum() * count + (0.5 if mode == "raise" else 0.25)


def test_floating_point_errors_of_numpy_that_raise_are_honoured():
    """Those of the function's own NumPy code: symgrad's functions raise none."""
    def f(x):
        try:
            with np.errstate(all="raise"):
                return symgrad.log(x * x).sum() + float(np.log(x.detach().numpy() ** 2).sum())
        except FloatingPointError:
            return x.sum()

    compiled = symgrad.compile(f)
    for x in (X, X * 0.0, X / 3):
        assert compiled(x) == f(x) and symgrad.equal(compiled.gradient(x), grad(f)(x))


class Own(symgrad.Tensor):
    """A subclass."""


def with_data_of(t):
    """A tensor to whose `data` another was assigned."""
    out = symgrad.zeros(3)
    out.data = t
    return out


OF_ARRAYS = {
    "from_numpy": symgrad.from_numpy, "as_tensor": symgrad.as_tensor, "asarray": symgrad.asarray,
    "frombuffer": lambda a: symgrad.frombuffer(a, dtype=symgrad.float64), "from_dlpack of an array": symgrad.from_dlpack,
}
ALIASES = {  # of a tensor or an array, and what has its memory
    "data": lambda t: t.data, "detach": lambda t: t.detach(), "set_": lambda t: t.new_zeros(0).set_(t.detach()), "view": lambda t: t.view(-1),
    "assigned data": with_data_of, "copy": copy.copy, "Parameter": lambda t: symgrad.nn.Parameter(t, False), "Buffer": symgrad.nn.Buffer,
    "subclass": lambda t: t.as_subclass(Own), "class": symgrad.Tensor, "from_dlpack": lambda t: symgrad.from_dlpack(t.detach()),
    "storage": lambda t: symgrad.zeros(0).set_(t.untyped_storage()), "real": lambda t: t.real, **OF_ARRAYS,
}
WRITES = {"add_": lambda t, x: t.add_(x), "copy_": lambda t, x: t.copy_(x), "index": lambda t, x: t.__setitem__(0, x[0] / 3), "out": lambda t, x: (
    symgrad.mul(x, 1.7, out=t)), "fill": lambda t, x: t.fill_(x[1])}


@pytest.mark.sampled(30)
@pytest.mark.parametrize("write", WRITES)
@pytest.mark.parametrize("alias", ALIASES)
@pytest.mark.parametrize("computed", [False, True])
def test_writes_into_memory_that_others_have_are_seen(alias, write, computed):
    """By the name that was not written, and in both directions."""
    of_array = alias in OF_ARRAYS

    def f(x):
        first = np.full(3, 0.4) if of_array else x * 0.3 if computed else symgrad.full((3,), 0.7)
        second = ALIASES[alias](first)
        WRITES[write](second, x.detach())
        return (symgrad.tensor(first) if of_array else first).sum() * x[1]

    def g(x):
        first = x * 0.3 if computed else symgrad.full((3,), 0.7)
        second = ALIASES[alias](first.detach().numpy() if of_array else first)
        WRITES[write](first, x.detach())
        return second.sum() * x[1]

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for function in (f, g):
            compiled = symgrad.compile(function)
            for x in (X, X / 3, -X):
                assert compiled(x) == function(x)
