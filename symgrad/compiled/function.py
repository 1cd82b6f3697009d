"""`symgrad.compile`: a function, and its derivatives, as programs; results in a graph have one node, whose pullback is a program, too."""

from __future__ import annotations

import copy
import functools
import pickle
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from symgrad.carriers.duck import DuckArray
from symgrad.compiled.recording import Specializer, call_tree, substituted
from symgrad.compiled.variants import Variant
from symgrad.engine.tensor import Tensor, wrap
from symgrad.func.calling import own_name
from symgrad.func.evaluation import recording
from symgrad.func.hessians import SparseProducts, hessian, hvp, jacobian
from symgrad.func.rules import Rule, Some, Tensors, attach_node, check_unwritten, close_inputs, fresh_input, is_tracked, pull_back, rule_op
from symgrad.func.transforms import grad, grad_and_value, jvp
from symgrad.graph.modes import thread
from symgrad.graph.node import next_sequence
from symgrad.program.backends import BACKENDS
from symgrad.program.program import Program
from symgrad.trees import flatten


class CompiledCall(Rule):
    """The rule of one call: the function runs again where its graph is needed, and the pullback of numbers is a program."""

    def __init__(self, recorder: Specializer, variant: Variant, form: Any, leaves: Sequence[Any], places: Sequence[int], captured: Sequence[Tensor],
                 outputs: Sequence[int]):
        self.recorder, self.variant, self.form, self.places, self.outputs = recorder, variant, form, places, outputs
        # where the function reads the captured tensors that are differentiated, and the others
        tracked = [is_tracked(t) for t in captured]
        self.tensors = [t for t, there in zip(captured, tracked) if there]
        fixed = [t for t, there in zip(captured, tracked) if not there]
        self.paths = tuple([i for i, there in zip(variant.used, tracked) if there] + [i for i, there in zip(variant.used, tracked) if not there])
        self.others = tuple([x for i, x in enumerate(leaves) if i not in places] + fixed)
        self.values = tuple([leaves[i]._value for i in places] + [t._value for t in self.tensors])
        self.since = next_sequence()

    def evaluate(self, tensors: Tensors, others: Sequence[Any] | None = None) -> Tensors:
        self._check_unchanged()
        rest, given = iter(self.others if others is None else others), dict(zip(self.places, tensors))
        leaves = [given[i] if i in given else next(rest) for i in range(self.form.count)]
        now = [self.variant.captures.tensors[i]() for i in self.paths]  # other tensors than in the call, if a variable got another one
        if len(set(map(id, now))) < len(now):
            raise self._changed("tensor")
        with substituted(now, [*tensors[len(self.places):], *rest]):
            found = flatten(call_tree(self.recorder.function, self.form.unflatten(leaves)))[0]
        return [found[i] for i in self.outputs]

    def _check_unchanged(self) -> None:
        """Raise an error if the function, which runs again for its graph, would read other values than in the call."""
        if thread.modes.program is None:
            if (name := self.variant.captures.changed()) is not None:
                raise self._changed(name)
            check_unwritten(self.others, self.since)

    def _changed(self, name: str) -> RuntimeError:
        return RuntimeError(f"{self.recorder.label}: the captured value {name} was changed between the call of the compiled function and its "
                            f"derivative. Compute the derivative first, or pass the value as an argument")

    def pull(self, tensors: Tensors, others: Sequence[Any], cotangents: Some, by: tuple[int, ...]) -> Some:
        """The cotangents of some tensors, by the function's graph."""
        places = [fresh_input(t) for t in tensors]
        with recording(True):
            ys = self.evaluate(places, others)
        found = pull_back(ys, [places[i] for i in by], cotangents)
        close_inputs(places)
        return found

    def pullback(self, tensors: Tensors, outputs: Tensors, cotangents: Some, needs: Sequence[Any]) -> Some:
        by = tuple([i for i, need in enumerate(needs) if need is not None])
        numbers = not thread.modes.grad and not any([isinstance(t._value, DuckArray) for t in (*tensors, *cotangents) if t is not None])
        if numbers:
            self._check_unchanged()
            there = tuple([c is not None for c in cotangents])
            found = self._pull_program(by, there).call((*tensors, *self.others, *[c for c in cotangents if c is not None]), {})[0]
        else:
            found = self.pull(tensors, self.others, cotangents, by)
        known = dict(zip(by, found))
        return [known.get(i) for i in range(len(needs))]

    def _pull_program(self, by: tuple[int, ...], there: tuple[bool, ...]) -> Specializer:
        """The programs of a pullback by some tensors, from the cotangents that are there; all arguments are leaves, for which a call is fastest."""
        key = self.form, tuple(self.places), tuple(self.outputs), self.paths, len(self.tensors), id(self.variant), by, there
        known = self.recorder.pullbacks
        if key not in known:
            bare, first, last = copy.copy(self), len(self.values), len(self.values) + len(self.others)
            bare.others, bare.tensors, bare.values = (), [], ()  # without the values of this call

            def pull(*leaves: Any) -> tuple:
                cotangents = iter(leaves[last:])
                return tuple(bare.pull(leaves[:first], leaves[first:last], [next(cotangents) if c else None for c in there], by))

            known[key] = Specializer(pull, self.recorder.subject, f"pullback of {self.recorder.name}", self.recorder.backend,
                                  self.recorder.max_programs)
        return known[key]


_op = rule_op("Compiled")


def differentiable(recorder: Specializer, variant: Variant, leaves: Sequence[Any], form: Any, result: Any) -> Any:
    """The result of a call, with a node if an argument or a captured tensor requires a gradient."""
    if not thread.modes.grad:
        return result
    places = [i for i, x in enumerate(leaves) if isinstance(x, Tensor) and x._node is not None and is_tracked(x)]
    captured = [variant.captures.tensors[i]() for i in variant.used]
    if not places and not any([t._node_slot is not None and is_tracked(t) for t in captured]):
        return result
    found, shape = flatten(result)
    on = [i for i, y in enumerate(found) if isinstance(y, Tensor) and y._value.dtype.kind in "fcV"]
    if not on:
        return result
    rule = CompiledCall(recorder, variant, form, leaves, places, captured, on)
    outputs = attach_node(_op, rule, [leaves[i] for i in places] + rule.tensors, [found[i] for i in on])
    for i, y in zip(on, outputs):
        found[i] = y
    return shape.unflatten(found)


DERIVATIVES = ("value", "gradient", "hessian", "hvp", "jvp", "jacobian")


class CompiledFunction:
    """A function that runs as recorded programs, with its compiled derivatives as methods; made by `symgrad.compile`."""

    def __init__(self, function: Callable[..., Any], derivatives: Sequence[str], argnums: Any, structure: Any, backend: str, max_programs: int):
        functools.update_wrapper(self, function, updated=())
        self.function = function
        self._settings = tuple(derivatives), argnums, structure, backend, max_programs
        self._derivatives = frozenset(derivatives)
        of: dict[str, Callable[..., Any]] = {
            "value": function, "gradient": grad(function, argnums), "value_and_gradient": _swapped(grad_and_value(function, argnums)),
            "hessian": hessian(function, argnums, structure=structure), "jacobian": jacobian(function, argnums),
            "hvp": functools.partial(hvp, function), "jvp": functools.partial(jvp, function),
        }
        self._recorders = {name: Specializer(each, function, name, backend, max_programs) for name, each in of.items()}

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._call("value", args, kwargs)

    def _call(self, name: str, args: tuple, kwargs: dict[str, Any]) -> Any:
        recorder = self._recorders[name]
        result, variant, leaves, form = recorder.call(args, kwargs)
        return result if variant is None else differentiable(recorder, variant, leaves, form, result)

    def gradient(self, *args: Any, **kwargs: Any) -> Any:
        """The gradient ∂f/∂x, as `func.grad` gives it."""
        return self._derivative("gradient", args, kwargs)

    def value_and_gradient(self, *args: Any, **kwargs: Any) -> tuple[Any, Any]:
        """The value and the gradient, from one program."""
        return self._derivative("value_and_gradient", args, kwargs)

    def hessian(self, *args: Any, **kwargs: Any) -> Any:
        """The Hessian ∂²f/∂x², as `func.hessian` gives it."""
        found = self._derivative("hessian", args, kwargs)
        return found.recover() if isinstance(found, SparseProducts) else found

    def hvp(self, primals: Any, vectors: Any) -> Any:
        """The product of the Hessian with a vector, as `func.hvp` gives it."""
        return self._derivative("hvp", (primals, vectors), {})

    def jvp(self, primals: tuple[Any, ...], tangents: tuple[Any, ...]) -> tuple[Any, Any]:
        """The value and its derivative along tangents, as `func.jvp` gives them."""
        return self._derivative("jvp", (primals, tangents), {})

    def jacobian(self, *args: Any, **kwargs: Any) -> Any:
        """The Jacobian ∂f/∂x, as `func.jacobian` gives it."""
        return self._derivative("jacobian", args, kwargs)

    def prepare(self, shapes: Any) -> None:
        """Record the function and its derivatives for float64 arguments of these shapes: one shape, or a tuple with the shape of each argument.

        Raises TypeError for what is no shape.
        """
        args = tuple([_argument_of(shape) for shape in ([shapes] if _is_shape(shapes) and len(shapes) else shapes)])
        whole = args if len(args) > 1 else args[0]
        of = {"hvp": (whole, whole), "jvp": (args, args)}
        for name, recorder in self._recorders.items():
            if name in self._derivatives or name == "value_and_gradient" and "gradient" in self._derivatives:
                recorder.prepare(of.get(name, args))

    def _derivative(self, name: str, args: tuple, kwargs: dict[str, Any]) -> Any:
        needed = "gradient" if name == "value_and_gradient" else name
        if needed not in self._derivatives:
            raise RuntimeError(f"{self._name()}.{name}: the function was compiled for {', '.join(sorted(self._derivatives))}; name {needed!r} in "
                               f"derivatives=... of symgrad.compile")
        return self._call(name, args, kwargs)

    def _name(self) -> str:
        return getattr(self.function, "__name__", type(self.function).__name__)

    @property
    def report(self) -> CompilationReport:
        """The programs that were recorded, and the reasons for calls that ran without one."""
        return CompilationReport(self._name(), [r for each in self._recorders.values() for r in (each, *each.pullbacks.values())])

    @property
    def source(self) -> str:
        """The source of the program that was recorded last for the function's value, or else for a derivative; empty before the first call."""
        found = [v for r in self._recorders.values() for v in r.variants[-1:]]
        return found[0].running.source if found else ""

    def program(self, derivative: str = "value") -> Program:
        """The program that was recorded last for the value, or for a derivative such as "gradient".

        Its inputs are the tensors, arrays and floats among the arguments, then the captured tensors that it reads; it is valid for arguments of
        the same shapes that take the same branches.

        Raises ValueError for an unknown derivative, and RuntimeError before the first call.

        >>> import symgrad
        >>> f = symgrad.compile(lambda x: x.sin() * 2.0)
        >>> f(symgrad.ones(3))
        tensor([1.6829, 1.6829, 1.6829])
        >>> print(f.program())
        %0 = input  # float64[3]
        %1 = constant 2.0  # float64[]
        %2 = sin(%0)  # float64[3]
        %3 = mul(%2, %1)  # float64[3]
        return %3
        """
        if derivative not in self._recorders:
            raise ValueError(f"{self._name()}.program: {derivative!r} is not one of {', '.join(self._recorders)}")
        recorder = self._recorders[derivative]
        if not recorder.variants:
            remedy = f"call {self._name()}{'' if derivative == 'value' else '.' + derivative}(...) {recorder.when}"
            raise RuntimeError(f"{self._name()}.program: nothing was recorded for {derivative!r}: {'; '.join(recorder.reasons.values()) or remedy}")
        return recorder.variants[-1].program

    def __reduce__(self) -> Any:
        if name := own_name(self):
            return name
        try:
            pickle.dumps(self.function)
        except Exception:  # such as a lambda, of which the recorded programs alone are kept
            return _restored, (NoFunction(self._name()), self._settings, {name: r.saved() for name, r in self._recorders.items()})
        return _restored, (self.function, self._settings, {})

    def __repr__(self) -> str:
        return f"<compiled {self._name()}: {sum(len(r.variants) for r in self._recorders.values())} programs>"

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else functools.partial(self, instance)


def _is_shape(x: Any) -> bool:
    return isinstance(x, (tuple, list)) and all([isinstance(n, int) and not isinstance(n, bool) for n in x])


def _argument_of(shape: Any) -> Tensor:
    """A tensor of a shape that takes the memory of one number."""
    if not _is_shape(shape):
        raise TypeError(f"compile: shapes must be a tuple with the shape of each argument, such as ((3,), ()); {shape!r} is no shape")
    return wrap(np.broadcast_to(np.zeros(()), tuple(shape)) if shape else np.float64(0))


def _swapped(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *args, **kwargs: tuple(reversed(function(*args, **kwargs)))


class NoFunction:
    """What stands for a function that could not be pickled: its programs are there, and nothing else."""

    def __init__(self, name: str):
        self.__name__ = self.__qualname__ = name

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError(f"{self.__name__}: the function itself could not be pickled, and no program was recorded for these arguments; call it "
                           f"with arguments of these shapes before it is pickled, or define it in a module")


def _restored(function: Any, settings: tuple, saved: dict[str, Any]) -> CompiledFunction:
    out = CompiledFunction(function, *settings)
    for name, programs in saved.items():
        out._recorders[name].restore(programs)
    return out


class CompilationReport:
    """What a compiled function has recorded; `str()` of it is a table."""

    def __init__(self, name: str, recorders: Sequence[Specializer]):
        self.name = name
        self.programs = [_row(r, v) for r in recorders for v in r.variants]
        self.uncompiled = [{"of": r.name, "reason": reason} for r in recorders for reason in r.reasons.values()]

    def __str__(self) -> str:
        lines = [f"{self.name}: {len(self.programs)} programs"]
        lines += ["  " + ", ".join(f"{key} {value}" for key, value in row.items() if value != "") for row in self.programs]
        lines += [f"  {row['of']} runs uncompiled: {row['reason']}" for row in self.uncompiled]
        return "\n".join(lines)

    __repr__ = __str__


def _row(recorder: Specializer, variant: Variant) -> dict[str, Any]:
    running = variant.running
    return {"of": recorder.name, "backend": running.backend, "steps before": variant.recorded, "steps": len(running.program.steps),
            "constants": len(running.program.constants), "values read": sum([x is not None for x in variant.reads]),
            "buffers": running.buffers, "bytes": running.nbytes,
            "set-up ms": round(1e3 * variant.seconds, 1), "runs": variant.runs, "recorded again": variant.why,
            "note": running.note or "numbers leave the graph: calls that are differentiated by them run uncompiled" * bool(variant.left)}


def compile(function: Callable[..., Any] | None = None, *, derivatives: Sequence[str] = DERIVATIVES, argnums: Any = 0, structure: Any = None,
            backend: str = "auto", shapes: Any = None, max_programs: int = 8) -> Any:
    """The function as a program of fixed shapes, which runs without the overhead of Python and of the graph.

    The first call with arguments of certain shapes and dtypes records the function, and its derivatives when they are first asked for, as a list
    of steps without control flow; later calls run it. Where the function reads a value, as `if x.sum() > 0` does, the program is valid
    for the values that were read, and others have another program, at most `max_programs` for one set of shapes. Captured tensors are read again in
    each run; other captured values, and objects among the arguments, are compared by their contents. What cannot be recorded, and a function that
    changes what it captures, runs as before, once in each call; `report` says what and why. A function whose code has signs of such changes, such as
    `print` or `self.count += 1`, is recorded in a call after one without them. The result takes part in other transforms: it is differentiable to
    any order, and may be batched.

    `derivatives` are those that may be asked for, by the arguments `argnums`; `structure` is as in `func.hessian`. `backend` is "numpy"
    (generated Python source), "c" (compiled by the C compiler that is found), "interpreter", or "auto". With `shapes`, a tuple with the shape of
    each argument, everything is recorded at once, for float64.

    Raises ValueError for unknown derivatives and back ends. The result raises Unrecordable if the function reads a value whose changes cannot be
    noticed (an iterator, an object of a C library), a clock, a file, or random numbers of another library.

    >>> import symgrad
    >>> energy = symgrad.compile(lambda x: (x.sin() ** 2).sum())
    >>> x = symgrad.tensor([0.0, 1.0])
    >>> energy(x), energy.gradient(x)
    (tensor(0.7081), tensor([0.0000, 0.9093]))
    >>> energy.hessian(x)
    tensor([[ 2.0000,  0.0000],
            [ 0.0000, -0.8323]])
    """
    settings = {"derivatives": derivatives, "argnums": argnums, "structure": structure, "backend": backend, "shapes": shapes,
                "max_programs": max_programs}
    if function is None:
        return functools.partial(compile, **settings)
    if not callable(function):
        raise TypeError(f"compile: expected a function, not {type(function).__name__}")
    derivatives = (derivatives,) if isinstance(derivatives, str) else tuple(derivatives)
    unknown = [name for name in derivatives if name not in DERIVATIVES]
    if unknown:
        raise ValueError(f"compile: derivatives={unknown} are not known; they are among {', '.join(DERIVATIVES)}")
    if backend not in BACKENDS:
        raise ValueError(f"compile: backend={backend!r} is not known; it is one of {', '.join(BACKENDS)}")
    if isinstance(function, CompiledFunction):
        function = function.function
    out = CompiledFunction(function, derivatives, argnums, structure, backend, max_programs)
    if shapes is not None:
        out.prepare(shapes)
    return out
