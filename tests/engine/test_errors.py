"""Errors name the op, the shapes or dtypes and the remedy, and change no state."""

import re
from pathlib import Path

import numpy as np
import pytest

import symgrad
from symgrad import autograd, tensor, zeros


def leaf(*values):
    return tensor(list(values), requires_grad=True)


def state(*tensors):
    """All that an operation could have changed."""
    return [(t._value.tobytes(), t.shape, t.dtype, t.requires_grad, t._node, None if not t.is_leaf or t.grad is None else t.grad.tolist())
            for t in tensors] + [symgrad.is_grad_enabled(), symgrad.is_inference_mode_enabled()]


def refuses(act, error, *words, unchanged=()):
    """The error of a call; it contains every word, and the tensors are as they were."""
    before = state(*unchanged)
    with pytest.raises(error) as caught:
        act()
    message = str(caught.value)
    for word in words:
        assert word in message, f"{word!r} is not in {message!r}"
    assert state(*unchanged) == before
    return message


DATA = Path(__file__).parents[1] / "support" / "data" / "errors.txt"
REFUSED = re.findall(r"^([^#\s].*)\n    (\w+):(.*)", DATA.read_text(), re.MULTILINE)


@pytest.mark.sampled(38)
@pytest.mark.parametrize("text, error, words", REFUSED)
def test_the_message_names_what_is_wrong_and_the_remedy(text, error, words):
    refuses(lambda: eval(text), {kind.__name__: kind for kind in (AssertionError, IndexError, RuntimeError, TypeError, ValueError)}[error],
            *map(str.strip, words.split("|")))


def test_every_call_is_read():
    assert len(REFUSED) == DATA.read_text().count("Error:") > 100


def test_nothing_is_changed_by_a_refused_backward():
    x = leaf(1.0, 2.0)
    y = x.exp()
    y.sum().backward()
    refuses(lambda: y.sum().backward(), RuntimeError, "a second time", "retain_graph=True", unchanged=[x, y])
    z = x * x
    refuses(z.backward, RuntimeError, "scalar outputs", unchanged=[x, z])
    refuses(lambda: z.backward(tensor([1.0])), RuntimeError, "Mismatch", unchanged=[x, z])
    refuses(lambda: autograd.backward([z, tensor(1.0)], [tensor([1.0, 1.0]), None]), RuntimeError, "element 1", unchanged=[x, z])
    z.backward(tensor([1.0, 1.0]))
    assert x.grad.tolist() == [np.e + 2.0, np.exp(2.0) + 4.0]


def test_a_graph_that_is_freed_half_way_accumulates_nothing():
    """The freed part is found before any leaf is given a gradient."""
    x, z = leaf(1.0), leaf(2.0)
    shared = x.exp()
    shared.sum().backward()
    x.grad = None
    y = (z.exp() + shared).sum()
    refuses(y.backward, RuntimeError, "a second time", unchanged=[x, z])


def test_a_refused_write_changes_nothing():
    x = tensor([1.0, 2.0])
    refuses(lambda: x.__setitem__(5, 1.0), IndexError, "__setitem__", "5", "[2]", unchanged=[x])
    refuses(lambda: x.__setitem__(slice(None), tensor([1.0, 2.0, 3.0])), RuntimeError, "[3]", "[2]", unchanged=[x])
    leaf_with_graph = leaf(1.0, 2.0)
    refuses(lambda: leaf_with_graph.__setitem__(0, 9.0), RuntimeError, "in-place operation", unchanged=[leaf_with_graph])


def test_one_symbol_for_two_leaves():
    x, other = tensor(1.0, symbol="x"), tensor(2.0, symbol="x")
    y = x * other
    assert y.item() == 2.0
    message = refuses(lambda: y.expr, ValueError, "x", unchanged=[x, other])
    assert re.search("symbol|name", message)


@pytest.mark.parametrize("name", ["2x", "", "x y", "x+1", "lambda x: x", 3, "__import__('os')"])
def test_a_symbol_is_a_name(name):
    refuses(lambda: tensor(1.0, symbol=name), ValueError, "symbol", repr(name))


def test_symbols_counts_its_values():
    refuses(lambda: symgrad.symbols("x x", [1.0, 2.0]), ValueError, "given twice", "'x x'")
    refuses(lambda: symgrad.symbols("x y", [1.0]), ValueError, "2 names", "1 values")
    refuses(lambda: symgrad.symbols("x y"), ValueError, "value")


def test_an_error_inside_a_mode_leaves_the_mode():
    with symgrad.no_grad():
        refuses(lambda: zeros(2) + zeros(3), RuntimeError, "add")
        assert not symgrad.is_grad_enabled()
    assert symgrad.is_grad_enabled()
    x = leaf(1.0)
    refuses(lambda: autograd.grad(x.sum(), leaf(2.0), create_graph=True), RuntimeError, "not have been used", unchanged=[x])


def test_the_original_error_is_not_shown_twice():
    with pytest.raises(RuntimeError) as caught:
        zeros(2) + zeros(3)
    assert caught.value.__suppress_context__ or caught.value.__context__ is None


def test_whole_numbers_are_not_divided_by_zero():
    x = symgrad.tensor([2, 3])
    zero = symgrad.tensor([1, 0])
    for call in (lambda: x % 0, lambda: x % zero, lambda: 5 % zero, lambda: symgrad.fmod(x, 0), lambda: symgrad.fmod(x, zero), lambda: x // 0,
                 lambda: x.remainder_(0), lambda: x.fmod_(zero), lambda: symgrad.tensor([True]) % zero):
        with pytest.raises(RuntimeError, match="ZeroDivisionError"):
            call()
    assert x.tolist() == [2, 3] and (x % 2).tolist() == [0, 1] and symgrad.fmod(-x, 2).tolist() == [0, -1]
    assert (x % 0.0).isnan().all() and (x.double() % 0).isnan().all()


def test_errors_of_dtypes_have_the_name_that_was_called():
    z = symgrad.tensor([1j, 2.0])
    for name, call in {"max": z.max, "clamp": lambda: z.clamp(0), "atan2": lambda: symgrad.atan2(z, z), "amax": lambda: z.amax(0)}.items():
        with pytest.raises(TypeError, match=rf"^{name}: (it is not defined for torch.complex128; convert|complex numbers are not ordered)"):
            call()


def test_batch_norm_without_channels_or_statistics():
    v, norm = symgrad.ones(3), symgrad.nn.functional.batch_norm
    with pytest.raises(RuntimeError, match="batch_norm: .*running_mean"):
        norm(v, None, None)
    with pytest.raises(IndexError, match="batch_norm: .*channels"):
        norm(v, None, None, training=True)


@pytest.mark.parametrize("number", [2**64, -(2**63) - 1, 10**1000])
def test_numbers_of_more_than_64_bits_are_not_taken_modulo(number):
    x = symgrad.tensor([1])
    for call in (lambda: x + number, lambda: number * x, lambda: x == number, lambda: x.add_(number), lambda: x % number,
                 lambda: symgrad.where(x > 0, x, number)):
        with pytest.raises(OverflowError, match="64 bits"):
            call()
    assert x.tolist() == [1] and (x * 2**63).tolist() == [-(2**63)]


def test_a_list_that_contains_itself_is_refused():
    itself = [1.0]
    itself.append(itself)
    with pytest.raises(ValueError, match="tensor: too many dimensions; a sequence contains itself"):
        symgrad.tensor(itself)


@pytest.mark.parametrize("name", ["def", "lambda", "None", "a b", ""])
def test_ops_are_named_by_identifiers(name):
    for make in (lambda: symgrad.op_from_sympy(name, "sin(x)"), lambda: symgrad.elementwise(name, lambda xp, x: x, 1)):
        with pytest.raises(ValueError, match="an op is named by an identifier"):
            make()
