"""Every module in the texts of `modules` beside torch's.

A line is the text of a constructor, and the lines below it are inputs, which are given in turn. What stands under EVALUATED is random in training,
and under FIRST torch has no second gradients, or wrong ones; REFUSED has inputs that are refused, and none where the constructor is. FUNCTIONS are
what stands beside modules.
"""

import copy
import math
import pathlib
import pickle
import re
import warnings
from collections import OrderedDict

import numpy as np
import pytest
import torch

import symgrad

from .database import tensors


def names(m):
    """What the text of a case may use."""
    def wave(*shape, at=0.0):
        """Numbers without a pattern, of which none is 0 or equal to another, as a leaf that requires grad."""
        n = np.arange(math.prod(shape), dtype=np.float64)
        numbers = np.sin(1.3 * n * n + n + at + 0.4) + 0.01 * n / (n.size or 1)
        return m.tensor(numbers.tolist(), dtype=m.float64).reshape(shape).requires_grad_()

    return {**vars(m.nn), "m": m, "nn": m.nn, "F": m.nn.functional, "R": m.nn.utils.rnn, "wave": wave, "t": m.tensor, "math": math}


def made(m, text):
    return eval(text, names(m))


def inputs(m, text):
    return eval(f"(lambda *args, **kwargs: (args, kwargs))({text})", names(m))


def structure(value):
    """The shape of an output, as data."""
    if isinstance(value, (tuple, list)):
        return [type(value).__name__, *map(structure, value)]
    return (tuple(value.shape), str(value.dtype)) if hasattr(value, "shape") else value


def close(a, b, what):
    assert tuple(a.shape) == tuple(b.shape) and str(a.dtype) == str(b.dtype), what
    np.testing.assert_allclose(np.array(a.tolist()), np.array(b.tolist()), rtol=1e-9, atol=1e-10, err_msg=what)


def to(m, state):
    """A state with the tensors of another library, through NumPy, and its versions."""
    out = OrderedDict((k, v if v is None else m.tensor(v.detach().numpy().copy())) for k, v in state.items())
    out._metadata = copy.deepcopy(state._metadata)
    return out


def fill(module):
    """Give the parameters of a module of torch numbers that are those of no default."""
    rng = np.random.default_rng(0)
    with torch.no_grad():
        for parameter in module.parameters():
            shape = tuple(parameter.shape)
            parameter.copy_(torch.tensor(rng.uniform(0.2, 0.9, shape) * rng.choice([-1, 1], shape)))


def fill_ours(module):
    """Give the parameters of a module of symgrad numbers that are those of no default."""
    rng = np.random.default_rng(0)
    with symgrad.no_grad():
        for parameter in module.parameters():
            parameter.copy_(symgrad.tensor(rng.normal(size=tuple(parameter.shape))))


def mapped(function, *values):
    """A function of the tensors at the same places of nested values."""
    first = values[0]
    if isinstance(first, dict):
        return {k: mapped(function, *(v[k] for v in values)) for k in first}
    if isinstance(first, (tuple, list)):
        made = [mapped(function, *each) for each in zip(*values)]
        return type(first)(*made) if hasattr(first, "_fields") else type(first)(made)
    return function(*values)


def replaced(value, others):
    """Nested values with the next of other tensors in the place of each leaf that requires grad."""
    return mapped(lambda x: next(others) if getattr(x, "requires_grad", False) and x.is_leaf else x, value)


def outcome(m, module, text, second=True):
    """Outputs, first gradients and second gradients by every input and parameter, as a list of tensors, and the structure of the output."""
    args, kwargs = inputs(m, text)
    leaves = [t for t in tensors((args, kwargs)) if t.is_leaf and t.requires_grad]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = module(*args, **kwargs)
    told = [w.category for w in caught]
    leaves += list(getattr(module, "parameters", tuple)())
    outputs = list(tensors(result))
    found = [y.detach() for y in outputs]
    counted = [y for y in outputs if y.requires_grad]
    if counted and leaves:
        total = sum((y * m.cos(m.arange(float(y.numel()))).reshape(y.shape)).sum() + (y * y).sum() for y in counted)
        first = m.autograd.grad(total, leaves, create_graph=second, allow_unused=True, materialize_grads=True)
        found += [g.detach() for g in first]
        again = [g for g in first if g.requires_grad]
        if again:
            try:
                found_again = m.autograd.grad(sum((g * g).sum() for g in again), leaves, allow_unused=True, materialize_grads=True)
            except RuntimeError as error:  # torch has no such derivative
                assert m is torch and "not implemented" in str(error)
            else:
                found += [h.detach() for h in found_again]
    return [structure(result), told], found


def agree(ours, theirs, text, modes, given, second):
    """Compare outcomes in both modes, and the buffers afterwards."""
    for training in modes:
        ours.train(training), theirs.train(training)
        for one in given:
            (kind, a), (expected, b) = outcome(symgrad, ours, one, second), outcome(torch, theirs, one, second)
            assert kind == expected, text
            assert len(a) >= len(b), text
            for i, (x, y) in enumerate(zip(a, b)):
                close(x, y, f"{text}({one}), training={training}, entry {i}")
        same_state(ours.state_dict(), theirs.state_dict(), text)


def compare_function(text, given, second=True):
    """Compare a function with torch's for each text of inputs."""
    for one in [given] if isinstance(given, str) else given:
        (kind, a), (expected, b) = (outcome(m, made(m, text), one, second) for m in (symgrad, torch))
        assert kind == expected and len(a) >= len(b), text
        for i, (x, y) in enumerate(zip(a, b)):
            close(x, y, f"{text}({one}), entry {i}")


def same_state(ours, theirs, text):
    assert list(ours) == list(theirs) and ours._metadata == theirs._metadata, text
    for key, value in ours.items():
        if not symgrad.nn.parameter.is_lazy(value):
            close(value, theirs[key], f"{text}.{key}")


def compare_module(text, given, modes=(True, False), second=True):
    """Compare a module with torch's for each text of inputs in turn."""
    given = [given] if isinstance(given, str) else list(given)
    ours, theirs = made(symgrad, text), made(torch, text)
    assert repr(ours) == repr(theirs)
    assert [(k, type(p).__name__, p.requires_grad, str(p.dtype)) for k, p in ours.named_parameters()] == \
        [(k, type(p).__name__, p.requires_grad, str(p.dtype)) for k, p in theirs.named_parameters()]
    assert [k for k, _ in ours.named_buffers()] == [k for k, _ in theirs.named_buffers()]
    if any(map(torch.nn.parameter.is_lazy, (*theirs.parameters(), *theirs.buffers()))):
        for m, module in ((symgrad, ours), (torch, theirs)):
            args, kwargs = inputs(m, given[0])
            module.eval()(*args, **kwargs)
        assert repr(ours) == repr(theirs)
    for buffers in zip(ours.buffers(), theirs.buffers()):
        close(*buffers, text)  # the first values
    fill(theirs)
    assert str(ours.load_state_dict(to(symgrad, theirs.state_dict()))) == "<All keys matched successfully>"
    agree(ours, theirs, text, modes, given, second)
    assert str(theirs.load_state_dict(to(torch, ours.state_dict()))) == "<All keys matched successfully>"
    for again in (copy.deepcopy(ours), pickle.loads(pickle.dumps(ours))):
        assert repr(again) == repr(ours)
        agree(again, theirs, text, (False,), given, False)


def compare_transforms(text, given):
    """Compare a module's derivatives with each other: forward and reverse, and over a batch of inputs or of parameters by vmap."""
    module = made(symgrad, text).double().eval()
    args, kwargs = inputs(symgrad, given)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        module(*args, **kwargs)
        fill_ours(module)
        leaves = [t for t in tensors((args, kwargs)) if t.requires_grad and t.is_leaf]

        def f(given, parameters):
            values = iter(given)
            found = tensors(symgrad.func.functional_call(module, parameters, replaced(args, values), replaced(kwargs, values)))
            return sum((y * symgrad.cos(symgrad.arange(float(y.numel())).reshape(y.shape))).sum() for y in found if y.is_floating_point())

        primals = tuple(t.detach() for t in leaves), {k: p.detach() for k, p in module.named_parameters() if p.is_floating_point()}
        rng = np.random.default_rng(0)
        tangents = mapped(lambda x: symgrad.tensor(rng.normal(size=tuple(x.shape))), primals)
        gradients = symgrad.func.grad(f, (0, 1))(*primals)
        along = sum((g * t).sum() for g, t in zip(tensors(gradients), tensors(tangents)))
        np.testing.assert_allclose(symgrad.func.jvp(f, primals, tangents)[1].item(), float(along), rtol=1e-8, atol=1e-9, err_msg=text)
        for which in (0, 1):
            one = [mapped(lambda x, i=i: x * (1 - i / 2) + 0.1 * i, primals[which]) for i in range(2)]
            if one[0]:
                batch = mapped(lambda *xs: symgrad.stack(xs), *one)
                call = (lambda x: f(x, primals[1])) if which == 0 else (lambda p: f(primals[0], p))
                for function in (call, symgrad.func.grad(call)):
                    for i in range(2):
                        for a, b in zip(tensors(symgrad.vmap(function)(batch)), tensors(function(one[i]))):
                            close(a[i], b, f"vmap of {text}({given})")


def compare_refusal(text, given):
    """Compare the type of what is raised by the constructor, or by the call with inputs."""
    errors = []
    for m in (symgrad, torch):
        try:
            module = made(m, text)
            if given is not None:
                args, kwargs = inputs(m, given)
                module(*args, **kwargs)
        except Exception as error:
            errors.append(error)
    assert len(errors) == 2, f"only one of both refuses: {errors}"
    ours, theirs = errors
    assert isinstance(ours, type(theirs)) and str(ours), (ours, theirs)


def compare_start(text):
    """Compare the distributions of the parameters of new modules, of which each library makes some."""
    from scipy.stats import ks_2samp

    found = []
    for m in (symgrad, torch):
        m.manual_seed(7)
        modules = [made(m, text) for _ in range(25)]
        found.append({k: np.concatenate([np.ravel(dict(module.named_parameters())[k].detach().numpy()) for module in modules])
                      for k, p in modules[0].named_parameters() if not m.nn.parameter.is_lazy(p)})
    ours, theirs = found
    assert list(ours) == list(theirs)
    for key, a in ours.items():
        b = theirs[key]
        if np.ptp(b) == 0 or a.size < 30:
            assert np.ptp(b) > 0 or (a == b).all(), f"{text}.{key}"
        else:
            assert ks_2samp(a, b).pvalue > 1e-5, f"{text}.{key}"
            assert (a == 0).mean() == (b == 0).mean() or abs((a == 0).mean() - (b == 0).mean()) < 0.05, f"{text}.{key}"


pytestmark = [pytest.mark.usefixtures("double_precision", "one_thread"), pytest.mark.filterwarnings("ignore:enable_nested_tensor is True")]

TABLES = {"CASES": {}, "EVALUATED": {}, "FIRST": {}, "FUNCTIONS": {}, "FIRST_FUNCTIONS": {}, "REFUSED": {}}
for path in sorted((pathlib.Path(__file__).parent / "modules").glob("*.txt")):
    for name, lines in re.findall(r"^\[(\w+)\]\n((?:.+\n)*)", path.read_text(encoding="utf-8"), re.MULTILINE):
        for text, given in re.findall(r"^(\S.*)\n((?:    .+\n)*)", lines, re.MULTILINE):
            TABLES[name][text] = [line.strip() for line in given.splitlines()]
CASES, EVALUATED, FIRST, FUNCTIONS, FIRST_FUNCTIONS, _ = TABLES.values()
REFUSED = [(text, one) for text, given in TABLES["REFUSED"].items() for one in given or [None]]


@pytest.fixture
def one_thread():
    """Torch's threads take longer to meet than these sizes take to compute."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.mark.parametrize("text", CASES)
def test_modules(text):
    compare_module(text, CASES[text])


@pytest.mark.parametrize("text", [text for text in CASES if "max_norm" not in text])  # which writes to the weight
def test_modules_under_transforms(text):
    for given in CASES[text]:
        compare_transforms(text, given)


@pytest.mark.parametrize("text", EVALUATED)
def test_modules_that_are_random_in_training(text):
    compare_module(text, EVALUATED[text], (False,))


@pytest.mark.parametrize("text", FIRST)
def test_modules_without_second_gradients(text):
    compare_module(text, FIRST[text], second=False)


@pytest.mark.parametrize("text", [*CASES, *EVALUATED, *FIRST])
def test_first_parameters(text):
    compare_start(text)


@pytest.mark.parametrize("text", FUNCTIONS)
def test_functions(text):
    compare_function(text, FUNCTIONS[text])


@pytest.mark.parametrize("text", FIRST_FUNCTIONS)
def test_functions_without_second_gradients(text):
    compare_function(text, FIRST_FUNCTIONS[text], second=False)


@pytest.mark.parametrize("text, given", REFUSED)
def test_refusals(text, given):
    compare_refusal(text, given)


@pytest.mark.parametrize("compare", [
    lambda: compare_refusal("Linear(3, 2)", "wave(4, 3)"), lambda: compare_module("Linear(3, 2 + (m.__name__ == 'torch'))", "wave(4, 3)"),
    lambda: compare_module("LeakyReLU(0.1)", "wave(4, 3, at=m.__name__ == 'torch')"),
    lambda: compare_start("Linear(3, 20 + 20 * (m.__name__ == 'torch'), dtype=m.float64)") or compare_start("PReLU(3, 1 + (m.__name__ == 'torch'))"),
])
def test_the_comparison_can_fail(compare):
    with pytest.raises(AssertionError):
        compare()
