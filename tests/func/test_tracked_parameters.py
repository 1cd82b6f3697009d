"""A tensor that is differentiated, given where a function takes a number: a derivative that is right, or an error or a warning; never a silent 0."""

import inspect
import itertools
import warnings

import numpy as np
import pytest

import symgrad
import symgrad.nn.functional as F
from symgrad import func, linalg, optim, special
from tests.support.tables import table

MATRIX = symgrad.tensor([[1.3, -0.7], [0.41, 0.9]])
VECTOR = symgrad.tensor([1 / 3, -0.0271])
POSITIVE = symgrad.tensor([[0.37, 0.61], [0.83, 0.22]])
CLASSES = symgrad.tensor([1, 0])
IMAGE = symgrad.linspace(-1.1, 2.3, 32).reshape(1, 2, 4, 4)
OPERANDS = [(MATRIX,), (MATRIX, POSITIVE), (VECTOR,), (VECTOR, VECTOR + 1), (MATRIX, POSITIVE, MATRIX + 1), (IMAGE,), (MATRIX, CLASSES),
            (CLASSES, MATRIX), (MATRIX, (2,)), (POSITIVE, POSITIVE, POSITIVE), (MATRIX, VECTOR, POSITIVE[0]), (MATRIX, CLASSES * 2 - 1),
            (MATRIX, POSITIVE, CLASSES * 2 - 1), (IMAGE, 2), (IMAGE, VECTOR, POSITIVE[0]), (POSITIVE, 0.4), (MATRIX, 2)]
POINTS = (0.7, 1.3)


def _parameters(function):
    """The words of a function that may be given a number: those of the annotation float, and those without one whose default is a number or None."""
    try:
        found = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return []
    return [p.name for p in found if "float" in str(p.annotation) or p.annotation is p.empty and type(p.default) in (int, float, type(None))
            and p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY) and p.default is not p.empty]


FUNCTIONS = {f"{module.__name__}.{name}": getattr(module, name) for module in (symgrad, F, linalg, special)
             for name in dir(module) if not name.startswith("_") and inspect.isfunction(getattr(module, name))}
CASES = [(name, word) for name, function in FUNCTIONS.items() for word in _parameters(function)]


def _total(found):
    """A sum of the elements of the tensors of real numbers in a result, each with a weight of its own; None if there are none."""
    parts = found if isinstance(found, (tuple, list)) else (found,)
    parts = [x.double().reshape(-1) for x in parts if isinstance(x, symgrad.Tensor) and x.is_floating_point()]
    return sum([(x * symgrad.cos(symgrad.arange(x.numel()) + 0.3)).sum() for x in parts]) if parts else None


def _check(call, point):
    """Whether a function of a number varies at a point; its derivative is that of finite differences there, or it is refused."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            below, above = (call(point + h).item() for h in (-1e-6, 1e-6))
    except Exception:  # what the operands and numbers do not fit: each function has its own error
        return False
    slope = (above - below) / 2e-6
    if not 1e-6 < abs(slope) < 1e4:
        return False
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            found = func.grad(lambda a: call(a) + 0.0 * a)(symgrad.tensor(point, dtype=symgrad.float64))
        except Exception:  # refused, or a warning
            return True
    assert found.item() == pytest.approx(slope, rel=1e-3, abs=1e-6)
    return True


def _call(function, operands, word):
    def call(a):
        symgrad.manual_seed(3)
        return _total(function(*[x.clone() if isinstance(x, symgrad.Tensor) else x for x in operands], **{word: a}))

    return call


@pytest.mark.sweep
def test_numbers_of_public_functions_have_their_derivative_or_are_refused():
    varying, wrong = set(), []
    for name, word in CASES:
        for operands, point in itertools.product(OPERANDS, POINTS):
            try:
                found = _check(_call(FUNCTIONS[name], operands, word), point)
            except AssertionError as error:
                wrong.append(f"{name}, {word}: {error}")
                found = True
            if found:
                varying.add((name, word))
                break
    assert not wrong
    assert len(varying) > 90 and {("symgrad.var", "correction"), ("symgrad.nn.functional.layer_norm", "eps")} <= varying


def _step(a, **options):
    p = VECTOR.clone().requires_grad_()
    p.grad = VECTOR + 1
    optim.SGD([p], lr=a, **options).step()
    return p.detach()


OTHERS = table(globals(), "OTHERS")


@pytest.mark.parametrize("name", OTHERS)
def test_other_parameters_have_their_derivative_or_are_refused(name):
    assert _check(lambda a: _total(OTHERS[name](a)), 0.6173) or name == "lstsq"  # which is constant but for jumps


def test_full_like_of_numpy_is_differentiated_and_numbers_are_refused_by_name():
    assert func.grad(lambda a: np.full_like(MATRIX, a).sum())(1 / 3) == 4
    for call, words in ((lambda a: F.normalize(VECTOR, dim=0, eps=a), "normalize: eps .*detach"),
                        (lambda a: VECTOR.var(correction=a), "var: correction .*detach"),
                        (lambda a: F.embedding(CLASSES, MATRIX, max_norm=a), "embedding: max_norm .*detach")):
        for transform in (func.grad, func.jacfwd, func.jacrev):
            with pytest.raises(TypeError, match=words):
                transform(lambda a, call=call: call(a).sum())(symgrad.tensor(0.37))
        call(symgrad.tensor(0.37))


def test_an_optimizer_in_a_transform_names_the_option():
    with pytest.warns(UserWarning, match="option lr of SGD"):
        func.grad(lambda a: _step(a).sum() + a)(0.37)
