"""Errors name the op, the shapes or dtypes and the remedy, and change no state."""

import re

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


SHAPES = {
    "add": (lambda: zeros(2, 3) + zeros(2, 4), RuntimeError, "add", "[2, 3]", "[2, 4]", "dimension 1", "reshape or unsqueeze"),
    "add an array": (lambda: zeros(2, 3) + np.zeros((2, 4)), RuntimeError, "add", "[2, 3]", "[2, 4]", "reshape or unsqueeze"),
    "add to an array": (lambda: np.zeros((2, 4)) + zeros(2, 3), RuntimeError, "add", "[2, 4]", "[2, 3]"),
    "pow": (lambda: zeros(2) ** zeros(3), RuntimeError, "pow", "[2]", "[3]", "reshape or unsqueeze"),
    "maximum": (lambda: symgrad.maximum(zeros(2), zeros(3)), RuntimeError, "maximum", "[2]", "[3]"),
    "where": (lambda: symgrad.where(tensor([True]), zeros(2), zeros(3)), RuntimeError, "where", "[2]", "[3]", "reshape or unsqueeze"),
    "eq": (lambda: zeros(2) == zeros(3), RuntimeError, "eq", "[2]", "[3]"),
    "matmul": (lambda: zeros(2, 3) @ zeros(2, 4), RuntimeError, "matmul", "2x3", "2x4"),
    "matmul of a number": (lambda: tensor(1.0) @ zeros(2), RuntimeError, "matmul"),
    "mm": (lambda: symgrad.mm(zeros(2), zeros(2, 4)), RuntimeError, "mm", "[2]", "[2, 4]"),
    "mv": (lambda: symgrad.mv(zeros(2, 3), zeros(2)), RuntimeError, "mv", "[2, 3]", "[2]"),
    "dot": (lambda: symgrad.dot(zeros(2), zeros(3)), RuntimeError, "dot", "[2]", "[3]"),
    "outer": (lambda: symgrad.outer(zeros(2, 2), zeros(3)), RuntimeError, "outer"),
    "trace": (lambda: symgrad.trace(zeros(2)), RuntimeError, "trace", "[2]"),
    "tril": (lambda: symgrad.tril(zeros(2)), RuntimeError, "tril", "at least 2 dimensions", "[2]"),
    "diag": (lambda: symgrad.diag(zeros(2, 2, 2)), RuntimeError, "diag"),
    "einsum sizes": (lambda: symgrad.einsum("ij,jk->ik", zeros(2, 3), zeros(2, 3)), RuntimeError, "einsum", "subscript j", "2", "3", "'ij,jk->ik'"),
    "einsum operands": (lambda: symgrad.einsum("ij,jk", zeros(2, 2)), RuntimeError, "einsum", "2 operands", "1 were given"),
    "einsum rank": (lambda: symgrad.einsum("ij->ij", zeros(2)), RuntimeError, "einsum", "2 subscripts", "1 dimensions"),
    "einsum letters": (lambda: symgrad.einsum("i1->i", zeros(2, 2)), RuntimeError, "einsum", "'1'", "letters"),
    "einsum output": (lambda: symgrad.einsum("ij->k", zeros(2, 2)), RuntimeError, "einsum", "output subscript k"),
    "reshape": (lambda: zeros(2, 3).reshape(-1, 4), RuntimeError, "reshape", "[-1, 4]", "size 6", "[2, 3]"),
    "reshape to two unknowns": (lambda: zeros(2, 3).reshape(-1, -1), RuntimeError, "reshape"),
    "reshape of nothing": (lambda: zeros(0, 3).reshape(-1, 0), RuntimeError, "reshape", "ambiguous"),
    "reshape to words": (lambda: zeros(3).reshape("three"), TypeError, "reshape", "integers", "str"),
    "view": (lambda: zeros(2, 3).t().view(6), RuntimeError, "view", ".reshape("),
    "permute": (lambda: zeros(2, 3).permute(0), RuntimeError, "permute", "2", "1"),
    "permute twice": (lambda: zeros(2, 3).permute(0, 0), RuntimeError, "permute"),
    "t": (lambda: zeros(2, 3, 4).t(), RuntimeError),
    "expand": (lambda: zeros(2, 3).expand(3, 3), RuntimeError, "expand", "[2, 3]"),
    "expand to fewer": (lambda: zeros(2, 3).expand(3), RuntimeError, "expand"),
    "cat": (lambda: symgrad.cat([zeros(2, 3), zeros(2, 2)]), RuntimeError, "cat", "[2, 3]", "[2, 2]", "number 1"),
    "cat of numbers": (lambda: symgrad.cat([tensor(1.0)]), RuntimeError, "cat", "stack"),
    "cat of nothing": (lambda: symgrad.cat([]), ValueError, "cat", "one or more"),
    "stack": (lambda: symgrad.stack([zeros(2), zeros(3)]), RuntimeError, "stack", "[2]", "[3]"),
    "split": (lambda: zeros(4).split([1, 2]), RuntimeError, "split", "4", "[1, 2]"),
    "split by nothing": (lambda: zeros(4).split(0), RuntimeError, "split", "0"),
    "chunk": (lambda: zeros(4).chunk(0), RuntimeError, "chunk"),
    "roll": (lambda: zeros(4).roll((1, 2), (0,)), RuntimeError, "roll"),
    "movedim": (lambda: symgrad.movedim(zeros(2, 3), (0, 1), (0,)), RuntimeError, "movedim", "[0, 1]", "[0]"),
    "sum over no such dim": (lambda: zeros(2, 3).sum(2), IndexError, "sum", "[-2, 1]", "2"),
    "sum over a dim twice": (lambda: zeros(2, 3).sum((0, 0)), RuntimeError, "sum"),
    "softmax": (lambda: symgrad.softmax(zeros(2), 3), IndexError, "softmax", "[-1, 0]"),
    "softmax without a dim": (lambda: symgrad.softmax(zeros(2)), TypeError, "softmax", "dim=-1"),
    "unsqueeze": (lambda: zeros(2, 3).unsqueeze(5), IndexError, "unsqueeze", "[-3, 2]", "5"),
    "amax of nothing": (lambda: zeros(0, 2).amax(0), IndexError, "amax", "dim 0", "[0, 2]"),
    "argmax of nothing": (lambda: zeros(0).argmax(), IndexError, "argmax", "[0]"),
    "an index too large": (lambda: zeros(3)[5], IndexError, "5", "size 3"),
    "too many indices": (lambda: zeros(3)[0, 0], IndexError, "[3]"),
    "a mask of another size": (lambda: zeros(3)[tensor([True, False])], IndexError, "3", "2"),
    "masked_select": (lambda: symgrad.masked_select(zeros(2), tensor([True, False, True])), RuntimeError, "(3)", "(2)"),
}

DTYPES = {
    "a gradient of integers": (lambda: tensor([1, 2], requires_grad=True), RuntimeError, "int64", "dtype=float64"),
    "a gradient asked of integers": (lambda: tensor([1, 2]).requires_grad_(), RuntimeError, "int64", ".to(symgrad.float64)"),
    "a gradient of booleans": (lambda: tensor([True], requires_grad=True), RuntimeError, "bool"),
    "mean of integers": (lambda: tensor([1, 2]).mean(), RuntimeError, "mean", "int64"),
    "std of integers": (lambda: tensor([1, 2]).std(), RuntimeError, "std", "int64"),
    "bits of floats": (lambda: tensor([1.5]) & 1, TypeError, "integers and booleans", "float64"),
    **{f"{name} of complex numbers": (lambda name=name: getattr(symgrad, name)(tensor([1 + 2j, 3j]), *((1,) if name in ("topk", "kthvalue") else ())),
                                      TypeError, name, "complex", "not ordered", "parts")
       for name in ("amax", "amin", "argmax", "argmin", "max", "min", "sort", "argsort", "median", "mode", "topk", "kthvalue")},
    "cummax of complex numbers": (lambda: symgrad.cummax(tensor([1 + 2j, 3j]), 0), TypeError, "cummax", "not ordered"),
    "not of floats": (lambda: ~tensor([1.5]), TypeError, "integers and booleans", "float64", "logical_not"),
    "an index of floats": (lambda: zeros(3)[tensor([0.5])], IndexError, "indices", "float64"),
    "an index that is no integer": (lambda: zeros(3)[1.5], IndexError, "integers", "1.5"),
    "a float as an index": (lambda: [1, 2][tensor(1.0)], TypeError),
    "words": (lambda: tensor("a"), TypeError, "is not a supported dtype", "float64"),
    "nothing": (lambda: tensor(None), TypeError, "tensor", "NoneType"),
    "rows of two lengths": (lambda: tensor([[1, 2], [3]]), ValueError, "not rectangular"),
    "a word among operands": (lambda: zeros(2) + "a", TypeError, "add", "str", "Tensors, arrays or numbers"),
    "a word for a tensor": (lambda: symgrad.sin("a"), TypeError, "sin", "str"),
    "a dtype that is none": (lambda: zeros(2, dtype="float99"), TypeError, "float99", "float64"),
    "a default that is no float": (lambda: symgrad.set_default_dtype(symgrad.int64), TypeError, "floating-point", "int64"),
    "another device": (lambda: tensor(1.0, device="cuda"), AssertionError, "CPU", "cuda"),
    "to another device": (lambda: zeros(2).to("cuda:0"), AssertionError, "CPU", "cuda:0"),
    "from a list": (lambda: symgrad.from_numpy([1]), TypeError, "np.ndarray", "list"),
    "an unknown keyword": (lambda: zeros(2).sum(dims=0), TypeError, "sum", "dims", "keepdim"),
    "a missing argument": (lambda: symgrad.add(zeros(1)), TypeError, "add", "other", "alpha=1"),
    "no norm": (lambda: zeros(2).norm("nuk"), ValueError, "norm", "'nuk'", "inf"),
    "no reduction": (lambda: symgrad.mse_loss(zeros(2), zeros(2), "all"), ValueError, "mse_loss", "all", "'mean'"),
    "no bound": (lambda: zeros(2).clamp(), RuntimeError, "clamp", "min", "max"),
    "two numbers as one": (lambda: tensor([1, 2]).item(), RuntimeError, "2 elements", "index"),
    "the truth of two": (lambda: bool(tensor([1, 2])), RuntimeError, "ambiguous", ".any() or .all()"),
    "the truth of nothing": (lambda: bool(tensor([])), RuntimeError, "no values"),
    "the length of a number": (lambda: len(tensor(1.0)), TypeError, "0-d"),
    "numpy of a leaf": (lambda: leaf(1.0).numpy(), RuntimeError, "detach()"),
    "an array of a leaf": (lambda: np.asarray(leaf(1.0)), RuntimeError, "detach()"),
    "writing into a graph": (lambda: leaf(1.0).__setitem__(0, 2.0), RuntimeError, "in-place operation", "no_grad()"),
    "a negative size": (lambda: zeros(-1), RuntimeError, "-1"),
    "steps the wrong way": (lambda: symgrad.arange(1, 5, -1), RuntimeError, "start 1", "step -1"),
}

GRADIENTS = {
    "of a vector": (lambda: (leaf(1.0, 2.0) * 2).backward(), RuntimeError, "scalar outputs", "[2]", ".sum()"),
    "without a graph": (lambda: tensor([1.0]).sum().backward(), RuntimeError, "does not require grad", "requires_grad=True"),
    "under no_grad": (lambda: symgrad.no_grad(lambda: leaf(1.0).sum())().backward(), RuntimeError, "no_grad()"),
    "weighed by another shape": (lambda: (leaf(1.0, 2.0) * 2).backward(tensor([1.0])), RuntimeError, "Mismatch in shape", "[1]", "[2]"),
    "weighed by too many": (lambda: autograd.backward([leaf(1.0).sum()], [tensor(1.0), tensor(1.0)]), RuntimeError, "1 tensors", "2 gradients"),
    "of no inputs": (lambda: leaf(1.0).sum().backward(inputs=[]), RuntimeError, "`inputs`", "empty"),
    "of a constant input": (lambda: leaf(1.0).sum().backward(inputs=[tensor(1.0)]), RuntimeError, "inputs[0]", "require"),
    "by a constant": (lambda: autograd.grad(leaf(1.0).sum(), tensor(1.0)), RuntimeError, "does not require grad", "inputs[0]", "requires_grad=True"),
    "by an unused one": (lambda: autograd.grad(leaf(1.0).sum(), leaf(1.0)), RuntimeError, "not have been used", "inputs[0]", "allow_unused=True"),
    "by a number": (lambda: autograd.grad(leaf(1.0).sum(), [3.0]), TypeError, "inputs[0]", "float"),
    "of integers": (lambda: leaf(1.0).to(symgrad.int64).sum().backward(), RuntimeError, "does not require grad"),
    "of a comparison": (lambda: (leaf(1.0) > 0).sum().backward(), RuntimeError, "does not require grad"),
    "set to a number": (lambda: setattr(leaf(1.0), "grad", 1.0), TypeError, "Tensor or None", "float"),
    "set to another shape": (lambda: setattr(leaf(1.0), "grad", tensor([1.0, 2.0])), RuntimeError, "reshape", "[2]", "[1]"),
    "set to another dtype": (lambda: setattr(leaf(1.0), "grad", tensor([1.0], dtype=symgrad.float32)), RuntimeError, "float32", "float64"),
    "taken from a computed tensor": (lambda: (leaf(1.0) * 2).requires_grad_(False), RuntimeError, "detach()"),
}


@pytest.mark.parametrize("act, error, words", [pytest.param(c[0], c[1], c[2:], id=k) for t in (SHAPES, DTYPES, GRADIENTS) for k, c in t.items()])
def test_the_message_names_what_is_wrong_and_the_remedy(act, error, words):
    refuses(act, error, *words)


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
