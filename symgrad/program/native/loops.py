"""The texts of elementwise loops: blocks of vectors, single elements, and scalars."""

from __future__ import annotations

import math
from collections.abc import Sequence

from symgrad.program.native.mathematics import IN_PAIRS, ROUTINES, SCALAR, VECTOR, number_text, scalar_call, used_functions
from symgrad.program.native.nodes import C_TYPES, KernelNode, Ref, literal_array
from symgrad.program.native.schedule import ALIGNMENT, Item

CACHE = 128 * 1024  # the bytes that the buffers of a block may take
LONGEST = 2000  # the operations in one loop; what does not fit into registers costs less than buffers between loops


def scalar_text(writer: LoopWriter, x: Ref, item: Item | None) -> str:
    """The expression for a value of one element."""
    node = x.node
    if node.op == "literal":
        return number_text(literal_array(node).item(), C_TYPES[node.dtype])
    if node.lane == "s" and node.item.part == writer.part and item is not None:
        return f"s{node.number}"
    return writer.element(node, x.offset)


def expression(writer: LoopWriter, node: KernelNode, operands: list[str]) -> str:
    """The operation of a node on single elements."""
    kind = C_TYPES[node.dtype]
    if node.op == "cast":
        is_truncated = node.dtype.kind == "i" and node.operands[0].dtype.kind == "f"
        # Compilers make (double)(long)x to trunc(x), which is -0 for -0.4.
        return f"({{ {kind} n_ = ({kind}){operands[0]}; __asm__(\"\" : \"+r\"(n_)); n_; }})" if is_truncated else f"({kind}){operands[0]}"
    if node.op == "abs" and node.dtype.kind != "f":
        return f"{operands[0]} < 0 ? -{operands[0]} : {operands[0]}"
    text = SCALAR.get(node.op)
    if text is not None:
        return text.format(*operands)
    writer.used.add(node.op)
    return scalar_call(node.op, kind, operands)


def elements(writer: LoopWriter, item: Item) -> None:
    """Scalars, or a loop over single elements."""
    is_loop = item.lane == "g"
    count = item.nodes[0].size
    if not count:
        return
    indent = "    " if is_loop else "  "
    lines = [f"  for (long i = 0; i < {count}; i++) {{"] if is_loop else []
    for node in item.nodes:
        operands = []
        for x in node.operands:
            if is_loop and x.node.item is item:
                operands.append(f"s{x.node.number}")
            elif is_loop and x.shape:
                operands.append(f"{writer.pointer(x.node)}[i{f' + {x.offset}' if x.offset else ''}]")
            else:
                operands.append(scalar_text(writer, x, item))
        kind = C_TYPES[node.dtype]
        lines.append(f"{indent}const {kind} s{node.number} = {expression(writer, node, operands)};")
        if node.place is not None:
            target = f"{writer.pointer(node)}[i]" if is_loop else writer.element(node)
            lines.append(f"{indent}{target} = s{node.number};")
    writer.write("\n".join([*lines, "  }"] if is_loop else lines))


def vectors(writer: LoopWriter, item: Item) -> None:
    """A loop over blocks: one loop for each call of a mathematical function, short loops of arithmetic between."""
    if item.nodes[0].size:
        _Block(writer, item).write()


class _Block:
    """The text of the loops over one block. Values that several loops need have buffers of the length of the block."""

    def __init__(self, writer: LoopWriter, item: Item):
        self.writer, self.item, self.lane = writer, item, item.lane
        self.count, self.width = item.nodes[0].size, 8 if item.lane == "d" else 4
        self.loops = self._loops()
        self.loop_of = {node: i for i, loop in enumerate(self.loops) for node in loop}
        self.before: list[str] = []  # the statements before the loop over blocks, and those at its start and at its end
        self.start: list[str] = []
        self.end: list[str] = []
        self.repeated: list[tuple[int, str, Ref]] = []  # buffers of elements that repeat: with the period, and what to copy
        self.streams: dict[Ref, str] = {}
        self.uniforms: dict[Ref, str] = {}
        self.buffers: dict[KernelNode, str] = {}
        self.used = 0  # buffers
        self.free: list[str] = []
        self.kept: set[str] = set()  # buffers that are not used again in the block

    def _is_call(self, node: KernelNode) -> bool:
        return node.op not in VECTOR

    def _loops(self) -> list[list[KernelNode]]:
        """The nodes of each loop: calls of one function, or arithmetic, as early as the operands are known."""
        stage: dict[KernelNode, int] = {}
        rows: dict[int, list[KernelNode]] = {}
        for node in self.item.nodes:
            at = max([stage[x.node] for x in node.operands if x.node in stage], default=0)
            before = [x.node for x in node.operands if x.node in stage and stage[x.node] == at]
            if self._is_call(node):
                at += 2 if any(map(self._is_call, before)) else 1 if before or not at % 2 else 0
            elif any(map(self._is_call, before)):
                at += 1
            stage[node] = at
            rows.setdefault(at, []).append(node)
        out: list[list[KernelNode]] = []
        for at in sorted(rows):
            if at % 2:
                calls: dict[tuple, list[KernelNode]] = {}
                for node in rows[at]:
                    calls.setdefault((node.operands, "pair" if node.op in IN_PAIRS else node.op), []).append(node)
                out += calls.values()
            else:
                out += [rows[at][i:i + LONGEST] for i in range(0, len(rows[at]), LONGEST)]
        return out

    def write(self) -> None:
        writer, lane = self.writer, self.lane
        last = {}
        for i, loop in enumerate(self.loops):
            for node in loop:
                for x in node.operands:
                    if x.node.item is self.item:
                        last[x.node] = i
        for node in self.item.sums:
            last[node.operands[0].node] = len(self.loops)
        done: list[list[KernelNode]] = [[] for _ in range(len(self.loops) + 1)]
        for node, i in last.items():
            done[i].append(node)
        body = []
        for i, loop in enumerate(self.loops):
            body.append(self._call(loop) if self._is_call(loop[0]) else self._arithmetic(i, loop, last))
            for node in done[i]:
                slot = self.buffers.get(node, "")
                if slot.startswith("t") and slot not in self.kept:
                    self.free.append(slot)
        size = 64
        while size < 512 and self.used * size * 2 * self.width <= CACHE:
            size *= 2
        size = self._filled_once(size)
        whole = self.count <= size
        after = [self._sum(node, whole) for node in self.item.sums]
        block = -(-self.count // 16) * 16 if whole else size
        buffers = [f"  {'U' + lane} *const t{i} = (U{lane} *)(scratch + {i * (block * self.width + ALIGNMENT)});" for i in range(self.used)]
        writer.scratch = max(writer.scratch, self.used * (block * self.width + ALIGNMENT))
        head = [f"    const long k = 0, b = {self.count}, m = (b + W{lane} - 1) / W{lane};"] if whole else [
            f"    const long b = {self.count} - k < {block} ? {self.count} - k : {block}, m = (b + W{lane} - 1) / W{lane};"]
        opening = "  {" if whole else f"  for (long k = 0; k < {self.count}; k += {block}) {{"
        filled = [line.replace("BLOCK", str(block)) for line in self.before]
        writer.write("\n".join(["  {", *buffers, *filled, opening, *head, *self.start, *body, *self.end, "  }", *after, "  }"]))

    def _filled_once(self, size: int) -> int:
        """The size of a block that has whole periods of the elements that repeat, which are then copied once, before the loop over blocks."""
        whole = math.lcm(16, *[period for period, _, _ in self.repeated if period])
        fits = whole <= 2 * size
        for period, buffer, x in self.repeated:
            source = self.writer.pointer(x.node)
            if period and fits and self.count > size:
                self.before.append(f"  {self.writer.gather(buffer, source, x, '0', f'BLOCK < {self.count} ? BLOCK : {self.count}')}")
            else:
                self.start.insert(0, f"    {self.writer.gather(buffer, source, x, 'k', 'b')}")
        return max(1, size // whole) * whole if fits else size

    def _buffer(self) -> str:
        if self.free:
            return self.free.pop()
        self.used += 1
        return f"t{self.used - 1}"

    def _kept_buffer(self) -> str:
        """A buffer that is not used again in the block."""
        self.used += 1
        self.kept.add(f"t{self.used - 1}")
        return f"t{self.used - 1}"

    @property
    def _is_ragged(self) -> bool:
        return self.count % 64 != 0

    def _uniform(self, x: Ref) -> str:
        """A vector of equal elements."""
        if x not in self.uniforms:
            name = self.uniforms[x] = f"u{len(self.uniforms)}"
            text = scalar_text(self.writer, x, self.item)
            if x.node.is_bool:
                self.before.append(f"  const I{self.lane} {name} = {text} ? ~(I{self.lane}){{}} : (I{self.lane}){{}};")
            else:
                self.before.append(f"  const E{self.lane} {name}_ = {text};\n  const V{self.lane} {name} = SPLAT{self.lane}({name}_);")
        return self.uniforms[x]

    def _stream(self, x: Ref) -> str:
        """A pointer to the elements of the block in memory."""
        if x not in self.streams:
            name = self.streams[x] = f"x{len(self.streams)}"
            kind = "bool8" if x.node.is_bool else f"E{self.lane}"
            source = self.writer.pointer(x.node)
            if not x.is_contiguous:
                buffer = self._kept_buffer()
                first, *rest = x.merged
                self.repeated.append((math.prod(n for n, _ in rest) if first[1] == 0 else 0, f"({kind} *){buffer}", x))
                text = f"(const {kind} *){buffer}"
            else:
                text = f"{source} + {x.offset} + k"
                if self._is_ragged and (x.node.place.table is not None or x.offset or x.size != x.node.size or x.node.size == 1):
                    function = "input8" if x.node.is_bool else "input"
                    self.writer.used.add(f"{function}${self.lane}")
                    text = f"v_{function}{self.lane}({text}, ({kind} *){self._kept_buffer()}, b)"
            self.start.append(f"    const {kind} *const {name} = {text};" if x.node.is_bool else
                              f"    const U{self.lane} *const {name} = (const U{self.lane} *)({text});")
        return self.streams[x]

    def _pointer(self, x: Ref) -> str:
        """A pointer to the operand of a call, which is in memory or in a buffer."""
        if x.node in self.buffers:
            return self.buffers[x.node]
        if x.shape:
            return self._stream(x)
        value, buffer = self._uniform(x), self._kept_buffer()
        self.before.append(f"  for (long i = 0; i < BLOCK / W{self.lane} + 1; i++) {buffer}[i] = {value};")
        return buffer

    def _result(self, node: KernelNode) -> str:
        """A pointer to the result in the block: its memory, or a buffer."""
        lane, place = self.lane, node.place
        if place is None or node.is_bool:
            self.buffers[node] = self._buffer()
        elif place.table is not None and self._is_ragged:
            self.buffers[node] = self._kept_buffer()
            self.end.append(f"    memcpy({self.writer.pointer(node)} + k, {self.buffers[node]}, b * {self.width});")
        else:
            self.buffers[node] = f"y{node.number}"
            self.start.append(f"    U{lane} *const y{node.number} = (U{lane} *)({self.writer.pointer(node)} + k);")
        return self.buffers[node]

    def _call(self, loop: list[KernelNode]) -> str:
        node, lane = loop[0], self.lane
        operands = [self._pointer(x) for x in node.operands]
        if node.op in IN_PAIRS:
            found = {x.op: self._result(x) for x in loop}
            results = [found.get(op) or self._kept_buffer() for op in ("tanh", "sech_square")]
            self.writer.used.add(f"tanh+sech_square_block${lane}1")
            return f"    tanh_pair_block{lane}({results[0]}, {results[1]}, {operands[0]}, m);"
        self.writer.used.add(f"{node.op}_block${lane}{len(operands)}")
        return f"    {node.op}_block{lane}({', '.join([self._result(node), *operands])}, m);"

    def _arithmetic(self, at: int, loop: list[KernelNode], last: dict[KernelNode, int]) -> str:
        lane, loads, lines = self.lane, {}, []
        for node in loop:
            operands = []
            for x in node.operands:
                if x.node.item is self.item and self.loop_of[x.node] == at:
                    operands.append(f"v{x.node.number}")
                elif not x.shape:
                    operands.append(self._uniform(x))
                else:
                    is_bool = x.node.is_bool
                    if x.node in self.buffers:
                        buffer = self.buffers[x.node]
                        name, text = f"v{x.node.number}", f"(I{lane}){buffer}[i]" if is_bool else f"{buffer}[i]"
                    else:
                        stream = self._stream(x)
                        name, text = f"{stream}_", f"v_mask{lane}({stream} + i * W{lane})" if is_bool else f"{stream}[i]"
                        if is_bool:
                            self.writer.used.add(f"mask${lane}")
                    loads[name] = f"      const {'I' if is_bool else 'V'}{lane} {name} = {text};"
                    operands.append(name)
            text = VECTOR[node.op]
            self.writer.used |= used_functions(text, lane)
            kind = "I" if node.is_bool else "V"
            lines.append(f"      const {kind}{lane} v{node.number} = {text.replace('$', lane).format(*operands)};")
            if last.get(node, at) != at or node.place is not None and not node.is_bool:
                buffer = self._result(node)
                lines.append(f"      {buffer}[i] = {'(V' + lane + ')' if node.is_bool else ''}v{node.number};")
            if node.place is not None and node.is_bool:
                lines.append(self._store_truth(node))
        return "\n".join(["    for (long i = 0; i < m; i++) {", *loads.values(), *lines, "    }"])

    def _sum(self, node: KernelNode, whole: bool) -> str:
        """Add the sums of the blocks, with their rounding errors; return the statement after the loop."""
        name, kind = f"a{node.number}", C_TYPES[node.dtype]
        target = self.writer.element(node)
        part = f"{self.writer.routine('sum', kind)}((const {kind} *){self.buffers[node.operands[0].node]}, b, 1)"
        if whole:
            self.end.append(f"    {target} = {part};")
            return ""
        self.before.append(f"  {kind} {name} = 0, {name}_error = 0;")
        self.end.append(f"    {{\n      const {kind} part = {part}, next = {name} + part;\n      {name}_error += fabs({name}) >= fabs(part) ? "
                        f"({name} - next) + part : (part - next) + {name};\n      {name} = next;\n    }}")
        return f"  {target} = fabs({name}) < __builtin_inf() ? {name} + {name}_error : {name};"

    def _store_truth(self, node: KernelNode) -> str:
        lane, name = self.lane, f"z{node.number}"
        self.writer.used.add(f"truth${lane}")
        target = f"{self.writer.pointer(node)} + k"
        if node.place.table is not None and self._is_ragged:
            buffer = self._kept_buffer()
            self.end.append(f"    memcpy({target}, {buffer}, b);")
            target = f"(bool8 *){buffer}"
        self.start.append(f"    bool8 *const {name} = {target};")
        return f"      v_truth{lane}({name} + i * W{lane}, v{node.number});"


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
