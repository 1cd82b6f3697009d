"""One drawn change of a call: the layout, shape or dtype of tensors, a number in the place of a tensor, other dimensions and options, or an argument
that no function takes. Sizes that agree stay equal, so that many changed calls are calls that torch takes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import torch

from .database import Call

DTYPES = [torch.float64, torch.complex128, torch.float32, torch.complex64, torch.int64, torch.float16, torch.bfloat16, torch.int32, torch.bool,
          torch.uint8, torch.int8, torch.int16]
NUMBERS: list[Any] = [2, 0.5, -1, 0, True, 1.5 + 0.5j, 3, False, -2.5]
INTEGERS = [0, 1, -1, 2, -2, 3, -3, 4]
MISTAKES: list[Any] = [None, "mean", [], (0,), [0, 1], (0, 0), (5,), 1.5, float("nan"), torch.float32, "none"]
Path = tuple[Any, ...]


def leaves(value: Any, at: Path = ()) -> Iterator[tuple[Path, Any]]:
    """The arguments and their places."""
    if isinstance(value, (list, tuple)) and not isinstance(value, torch.Size) and not hasattr(value, "_fields"):
        for i, v in enumerate(value):
            yield from leaves(v, (*at, i))
    elif isinstance(value, dict):
        for k, v in value.items():
            yield from leaves(v, (*at, k))
    else:
        yield at, value


def put(value: Any, changes: dict[Path, Any], at: Path = ()) -> Any:
    """The same arguments with other values at some places."""
    if at in changes:
        return changes[at]
    if isinstance(value, (list, tuple)) and not isinstance(value, torch.Size) and not hasattr(value, "_fields"):
        return type(value)(put(v, changes, (*at, i)) for i, v in enumerate(value))
    if isinstance(value, dict):
        return {k: put(v, changes, (*at, k)) for k, v in value.items()}
    return value


def given(call: Call, kind: Any) -> list[tuple[Path, Any]]:
    return [(at, v) for at, v in leaves([call.args, call.kwargs]) if kind(v)]


def given_tensors(call: Call) -> list[torch.Tensor]:
    return [t for _, t in given(call, tensor)]


def changed(call: Call, changes: dict[Path, Any]) -> Call:
    args, kwargs = put([call.args, call.kwargs], changes)
    return call._replace(args=args, kwargs=kwargs)


def tensor(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.layout == torch.strided and not value.is_meta


def leaf(made: torch.Tensor, t: torch.Tensor) -> torch.Tensor:
    """A tensor made of another one, which requires grad as that does."""
    made = made.detach()
    return made.requires_grad_(t.requires_grad and (made.is_floating_point() or made.is_complex()))


def some(random: Any, found: list[Any]) -> list[Any]:
    """All, or one."""
    return found if random.random() < 0.5 else [random.choice(found)]


def of_tensors(make: Callable[[Any, torch.Tensor], torch.Tensor]) -> Callable[[Any, Call], Call | None]:
    """The change that makes one tensor, or each, anew."""
    def change(random: Any, call: Call) -> Call | None:
        found = given(call, tensor)
        return changed(call, {at: leaf(make(random, t.detach()), t) for at, t in some(random, found)}) if found else None
    change.__name__ = make.__name__
    return change


# Layouts: the numbers are the same

def transposed(random: Any, t: torch.Tensor) -> torch.Tensor:
    order = list(range(t.ndim))
    random.shuffle(order)
    back = [order.index(i) for i in range(t.ndim)]
    return t.permute(order).contiguous().permute(back)


def strided(random: Any, t: torch.Tensor) -> torch.Tensor:
    room = t.new_zeros(tuple(2 * n + 1 for n in t.shape))
    part = room[tuple(slice(1, None, 2) for _ in t.shape)]
    part.copy_(t)
    return part


def expanded(random: Any, t: torch.Tensor) -> torch.Tensor:
    if not t.ndim:
        return t
    dim = random.randrange(t.ndim)
    return t.narrow(dim, 0, 1).expand(t.shape) if t.shape[dim] else t


def flipped(random: Any, t: torch.Tensor) -> torch.Tensor:
    return t.flip(random.randrange(t.ndim)) if t.ndim else t


# Shapes

def with_batch(random: Any, t: torch.Tensor) -> torch.Tensor:
    return t.expand(random.choice([(1,), (2,), (2, 1), (0,), (3, 2)]) + tuple(t.shape)).clone()


def of_size_1(random: Any, t: torch.Tensor) -> torch.Tensor:
    """One dimension broadcasts."""
    dim = random.randrange(t.ndim) if t.ndim else 0
    return t.narrow(dim, 0, 1) if t.ndim and t.shape[dim] else t


def with_fewer(random: Any, t: torch.Tensor) -> torch.Tensor:
    dim = random.randrange(t.ndim) if t.ndim else 0
    return t.select(dim, 0) if t.ndim and t.shape[dim] else t


def without_dimensions(random: Any, t: torch.Tensor) -> torch.Tensor:
    return t.reshape(-1)[0] if t.numel() else t


def resized(random: Any, call: Call) -> Call | None:
    """All dimensions of one size have another: 0, 1 or one less."""
    found = given(call, tensor)
    sizes = sorted({n for _, t in found for n in t.shape if n})
    if not sizes:
        return None
    size = random.choice(sizes)
    to = min(size, random.choice([0, 1, size - 1]))
    ends = {at: t.detach()[tuple(slice(0, to if n == size else None) for n in t.shape)].clone() for at, t in found}
    return changed(call, {at: leaf(ends[at], t) for at, t in found})


# Dtypes and values

def cast(random: Any, call: Call) -> Call | None:
    """Tensors of the dtype of the first have another one: all of them, or one."""
    found = given(call, tensor)
    if not found:
        return None
    found = [(at, t) for at, t in found if t.dtype == found[0][1].dtype]
    dtype = random.choice(DTYPES)
    return changed(call, {at: leaf(t.detach().to(dtype), t) for at, t in some(random, found)})


def scaled(random: Any, t: torch.Tensor) -> torch.Tensor:
    return t if t.dtype == torch.bool else t * random.choice([-1, 3])


def without_grad(random: Any, call: Call) -> Call | None:
    """One tensor is a constant."""
    found = given(call, lambda v: tensor(v) and v.requires_grad)
    return changed(call, {at: t.detach() for at, t in [random.choice(found)]}) if found else None


# Arguments

def number(random: Any, call: Call) -> Call | None:
    """A number in the place of a tensor."""
    found = given(call, tensor)
    return changed(call, {random.choice(found)[0]: random.choice(NUMBERS)}) if found else None


def as_tensor(random: Any, call: Call) -> Call | None:
    """A tensor without dimensions in the place of a number."""
    found = given(call, lambda v: isinstance(v, (int, float, complex)))
    if not found:
        return None
    at, v = random.choice(found)
    return changed(call, {at: torch.tensor(v)})


def option(random: Any, call: Call) -> Call | None:
    """Another integer, flag or number: a dimension within or out of range, a shift, an order."""
    found = given(call, lambda v: isinstance(v, (bool, int, float)))
    if not found:
        return None
    at, v = random.choice(found)
    return changed(call, {at: not v if isinstance(v, bool) else random.choice(INTEGERS) if isinstance(v, int) else random.choice(NUMBERS)})


def further(random: Any, call: Call) -> Call:
    """One argument more: a dimension, keepdim, a dtype."""
    what = random.choice(["dim", "dim", "keepdim", "dtype", "position"])
    if what == "position":
        return call._replace(args=(*call.args, random.choice([0, -1, 1, True, 2.0])))
    more = {"dim": lambda: random.choice([0, -1, 1, (0,), (0, 1), (), (-1, 0), (0, 0), 7, None]), "keepdim": lambda: True,
            "dtype": lambda: random.choice(DTYPES)}[what]()
    return call._replace(kwargs={**call.kwargs, what: more})


def fewer(random: Any, call: Call) -> Call | None:
    """One argument less."""
    if call.kwargs and random.random() < 0.5:
        left = random.choice(sorted(call.kwargs))
        return call._replace(kwargs={k: v for k, v in call.kwargs.items() if k != left})
    return call._replace(args=call.args[:-1]) if len(call.args) > 1 else None


def mistake(random: Any, call: Call) -> Call | None:
    """An argument of another kind."""
    found = given(call, lambda v: True)
    return changed(call, {random.choice(found)[0]: random.choice(MISTAKES)}) if found else None


AS_GIVEN = re.compile(r"linalg\.|.*(cholesky|eig|svd|qr|lu_|lu$|inv|solve|det|lobpcg|lstsq|triangular|matrix_power|as_strided|slice_inverse|ldl)")
LAYOUTS = [of_tensors(make) for make in (transposed, strided, expanded, flipped)]
SHAPES = [*map(of_tensors, (with_batch, of_size_1, with_fewer, without_dimensions)), resized, resized]
DTYPE = [cast, cast, cast, without_grad]
ARGUMENTS = [number, as_tensor, option, option, further, fewer, mistake]
FAMILIES = [LAYOUTS, SHAPES, DTYPE, ARGUMENTS]


def vary(random: Any, name: str, call: Call) -> tuple[Call, list[str]]:
    """A call with none to three changes, and what they were. Matrices stay regular and symmetric, and memory stays in order, where it matters."""
    words = []
    for _ in range(random.randrange(4)):
        change = random.choice(random.choice(FAMILIES))
        made = None if change in LAYOUTS[2:] and AS_GIVEN.match(name) else change(random, call)
        if made is not None:
            call = made
            words.append(change.__name__)
    return call, words
