"""The source of a program: calls of NumPy with buffers that are used again and again."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from symgrad.carriers.contracting import ROWS
from symgrad.program.lowering import FRESH, Lowered, LoweredOp
from symgrad.program.program import ArraySpec, arguments
from symgrad.program.scalars import NAMES
from symgrad.program.values import Name, Values

COMPUTED = {"ufunc", "copyto", "where", "reduce", "product", "place", "put", "update", "cat", "stack"}  # these can write their result anywhere


class NumpyWriter(Values):
    """The source of a program, whose operations are written one after the other."""

    def __init__(self, lowered: Lowered):
        super().__init__(lowered)
        self.view_lines: dict[tuple[str, str], str] = {}  # from an array in a block and the text of a view of it to its name
        self.contiguous: set[str] = set()
        self.orders: dict[int, tuple[int, ...]] = {}  # of the axes in memory, where it is not that of the shape
        self.placed: set[int] = set()  # registers whose arrays are made before they are written
        self._descriptions: dict[ArraySpec, str] = {}
        self.roots, self.last = self.lowered.uses()
        self.given = self._given()
        self.fresh = set(self.given.values())
        self.has_scalars = False
        self._slots = {register: slot for slot, register in reversed(list(enumerate(self.lowered.by_slot)))}
        number = 0
        while number < len(self.lowered.ops):
            number = self.advance(number)
        self.results = self._results()

    def advance(self, number: int) -> int:
        """Write an operation, or several; the number of the next one."""
        return self.write(number)

    def write(self, number: int) -> int:
        """Write an operation, and give back the buffers that nothing uses afterwards; the number of the next one."""
        op, start = self.lowered.ops[number], len(self.lines)
        getattr(self, "_" + op.kind)(number, op)
        if op.out in self._slots and len(self.lines) > start:
            self.lines[-1] += f"  # %{self._slots[op.out]} {self._described(self.specs[op.out])}"
        for i in (op.out, *op.ins):
            for root in self.roots[i]:
                if self.last[root] <= number and root in self.block_of:
                    self.blocks.give_back(self.block_of.pop(root))
        return number + 1

    def _described(self, spec: ArraySpec) -> str:
        if spec not in self._descriptions:
            self._descriptions[spec] = f"{spec.dtype}{list(spec.shape)}"
        return self._descriptions[spec]

    def _given(self) -> dict[int, int]:
        """The outputs that are given to the caller without a copy, each with the register whose memory it sees; that memory is not a buffer."""
        made = {op.out: op for op in self.lowered.ops}
        given: dict[int, int] = {}
        for output in self.lowered.outputs:
            register = output
            while (op := made.get(register)) is not None and op.kind == "view" and op.name in ("reshape", "view", "permute"):
                register = op.ins[0]
            if op is not None and op.kind in COMPUTED and self.specs[register].shape and register not in given.values():
                given[output] = register
        return given

    def target(self, number: int, op: LoweredOp, candidates: Sequence[int] = ()) -> str | None:
        """The array that an operation writes to: a candidate that is not used afterwards, or a buffer; None for a result of the program."""
        out, spec = op.out, self.specs[op.out]
        if out in self.placed:
            return self.arrays[out]
        if (order := self.common_order(op)) is not None:
            self.orders[out] = order
        if out in self.fresh:
            self.arrays[out] = f"y{out}"
            return None
        for x in candidates:
            if (x in self.block_of and self.last[x] == number and self.specs[x] == spec and self.orders.get(x) == order
                    and not any(x in self.roots[i] for i in op.ins if i != x)):
                self.block_of[out] = self.block_of.pop(x)
                break
        else:
            self.block_of[out] = self.blocks.take(spec)
        return self.buffer(out)

    def buffer(self, out: int) -> str:
        """The array of a value in its block."""
        spec, order = self.specs[out], self.orders.get(out)
        if order is None:
            self.arrays[out] = self.blocks.name(self.block_of[out], spec)
            self.contiguous.add(self.arrays[out])
        else:
            base = self.blocks.name(self.block_of[out], ArraySpec(tuple(spec.shape[i] for i in order), spec.dtype))
            text = f"{base}.transpose({self.text(tuple(order.index(i) for i in range(len(order))))})"
            self.arrays[out] = self.view_lines.setdefault((base, text), f"b{out}v")
        return self.arrays[out]

    def common_order(self, op: LoweredOp) -> tuple[int, ...] | None:
        """The order of axes in memory, the slowest first, of an elementwise result, which is that of its operands; None for rows after rows."""
        if op.kind not in ("ufunc", "copyto", "where"):
            return None
        if not self.orders:
            return None
        found = {self.orders.get(i) for i in op.ins if self.specs[i].shape == self.specs[op.out].shape}
        return found.pop() if len(found) == 1 else None

    def _order_of_view(self, op: LoweredOp) -> tuple[int, ...] | None:
        """The order of axes in memory of a permuted array, and of slices of it."""
        order, (first, *_) = self.orders.get(op.ins[0]), op.params
        if op.name == "permute":
            axes = [i % len(first) for i in first]
            out = tuple(axes.index(i) for i in order or range(len(first)))
            return out if out != tuple(range(len(out))) else None
        sliced = op.name == "getitem" and all(type(part) is slice for part in (first if type(first) is tuple else (first,)))
        return order if sliced else None

    def _operands(self, op: LoweredOp) -> list[str]:
        constants = self.lowered.constants
        if not any(i in constants for i in op.ins):
            return [self.arrays[i] if i in self.arrays else self.array(i) for i in op.ins]
        strong = {self.specs[i].dtype for i in op.ins if not self.lowered.weak(i)}
        return [self.array(i, next(iter(strong)) if len(strong) == 1 else None) for i in op.ins]

    def _function(self, name: str) -> str:
        self.names.setdefault("np_" + name if name in NAMES else name, getattr(np, name))
        return "np_" + name if name in NAMES else name

    def _named(self, forms: dict[int, str], name: str, op: LoweredOp, text: str) -> None:
        """Give the result of an operation a name, in one of its forms."""
        forms[op.out] = name
        self.lines.append(f"{name} = {text}")

    def _computed(self, number: int, op: LoweredOp, call: str) -> None:
        """Write a call, whose last argument is the array for the result."""
        out = self.target(number, op)
        self.lines.append(f"{call}, {out})" if out else f"{self.arrays[op.out]} = {call})")

    def _ufunc(self, number: int, op: LoweredOp) -> None:
        operands, function = ", ".join(self._operands(op)), self._function(op.name)
        out = self.target(number, op, op.ins)
        keyword = "out=" if op.name in ("maximum", "minimum") else ""  # NumPy deprecates a position for these
        self.lines.append(f"{function}({operands}, {keyword}{out})" if out else f"{self.arrays[op.out]} = {function}({operands})")

    def _copyto(self, number: int, op: LoweredOp) -> None:
        x = self.array(op.ins[0])
        out = self.target(number, op) or self.empty(op.out)
        self.lines.append(f"copyto({out}, {x})")

    def empty(self, register: int, function: str = "empty") -> str:
        """Make the array of a result of the program before it is written."""
        (shape, dtype), order = self.specs[register], self.orders.get(register)
        text = f"{function}({self.text(shape if order is None else tuple(shape[i] for i in order))}, {self.bind(dtype, dtype)})"
        if order is not None:
            text += f".transpose({self.text(tuple(order.index(i) for i in range(len(order))))})"
        self.lines.append(f"{self.arrays[register]} = {text}")
        return self.arrays[register]

    def _where(self, number: int, op: LoweredOp) -> None:
        dtype = self.specs[op.out].dtype
        c, a, b = (self.array(i, dtype) for i in op.ins)
        out = self.target(number, op, op.ins[2:]) or self.empty(op.out)
        if out != b:
            self.lines.append(f"copyto({out}, {b})")
        self.lines.append(f"copyto({out}, {a}, where={c})")

    def _reduce(self, number: int, op: LoweredOp) -> None:
        (x,), (dim, keepdim), (shape, dtype) = op.ins, op.params, self.specs[op.out]
        if op.name == "add" and self._has_many_rows(x, dim):
            return self._added(number, op)
        call = f"{self._function(op.name)}.reduce({self.array(x)}, {self.text(dim)}"
        if not shape:
            return self._named(self.numpy, f"n{op.out}", op, f"{call})")
        axes = {i % len(self.specs[x].shape) for i in (dim if type(dim) is tuple else (dim,))} if dim is not None else set(range(len(shape)))
        kept = tuple(n for i, n in enumerate(self.specs[x].shape) if i not in axes) if not keepdim else shape
        out = self.target(number, op)
        if out is None:
            self.lines.append(f"{self.arrays[op.out]} = {call}, None, None, {keepdim})" + (f".reshape({self.text(shape)})" if kept != shape else ""))
        else:
            self.lines.append(f"{call}, None, {self.blocks.name(self.block_of[op.out], ArraySpec(kept, dtype))}, {keepdim})")
        return None

    def _has_many_rows(self, x: int, dim: Any) -> bool:
        """Whether NumPy may add many rows one after the other, of which the errors are added as well."""
        shape = self.specs[x].shape
        if dim is None or math.prod(shape) <= 1024:
            return False
        axes = {i % len(shape) for i in (dim if type(dim) is tuple else (dim,))}
        end = len(shape)
        while self.array(x) in self.contiguous and end - 1 in axes:  # which it adds in pairs
            end -= 1
        return len(axes) < len(shape) and math.prod([shape[i] for i in axes if i < end]) > ROWS

    def _added(self, number: int, op: LoweredOp) -> None:
        (x,), (dim, keepdim), (shape, _) = op.ins, op.params, self.specs[op.out]
        call = f"added({self.array(x)}, {self.text(dim)}, {keepdim}).reshape({self.text(shape)})"
        out = self.target(number, op)
        self.lines.append(f"copyto({out}, {call})" if out else f"{self.arrays[op.out]} = {call}")

    def _product(self, number: int, op: LoweredOp) -> None:
        a, b = map(self.array, op.ins)
        call = f"{a}.dot({b}" if op.name == "dot" else f"matmul({a}, {b}"
        if not self.specs[op.out].shape:
            self._named(self.numpy, f"n{op.out}", op, f"{call})")
        else:
            self._computed(number, op, call)

    def _place(self, number: int, op: LoweredOp) -> None:
        g = self._element(op.ins[0])
        if (out := self.target(number, op)) is None:
            out = self.empty(op.out, "zeros")
        else:
            self.lines.append(f"{out}.fill(0)")
        self.lines.append(f"{out}[{self.index(op.params[0])}] = {g}")

    def _element(self, x: int) -> str:
        """A value that is written to elements of an array."""
        return self.array(x) if x in self.lowered.constants or self.specs[x].shape else self.some_number(x)

    def _put(self, number: int, op: LoweredOp) -> None:
        x, value = self.array(op.ins[0]), self._element(op.ins[1])
        out = self.target(number, op, op.ins[:1]) or self.empty(op.out)
        if out != x:
            self.lines.append(f"copyto({out}, {x})")
        self.lines.append(f"{out}[{self.index(op.params[0])}] = {value}")

    def _update(self, number: int, op: LoweredOp) -> None:
        """Add to elements of an array, or subtract from them."""
        x, g, index = self.array(op.ins[0]), self._element(op.ins[1]), self.index(op.params[0])
        out = self.target(number, op, op.ins[:1]) or self.empty(op.out)
        if out != x:
            self.lines.append(f"copyto({out}, {x})")
        if not self.specs[op.ins[1]].shape or out[0] != "b":
            self.lines.append(f"{out}[{index}] {'+' if op.name == 'add' else '-'}= {g}")
        else:
            view = self.view_lines.setdefault((out, f"{out}[{index}]"), f"b{op.out}e")
            self.lines.append(f"{self._function(op.name)}({view}, {g}, {view})")

    def _cat(self, number: int, op: LoweredOp) -> None:
        operands = ", ".join(map(self.array, op.ins))
        self._computed(number, op, f"concatenate(({operands}, ), {self.text(op.params[0])}")

    def _stack(self, number: int, op: LoweredOp) -> None:
        parts = [self._element(i) for i in op.ins]
        out = self.target(number, op) or self.empty(op.out)
        dim = op.params[0] % len(self.specs[op.out].shape)
        for i, part in enumerate(parts):
            self.lines.append(f"{out}[{':, ' * dim}{i}] = {part}")

    def _view(self, number: int, op: LoweredOp) -> None:
        if not self.specs[op.out].shape:
            return self._call(number, op)
        x, (first, *_) = self.array(op.ins[0]), op.params
        if (order := self._order_of_view(op)) is not None:
            self.orders[op.out] = order
        match op.name:
            case "permute":
                text = f"{x}.T" if first == (1, 0) else f"{x}.transpose({self.text(first)})"
            case "getitem":
                text = f"{x}[{self.index(first)}]"
            case "broadcast_to":
                text = f"broadcast_to({x}, {self.text(first)})"
            case "diagonal":
                text = f"{x}.diagonal({', '.join(map(self.text, op.params))})"
            case _:
                text = f"{x}.reshape({self.text(first)})"
        in_block = x[0] == "b"
        if not in_block or op.name in ("reshape", "view") and x not in self.contiguous:
            self.arrays[op.out] = f"v{op.out}"
            self.lines.append(f"v{op.out} = {text}")
            return None
        name = self.view_lines.setdefault((x, text), f"b{op.out}v")
        self.arrays[op.out] = name
        leading = op.name == "getitem" and (type(first) is int or type(first) is slice and first.step in (None, 1))
        if x in self.contiguous and (leading or op.name in ("reshape", "view")):
            self.contiguous.add(name)
        return None

    def _item(self, number: int, op: LoweredOp) -> None:
        (x,), dtype = op.ins, self.specs[op.out].dtype
        index = ", ".join(map(repr, op.params))
        if self.lowered.scalars and dtype in (np.float64, np.bool_):
            self._named(self.numbers, f"t{op.out}", op, f"{self.array(x)}.item({index})")
        else:
            self._named(self.numpy, f"n{op.out}", op, f"{self.array(x)}[{index}]")

    def _scalar(self, number: int, op: LoweredOp) -> None:
        self.has_scalars = True
        operands = [self.number(i) for i in op.ins]
        self._named(self.numbers, f"t{op.out}", op, op.params[0].format(*operands))

    def _call(self, number: int, op: LoweredOp) -> None:
        given = arguments(op, [Name(self.argument(i)) for i in op.ins])
        forms, letter = (self.arrays, "v") if self.specs[op.out].shape else (self.numpy, "n")
        self._named(forms, f"{letter}{op.out}", op, f"xp.{op.name}({', '.join(map(self.text, given))})")

    def _results(self) -> list[str]:
        """The outputs in memory of their own, as `own` has them."""
        made = {op.out: op for op in self.lowered.ops}
        texts, given = [], set[int]()
        for register in self.lowered.outputs:
            op = made.get(register)
            own = register in self.given or op is not None and op.kind == "call" and op.name in FRESH
            if not self.specs[register].shape:
                value = self.lowered.constants.get(register)
                texts.append(f"{'bool_' if self.specs[register].dtype.kind == 'b' else 'float64'}({self.numbers[register]})"
                             if register in self.numbers else f"asarray({self.bind(value) if value is not None else self.some_number(register)})[()]")
            elif own and register not in given:
                texts.append(self.array(register))
                given.add(register)
            else:
                texts.append(f"{self.array(register)}.copy()")
        return texts

    def source(self) -> str:
        """The text of two functions: `views` of the buffers, which are made once, and `run`."""
        inputs = "".join(f"x{i}, " for i in range(self.lowered.first_register))
        buffers = ", ".join(["memory", *self.blocks.arrays.values()])
        views = "".join(f", {name}" for name in self.view_lines.values())
        body = [f"({inputs}) = inputs"] if inputs else []
        if self.blocks.arrays:
            body.append(f"({buffers}{views}) = buffers")
        body += [*self.lines, f"return [{', '.join(self.results)}]"]
        made = [f"{name} = {text}" for (_, text), name in self.view_lines.items()]
        return "\n".join([f"def views({buffers}):", *("    " + line for line in made), f"    return ({buffers}{views}, )", "", "",
                          "def run(inputs, buffers):", *("    " + line for line in body), ""])
