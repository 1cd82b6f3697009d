"""The memory of results of every function that torch shares, for arguments in several layouts: which dimensions `view` merges, and what is shared.

A program that views a result, or writes to what `reshape` gives, is the same program in both libraries where these agree.
"""

import random
import re
import warnings

import pytest
import torch

import symgrad

from . import vary
from .database import RANDOM, UNSET, Call, fresh, ours, pair, samples, shared
from .test_every_name import spread
from .vary import changed, given, leaf

NAMES = [name for name in shared() if name not in RANDOM | UNSET]
COLUMNS = "torch keeps the columns of LAPACK; here results are row by row, and more can be viewed"
FOURIER = "torch's order is that of its library; here results are row by row, and more can be viewed"
IMAGES = "torch writes these in the format of images; here results are row by row, and more can be viewed"
GAPS = "torch copies the gaps between the elements, too"
KNOWN = {  # where results are laid out in another way on purpose
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


def results(value, kind):
    if isinstance(value, kind):
        return [value]
    return [t for v in value for t in results(v, kind)] if isinstance(value, (tuple, list)) else []


def seen(function, args, kwargs, kind, laid_out):
    """Of each result whether it shares the memory of an argument, and the merges if it is to be `laid_out` as torch's."""
    found = results(function(*args, **kwargs), kind)
    memories = {t.untyped_storage().data_ptr() for t in results([*args, *kwargs.values()], kind) if t.numel()}
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
                expected = seen(theirs, fresh(moved.args), fresh(moved.kwargs), torch.Tensor, laid_out)
                got = seen(mine, ours(moved.args), ours(moved.kwargs), symgrad.Tensor, laid_out)
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
        known = any(re.fullmatch(names, name) for names in KNOWN)
        found = differences(name, not known)
    assert not found or name == "histogramdd", "\n".join(found)  # torch returns the edges that it was given


def test_what_is_known_to_lie_in_another_way_does():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for names in KNOWN:
            assert any(differences(name, most=12) for name in NAMES if re.fullmatch(names, name)), names


def test_a_result_in_another_layout_is_found(double_precision, monkeypatch):
    monkeypatch.setattr(symgrad, "tril", lambda x, *diagonal: symgrad.zeros_like(x))
    assert any("transposed" in text for text in differences("tril"))
    monkeypatch.setattr(symgrad, "sin", lambda x: x)
    assert differences("sin", laid_out=False)
