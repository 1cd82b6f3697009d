"""The order in which the nodes of a program are computed, which of them have memory, and where."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from symgrad.program.native.nodes import KernelGraph, KernelNode, Ref, literal_array

PART = 150  # the nodes in one function of the text: compilers take more time for longer ones
LOOP = 400  # the nodes in one loop over vectors; with more, loops have half as many: the time and the memory of compilers grow with the square
ALIGNMENT = 64
SOURCES = ("input", "constant", "literal")
REAL = ("d", "f")


class MemoryPlace(NamedTuple):
    """The memory of a node: a pointer of the table, or an offset in the work memory, where loops may write past the end."""

    table: int | None
    offset: int


class Item:
    """Nodes that are computed together: elementwise in one loop ("d", "f" for vectors, "g" for single elements), scalars ("s"), or one other node.

    `sums` are the sums of all elements of some of the nodes, which are computed in the same loop.
    """

    def __init__(self, lane: str, nodes: list[KernelNode]):
        self.lane, self.nodes = lane, nodes
        self.sums: list[KernelNode] = []
        self.part = 0
        for node in nodes:
            node.item = self


class KernelSchedule:
    """The items of a graph in their order, and the places of the nodes that have memory."""

    def __init__(self, graph: KernelGraph, outputs: list[Ref], inputs: int):
        self.inputs, self.graph = inputs, graph
        self.outputs = self._own_outputs(outputs)
        self.nodes = self._reachable()
        self.items = self._items()
        self.table_size = inputs
        self.work = 8  # bytes, of which the first eight tell that an index is out of bounds
        self._place()

    def _own_outputs(self, outputs: list[Ref]) -> list[KernelNode]:
        """A node of its own for each output."""
        out: list[KernelNode] = []
        for i, x in enumerate(outputs):
            if x.node.op in SOURCES or x.node in out or not x.is_whole or bool(x.shape) != bool(x.node.shape):
                x = self.graph.add("copy", (x,), (i,), x.shape, x.dtype)
            out.append(x.node)
        return out

    def _reachable(self) -> list[KernelNode]:
        found, stack = set[int](), list(self.outputs)
        while stack:
            node = stack.pop()
            if node.number not in found:
                found.add(node.number)
                stack += [x.node for x in node.operands]
        return [node for node in self.graph.nodes if node.number in found]

    def _items(self) -> list[Item]:
        """Elementwise nodes are grouped by size where no other node lies between them."""
        groups: dict[tuple, list[KernelNode]] = {}
        for node in self.nodes:
            node.item = node.place = None
            node.level = 0
            if node.op in SOURCES:
                continue
            for x in node.operands:
                if x.node.op not in SOURCES:
                    node.level = max(node.level, x.node.level + (not is_direct(x, node)))
        self._sink()
        for node in self.nodes:
            if node.op not in SOURCES:
                groups.setdefault((node.level, node.lane, node.size) if node.lane else (node.level, node.number), []).append(node)
        items = []
        for key in sorted(groups, key=lambda key: (key[0], groups[key][0].number)):
            nodes = groups[key]
            if is_sum_of_vector(nodes[0]):
                nodes[0].item = nodes[0].operands[0].node.item
                nodes[0].item.sums.append(nodes[0])
            elif nodes[0].lane in ("s", "g"):
                items += [Item(nodes[0].lane, nodes[i:i + PART]) for i in range(0, len(nodes), PART)]
            else:
                length = len(nodes) if len(nodes) <= LOOP else LOOP // 2
                items += [Item(nodes[0].lane, nodes[i:i + length]) for i in range(0, len(nodes), length)]
        part = count = 0
        for item in items:
            if count and count + len(item.nodes) > PART:
                part, count = part + 1, 0
            item.part = part
            count += len(item.nodes)
        return items

    def _sink(self) -> None:
        """Compute elementwise nodes in the loop of their first reader, which then needs no memory for them."""
        latest: dict[KernelNode, tuple[int, bool]] = {}  # the last level at which a node can be computed, and whether it has a reader there
        kept = set(self.outputs)
        for node in reversed(self.nodes):
            level, is_read = latest.get(node, (node.level, False))
            if is_read and level > node.level and node.lane in REAL and node not in kept:
                node.level = level
            for x in node.operands:
                direct = is_direct(x, node)
                at = node.level - (not direct), direct
                before = latest.get(x.node, at)
                latest[x.node] = at if at[0] < before[0] else (before[0], before[1] or direct) if at[0] == before[0] else before

    def _place(self) -> None:
        """Choose the places of the nodes that have memory."""
        last: dict[KernelNode, int] = {}
        for at, item in enumerate(self.items):
            for node in (*item.nodes, *item.sums):
                if not node.lane:
                    last.setdefault(node, at)
                for x in node.operands:
                    if self._needs_memory(x.node, item):
                        last[x.node] = at
        constants = [node for node in self.nodes if node.op == "constant"]
        for node in self.nodes:
            if node.op == "literal" and node in last:
                node.params = (*node.params, len(self.graph.constants))
                self.graph.constants.append(literal_array(node))
                constants.append(node)
        for node in self.nodes:
            if node.op == "input":
                node.place = MemoryPlace(node.params[0], 0) if node.shape else MemoryPlace(None, self._more(8))
        for i, node in enumerate(constants):
            node.place = MemoryPlace(self.inputs + i, 0)
        self.constants = [node.params[-1] for node in constants]  # their numbers in the graph
        self.table_size += len(constants)
        for node in self.outputs:
            node.place = MemoryPlace(self.table_size, 0) if node.shape else MemoryPlace(None, self._more(8))
            self.table_size += bool(node.shape)
        for node in self.nodes:
            if node in last and node.place is None and node.size == 1:
                node.place = MemoryPlace(None, self._more(8))
        self.work = -(-self.work // ALIGNMENT) * ALIGNMENT
        self._share(last)

    def _more(self, count: int) -> int:
        self.work += count
        return self.work - count

    def _share(self, last: dict[KernelNode, int]) -> None:
        """Places in the work memory, shared by nodes whose times do not overlap."""
        live: list[tuple[int, int, int]] = []  # the start and the end of memory in use, with the last item that reads it
        start = self.work
        for at, item in enumerate(self.items):
            live = [x for x in live if x[2] >= at]
            for node in item.nodes:
                if node in last and node.place is None:
                    size = -(-node.size * node.dtype.itemsize // ALIGNMENT) * ALIGNMENT + (ALIGNMENT if node.dtype.itemsize == 1 else 0)
                    offset, where = start, len(live)
                    for i, (low, high, _) in enumerate(live):
                        if offset + size <= low:
                            where = i
                            break
                        offset = high
                    live.insert(where, (offset, offset + size, last[node]))
                    node.place = MemoryPlace(None, offset)
                    self.work = max(self.work, offset + size)

    def _needs_memory(self, node: KernelNode, reader: Item) -> bool:
        if node.op == "literal":
            return not reader.lane
        if node.op in SOURCES or not node.lane:
            return True
        if node.item is reader:
            return False
        return not (node.lane == "s" and reader.lane and node.item.part == reader.part)

    def parts(self) -> Iterator[list[Item]]:
        """The items of each function of the text."""
        part: list[Item] = []
        for item in self.items:
            if part and part[0].part != item.part:
                yield part
                part = []
            part.append(item)
        if part:
            yield part


def is_sum_of_vector(node: KernelNode) -> bool:
    """Whether a node is the sum of all elements that a loop over vectors computes."""
    if node.op != "reduce" or node.params != ("sum", 0):
        return False
    x = node.operands[0]
    return x.node.lane in REAL and x.is_whole and x.dtype == node.dtype


def is_direct(x: Ref, reader: KernelNode) -> bool:
    """Whether an operand can be computed in the loop of its reader."""
    node = x.node
    if not reader.lane or not node.lane or node.lane != reader.lane:
        return False
    return node.lane == "s" or node.size == reader.size and x.is_whole
