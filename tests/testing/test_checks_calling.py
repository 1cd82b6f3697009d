"""Checks of calls: the mistakes that each of them finds, right ops that pass, and ops to which it does not apply."""

import contextvars
import functools
import itertools
import pickle
import threading
import time

import numpy as np
import pytest

import symgrad
from symgrad.autograd import Function
from symgrad.carriers.lapack import hermitian_parts
from symgrad.engine.recording import core
from symgrad.frameworks.naming import import_path
from symgrad.graph.op import REGISTRY
from symgrad.methods import extending
from symgrad.ops.matrices import MATRIX
from symgrad.testing import CheckFailure, check_determinism, check_errors, check_pickling, check_threads
from tests.support.claims import CASES, name_of
from tests.support.functions import function_of

QUICK = {"elementwise": True, "shrink": False}
RIGHT = QUICK | {"pullback": lambda g, x: 2 * x * g}


def square(x):
    return x * x


def every(n):
    """The square, with an error in every n-th call."""
    calls = itertools.count(1)
    return lambda x: x * x * (1 + 1e-9 * (next(calls) % n == 0))


def test_results_that_depend_on_the_number_of_calls():
    with pytest.raises(CheckFailure, match="the value is another"):
        check_determinism(every(17), **RIGHT)


class Overwritten(Function):
    """The square, whose argument is stored on the class."""

    @staticmethod
    def forward(ctx, x):
        Overwritten.kept = x.detach()
        return x * x

    @staticmethod
    def backward(ctx, g):
        return 2 * Overwritten.kept * g


def consumed():
    """The square, whose pullback changes its saved value."""
    def forward(ctx, x):
        ctx.factor = 2.0
        ctx.save_for_backward(x)
        return x * x

    def backward(ctx, g):
        ctx.factor += 1e-9
        return (ctx.factor - 1e-9) * ctx.saved_tensors[0] * g

    return function_of(forward, backward, "Consumed")


def test_graphs_that_remember_too_little_or_too_much():
    with pytest.raises(CheckFailure, match="the gradient is another when the op was called with other arguments before the pullback"):
        check_determinism(Overwritten, **QUICK)
    with pytest.raises(CheckFailure, match="the gradient is another when one result is pulled back twice"):
        check_determinism(consumed(), **QUICK)


def test_random_numbers():
    for check in (check_determinism, check_threads):
        assert check(lambda x: x * x + np.random.normal(), random=True, **RIGHT).reason == "it is random"


def test_deterministic_ops_pass():
    def remembered(x, known={}):  # noqa: B006  a cache that is right
        return known.setdefault((x.shape, x.dtype.name, x.tobytes()), x * x).copy()

    assert check_determinism(remembered, **RIGHT).verdict == check_threads(remembered, **RIGHT).verdict == "passed"


class Shared:
    """The square, in steps that another thread may interrupt."""

    def __call__(self, x):
        self.x = x
        for _ in range(3):
            time.sleep(0)
        return self.x * x


def test_threads():
    with pytest.raises(CheckFailure, match="while other threads call it|could not be broadcast"):
        check_threads(Shared(), **RIGHT)
    with pytest.raises(CheckFailure, match="not from this thread"):
        check_threads(only_here(threading.get_ident()), **RIGHT)
    local = threading.local()

    def own(x):
        local.x = x
        time.sleep(0)
        return local.x * x

    assert check_threads(own, **RIGHT).verdict == "passed"


SCALE = contextvars.ContextVar("scale", default=np.nan)


def test_other_threads_call_the_op_in_the_context_of_the_check():
    """Else what a context decides, such as the triangle that is read of a matrix, would be different there."""
    token = SCALE.set(1 / 3)
    try:
        for check in (check_threads, check_determinism):
            assert check(lambda x: x * x * SCALE.get(), elementwise=True, pullback=lambda g, x: 2 * x * g * SCALE.get()).verdict == "passed"
    finally:
        SCALE.reset(token)


TRIANGLE = np.array([[1.3, -0.7], [0.1, 2 / 3]])


def reads_a_triangle(op, parameters):
    """Whether an op of one matrix reads its lower triangle only."""
    with hermitian_parts() as seen:
        core(op)(symgrad.tensor(TRIANGLE), *parameters)
    return bool(seen)


@pytest.mark.sweep
@pytest.mark.parametrize("op, parameters", [pytest.param(op, parameters, id=name_of(op, parameters)) for op, parameters in CASES
                                            if op.kind == "primitive" and op.docs.shapes == MATRIX and reads_a_triangle(op, parameters)])
def test_ops_that_read_a_triangle_read_it_in_other_threads(op, parameters):
    for check in (check_threads, check_determinism):
        assert check(op, parameters=parameters, inputs=[TRIANGLE]).verdict == "passed"


def only_here(thread):
    def function(x):
        if threading.get_ident() != thread:
            raise RuntimeError("not from this thread")
        return x * x

    return function


class Power:
    """An op with a state, which pickling keeps or loses."""

    def __init__(self, n, kept=True):
        self.n, self.kept = n, kept

    def __call__(self, x):
        return x**self.n

    def __reduce__(self):
        return Power, (self.n if self.kept else 3, self.kept)


class Locked(Power):
    def __reduce__(self):
        raise TypeError("not this one")


class Lossy(np.ndarray):
    def __reduce__(self):
        return np.zeros, (self.shape,)


def losing(x):
    return np.asarray(x * x).view(Lossy)


@pytest.mark.sweep
def test_pickling():
    assert check_pickling(square, **RIGHT).verdict == check_pickling(Power(2), **RIGHT).verdict == "passed"
    assert check_pickling(functools.partial(np.power, 2.0), elementwise=True).verdict == "passed"
    for op in (symgrad.sin, symgrad.matmul, REGISTRY["softmax"], symgrad.nn.functional.mse_loss, Overwritten):
        assert check_pickling(op).verdict == "passed"
    with pytest.raises(CheckFailure, match="the value is another after pickling"):
        check_pickling(Power(2, kept=False), **RIGHT)
    with pytest.raises(CheckFailure, match="comes back different"):
        check_pickling(losing, framework="numpy", **RIGHT)


def test_a_users_op_is_pickled_by_the_name_that_it_has_in_its_module(monkeypatch):
    try:
        op, other = (symgrad.elementwise(name, lambda xp, x: x * x, lambda xp, y, x: 2 * x) for name in ("pickled_by_name", "pickled_by_another"))
        monkeypatch.setitem(globals(), "pickled_by_name", op)
        assert pickle.loads(pickle.dumps(op)) is op and check_pickling(op).verdict == "passed"
        assert op.__doc__.splitlines()[-1].startswith("Kind: elementwise") and ">>> " not in op.__doc__
        assert "pickled_by_another" in check_pickling(other).reason
    finally:
        extending._unregister("pickled_by_name")
        extending._unregister("pickled_by_another")


def test_objects_that_cannot_be_imported_by_name(monkeypatch):
    for op in (lambda x: x * x, only_here(0).__class__, Locked(2)):
        if op is not only_here(0).__class__:
            assert "it is not found by module and name" in check_pickling(op, **RIGHT).reason
    assert check_pickling(REGISTRY["sech_square"]).reason == "it has no public function"
    assert import_path(square) and import_path(np.exp) and not import_path(lambda x: x) and not import_path(Power(2))


def refusing(x, n=1):
    if n < 1:
        raise ValueError(f"n is {n}; expected at least 1")
    return x * x


def test_errors():
    x = np.ones(2)
    assert check_errors(refusing, errors=[((x, 0), ValueError), ((x, -1), (ValueError, TypeError), "at least 1")], **RIGHT).verdict == "passed"
    assert check_errors(symgrad.mm, errors=[((np.ones((2, 3)), np.ones((2, 3))), RuntimeError)]).verdict == "passed"
    for declared, words in ((((x, 1), ValueError), "is not refused and should raise ValueError"), (((x, 0), TypeError), "should raise TypeError"),
                            (((x, 0), ValueError, "at most"), "in which 'at most' is not found"),
                            (((x, 0), (TypeError, KeyError)), "should raise TypeError or KeyError")):
        with pytest.raises(CheckFailure, match=words):
            check_errors(refusing, errors=[declared], **RIGHT)
    assert check_errors(refusing, **RIGHT).reason == "no errors are declared"
