"""NumPy's error state and warning filters do not reach the library's numbers, and the library's error state does not reach a user's code."""

import contextlib
import contextvars
import threading
import types
import warnings

import numpy as np
import pytest

import symgrad
import symgrad.testing
from symgrad import func, nn, optim
from symgrad.autograd import Function
from symgrad.methods import extending
from symgrad.program.native import find_compiler
from symgrad.system.errorstate import quietly, run_quietly
from tests.benchmarks.ops import bound, calls
from tests.routes.table import ROUTES, Problem

tensor = symgrad.tensor
STATES = ("warnings are errors", "raise", "call", "print")
EXTREME = np.array([0.0, -0.0, 1e308, -1e308, 5e-324, np.inf, -np.inf, np.nan, 1e-160, -1e160, 1.5, -2.5, 1e-320, 0.5, 710.0, -745.0])


@contextlib.contextmanager
def strict(state):
    """An error state in which a reported floating-point error is an exception, or is noted; a warning about the use of a function is none."""
    reported = []
    with warnings.catch_warnings(), np.errstate(all="warn" if state == STATES[0] else state, call=lambda *error: reported.append(error)):
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", UserWarning)
        yield
    assert not reported


def bits(found):
    """What was returned, with the bytes of each number."""
    if isinstance(found, (tuple, list)):
        return [*map(bits, found)]
    if isinstance(found, symgrad.Tensor):
        found = found.detach().numpy()
    if isinstance(found, (np.ndarray, np.generic, float)):
        found = np.asarray(found)
        return found.dtype.str, found.shape, found.tobytes()
    return repr(found)


def outcome(compute):
    """The bits of the results, or the error."""
    symgrad.manual_seed(0)
    try:
        return bits(compute())
    except Exception as error:
        return type(error), str(error)


def check(compute, states=STATES):
    """The results are those of the default state, bit for bit, and nothing is reported."""
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        expected = outcome(compute)
    assert not [w for w in seen if issubclass(w.category, RuntimeWarning)]
    for state in states:
        with strict(state):
            found = outcome(compute)
        assert found == expected, f"{state}: {found}, not {expected}"


# Ops: each call that torch has, forward, backward, twice, and forward mode, at zeros, poles, infinities and ends of the range


def derivatives(call, shift):
    def compute():
        function, leaves = bound(symgrad, call)
        for k, x in enumerate(leaves):
            if x.is_floating_point():
                x.data.copy_(tensor(np.resize(np.roll(EXTREME, shift + k), tuple(x.shape))))
        y = function()
        out = [y]
        if isinstance(y, symgrad.Tensor) and y.requires_grad:
            first = symgrad.autograd.grad(y, leaves, symgrad.ones_like(y) * 1e300, create_graph=True, allow_unused=True)
            again = [g for g in first if g is not None and g.requires_grad]
            if again:
                out += symgrad.autograd.grad(again, leaves, [symgrad.ones_like(g) for g in again], allow_unused=True)
            for _ in range(2):
                function().backward(symgrad.ones_like(y))
            out += [*first, *(x.grad for x in leaves)]
            function, leaves = bound(symgrad, call)
            with symgrad.autograd.forward_ad.dual_level():
                for x in leaves:
                    x.data.mul_(1e200)
            out += [function()]
        return out

    return compute


CALLS = list(calls())


@pytest.mark.parametrize("call", CALLS[::16], ids=repr)
def test_ops(call, capfd):
    check(derivatives(call, 0), ("raise", "print"))
    assert capfd.readouterr().err == ""


@pytest.mark.sweep
@pytest.mark.parametrize("state", STATES)
def test_ops_in_every_state(state, capfd):
    for k, call in enumerate(CALLS):
        if state == "raise" or k % 4 == STATES.index(state):
            check(derivatives(call, 3 + k % 7), (state,))
    assert capfd.readouterr().err == ""


# Routes: every way to a derivative of functions that overflow, underflow, divide by zero and are undefined

FUNCTIONS = {
    "overflow": (lambda x: (x * 1e200).pow(2).sum() * 1e10, (3.0, 2.0)), "pole": (lambda x: (1 / x).sum() + (x.sin() / x).sum(), (0.0, 1e-300)),
    "invalid": (lambda x: (x.exp() - (2 * x).exp()).sum(), (800.0, 1.0)), "underflow": (lambda x: ((x * 1e-200) ** 3).sum(), (1.0, 3.0)),
    "outside": (lambda x: x.log().sum() + x.sqrt().sum(), (0.0, -1.0)), "norm": (lambda x: x.norm() + (x * 1e300).norm(), (0.0, 1e-320)),
    "smooth": (lambda x: x.softmax(0)[0] + x.tanh().sum() + x.sigmoid().prod(), (800.0, -800.0)),
    "float32": (lambda x: (x.to(symgrad.float32) * 1e30).pow(2).sum(), (1e20, 1e-30)),
}
WAYS = [route for route in ROUTES if not route.needs and "source" not in route.name]


def along(route, name):
    f, point = FUNCTIONS[name]
    problem = types.SimpleNamespace(scalar=f, point=np.array(point), tangent=np.array([1.0, -0.5]), steps=())
    return lambda: route.compute(Problem(problem))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_routes(name):
    for route in WAYS[list(FUNCTIONS).index(name)::60]:
        check(along(route, name), ("raise",))


@pytest.mark.sweep
@pytest.mark.parametrize("name", FUNCTIONS)
def test_more_routes(name):
    for route in WAYS[list(FUNCTIONS).index(name) % 3::3]:
        check(along(route, name), ("raise",))


@pytest.mark.parametrize("backend", ["interpreter", "numpy", *["c"] * bool(find_compiler())])
@pytest.mark.parametrize("state", STATES)
def test_back_ends(backend, state):
    f = symgrad.compile(lambda x: (1 / x).sum() + (x.exp() * x.exp()).sum(), backend=backend)
    x = tensor([0.0, 800.0, -400.0, 2.0])
    check(lambda: [f(x), f.gradient(x), symgrad.autograd.grad(f(leaf := x.clone().requires_grad_()), leaf)], (state,))


# What is neither an op nor a pass


def stepped(kind, **options):
    p = tensor([1e300, 1e-300, 0.0, 2.0], requires_grad=True)
    optimizer = kind([p], **options)

    def closure():
        optimizer.zero_grad()
        loss = (p * p).sum() * 1e-320 + (p * 1e-300).pow(2).sum()
        if kind is not optim.Newton:
            loss.backward()
        return loss

    return [optimizer.step(closure) for _ in range(3)] + [p]


ELSEWHERE = {
    **{kind.__name__: (lambda kind=kind: stepped(kind, lr=0.1)) for kind in (
        optim.SGD, optim.Adam, optim.AdamW, optim.Adagrad, optim.Adadelta, optim.RMSprop, optim.NAdam, optim.RAdam, optim.Rprop, optim.LBFGS)},
    "in place": lambda: tensor([1e308, 0.0, -1.0]).mul_(1e10).div_(0.0).sub_(symgrad.inf).log_().pow_(2.5),
    "assignment": lambda: symgrad.zeros(2, dtype=symgrad.float32).__setitem__(0, 1e300),
    "to float32": lambda: [tensor([1e300, 1e-300]).to(d) for d in (symgrad.float32, symgrad.float16, symgrad.bfloat16)],
    "to integers": lambda: [tensor([1e300, np.nan, -np.inf]).to(d) for d in (symgrad.int32, symgrad.uint8)],
    "tensor": lambda: [tensor(1e300, dtype=symgrad.float32), tensor([1e300], dtype=symgrad.float16), tensor(np.array([1e300])).float()],
    "creation": lambda: [symgrad.full((2,), 1e300, dtype=symgrad.float32), symgrad.linspace(-1e308, 1e308, 3), symgrad.logspace(0, 1e3, 4)],
    "random": lambda: [symgrad.empty(3).uniform_(-1e308, 1e308), symgrad.empty(3).normal_(0.0, 1e308), symgrad.empty(3).exponential_(1e-320),
                       symgrad.normal(0.0, 1e308, (3,)), nn.init.trunc_normal_(symgrad.empty(3), 0.0, 1.0, -1e308, 1e308)],
    "comparison": lambda: [symgrad.allclose(tensor([np.inf, 1e308]), tensor([np.inf, -1e308])), symgrad.isclose(tensor([np.inf]), tensor([-np.inf]))],
    "printing": lambda: [repr(tensor(EXTREME)), str(tensor(EXTREME[:5]).float())],
    "clipping": lambda: nn.utils.clip_grad_norm_([stepped(optim.SGD, lr=1e300)[-1]], 1.0),
    "modules": lambda: [m(tensor(np.resize(EXTREME, (3, 4)))) for m in (nn.BatchNorm1d(4), nn.LayerNorm(4), nn.Softmax(0), nn.GELU())],
    "NumPy's functions": lambda: [f(tensor(EXTREME)) for f in (np.exp, np.sum, np.std, np.cumsum, np.linalg.norm)],
    "formulas": lambda: str((tensor(0.0, requires_grad=True, symbol="x") * 1e300).exp().expr),
    "numbers left and right": lambda: [1.0 / tensor([0.0]), tensor([1e308]) * 10.0, 2.0 ** tensor([5000.0]), tensor([-1.0]) ** 0.5],
}


@pytest.mark.parametrize("name", ELSEWHERE)
def test_elsewhere(name, capfd):
    check(ELSEWHERE[name])
    assert capfd.readouterr().err == ""


# A user's code has the state of the program, and its context


def divide():
    return 1.0 / np.zeros(1)


called = contextvars.ContextVar("called", default=0)


def note(x=None):
    """A user's code: it divides by zero, and changes a context variable."""
    called.set(called.get() + 1)
    with pytest.raises(FloatingPointError):
        divide()
    return x


class Own(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return note(x * 2)

    @staticmethod
    def backward(ctx, g):
        return note(g * 1e300 * 1e300)

    @staticmethod
    def jvp(ctx, t):
        return note(t * 1e300 * 1e300)


def _with_hooks(x):
    y = x * 1e300
    y.register_hook(note)
    y.grad_fn.register_hook(lambda *g: note())
    y.grad_fn.register_prehook(lambda *g: note())
    x.register_post_accumulate_grad_hook(lambda x: note())
    return (y * 1e300).sum()


def _with_hook(y):
    y.register_hook(note)
    return y


def _packed(x):
    with symgrad.autograd.graph.saved_tensors_hooks(note, note):
        return (x * x * 1e300 * 1e300).sum()


def _custom(x):
    @func.custom_vjp
    def f(x):
        return x * 2

    def forward(x):
        return note(f.function(x) if hasattr(f, "function") else x * 2), x

    f.defvjp(forward, lambda x, g: (note(g * 1e300 * 1e300),))
    return f(x)


def _noted(x):
    return note(x) if isinstance(x, (np.ndarray, symgrad.Tensor)) else x


DECLARED = {}


def own_op(x):
    return DECLARED["own_op"](x)


@pytest.fixture(scope="module")
def declared():
    """The declaration of `own_op`."""
    DECLARED["own_op"] = symgrad.elementwise("own_op_of_error_states", lambda xp, x: _noted(x * x), lambda xp, y, x: _noted(2 * x))
    yield
    extending._unregister("own_op_of_error_states")


USERS = {  # how often the code is called, at least
    "Function": (lambda x: Own.apply(x).sum().backward(), 2), "Function twice": (lambda x: func.grad(lambda v: Own.apply(v).sum())(x), 2),
    "jvp of a Function": (lambda x: func.jvp(Own.apply, (x,), (x,)), 2), "rules of an op": (lambda x: own_op(x).sum().backward(), 2),
    "rules, recorded": (lambda x: symgrad.autograd.grad(own_op(x).sum(), x, create_graph=True)[0].sum().backward(), 2),
    "rules, pushed forward": (lambda x: func.jvp(own_op, (x,), (x,)), 2),
    "rules in a Hessian": (lambda x: func.hessian(lambda v: own_op(v).sum())(x), 1),
    "rules in a series": (lambda x: func.jet(own_op, (x,), ([x, x],)), 1),
    "rules behind hooks": (lambda x: own_op(_with_hook(own_op(x))).sum().backward(), 5),
    "hooks": (lambda x: _with_hooks(x).backward(), 4), "packed tensors": (lambda x: _packed(x).backward(), 2),
    "custom_vjp": (lambda x: _custom(x).sum().backward(), 2),
    "functions of transforms": (lambda x: func.grad(lambda v: note(v).sum())(x), 1),
    "vmap": (lambda x: func.vmap(lambda v: note(v * 1e300 * 1e300))(x), 1),
    "closure": (lambda x: optim.SGD([x], lr=0.1).step(lambda: note(x.sum())), 1),
    "checkpoint": (lambda x: symgrad.utils.checkpoint.checkpoint(lambda v: note(v * 1e300) * v, x, use_reentrant=False).sum().backward(), 2),
}


@pytest.mark.parametrize("name", USERS)
def test_a_users_code_has_its_own_state(name, declared):
    use, count = USERS[name]
    before = called.get()
    with np.errstate(all="raise"):
        use(tensor([1.0, 2.0], requires_grad=True))
    assert called.get() - before >= count


# The mechanism


def test_the_state_of_the_program_is_not_changed():
    filters, state = list(warnings.filters), np.geterr()
    x = tensor([0.0], requires_grad=True)
    (1 / x).sum().backward()
    assert np.geterr() == state and warnings.filters == filters
    with np.errstate(all="raise"), pytest.raises(FloatingPointError):
        divide()


def test_operations_inside_of_operations_and_of_other_threads():
    with np.errstate(all="raise"):
        assert run_quietly(lambda: quietly(lambda: (tensor([1.0]) / 0.0).item())) == np.inf  # the shared context is in use
        barrier, found = threading.Barrier(4), []

        def work():
            with np.errstate(all="raise"):
                barrier.wait()
                for _ in range(30):
                    x = tensor(np.zeros(2000), requires_grad=True)
                    (1 / x).sum().backward()
                    found.append(bool(x.grad.isinf().all()))
                with pytest.raises(FloatingPointError):
                    divide()
                found.append(True)

        threads = [threading.Thread(target=work) for _ in range(4)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
    assert len(found) == 4 * 31 and all(found)
