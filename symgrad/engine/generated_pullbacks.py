"""Pullbacks of elementwise ops as flat functions, for numbers and for Tensors; their source is written from the partial derivatives of the ops.

A rule is a function of any carrier, called by way of two others. In a pullback of one carrier it can be one function: its partial derivatives are
called once with terms, which record what a rule computes. For numbers the terms become expressions; for Tensors they become the nodes that the ops of
the terms record, without a Tensor for each. A rule that asks for values, or uses one twice, is called as it is.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from symgrad.carriers import numeric
from symgrad.engine.kernels import transpose_of_numbers
from symgrad.engine.operands import tensors
from symgrad.engine.saved import traced_args
from symgrad.engine.tensor import Tensor
from symgrad.engine.traced import traced
from symgrad.graph.classes import blanks, specialized
from symgrad.graph.node import BARRED, TRACKED, Node, constructor, node_class, sequence
from symgrad.graph.op import REGISTRY, Op

SIGNS = {"add": "+", "sub": "-", "mul": "*", "div": "/"}
Rule = Callable[..., Any]
float64, ndarray, FLOAT32, FLOAT64 = np.float64, np.ndarray, np.dtype(np.float32), np.dtype(np.float64)


class _Term:
    """A value in a rule: an argument, or a word of the carriers' protocol with its arguments."""

    def __init__(self, word: str, *args: Any):
        self.word, self.args = word, args

    def __neg__(self) -> _Term:
        return _Term("neg", self)

    def __bool__(self) -> bool:
        raise TypeError("a term has no truth value")


def _operator(word: str) -> None:
    name = word.replace("div", "truediv")
    setattr(_Term, f"__{name}__", lambda self, other: _Term(word, self, other))
    setattr(_Term, f"__r{name}__", lambda self, other: _Term(word, *((self, other) if word in ("add", "mul") else (other, self))))  # as of Tensors


for _word in SIGNS:
    _operator(_word)


class _TermCarrier:
    """The carrier of terms."""

    def __getattr__(self, word: str) -> Callable[..., _Term]:
        if word not in REGISTRY:
            raise AttributeError(word)
        return lambda *args: _Term(word, *args)


def _cotangents(op: Op) -> list[Any] | None:
    """The cotangents of the arguments as terms, None for zero; None for an op whose rule must be called."""
    partials = getattr(op.vjp, "partials", None)
    if partials is None or op.parameters or op.selects:  # slopes of an op that selects are recorded by its rule
        return None
    g, given = _Term("g"), [_Term("y"), *(_Term(f"x{i}") for i in range(len(partials)))]
    found: list[Any] = []
    for partial in partials:
        if callable(partial):
            try:
                partial = partial(_TermCarrier(), *given)
            except (AttributeError, TypeError):  # it asks for values
                return None
            if _shares(partial, set()):  # as an expression it would be computed twice
                return None
        if isinstance(partial, _Term):
            found.append(g * partial)  # type: ignore[operator]
        elif partial in (None, 0):
            found.append(None)
        else:
            found.append(g if partial == 1 else -g if partial == -1 else g * partial)
    return found


def _shares(term: Any, seen: set[_Term]) -> bool:
    """Whether a term has a part, other than the arguments of the rule, in two places."""
    if not isinstance(term, _Term) or not term.args:
        return False
    if term in seen:
        return True
    seen.add(term)
    return any([_shares(arg, seen) for arg in term.args])


def _read(term: Any) -> set[str]:
    """The arguments that a term reads."""
    if not isinstance(term, _Term):
        return set()
    return set().union(*map(_read, term.args)) if term.args else {term.word}


def _words(term: Any) -> set[str]:
    """The words that a term applies."""
    return {term.word}.union(*map(_words, term.args)) if isinstance(term, _Term) and term.args else set()


def _names(letter: str, terms: list[Any]) -> str:
    """A name for each argument, as a tuple."""
    return "".join(f"{letter}{i}, " for i in range(len(terms)))


def _applied(word: str, args: Sequence[str]) -> str:
    """A word with its arguments in Python."""
    if word in SIGNS:
        return f"({args[0]} {SIGNS[word]} {args[1]})"
    return f"(-{args[0]})" if word == "neg" else f"{word}({', '.join(args)})"


def _expression(term: Any) -> str:
    """A term in Python."""
    if not isinstance(term, _Term):
        return repr(term)
    return _applied(term.word, [*map(_expression, term.args)]) if term.args else term.word


def _of_numbers(op: Op, terms: list[Any], call: str) -> Rule:
    """The pullback of numbers; `call` calls the rule itself."""
    read = set[str]().union(*map(_read, terms))
    lines = ["y = node.value"] * ("y" in read) + [f"{_names('x', terms)} = node.args"] * bool(read - {"g", "y"})
    found = [*map(_expression, terms)]
    if len(terms) > 1:
        lines.append(f"{_names('p', terms)} = parents")
        found = [text if text in ("g", "None") else f"None if p{i} is None else {text}" for i, text in enumerate(found)]
    words = {word: getattr(numeric, word) for word in set[str]().union(*map(_words, terms))}
    return _written(op, lines, f"return {', '.join(found)}", call, {**vars(numeric), **words, **WORDS})


def _of_tensors(op: Op, terms: list[Any], call: str) -> Rule:
    """The pullback of Tensors of one shape in float64. Raises LookupError for a word that is not an elementwise op of these arguments."""
    words, count = dict(WORDS), 0
    lines = ["y, gv, gn = node.value, g._value, g._node_slot",
             "if not (type(y) is type(gv) is float64 or type(y) is type(gv) is ndarray and y.dtype is gv.dtype is FLOAT64):", f" return {call}",
             "gf = 0 if gn is None else gn.flags & TRACKED", f"if gf is BARRED: return {call}",  # the node of a stale view is regenerated
             f"{_names('x', terms)} = node.args", f"{_names('n', terms)} = node.parents"]
    lines += [f"f{i} = 0 if n{i} is None else n{i}.flags & TRACKED" for i in range(len(terms))]
    known = {"g": ("gv", "gn", "gf"), "y": ("y", "node", "node.flags & TRACKED")} | {f"x{i}": (f"x{i}", f"n{i}", f"f{i}") for i in range(len(terms))}

    def step(term: Any) -> tuple[str, str, str]:
        """The names of the value, the node and the flags of a term, after the lines that compute them."""
        nonlocal count
        if not isinstance(term, _Term):
            return repr(term), "None", "0"
        if not term.args:
            return known[term.word]
        op = REGISTRY[term.word]
        if op.kind != "elementwise" or op.parameters or op.arity != len(term.args) or op.selects or not op.differentiable:
            raise LookupError(op.name)
        values, nodes, flags = zip(*map(step, term.args))
        count += 1
        v, m, f, make = (f"{letter}_{count}" for letter in ("v", "m", "f", "make"))
        words[make] = blanks(node_class(op, broadcasts=False))
        words[op.name] = getattr(numeric, op.name)
        inside.extend([f"{v} = {_applied(op.name, values)}", f"{f} = {' | '.join(flags)}", f"{m} = None", f"if {f}:", f" {m} = next({make})",
                       f" {m}.args, {m}.parents, {m}.value = ({', '.join(values)},), ({', '.join(nodes)},), {v}",
                       f" {m}.flags, {m}.sequence_nr = {f}, next(sequence)"])
        return v, m, f

    found = []
    for i, term in enumerate(terms):
        inside: list[str] = []
        v, m, _ = step(term)
        if v in ("None", "gv"):
            found.append(v[:-1] if v == "gv" else v)
            continue
        inside += [f"t{i} = next(tensors)", f"t{i}._value, t{i}._node_slot, t{i}._view = {v}, {m}, None"]
        lines += inside if len(terms) == 1 else [f"t{i} = None", f"if parents[{i}] is not None:", *[f" {line}" for line in inside]]
        found.append(f"t{i}")
    return _written(op, lines, f"return {', '.join(found)}", call, words)


def _written(op: Op, lines: list[str], result: str, call: str, words: dict[str, Any]) -> Rule:
    """The function with these lines; an error of Python numbers, which NumPy would not raise, is left to the rule itself."""
    text = "\n  ".join([f"def pull({call.partition('(')[2]}:\n try:", *lines, f"{result}\n except ArithmeticError:", f"return {call}"])
    exec(compile(text, f"{__file__}: {op.name}", "exec"), words)
    return words.pop("pull")


def write_rules(cls: type[Node], numbers: bool) -> tuple[bool | None, Rule, int | None]:
    """Set the pullback `by_numbers` or `by_tensors` of a class of nodes.

    It is a tuple: whether there is one parent (None if the rule may call a user's code), the pullback, which is called as `pull(node, g)` for one
    parent and else as `pull(node, g, parents)`, and `saves` of the class.
    """
    op, kind = cls.op, "numbers" if numbers else "tensors"
    single: bool | None = None if cls.outside else op.arity == 1 and not cls.broadcasts
    name = f"{'one' if single else 'all'}_{kind}"
    rule = WORDS[name]
    if not (cls.outside or cls.broadcasts and not numbers) and cls.vjp is op.vjp and (terms := _cotangents(op)) is not None:
        with contextlib.suppress(LookupError):
            rule = (_of_numbers if numbers else _of_tensors)(op, terms, f"{name}(node, g)" if single else f"{name}(node, g, parents)")
    if numbers and single and cls.vjp is op.vjp and (transpose := transpose_of_numbers(op)) is not None:
        @specialized
        def rule(node: Node, g: Any) -> Any:
            args: Any = node.args
            return transpose(numeric, g, args[0].shape, *args[1:])
    elif numbers and single and rule is WORDS[name] and cls.vjp is op.vjp and callable(partial := (getattr(op.vjp, "partials", None) or [None])[0]):
        narrows = bool(op.parameters)  # numbers may have made the derivative wider

        @specialized
        def rule(node: Node, g: Any) -> Any:
            c = g * partial(numeric, node.value, *node.args)  # type: ignore[misc]
            if narrows and c.dtype is not g.dtype and (c.dtype.kind != "c" or g.dtype.kind == "c"):  # an op may map complex numbers to real ones
                return numeric.astype(c, g.dtype)
            return c

    found = single, rule, cls.saves
    setattr(cls, f"by_{kind}", found)
    return found


def sum_of_tensors(a: Tensor, b: Tensor) -> Tensor:
    """a + b, of two cotangents of one node, which may be bundles of Tensors."""
    if type(a) is not Tensor or type(b) is not Tensor:
        return a + b
    x, z, p, q = a._value, b._value, a._node_slot, b._node_slot
    flags = (0 if p is None else p.flags & TRACKED) | (0 if q is None else q.flags & TRACKED)
    if flags is BARRED or not (type(x) is type(z) is float64 or type(x) is type(z) is ndarray and x.dtype is z.dtype is FLOAT64
                               and x.shape == z.shape):
        return a + b  # which regenerates the node of a stale view
    out, y = next(tensors), x + z
    out._value, out._node_slot, out._view = y, _make_sum((x, z), (p, q), y, flags) if flags else None, None
    return out


_make_sum = constructor(node_class(REGISTRY["add"], broadcasts=False))


def _called(node: Node, g: Any, parents: Any) -> Any:
    return node.vjp(numeric, g, node.value, node.args, parents)


def _traced(node: Node, g: Any, parents: Any) -> Any:
    return node.vjp(traced, g, *traced_args(node), parents)


WORDS: dict[str, Any] = {
    "all_numbers": _called, "one_numbers": lambda node, g: _called(node, g, node.parents)[0],
    "all_tensors": _traced, "one_tensors": lambda node, g: _traced(node, g, node.parents)[0],
    "float64": float64, "ndarray": ndarray, "FLOAT64": FLOAT64, "TRACKED": TRACKED, "BARRED": BARRED, "tensors": tensors,
    "sequence": sequence, "__name__": __name__}
