"""Programs over aliased tensors as data: a step, what it says in torch's words, and the interpreter that runs it on either library."""

from __future__ import annotations

import functools
import math
import warnings
from collections.abc import Iterable, KeysView
from dataclasses import dataclass
from typing import Any, NamedTuple

from tests.parity.step_hooks import functions

from .asked import flat, memory
from .step_hooks import node_hook, tensor_hook

SAVING = ["halved", "unpacked to a number", "not packed", "not unpacked", "written when packed"]  # that show which tensors an operation saves
HOOKS = "autograd.graph.saved_tensors_hooks"
MODES = {
    "no_grad": "no_grad()",
    "enable_grad": "enable_grad()",
    "grad off": "set_grad_enabled(False)",
    "grad on": "set_grad_enabled(True)",
    "inference_mode": "inference_mode()",
    "inference off": "inference_mode(False)",
    "anomaly": "autograd.detect_anomaly()",
    "anomaly with nan": "autograd.detect_anomaly(check_nan=False)",
    "cpu": "autograd.graph.save_on_cpu()",
    "saved": f"{HOOKS}(lambda t: t, lambda t: t)",
    "cloned": f"{HOOKS}(lambda t: t.detach().clone(), lambda t: t)",
    "halved": f"{HOOKS}(lambda t: t, lambda t: t * 0.5)",
    "unpacked to a number": f"{HOOKS}(lambda t: t, lambda t: 3.0)",
    "not packed": f"{HOOKS}(fails, lambda t: t)",
    "not unpacked": f"{HOOKS}(lambda t: t, fails)",
    "written when packed": f"{HOOKS}(lambda t: t.mul_(2), lambda t: t)",
}


class Ref(NamedTuple):
    """A tensor of the program, by name."""

    name: str


class Array(NamedTuple):
    """A constant tensor, written out: nested tuples of numbers (a gradient, an index or a mask)."""

    values: Any
    dtype: str | None = None


class Edge(NamedTuple):
    """The gradient edge of a tensor of the program."""

    name: str


class Type(NamedTuple):
    """A dtype."""

    name: str


@dataclass(frozen=True)
class Step:
    """One statement: `form` says how `word` is applied to `args`, `out` names what comes of it, `mode` names the modes around it."""

    form: str
    word: str
    args: tuple = ()
    out: tuple[str, ...] = ()
    options: tuple[tuple[str, Any], ...] = ()
    mode: str = ""

    def writes(self) -> bool:
        """Whether the step writes its first operand."""
        named = self.word.endswith("_") and self.word not in ("requires_grad_", "detach_")
        return self.form in ("assign", "augment") or self.form == "call" and named

    def needs(self) -> KeysView[str]:
        """The names the step reads, in order."""
        return dict.fromkeys(_names((*self.args, *(v for _, v in self.options)))).keys()


def watches(step: Step) -> set[str]:
    """The names of the tensors whose cotangents a step shows."""
    return {*step.needs()} if step.form in ("hook", "node", "several") or step.word == "retain_grad" else set()


def _names(value: Any) -> list[str]:
    if isinstance(value, (Ref, Edge)):
        return [value.name]
    if isinstance(value, (tuple, list)) and not isinstance(value, (Array, Type)):
        return [name for v in value for name in _names(v)]
    return []


# Of these, second derivatives pass by the result in torch and by the operands here, so that the cotangents of the result differ in a second pass.
SLOPED = {"tanh", "sigmoid", "div", "itruediv", "norm", "std", "logsumexp", "prod", "cumprod", "logcumsumexp"}
PASSES = ("backward", "grad", "second", "edge")
TURNED = ("t_", "transpose_", "unsqueeze_", "squeeze_", "swapaxes_")
SHAPES_KEPT = {"gather", "take_along_dim", "masked_select", "take", "cummax", "cummin", "index_add", "index_add_", "index_copy", "index_copy_"}
UNCOPIED = {"cpu", "saved", "halved"}  # the modes that save tensors themselves, and not copies
KEPT = {"max", "min", "amax", "amin", "aminmax"}  # of these the values are kept for the gradient of ties, where torch keeps indices
AUGMENTED = {"iadd": "+=", "isub": "-=", "imul": "*=", "itruediv": "/=", "ipow": "**="}


class World:
    """The tensors of a program in one library, and what its hooks were told."""

    def __init__(self, lib: Any, beside: World | None = None):
        self.lib, self.beside = lib, beside
        self.constant_first = False  # whether the last first derivative of a second one was constant
        self.tensors: dict[str, Any] = {}
        self.handles: dict[str, Any] = {}
        self.offsets: dict[str, int] = {}
        self.told: list[tuple[str, list]] = []
        self.variables: set[str] = set()  # the tensors that have been leaves that require grad
        self.recorded: dict[int, Any] = {}  # storages that a graph may have saved, by address, which none else can have while they are kept
        self.twice = False  # whether a gradient was recorded
        self.sloped: set[str] = set()  # the results of ops in SLOPED
        self.sloping: dict[int, Any] = {}  # the storages of these and of the operands
        self.watched: set[str] = set()  # the tensors whose cotangents are shown, by hooks or as retained gradients
        self.turned: set[str] = set()  # the tensors with hooks whose sizes were changed in place
        self.pieces: set[str] = set()  # the results of operations with several outputs
        self.several = False  # whether a hook of several tensors was registered
        self.reset = False  # whether a tensor that a graph may have saved has got other data, unseen by its version
        self.unguarded: dict[int, Any] = {}  # those whose writes a graph may not see

    @functools.cached_property
    def functions(self) -> dict[str, Any]:
        return functions(self.lib, self.told, self.beside is not None)

    def words(self) -> dict[str, Any]:
        """What statements call besides the library."""
        return {"second": self._second, "hooks_of_several": self._hooks_of_several, "remove": lambda name: self.handles[name].remove(),
                "fails": fails, "cloned": cloned, "nan": math.nan, "inf": math.inf,
                "hook": functools.partial(tensor_hook, self.told, self.handles), "node_hook": functools.partial(node_hook, self.told, self.handles)}

    def do(self, step: Step) -> tuple[type, str] | None:
        """Run one step; the type and message of what it raised."""
        if step.form == "set" and step.word == "data":
            t = self.tensors[step.args[0].name]
            self.reset |= t.requires_grad or memory(t) in self.recorded
        elif self.beside is None and step.writes():
            self.reset |= self.loose(self.tensors[step.args[0].name])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                result = self._apply(step)
            except Exception as e:
                return type(e), str(e)
        if self.beside is None:  # steps are drawn from this one
            self._follow(step, result)
        if step.out:
            results = result if isinstance(result, (tuple, list)) else (result,)
            if len(results) > 1 and step.form != "grad":
                self.pieces.update(step.out)
            for name, t in zip(step.out, results):
                if hasattr(t, "requires_grad"):
                    if not (t.is_floating_point() or t.is_complex()) and "inference" in step.mode:
                        continue  # integers are no inference tensors here
                    self.tensors[name] = t
                    self.offsets[name] = 0 if t.is_inference() else t._version if self._starts_anywhere(step) else self._inherited(step, t)
        if self.beside is None:
            touched = [(name, self.tensors[name]) for name in (*step.needs(), *step.out) if name in self.tensors]
            self.variables.update(name for name, t in touched if t.requires_grad and not t._is_view() and t.is_leaf)
        return None

    def _starts_anywhere(self, step: Step) -> bool:
        """Whether the first version of a result is torch's own affair: that of a gradient, a product, or what follows from inference tensors."""
        return step.word in ("grad", "matmul") or any(self.tensors[n].is_inference() for n in step.needs() if n in self.tensors)

    def _inherited(self, step: Step, t: Any) -> int:
        """The version of a gradient or a product starts anywhere, and what shares its memory shares that, but `.data`."""
        if step.word == "data":
            return 0
        held = [n for n in step.needs() if n in self.tensors]
        shared = [n for n in held if t.numel() and memory(self.tensors[n]) == memory(t)]
        same = [n for n, other in self.tensors.items() if other is t and n not in step.out]
        return next((self.offsets[n] for n in (*same, *shared, *(held if t._is_view() or step.word == "detach" else ()))), 0)

    def slopes(self, step: Step) -> set[str]:
        """The names of the results of a step, and of what has their memory, if its op is in SLOPED."""
        held = [self.tensors[n] for n in step.needs() if n in self.tensors]
        if step.word.rstrip("_") not in SLOPED:
            return set()
        return {*step.out} if step.out else {n for n, t in self.tensors.items() if memory(t) == memory(held[0])}

    def loose(self, t: Any) -> bool:
        """Whether writes to `t` may go unseen by graphs that saved its memory: then what is saved is a matter of each rule."""
        return memory(t) in self.recorded and (memory(t) in self.unguarded or self.twice and memory(t) in self.sloping)

    @staticmethod
    def _keep(storages: dict[int, Any], ts: Iterable[Any]) -> None:
        storages.update((memory(t), t.untyped_storage()) for t in ts)

    def _follow(self, step: Step, result: Any) -> None:
        held = [self.tensors[n] for n in step.needs() if n in self.tensors]
        results = [t for t in (result if isinstance(result, (tuple, list)) else [result]) if hasattr(t, "untyped_storage")]
        if step.word == "detach" and any(t.is_inference() for t in held):
            self._keep(self.recorded, held)  # torch writes to these outside of inference mode
            self._keep(self.unguarded, held)
        if step.word == "data":
            self._keep(self.unguarded, held)
        if any(t.requires_grad for t in held):
            held += results
            self._keep(self.recorded, held)
        if slopes := self.slopes(step):
            self.sloped |= slopes
            self._keep(self.sloping, (*held, *results))  # what second derivatives save
        self.watched |= watches(step)
        if step.word in TURNED and held[0]._backward_hooks:
            self.turned |= step.needs()
        self.twice |= bool(dict(step.options).get("create_graph"))
        # Of some operations torch saves an operand for its shape alone; what hooks have saved is not checked for writes.
        if step.word in KEPT | SHAPES_KEPT or UNCOPIED & set(step.mode.split(" + ")):
            self._keep(self.unguarded, held)
        apart = {t.dtype for t in (*held, *results)}
        converted = held if len(apart) > 1 else []  # the copy of another dtype is saved, and not the operand
        picked = [t for t in results if str(t.dtype) == "torch.int64"]  # torch saves indices, which are found again here
        self._keep(self.unguarded, (*converted, *picked))

    def _apply(self, step: Step) -> Any:
        """The value of the statement of a step."""
        if step.form == "delete":
            del self.tensors[step.args[0].name]
            return None
        names = {"torch": self.lib, **self.words(), **(self.functions if step.form == "custom" else {}), **self.tensors}
        exec(within(step.mode, statement(step) if step.form in STATEMENTS else f"result = {statement(step)}"), names)
        result = names.get("result")
        return result[0] if step.form == "grad" and not isinstance(step.args[1], list) else result

    def constant(self, other: World, step: Step) -> None:
        """Cut the gradients that are constant in the other library: here they have derivatives, which are zero."""
        if dict(step.options).get("create_graph"):
            for name, t in other.tensors.items():
                mine = self.tensors.get(name)
                if mine is None:
                    continue
                if name in step.out and not t.requires_grad and mine.requires_grad:
                    mine.detach_()
                if not t._is_view() and t.is_leaf and t.grad is not None and not t.grad.requires_grad and mine.grad is not None:
                    mine.grad.detach_()

    def _hooks_of_several(self, mode: str, name: str, *ts: Any) -> None:
        self.several = True

        def every(gs: Any) -> None:
            self.told.extend((f"{name} {i}", [] if g is None else flat(g)) for i, g in enumerate(gs))

        register = self.lib.autograd.graph.register_multi_grad_hook
        self.handles[name] = register(ts, every) if mode == "all" else register(ts, lambda g: None if g is None else every((g,)), mode="any")

    def _second(self, y: Any, x: Any) -> Any:
        """A second derivative; zero where the first is constant, on which the libraries agree to differ."""
        g = self.lib.autograd.grad((y * y).sum(), x, create_graph=True, materialize_grads=True)[0]
        self.constant_first = not g.requires_grad if self.beside is None else self.beside.constant_first
        h = None if self.constant_first else self.lib.autograd.grad((g * g).sum(), x, allow_unused=True)[0]
        return self.lib.zeros_like(x) if h is None else h.detach().clone()


def fails(*_: Any) -> Any:
    raise ValueError("no such tensor")


def cloned(found: Any) -> Any:
    """Gradients that nothing else writes."""
    return tuple(None if g is None else g.clone() for g in found)


def _listed(values: Any) -> Any:
    return [_listed(v) for v in values] if isinstance(values, tuple) else values


STATEMENTS = ("assign", "augment", "set")
MANY = ("unbind", "split", "chunk", "tensor_split")


def statement(step: Step) -> str:
    """The step in torch's words, without the names of its results and its modes."""
    words = [_written(a) for a in step.args]
    options = [f"{k}={_written(v)}" for k, v in step.options]
    form, word = step.form, step.word
    name = step.options[0][1] if form in ("hook", "node", "several") else ""
    optional = ["allow_unused=True"] * ("allow_unused" not in dict(step.options))
    return {
        "leaf": lambda: f"torch.tensor({_listed(step.args[0])}, dtype=torch.{word or 'float64'}"
                        f"{', requires_grad=True' if step.options[0][1] else ''})",
        "call": lambda: f"{words[0]}.{word}({', '.join(words[1:] + options)})",
        "function": lambda: f"torch.{word}({', '.join(words + options)})",
        "item": lambda: f"{words[0]}[{_index(step.args[1])}]",
        "assign": lambda: f"{words[0]}[{_index(step.args[1])}] = {words[2]}",
        "augment": lambda: f"{words[0]} {AUGMENTED[word]} {words[1]}",
        "attribute": lambda: f"{words[0]}.{word}",
        "set": lambda: f"{words[0]}.{word} = {words[1]}",
        "delete": lambda: f"del {words[0]}",
        "hook": lambda: f"hook({words[0]}, {word!r}, {name!r})",
        "node": lambda: f"node_hook({words[0]}.grad_fn, {word!r}, {name!r})",
        "several": lambda: f"hooks_of_several({word!r}, {name!r}, {', '.join(words)})",
        "custom": lambda: f"{word}.apply({', '.join(words)})",
        "edge": lambda: f"torch.autograd.backward({', '.join(words + options)})",
        "remove": lambda: f"remove({word!r})",
        "backward": lambda: f"{words[0]}{f'.{word}()' if word else ''}.backward({', '.join(words[1:] + options)})",
        "grad": lambda: f"cloned(torch.autograd.grad({words[0]}{'' if word or isinstance(step.args[0], list) else '.sum()'}, {words[1]}, "
                        f"{', '.join(optional + options)}))",
        "second": lambda: f"second({words[0]}, {words[1]})",
    }[form]()


def within(mode: str, text: str) -> str:
    return f"with {', '.join(f'torch.{MODES[each]}' for each in mode.split(' + '))}: {text}" if mode else text


def say(step: Step) -> str:
    names = ", ".join(step.out) + (", *_" if step.word in MANY else "")
    return within(step.mode, f"{names} = {statement(step)}" if step.out else statement(step))


def _written(value: Any) -> str:
    if isinstance(value, Ref):
        return value.name
    if isinstance(value, Array):
        return f"torch.tensor({_listed(value.values)}{f', dtype=torch.{value.dtype}' if value.dtype else ''})"
    if isinstance(value, Edge):
        return f"torch.autograd.graph.get_gradient_edge({value.name})"
    if isinstance(value, Type):
        return f"torch.{value.name}"
    if isinstance(value, list):
        return f"[{', '.join(_written(v) for v in value)}]"
    if isinstance(value, tuple):
        return f"({', '.join(_written(v) for v in value)}{',' * (len(value) == 1)})"
    return repr(value)


def _index(index: Any) -> str:
    if isinstance(index, tuple) and not isinstance(index, Array):
        return ", ".join(_index(i) for i in index) or "()"
    if isinstance(index, slice):
        return ":".join("" if part is None else str(part) for part in ((index.start, index.stop) if index.step is None else
                                                                      (index.start, index.stop, index.step)))
    return "..." if index is Ellipsis else _written(index)
