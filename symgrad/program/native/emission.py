"""Programs as text in C: one function for the whole program, `run(frame, objects)`.

`frame` has the pointers to the work memory, the scratch memory, BLAS and the expected objects, then the table: pointers to the inputs, the constants
and the outputs that are arrays; scalars are in the work memory. `objects` are the inputs and the arrays of the outputs as objects of Python, from
which the table is filled, or null if it is filled already. The text has no names and no strings of the program: only numbers, and the words that the
back end knows.
"""

from __future__ import annotations

from collections.abc import Sequence

from symgrad.program.native import loops
from symgrad.program.native.loops import LoopWriter, number_in_work
from symgrad.program.native.mathematics import ROUTINES, function_texts, routine_text
from symgrad.program.native.nodes import C_TYPES, KernelNode, Ref, dimensions, row_major
from symgrad.program.native.schedule import Item, KernelSchedule

REAL = ("d", "f")
SEVERAL = 8  # pieces of an array that are copied by one statement each

# Whether objects are arrays of the expected type, dtype and shape, in row-major order, and then their data in the table. The layout is that of
# NumPy's ABI behind the head of an object, whose last word is its type: the data, the number of dimensions, the dimensions, the strides, the base,
# the dtype and the flags. `expected` has the number of words in a head, the count of the objects, and for each object its place in the table, the
# number of dimensions (-1 for what is no array), the type, the dtype and the dimensions.
ENTRY = """\
static int entered(char **table, char **objects, const long *expected) {
  const long head = *expected++;
  for (long count = *expected++; count; count--, objects++) {
    const long at = *expected++, nd = *expected++, *const *x = (const long *const *)*objects + head;
    if (nd < 0) continue;
    if ((long)x[-1] != *expected++ || (long)x[5] != *expected++ || *(const int *)(x + 1) != nd || (*(const int *)(x + 6) & 0x101) != 0x101) return 0;
    for (long d = 0; d < nd; d++) if (x[2][d] != *expected++) return 0;
    table[at] = (char *)x[0];
  }
  return 1;
}
"""
RUN = """\
long run(char **frame, char **objects) {
  char *const work = frame[0], *const scratch = frame[1], **const table = frame + 4;
  void **const blas = (void **)frame[2];
  if (objects && !entered(table, objects, (const long *)frame[3])) return 2;
CALLS  const long wrong = *(int64_t *)work;
  *(int64_t *)work = 0;
  return wrong;
}
"""

class Emission(LoopWriter):
    """The text of a program."""

    def __init__(self, schedule: KernelSchedule):
        super().__init__()
        parts = list(schedule.parts())
        bodies = [self._function(i, part) for i, part in enumerate(parts)]
        lanes = {item.lane for item in schedule.items if item.lane in REAL} | {letter for _, letter in self.routines if letter in REAL}
        calls = "".join(f"  part{i}(table, work, scratch, blas);\n" for i in range(len(parts)))
        self.text = "\n".join([
            function_texts(self.used, lanes),
            *[routine_text(*key) for key in sorted(self.routines, key=lambda k: (list(ROUTINES).index(k[0]), k[1]))], *bodies,
            ENTRY, RUN.replace("CALLS", calls)])

    def _function(self, number: int, part: list[Item]) -> str:
        self.lines, self.pointers, self.part = [], {}, part[0].part
        for item in part:
            if item.lane in REAL:
                loops.vectors(self, item)
            elif item.lane:
                loops.elements(self, item)
            else:
                self._single(item.nodes[0])
        kind = "SCALARS" if all(item.lane == "s" for item in part) else "static"
        head = f"{kind} void part{number}(char **table, char *work, char *scratch, void **blas) {{"
        return "\n".join([head, *self.pointers.values(), *self.lines, "}"])

    def _source(self, x: Ref) -> str:
        return f"{self.pointer(x.node)} + {x.offset}" if x.offset else self.pointer(x.node)

    def _single(self, node: KernelNode) -> None:
        if node.size or node.op == "reduce":
            getattr(self, f"_{node.op}")(node)

    def _call(self, name: str, node: KernelNode, *arguments: object) -> None:
        self.write(f"  {self.routine(name, C_TYPES[node.dtype])}({', '.join(map(str, arguments))});")

    def _copy(self, node: KernelNode) -> None:
        self.write("  " + self.gather(self.pointer(node), self.pointer(node.operands[0].node), node.operands[0], "0", str(node.size)))

    def _take(self, node: KernelNode) -> None:
        x, at = node.operands
        self._call("take", node, self.pointer(node), self._source(x), self.pointer(at.node), node.size)

    def _wrapped(self, node: KernelNode) -> None:
        self._call("wrapped", node, self.pointer(node), self._source(node.operands[0]), node.size, node.params[0], "(int64_t *)work")

    def _start(self, node: KernelNode, base: Sequence[Ref]) -> None:
        """Fill the memory of a node with the elements of a base, or with zeros."""
        target = self.pointer(node)
        self.write("  " + (self.gather(target, self.pointer(base[0].node), base[0], "0", str(node.size)) if base else
                           f"memset({target}, 0, {node.size * node.dtype.itemsize});"))

    def _put(self, node: KernelNode) -> None:
        *base, values, at = node.operands
        self._start(node, base)
        self._call("put", node, self.pointer(node), self._source(values), self.pointer(at.node), at.size)

    def _add_at(self, node: KernelNode) -> None:
        g, at = node.operands
        self._start(node, ())
        self._call("add_at", node, self.pointer(node), self._source(g), self.pointer(at.node), at.size)

    def _pick(self, node: KernelNode) -> None:
        rows, best = node.operands
        self._call("pick", node, self.pointer(node), self._source(rows), self.pointer(best.node), node.size, rows.shape[-1])

    def _assemble(self, node: KernelNode) -> None:
        kind, *places = node.params
        target, operands = self.pointer(node), list(node.operands)
        if kind != "tiled":
            self._start(node, [operands.pop(0)] if kind == "base" else ())
        pieces = [(offset, x, dimensions(x.shape, strides, x.strides)) for x, (offset, strides) in zip(operands, places)]
        runs = [(offset, first + x.offset, x.size) for offset, x, dims in pieces
                if dims in ((), ((x.size, 1, 1),)) and (first := number_in_work(x.node)) is not None]
        if len(runs) == len(pieces) > SEVERAL:
            self._copy_runs(target, runs, operands[0].node)
            return
        for offset, x, dims in pieces:
            if not dims:
                self.write(f"  {target}[{offset}] = {self.element(x.node, x.offset)};")
            else:
                self.loop(dims, f"{target}[{offset}{{0}}] = {self.pointer(x.node)}[{x.offset}{{1}}];")

    def _copy_runs(self, target: str, runs: Sequence[tuple[int, int, int]], like: KernelNode) -> None:
        """Copy adjacent elements of the work memory by a table: the time of compilers grows with the square of the number of statements."""
        rows = ", ".join(f"{{{', '.join(map(str, run))}}}" for run in runs)
        self.write(f"  {{ static const long runs[][3] = {{{rows}}};\n    for (long i = 0; i < {len(runs)}; i++)\n"
                   f"      for (long j = 0; j < runs[i][2]; j++) {target}[runs[i][0] + j] = {self.work(like)}[runs[i][1] + j]; }}")

    def _cumulate(self, node: KernelNode) -> None:
        (kind, axis), shape = node.params, node.shape
        inner = row_major(shape)[axis]
        self._call(kind, node, self.pointer(node), self._source(node.operands[0]), node.size // (shape[axis] * inner), shape[axis], inner)

    def _reduce(self, node: KernelNode) -> None:
        (kind, kept), x = node.params, node.operands[0]
        target, source, kind_of_x = self.pointer(node), self.pointer(x.node), C_TYPES[x.dtype]
        outer = dimensions(x.shape[:kept], x.strides[:kept], row_major(node.shape))
        inner = dimensions(x.shape[kept:], x.strides[kept:])
        if not node.size:
            return
        if kind in ("sum", "prod", "amax", "amin") and len(inner) == 1 and outer and outer[-1][1:] == (1, 1) and outer[-1][0] > 1:
            (count, step), (width, *_) = inner[0], outer[-1]
            name = self.routine(f"{kind}_rows", kind_of_x)
            self.loop(outer[:-1], f"{name}({target}{{1}}, {source} + {x.offset}{{0}}, {count}, {step}, {width});")
            return
        if len(inner) > 1 and (kind == "norm" or kind.startswith("arg")):
            raise AssertionError("the dimensions of this reduction are merged before")
        name = self.routine(kind, kind_of_x)
        count, step = inner[-1] if inner else (x.size // node.size, 1)
        if len(inner) <= 1:
            self.loop(outer, f"{target}[0{{1}}] = {name}({source} + {x.offset}{{0}}, {count}, {step});")
            return
        first = [(n, s) for n, s in inner[:-1]]
        fold = self.routine(f"{kind}_two", kind_of_x)
        head = "".join(f"for (long j{d} = 0; j{d} < {n}; j{d}++) " for d, (n, _) in enumerate(first))
        at = "".join(f" + j{d} * {s}" for d, (_, s) in enumerate(first))
        start = {"sum": "0", "prod": "1", "all": "1", "any": "0"}.get(kind, f"{source}[{x.offset}{{0}}]")
        if kind == "sum" and x.dtype.kind == "f":  # with the rounding errors of the sums of many rows
            part = f"{name}({source} + {x.offset}{{0}}{at}, {count}, {step})"
            self.loop(outer, f"{kind_of_x} a = 0, e = 0; {head}{{ const {kind_of_x} b = {part}, c = a + b; "
                             f"e += fabs(a) >= fabs(b) ? (a - c) + b : (b - c) + a; a = c; }} "
                             f"{target}[0{{1}}] = fabs(a) < __builtin_inf() ? a + e : a;")
            return
        self.loop(outer, f"{kind_of_x} a = {start}; {head}a = {fold}(a, {name}({source} + {x.offset}{{0}}{at}, {count}, {step})); "
                         f"{target}[0{{1}}] = a;")

    def _product(self, node: KernelNode, name: str = "product", more: str = "") -> None:
        a, b = node.operands[:2]
        m, n, k = node.shape[-2], node.shape[-1], a.shape[-1]
        outer = dimensions(a.shape[:-2], a.strides[:-2], b.strides[:-2], row_major(node.shape)[:-2])
        name = self.routine(name, C_TYPES[node.dtype])
        steps = ", ".join(map(str, (m, n, k, *a.strides[-2:], *b.strides[-2:])))
        self.loop(outer or ((1, 0, 0, 0),), f"{name}(blas, {more}{self.pointer(node)}{{2}}, {self.pointer(a.node)} + {a.offset}{{0}}, "
                                            f"{self.pointer(b.node)} + {b.offset}{{1}}, {steps});")

    def _selected(self, node: KernelNode) -> None:
        self._product(node, "selected", f"{int(node.params[0])}, {self.pointer(node.operands[2].node)}, ")
