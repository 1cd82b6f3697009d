"""What all texts of a program share: statements, pointers to memory, and the functions that they need."""

from __future__ import annotations

from collections.abc import Sequence

from symgrad.program.native.nodes import C_TYPES, KernelNode, Ref
from symgrad.program.native.routines import ROUTINES

__all__ = ["LoopWriter", "number_in_work"]

LETTERS = {"double": "d", "float": "f", "unsigned char": "b", "int64_t": "l", "int32_t": "i"}


class LoopWriter:
    """The statements of one function of the text, and what the whole text needs."""

    def __init__(self) -> None:
        self.used: set[str] = set()  # functions of `mathematics`
        self.routines: set[tuple[str, str]] = set()  # functions of `routines`, with the letter of the type
        self.scratch = 0
        self.part = 0
        self.lines: list[str] = []
        self.pointers: dict[str, str] = {}

    def write(self, text: str) -> None:
        """Add statements to the function that is written."""
        self.lines.append(text)

    def need_scratch(self, count: int) -> None:
        """Bytes of memory that one loop needs."""
        self.scratch = max(self.scratch, count)

    def pointer(self, node: KernelNode) -> str:
        """The name of a pointer to the memory of a node."""
        kind, place = C_TYPES[node.dtype], node.place
        source = f"work + {place.offset}" if place.table is None else f"table[{place.table}]"
        name = f"{'w' if place.table is None else 'p'}{place.offset if place.table is None else place.table}{LETTERS[kind]}"
        self.pointers[name] = f"  {kind} *const {name} = ({kind} *)({source});"
        return name

    def element(self, node: KernelNode, number: int = 0) -> str:
        """The expression for an element in memory; those of the work memory have one pointer, since a program may have thousands."""
        first = number_in_work(node)
        return f"{self.pointer(node)}[{number}]" if first is None else f"{self.work(node)}[{first + number}]"

    def work(self, like: KernelNode) -> str:
        """The name of a pointer to the work memory, as elements of the type of a node."""
        kind = C_TYPES[like.dtype]
        name = f"w{LETTERS[kind]}"
        self.pointers[name] = f"  {kind} *const {name} = ({kind} *)work;"
        return name

    def routine(self, name: str, kind: str) -> str:
        """The name of a function of `routines` for a type."""
        letter = LETTERS[kind]
        for needed in ROUTINES[name][0]:
            self.routine(needed, kind)
        self.routines.add((name, letter))
        return f"{name}_{letter}"

    def gather(self, target: str, source: str, x: Ref, start: str, count: str) -> str:
        """The statement that copies some elements of a value, in their order, to adjacent memory."""
        dims = x.merged or ((1, 0),)
        sizes, strides = ", ".join(str(n) for n, _ in dims), ", ".join(str(s) for _, s in dims)
        name = self.routine("gather", C_TYPES[x.dtype])
        return f"{name}({target}, {source} + {x.offset}, {start}, {count}, {len(dims)}, (const long[]){{{sizes}}}, (const long[]){{{strides}}});"

    def loop(self, dims: Sequence[tuple[int, ...]], body: str, name: str = "i") -> None:
        """Nested loops over dimensions, with `body` filled with the sums of indices times strides."""
        head = "".join(f"for (long {name}{d} = 0; {name}{d} < {n}; {name}{d}++) " for d, (n, *_) in enumerate(dims))
        sums = ["".join(f" + {name}{d} * {steps[j]}" for d, (_, *steps) in enumerate(dims) if steps[j])
                for j in range(len(dims[0]) - 1 if dims else 2)]
        self.write(f"  {head}{{ {_filled(body, sums)} }}")


def number_in_work(node: KernelNode) -> int | None:
    """The number of the first element of a node in the work memory, counted in elements of its type; None if it is elsewhere."""
    size, place = node.dtype.itemsize, node.place
    return None if place.table is not None or place.offset % size else place.offset // size


def _filled(body: str, sums: Sequence[str]) -> str:
    for j, text in enumerate(sums):
        body = body.replace(f"{{{j}}}", text)
    return body
