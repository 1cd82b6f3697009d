"""The stub files `symgrad/__init__.pyi` and `symgrad/engine/tensor.pyi` of the lifted functions, and the file of their docstrings.

`python -m tests.stubs` writes them; with `--check` it writes nothing and exits with 1 if they differ from the registry.
A lifted function has the registry's signature, with a type for each parameter name from the table `TYPES`.
"""

from __future__ import annotations

import ast
import builtins
import inspect
import re
import sys
import warnings
from collections.abc import Iterator
from inspect import Parameter, Signature
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

import symgrad
import symgrad.engine.tensor  # noqa: F401  the module, which the package hides behind the function of that name
from symgrad.dtypes.dtype import DType
from symgrad.engine.documentation import MARK, STORE, documentation
from symgrad.engine.method_table import Later
from symgrad.engine.tensor import Tensor
from symgrad.engine.traced import FUNCTIONS, NUMPY_WORDS, public_signature
from symgrad.graph.op import Op

PACKAGE = Path(symgrad.__file__).parent
TYPES = {
    **dict.fromkeys(("input", "other", "exponent", "condition", "tensor", "mat1", "mat2", "vec", "vec2", "target", "values", "value", "mask",
                     "index"),
                    "TensorLike"),
    **dict.fromkeys(("min", "max"), "TensorLike | None"), "order": "Number",
    "tensors": "Sequence[TensorLike]", "operands": "TensorLike | Sequence[TensorLike]",
    **dict.fromkeys(("dim", "dim0", "dim1", "start_dim", "end_dim", "diagonal", "chunks"), "int"),
    **dict.fromkeys(("dims", "shape", "size", "source", "destination", "shifts", "split_size_or_sections"), "Integers"),
    **dict.fromkeys(("keepdim", "accumulate", "unbiased", "upper", "include_self"), "bool"),
    **dict.fromkeys(("alpha", "beta", "lambd", "threshold", "correction"), "Number"),
    "dtype": "DType | type", "p": "float | str", "equation": "str",
    "rounding_mode": "str", "reduction": "str", "reduce": "str", "indices": "Any", "memory_format": "Any",
    **dict.fromkeys(("tensor1", "tensor2", "end", "weight", "prepend", "append", "mat", "vec1", "batch1", "batch2", "a", "b", "real", "imag", "abs",
                     "A", "B", "L",
                     "angle", "src"), "TensorLike"),
    **dict.fromkeys(("k", "r", "n", "start", "length", "offset", "dim2", "dimension", "step", "output_size", "decimals"), "int"),
    **dict.fromkeys(("equal_nan", "with_replacement", "sparse_grad", "descending", "stable", "largest", "sorted"), "bool"),
    **dict.fromkeys(("rtol", "atol", "nan", "posinf", "neginf"), "float"), **dict.fromkeys(("sizes", "split_sizes"), "Sequence[int]"),
    **dict.fromkeys(("q", "y", "x", "phi", "m", "fweights", "aweights"), "TensorLike"), "spacing": "Any", "interpolation": "str", "edge_order": "int",
    **dict.fromkeys(("dx", "maxnorm", "eps"), "float"),
    "matrices": "Tensor", "rcond": "float", "N": "int | None", **dict.fromkeys(("tau", "LU_data", "LU_pivots"), "Tensor"),
    **dict.fromkeys(("some", "compute_uv", "increasing", "left", "transpose", "unitriangular", "pivot", "get_infos", "unpack_data", "unpack_pivots"),
                    "bool"),
    **dict.fromkeys(("repeats", "indices_or_sections"), "Integers | Tensor"), "indexing": "str",
}
PIECES = ("split", "chunk", "split_with_sizes", "unbind", "tensor_split", "hsplit", "vsplit", "dsplit", "meshgrid", "gradient")
RETURNS = {**dict.fromkeys(PIECES, "tuple[Tensor, ...]"), **dict.fromkeys(("std_mean", "var_mean", "aminmax"), "tuple[Tensor, Tensor]"),
           **dict.fromkeys(("sort", "topk", "kthvalue", "mode", "cummax", "cummin"), "Extreme"),
           **dict.fromkeys(("atleast_1d", "atleast_2d", "atleast_3d", "svd", "qr", "lu", "lu_unpack", "geqrf", "triangular_solve"), "Any")}
ONE_AXIS = {"argmax", "argmin", "softmax", "log_softmax"}  # in other ops an optional `dim` may also be a tuple
BY_DIM = {name: {"None": "Tensor", "int": "Extreme", "Tensor | np.ndarray | Sequence[int]": "Tensor"} for name in ("max", "min")}
ARITHMETIC = {f"__{side}{name}__" for side in ("", "r", "i")
              for name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul", "and", "or", "xor")}
COMPARISONS = {"__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__"}
SELF = Parameter("self", Parameter.POSITIONAL_OR_KEYWORD)

HEADER = '''"""{} Written by `python -m tests.stubs`; edit that, not this."""

import builtins
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, overload

import numpy as np

'''
TENSOR_HEADER = HEADER.format("A Tensor with every method of the registry.") + '''from symgrad.layouts.devices import device as Device
from symgrad.dtypes.dtype import DType
from symgrad.graph.node import Leaf, Node
from symgrad.graph.handles import Hook, RemovableHandle
from symgrad.compat.storage import TypedStorage, UntypedStorage

TensorLike = Tensor | np.ndarray | np.generic | int | float | complex | list[Any] | tuple[Any, ...]
Integers = int | Sequence[int]
Number = int | float | complex
new: Any
NOT_A_LEAF: str

class Extreme(NamedTuple):
    values: Tensor
    indices: Tensor
'''
PACKAGE_HEADER = HEADER.format("The public face, with every function of the registry.")


class _Verbatim(str):
    """A text that a signature prints verbatim."""

    __repr__ = str.__str__


def _definition(name: str, signature: Signature, hidden: set[str], doc: str = "") -> list[str]:
    """The lines of a `def`; a builtin type that has a namesake among its neighbours is written in full."""
    def annotated(kind: Any) -> Any:
        if kind is Signature.empty:
            return kind
        text = kind if isinstance(kind, str) else inspect.formatannotation(kind)
        return _Verbatim(re.sub(r"(?<![\w.'\"])(\w+)", lambda m: f"builtins.{m[1]}" if m[1] in hidden else m[1], text))

    parameters = [p.replace(annotation=annotated(p.annotation), default=p.default if isinstance(p.default, (int, float, str, type(None), type))
                            else _Verbatim("...")) for p in signature.parameters.values() if not p.name.startswith("_")]
    line = f"def {name}{Signature(parameters, return_annotation=annotated(signature.return_annotation))}:"
    return [line, f'    """{doc}"""'] if doc else [f"{line} ..."]


def _typed(op: Op, p: Parameter) -> Parameter:
    if p.name not in TYPES:
        raise LookupError(f"{op.name}: the parameter {p.name} has no type; add it to TYPES in tests/stubs.py")
    kind = TYPES[p.name] if p.name != "dim" or p.default is not None or op.name in ONE_AXIS else "Integers"
    return p.replace(annotation=f"{kind} | None" if p.default is None and kind != "Any" and not kind.endswith("None") else kind)


def _lifted(name: str, op: Op, hidden: set[str], method: bool = False) -> Iterator[str]:
    """The overloads of a lifted function: with torch's keywords, with NumPy's where they differ, and by the type of `dim`."""
    typed = [_typed(op, p) for p in public_signature(op).parameters.values()]
    if method:
        typed[0] = SELF
    renamed = {torch: numpy for numpy, torch in NUMPY_WORDS.items()}
    signatures = []
    for kind, result in BY_DIM.get(op.name, {"": RETURNS.get(op.name, "Tensor")}).items():
        form = [p.replace(annotation=kind, default=None if kind == "None" else p.empty) if kind and p.name == "dim" else p for p in typed]
        for parameters in (form, [p.replace(name=renamed.get(p.name, p.name)) for p in form]):
            signature = Signature(parameters, return_annotation=result)
            if signature not in signatures:
                signatures.append(signature)
    for signature in signatures:
        if len(signatures) > 1:
            yield "@overload"
        yield from _definition(name, signature, hidden, " ".join(op.docs.doc.partition("\n\n")[0].split()))


def _method(name: str, function: Any, hidden: set[str]) -> Iterator[str]:
    if name in COMPARISONS:
        yield f"def {name}(self, other: Any, /) -> Tensor: ...{'  # type: ignore[override]' if name in ('__eq__', '__ne__') else ''}"
    elif name in ARITHMETIC:
        yield f"def {name}(self, other: TensorLike, /) -> Tensor: ..."
    elif hasattr(function, "op"):
        yield from _lifted(name, function.op, hidden, method=True)
    else:
        signature = inspect.signature(function)
        parameters = [SELF, *list(signature.parameters.values())[1:]]
        kind = "Any" if signature.return_annotation is Signature.empty else signature.return_annotation
        yield from _definition(name, signature.replace(parameters=parameters, return_annotation=kind), hidden)


def _property(name: str, member: property, hidden: set[str]) -> Iterator[str]:
    kind = inspect.signature(member.fget).return_annotation  # type: ignore[arg-type]
    yield "@property"
    yield from _definition(name, Signature([SELF], return_annotation="Tensor" if kind is Signature.empty else kind), hidden)
    if member.fset is not None:
        yield f"@{name}.setter"
        value = list(inspect.signature(member.fset).parameters.values())[1]
        yield from _definition(name, Signature([SELF, value], return_annotation="None"), hidden)


def _class(cls: type) -> Iterator[str]:
    yield f"class {cls.__name__}{'(tuple[int, ...])' if issubclass(cls, tuple) else ''}:"
    hidden = set(vars(cls)) & set(vars(builtins))
    written = inspect.get_annotations(cls)
    slots = cls.__dict__.get("__slots__", ())
    for name in slots:
        if not name.startswith("__"):
            yield f"    {name}: {written.get(name, 'Any')}"
    for name, member in [(name, getattr(cls, name) if isinstance(member, Later) else member) for name, member in vars(cls).items()]:
        if isinstance(member, property):
            yield from ("    " + line for line in _property(name, member, hidden))
        elif name == "__hash__":
            yield "    def __hash__(self) -> builtins.int: ..."
        elif inspect.isfunction(member) and name != "__getattr__":  # it finds `_node` alone, and would let every other name through
            yield from ("    " + line for line in _method(name, member, hidden))


def _tensor_stub() -> str:
    module = sys.modules["symgrad.engine.tensor"]
    lines: list[str] = []
    for name, member in vars(module).items():
        if getattr(member, "__module__", None) != module.__name__ or name.startswith("_"):
            continue
        if inspect.isclass(member):
            lines += ["", *_class(member)]
        elif inspect.isfunction(member):
            lines += ["", *_definition(name, inspect.signature(member), set())]
    return TENSOR_HEADER + "\n".join(lines) + "\n"


def _has_def(function: FunctionType) -> bool:
    """Whether the function's module, other than the package itself, defines it by a `def` of that name, where a type checker finds it."""
    module = sys.modules[function.__module__]
    name = function.__name__
    return module is not symgrad and getattr(module, name, None) is function and inspect.unwrap(function).__code__.co_name == name


def _package_stub() -> str:
    for name in vars(symgrad)["__all__"]:
        getattr(symgrad, name)  # which lifts it
    later = set(" ".join(vars(symgrad)["_LATER"].values()).split())
    public = {name: member for name, member in sorted(vars(symgrad).items()) if not name.startswith("_") and name not in later}
    hidden = set(public) & set(vars(builtins))
    imports = ["from symgrad.dtypes.dtype import DType", "from symgrad.engine.tensor import Extreme, Integers, Number, TensorLike"]
    modules = [alias.name for node in ast.walk(ast.parse(inspect.getsource(symgrad))) if isinstance(node, ast.ImportFrom) and node.module == "symgrad"
               for alias in node.names]
    imports += [f"from symgrad import {name} as {name}" for name in vars(symgrad)["_LAZY"]]
    imports += [f"from symgrad.{module} import {name} as {name}" for module, names in vars(symgrad)["_LATER"].items() for name in names.split()]
    lines = ["", "__version__: str"]
    for name, member in public.items():
        home = getattr(member, "__module__", "")
        if isinstance(member, DType):
            lines.append(f"{name}: DType")
        elif isinstance(member, ModuleType):
            if name in modules:
                imports.append(f"from symgrad import {name} as {name}")
            elif getattr(member, "__file__", None) is None:  # of a table, as those of devices
                lines.append(f"{name}: Any")
        elif hasattr(member, "op"):
            lines += _lifted(name, member.op, hidden)
        elif inspect.isclass(member) and home.startswith("symgrad") or isinstance(member, FunctionType) and _has_def(member):
            imports.append(f"from {home} import {member.__name__} as {name}")
        elif inspect.isfunction(member):
            lines += _definition(name, inspect.signature(member), hidden)
    return PACKAGE_HEADER + "\n".join([*sorted(imports), *lines]) + "\n"


def _example_setup(op: Op, dtype: DType = symgrad.float64) -> tuple[str, list[str], dict[str, Any]]:
    """The example call of an op, the lines that create its tensors, and these tensors."""
    inside = not op.domain or 0.25 in op.domain[0] or 1.25 not in op.domain[0]
    texts = {"x": "[0.25, 0.5, 0.75]" if inside else "[1.25, 1.5, 1.75]", "a": "[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]"}
    usage = op.docs.usage or f"symgrad.{op.name}({', '.join('x' * (op.arity or 1))})"
    used = [f"{name} = symgrad.tensor({text})" for name, text in texts.items() if re.search(rf"\b{name}\b", usage)]
    space = {name: symgrad.tensor(ast.literal_eval(text)) for name, text in texts.items()}
    if dtype is not symgrad.float64:
        space = {name: x.ceil().to(dtype) for name, x in space.items()}
    return usage, used, {"symgrad": symgrad, **space}


def _example(op: Op) -> str:
    """The doctest lines of an op's example, with its output."""
    usage, used, space = _example_setup(op)
    shown = repr(eval(usage, space)).replace("\n\n", "\n<BLANKLINE>\n")
    return "\n".join([">>> import symgrad", *(f">>> {line}" for line in used), f">>> {usage}", shown])


def _outcome(op: Op, dtype: DType) -> str:
    """The dtype of an op's result, or the class of the error, for arguments of a dtype."""
    usage, _, space = _example_setup(op, dtype)
    usage = re.sub(r"symgrad\.(ones|zeros)\(([^()]*)\)", rf"symgrad.\1(\2, dtype=symgrad.{dtype.name})", usage)
    try:
        result = FUNCTIONS[op.name](*(space["x"],) * op.arity) if op.kind == "elementwise" and op.arity else eval(usage, space)
    except Exception as error:
        return "raises TypeError" if isinstance(error, TypeError) else f"raises {type(error).__name__}"
    return (result if isinstance(result, Tensor) else result[0]).dtype.name


def _dtypes(op: Op) -> str:
    """The dtypes of an op's results, as a sentence."""
    found = {dtype.name: _outcome(op, dtype) for dtype in (symgrad.float64, symgrad.float32, symgrad.complex128, symgrad.int64, symgrad.bool)}
    kept = [name for name, outcome in found.items() if outcome == name]
    if len(set(found.values())) == 1:
        return f"the result is {found['float64']} for every dtype."
    parts = [f"{_enumeration(kept)} {'is' if len(kept) == 1 else 'are'} kept"] if kept else []
    for outcome in dict.fromkeys(found.values()):
        names = [name for name, other in found.items() if other == outcome != name]
        if names:
            verb = "raise" + "s" * (len(names) == 1) + outcome.removeprefix("raises") if outcome.startswith("raises") else (
                f"give{'s' * (len(names) == 1)} {outcome}")
            parts.append(f"{_enumeration(names)} {verb}")
    return "every dtype is kept." if len(kept) == len(found) else "; ".join(parts) + "."


def _enumeration(names: list[str]) -> str:
    return " and ".join([", ".join(names[:-1]), names[-1]]) if len(names) > 1 else names[0]


def _docstrings() -> str:
    """The docstrings of all public ops, as `symgrad.engine.documentation` reads them."""
    ops = {function.op.name: function.op for function in FUNCTIONS.values()}  # type: ignore[attr-defined]
    with warnings.catch_warnings(action="ignore"):
        return "".join(f"{MARK}{name}\n{documentation(op, public_signature(op), _dtypes(op), _example(op))}\n" for name, op in ops.items())


def stub_files() -> dict[Path, str]:
    """The current text of each generated file, by path.

    >>> sorted(path.name for path in stub_files())
    ['__init__.pyi', 'documentation.txt', 'tensor.pyi']
    """
    return {PACKAGE / "__init__.pyi": _package_stub(), PACKAGE / "engine" / "tensor.pyi": _tensor_stub(), Path(STORE): _docstrings()}


def main(arguments: list[str]) -> int:
    """Write the stub files, or with `--check` report stale ones; returns the exit code."""
    stale = [path for path, text in stub_files().items() if not path.exists() or path.read_text(encoding="utf-8") != text]
    if arguments == ["--check"]:
        for path in stale:
            print(f"{path} is not what the registry gives; run python -m tests.stubs")
        return 1 if stale else 0
    if arguments:
        print("usage: python -m tests.stubs [--check]")
        return 2
    for path, text in stub_files().items():
        path.write_text(text, encoding="utf-8")
        print(f"wrote {path}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
