"""The memory order of results: strides, `.view(-1)` and shared memory are torch's, of the ops and of every function that torch shares."""

import random
import re
import warnings
from pathlib import Path

import pytest
import torch

import symgrad
from symgrad.graph.op import REGISTRY

from . import vary
from .database import RANDOM, UNSET, Call, fresh, ours, pair, samples, shared, tensors
from .test_every_name import spread
from .vary import changed, given, leaf

LAYOUTS = {
    "contiguous": lambda t: t.arange(24.0).reshape(2, 3, 4),
    "transposed": lambda t: t.arange(24.0).reshape(2, 4, 3).transpose(1, 2),
    "reversed": lambda t: t.arange(24.0).reshape(4, 3, 2).permute(2, 1, 0),
    "permuted": lambda t: t.arange(24.0).reshape(3, 4, 2).permute(2, 0, 1),
    "sliced": lambda t: t.arange(96.0).reshape(4, 3, 8)[::2, :, ::2],
    "permuted slice": lambda t: t.arange(96.0).reshape(8, 3, 4)[::2, :, ::2].permute(2, 1, 0),
    "expanded": lambda t: t.arange(8.0).reshape(2, 1, 4).expand(2, 3, 4),
    "expanded last": lambda t: t.arange(6.0).reshape(3, 2).t().unsqueeze(2).expand(2, 3, 4),
    "size one": lambda t: t.arange(8.0).reshape(4, 1, 2).permute(2, 1, 0),
    "no dimensions": lambda t: t.tensor(1.0),
    "empty": lambda t: t.zeros(4, 0, 2).permute(2, 1, 0),
}

# Of x, which lies in one of these ways, and y, of its shape and contiguous; i and j are indices, w is a vector that broadcasts.
CALLS = (Path(__file__).parent / "layouts.txt").read_text(encoding="utf-8").splitlines()
NUMBERS = {"maximum", "minimum", "atan2", "hypot", "logaddexp", "logical_and", "logical_or", "logical_xor"}  # which take no number in torch
COPIED = ("x.select_scatter(y[0], 0, 0)", "x.slice_scatter(y[:, :, 1:], 2, 1)", "x.diagonal_scatter(t.zeros(4, 2))")
KNOWN = {**{(call, layout): "torch copies the gaps between the elements, too" for call in COPIED for layout in ("sliced", "permuted slice")},
         **{("2**x", layout): "torch writes the powers of a number row by row" for layout in LAYOUTS},
         ("t.einsum(\"ijk,ijl->ikl\", x, y)", "size one"): "where nothing is summed torch multiplies elements, in the order of the operands"}


def elementwise():
    """The calls of the ops of which every one has the same arguments."""
    for op in REGISTRY.values():
        if op.surface.public and op.kind == "elementwise" and hasattr(torch, op.name):
            for given in ("x",) if op.arity == 1 else ("x, y", "y, x", "x, w", "w, x", "x, x") + ("x, 2.0",) * (op.name not in NUMBERS):
                yield f"t.{op.name}({given})"


def viewable(y):
    try:
        y.view(-1)
    except RuntimeError:
        return False
    return True


def seen(t, call, layout):
    """What is seen of the results of a call; the name of the error where it is refused. Strides along dimensions of one element mean nothing."""
    t.set_default_dtype(t.float64)
    x = LAYOUTS[layout](t)
    y = t.arange(24.0).reshape(2, 3, 4) + 1 if tuple(x.shape) == (2, 3, 4) else t.ones(tuple(x.shape))
    w = t.arange(4.0) + 1 if x.ndim else t.ones(())
    i, j = t.tensor([[[0, 1], [1, 0], [2, 1]], [[1, 2], [3, 1], [0, 0]]]), t.tensor([0, 1])
    try:
        found = list(tensors(eval(call, {"t": t, "x": x, "y": y, "w": w, "i": i, "j": j})))
    except (RuntimeError, IndexError, ValueError, TypeError) as error:
        return type(error).__name__
    return [{"shape": tuple(z.shape), "strides": tuple(s for s, n in zip(z.stride(), z.shape) if n != 1) if z.numel() else (),
             "contiguous": z.is_contiguous(), "view(-1)": viewable(z),
             "shared": z.numel() > 0 and z.untyped_storage().data_ptr() == x.untyped_storage().data_ptr()} for z in found]


@pytest.fixture
def usual_dtype():
    before = torch.get_default_dtype(), symgrad.get_default_dtype()
    yield
    torch.set_default_dtype(before[0])
    symgrad.set_default_dtype(before[1])


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("layout", LAYOUTS)
def test_results_lie_in_memory_as_in_torch(layout, usual_dtype):
    wrong, compared = [], 0
    for call in (*elementwise(), *CALLS):
        theirs, ours = seen(torch, call, layout), seen(symgrad, call, layout)
        if isinstance(theirs, str) or (call, layout) in KNOWN:
            continue
        compared += 1
        if ours != theirs:
            wrong.append(f"{call}: torch {theirs}; symgrad {ours}")
    assert not wrong, "\n".join(wrong)
    assert compared > (250 if layout == "no dimensions" else 400 if layout in ("empty", "size one") else 500)


NAMES = [name for name in shared() if name not in RANDOM | UNSET]
COLUMNS = "torch keeps the columns of LAPACK; here results are row by row, and more can be viewed"
FOURIER = "torch's order is that of its library; here results are row by row, and more can be viewed"
IMAGES = "torch writes these in the format of images; here results are row by row, and more can be viewed"
GAPS = "torch copies the gaps between the elements, too"
LAID_OUT = {  # where results are laid out in another way on purpose
    r"fft\.\w+": FOURIER, r"(linalg\.|lu_|cholesky|geqrf|inverse|lu$|orgqr|ormqr|pinverse|qr$|svd$|triangular_solve).*": COLUMNS,
    r"(nn\.functional\.)?(conv_transpose|max_unpool)[123]d": IMAGES, r"(as_strided|diagonal|select|slice)_scatter": GAPS,
    "unique|unique_consecutive": "torch transposes rows back",
    "einsum": "where nothing is summed torch multiplies elements, in the order of the operands",
    "nn.functional.binary_cross_entropy_with_logits": "torch's order of operations is another one with a weight that broadcasts",
    "mvlgamma|special.multigammaln": "an elementwise function has the order of its operand",
    r"nn\.functional\.(adaptive_max_pool3d|avg_pool2d)": "with a single image, or without a batch, torch guesses another format",
}


def merged(y):
    """Of each pair of neighbouring dimensions with more than one element whether `view` merges it."""
    sizes = [(n, s) for n, s in zip(y.shape, y.stride()) if n != 1]
    return [outer[1] == n * s for outer, (n, s) in zip(sizes, sizes[1:])]


def views_of(function, args, kwargs, laid_out):
    """Of each result whether it shares the memory of an argument, and the merges if it is to be `laid_out` as torch's."""
    found = tensors(function(*args, **kwargs))
    memories = {t.untyped_storage().data_ptr() for t in tensors((args, kwargs)) if t.numel()}
    return [(y.untyped_storage().data_ptr() in memories, laid_out and merged(y)) for y in found if y.numel()]


def differences(name, laid_out=True, most=6):
    """Of calls in several layouts those whose results lie not as torch's, as texts; without `laid_out` those that share other memory."""
    theirs, mine = pair(name)
    found = []
    for call in spread(samples(name, torch.float64, False), most):
        if sum(t.numel() for t in vary.given_tensors(call)) > 100_000:
            continue
        source = random.Random(repr(call))
        for layout in (None, vary.transposed, vary.strided, vary.expanded):
            arguments = given(call, vary.tensor) if layout else []
            moved: Call = changed(call, {at: leaf(layout(source, t.detach()), t) for at, t in arguments}) if arguments else call
            try:
                expected = views_of(theirs, fresh(moved.args), fresh(moved.kwargs), laid_out)
                got = views_of(mine, ours(moved.args), ours(moved.kwargs), laid_out)
            except Exception:
                continue  # what is refused is compared elsewhere, and numbers that the layout has changed may be refused in one library
            if got != expected:
                found.append(f"{name}{call} {layout and layout.__name__}: torch {expected}; symgrad {got}")
    return found


@pytest.mark.sampled(60)
@pytest.mark.parametrize("name", NAMES)
def test_results_of_every_function_can_be_viewed_as_in_torch(name, double_precision):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        known = any(re.fullmatch(names, name) for names in LAID_OUT)
        found = differences(name, not known)
    assert not found or name == "histogramdd", "\n".join(found)  # torch returns the edges that it was given


def test_what_is_known_to_lie_in_another_way_does():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for names in LAID_OUT:
            assert any(differences(name, most=12) for name in NAMES if re.fullmatch(names, name)), names


def test_a_result_in_another_layout_is_found(double_precision, monkeypatch):
    monkeypatch.setattr(symgrad, "tril", lambda x, *diagonal: symgrad.zeros_like(x))
    assert any("transposed" in text for text in differences("tril"))
    monkeypatch.setattr(symgrad, "sin", lambda x: x)
    assert differences("sin", laid_out=False)
