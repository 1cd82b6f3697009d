"""The text of tensors, identical to PyTorch's.

All numbers of a tensor have one style (whole, fixed or scientific) and one width, which depend on the finite nonzero magnitudes that are shown.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from symgrad.carriers.batched import Batched
from symgrad.carriers.duck import Unrecordable
from symgrad.carriers.recorded import Recorded
from symgrad.dtypes.dtype import DTYPES, get_default_dtype
from symgrad.engine.method_table import MethodTable
from symgrad.engine.tensor import Tensor, wrap
from symgrad.graph.modes import thread

METHODS = MethodTable()


@dataclass(frozen=True)
class PrintOptions:
    """The options of `set_printoptions`."""

    precision: int = 4
    threshold: float = 1000
    edgeitems: int = 3
    linewidth: int = 80
    sci_mode: bool | None = None


PROFILES = {"default": PrintOptions(), "short": PrintOptions(precision=2, edgeitems=2), "full": PrintOptions(threshold=float("inf"))}
_options = PROFILES["default"]

LARGE, SMALL, SPREAD = 1e8, 1e-4, 1e3  # beyond these magnitudes, and this ratio of two of them, fixed point gives way to scientific
Style = tuple[Callable[[Any], str], int]


def set_printoptions(precision: int | None = None, threshold: float | None = None, edgeitems: int | None = None, linewidth: int | None = None,
                     profile: str | None = None, sci_mode: bool | None = None) -> None:
    """Set the options for printing tensors.

    `precision` is the number of digits after the point, `threshold` the number of elements above which only the first and last
    `edgeitems` of each dimension are shown, `linewidth` the number of characters a line is broken at. `profile` ("default", "short"
    or "full") sets these four; explicit arguments take precedence. `sci_mode` forces scientific notation (True), forbids it (False), or
    lets the values decide (None, also when it is not given).

    Raises ValueError for an unknown profile and for counts that are negative.

    >>> import symgrad
    >>> symgrad.set_printoptions(precision=2)
    >>> symgrad.tensor([0.5, 1.25])
    tensor([0.50, 1.25])
    >>> symgrad.set_printoptions(profile="default")
    >>> symgrad.tensor([0.5, 1.25])
    tensor([0.5000, 1.2500])
    """
    global _options
    if profile is not None and profile not in PROFILES:
        raise ValueError(f"set_printoptions: unknown profile {profile!r}; use one of {', '.join(PROFILES)}")
    given = {name: value for name, value in dict(precision=precision, threshold=threshold, edgeitems=edgeitems, linewidth=linewidth).items()
             if value is not None}
    for name, value in given.items():
        if not value >= 0:
            raise ValueError(f"set_printoptions: {name} cannot be {value!r}; give a number that is not negative")
    _options = replace(_options if profile is None else PROFILES[profile], **given, sci_mode=sci_mode)  # type: ignore[arg-type]


def get_printoptions() -> dict[str, Any]:
    """The options `set_printoptions` sets, by name; they can be passed back to it.

    >>> import symgrad
    >>> symgrad.get_printoptions()
    {'precision': 4, 'threshold': 1000, 'edgeitems': 3, 'linewidth': 80, 'sci_mode': None}
    """
    return asdict(_options)


def _style(values: np.ndarray) -> Style:
    """The style and the column width of numbers that are printed together."""
    if values.dtype.kind in "biu":
        return str, max(map(len, map(str, values.ravel().tolist())))
    numbers = values.astype(np.float64).ravel()
    numbers = numbers[np.isfinite(numbers) & (numbers != 0)]
    if not numbers.size:
        return _integer_text, 1
    sizes = np.abs(numbers)
    largest, smallest, whole = float(sizes.max()), float(sizes.min()), bool((sizes == np.trunc(sizes)).all())
    scientific = _options.sci_mode
    if scientific is None:
        scientific = largest / smallest > SPREAD or largest > LARGE or (not whole and smallest < SMALL)
    write = f"{{:.{_options.precision}e}}".format if scientific else _integer_text if whole else f"{{:.{_options.precision}f}}".format
    return write, max(map(len, map(write, numbers.tolist())))


def _integer_text(number: float) -> str:
    return f"{number:.0f}." if np.isfinite(number) else str(number)


def _cells(values: np.ndarray) -> tuple[np.ndarray, int]:
    """The text of every element, and the width of their column."""
    if values.dtype.kind == "c":
        (real, left), (imag, right) = _style(values.real), _style(values.imag)
        width = left + right + 1

        def write(z: Any) -> str:
            tail = imag(z.imag)
            return real(z.real).rjust(left) + ("" if tail.startswith("-") else "+") + tail + "j"
    else:
        plain, width = _style(values if values.dtype.kind in "biuf" else values.astype(np.float64))

        def write(z: Any) -> str:
            return plain(z).rjust(width)

    return np.array([write(x) for x in values.ravel().tolist()], object).reshape(values.shape), width


def _lines(cells: Any, gaps: tuple[bool, ...], indent: int, width: int) -> str:
    """Nested cells in brackets; `gaps` lists the dimensions whose middle is left out."""
    edge, deeper = _options.edgeitems, len(gaps) - 1
    if not deeper:
        items = [*cells[:edge], " ...", *cells[edge:]] if gaps[0] else cells
        per_line = max(1, (_options.linewidth - indent) // (width + 2))
        rows = [", ".join(items[i:i + per_line]) for i in range(0, len(items), per_line)]
        return "[" + (",\n" + " " * (indent + 1)).join(rows) + "]"
    blocks = [_lines(block, gaps[1:], indent + 1, width) for block in cells]
    if gaps[0]:
        blocks.insert(edge, "...")
    return "[" + ("," + "\n" * deeper + " " * (indent + 1)).join(blocks) + "]"


def _contents(value: np.ndarray, indent: int) -> str:
    """The elements, all of them or only the edges."""
    if not value.size:
        return "[]"
    edge, gaps = _options.edgeitems, (False,) * value.ndim
    if value.size > _options.threshold:
        gaps = tuple(n > 2 * edge for n in value.shape)
        if value.ndim and not edge:
            return "[...]"
        shown = [[*range(edge), *range(n - edge, n)] if gap else range(n) for n, gap in zip(value.shape, gaps)]
        value = value[np.ix_(*shown)]  # all at once, for the edges of one dimension may be large
    cells, width = _cells(value)
    return _lines(cells.tolist(), gaps, indent, width) if gaps else str(cells.item())


def _dtype_is_implied(t: Tensor) -> bool:
    """Whether the dtype follows from the text of the elements, or is the default dtype."""
    default = get_default_dtype()
    if not t.numel():
        return t.dtype is default
    complex_default = DTYPES["complex128" if default.name == "float64" else "complex64"]
    return t.dtype in (default, complex_default, DTYPES["int64"], DTYPES["bool"])


def _batch(value: Batched) -> str:
    """All members of a batch at once, with its depth among the batches that are being computed."""
    depth = next((i for i, (level, *_) in enumerate(thread.modes.batches, 1) if level == value.level), value.level)
    inner = text(wrap(value.data)).replace("\n", "\n    ")
    return f"BatchedTensor(lvl={depth}, bdim=0, value=\n    {inner}\n)"


def text(t: Tensor, name: str | None = None) -> str:
    """The tensor as PyTorch prints it; `name` goes in front of the bracket (a subclass's own name, else "tensor").

    >>> import symgrad
    >>> text(symgrad.tensor([1.0, 2.5], requires_grad=True))
    'tensor([1.0000, 2.5000], requires_grad=True)'
    """
    if type(t._value) is Batched:
        return _batch(t._value)
    head = f"{name or ('tensor' if type(t) is Tensor else type(t).__name__)}("
    if type(t._value) is Recorded:
        raise Unrecordable("printing a tensor")
    value = np.asarray(t._value)
    notes = []
    if not _options.edgeitems if value.size else value.ndim != 1:
        notes.append(f"size={tuple(t.shape)}")
    if not _dtype_is_implied(t):
        notes.append(f"dtype={t.dtype}")
    try:
        node = t.grad_fn
        if node is not None:
            notes.append(f"grad_fn=<{type(node).__name__}>")
        elif t.requires_grad:
            notes.append("requires_grad=True")
    except RuntimeError:  # a view whose node is no longer defined
        notes.append("grad_fn=<Invalid>")
    if thread.modes.level is not None and (tangent := thread.modes.level.tangent_of(t)) is not None:
        notes.append(f"tangent={tangent}")
    out = head + _contents(value, len(head))
    for note in notes:
        column = len(out) - out.rfind("\n") - 1
        fits = column + len(f", {note})") < _options.linewidth
        out += f", {note}" if fits else f",\n{' ' * len(head)}{note}"
    return out + ")"


def _format(self: Tensor, spec: str) -> str:
    """The number itself in a format, for a tensor of no dimensions; else the tensor as it prints."""
    if type(self) is Tensor and not self.ndim:
        return format(self.item(), spec)
    return object.__format__(self, spec)


def _repr(self: Tensor) -> str:
    """The tensor as PyTorch prints it."""
    return text(self)


METHODS["__repr__"] = METHODS["__str__"] = _repr
METHODS["__format__"] = _format
