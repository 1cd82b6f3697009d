"""`symgrad.compile`: a function, and its derivatives, as programs."""

from __future__ import annotations

import functools
import pickle
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from symgrad.compiled.differentiation import differentiable
from symgrad.compiled.recording import Specializer
from symgrad.compiled.variants import Variant
from symgrad.engine.tensor import Tensor, wrap
from symgrad.func.hessians import SparseProducts, hessian, hvp
from symgrad.func.jacobians import jacobian
from symgrad.func.transformed import own_name
from symgrad.func.transforms import grad, grad_and_value, jvp
from symgrad.program.backends import BACKENDS
from symgrad.program.program import Program

__all__ = ["CompiledFunction", "compile"]

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


