"""The memory order of results: the strides of an op's results are torch's, `.view(-1)` works where it works there, and as much memory is shared."""

from pathlib import Path

import pytest
import torch

import symgrad
from symgrad.graph.op import REGISTRY

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


def flat(y):
    return [z for part in y for z in flat(part)] if isinstance(y, (tuple, list)) else [y]


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
        found = flat(eval(call, {"t": t, "x": x, "y": y, "w": w, "i": i, "j": j}))
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
