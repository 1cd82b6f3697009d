"""Source code of functions: `to_python`, `to_torch`, `to_jax` and `to_c`.

A formula becomes a program of ops, in which every subexpression is computed once; a value that is used more than once, or is long, gets a
line of its own. No text of a user becomes part of the source: names are made into identifiers.
"""

from __future__ import annotations

import keyword
import re
from collections.abc import Sequence
from typing import Any

from symgrad.algebra.values import Unknown
from symgrad.codegen.arrays import ArraySource
from symgrad.codegen.equations import EquationResult, Equations, equations_of
from symgrad.codegen.languages import C, Jax, NumPy, SourcePrinter, Torch
from symgrad.codegen.printers import argument_names, recorded
from symgrad.codegen.texts import Text
from symgrad.symbolic.parameters import identifiers
from symgrad.symbolic.programs import Writer, places_of

REMEDY = "symgrad.compile runs it, and to_torch and to_jax have sources of all special functions"
RESERVED = C.reserved_words | frozenset("np jnp jax scipy torch math main".split())
OUTPUTS = frozenset("value gradient hessian out".split())  # the arguments that a C function writes to
FUNCTIONS = frozenset(re.findall(r"[a-z]\w+", " ".join(C.ops.values())))  # names of C's header that would collide with variables


def _source_of(found: Equations, language: type[SourcePrinter], derivatives: int) -> tuple[SourcePrinter, list[tuple[EquationResult, list[int]]]]:
    """The program of equations as source, and the places of the results in it.

    Derivatives are kept as they were computed: merged into one expression, SymPy would rewrite them into forms that overflow.
    """
    flat = None if derivatives else found.flat
    writer = Writer(places_of(found.parameters), language.ops.__contains__)
    try:
        for symbol, e in found.equations if flat is None else ():
            writer.let(symbol, e)
        results = [(result, [writer.add(e) for e in result.elements]) for result in found.valid(found.results if flat is None else flat)]
    except Unknown as error:
        if "cannot be written here" not in str(error):
            raise
        raise Unknown(f"{error}: it has no source in {(language.__doc__ or '').strip('.')}; {REMEDY}") from None
    writer.program.outputs = [i for _, places in results for i in places]
    return language(writer.program, _names(found), [p.least for p in found.parameters]), results


def _names(found: Equations) -> list[str]:
    """The parameters' names, changed where they are reserved in a language."""
    taken = RESERVED | FUNCTIONS | OUTPUTS
    return identifiers([p.name + "_" if p.name in taken or p.name.startswith(("_", "symgrad_")) else p.name for p in found.parameters])


def _function_name(name: str | None, found: Equations | None = None) -> str:
    if name is None and found is not None:
        return found.name if found.name.isidentifier() and not keyword.iskeyword(found.name) and found.name not in RESERVED | FUNCTIONS else "f"
    taken = isinstance(name, str) and (name in RESERVED | FUNCTIONS or keyword.iskeyword(name))
    if taken or not isinstance(name, str) or not name.isidentifier() or not name.isascii():
        raise ValueError(f"a function is named by an identifier such as 'loss', not {name!r}")
    return name


def _literal(tree: Any) -> str:
    if type(tree) is dict and all(type(key) in (str, int) for key in tree):
        parts: Any = tree.values()
    elif type(tree) in (tuple, list):
        parts = tree
    elif tree is None or isinstance(tree, Text):
        parts = ()
    else:
        raise TypeError(f"the function returns a {type(tree).__name__}; source is written for tensors, tuples, lists and dicts of them")
    for part in parts:
        _literal(part)
    return repr(tree)


RETURNS = ("", "The value, and the gradient as a tuple by argument.", "The value, the gradient and the Hessian, as tuples by argument.")


def _python(language: type[SourcePrinter], fn: Any, names: Any, name: str | None, shapes: Sequence[Any], symbols: Any, at: Any, domain: Any,
            derivatives: int) -> str:
    program = recorded(fn, names, shapes, symbols, at, domain, derivatives)
    printer: SourcePrinter | ArraySource
    if program is None:
        found = equations_of(fn, shapes, symbols, at, domain, derivatives, stable=True)
        source, results = _source_of(found, language, derivatives)
        doc = [f'"""{RETURNS[derivatives]}"""'] * (derivatives > 0)
        returned = _literal(found.form.unflatten([Text(source.result(result, places)) for result, places in results]))
        printer, title = source, _function_name(name, found)
    else:
        printer = arrays = ArraySource(language, program, argument_names(program, names, RESERVED | FUNCTIONS))
        doc = []
        returned = arrays.outputs[0] if len(arrays.outputs) == 1 else _literal(tuple(arrays.outputs))
        title = _function_name(name or "f")
    code = "\n".join(f"    {line}" for line in (*doc, *printer.lines, f"return {returned}"))
    text = f"{printer.called(code)}\n\ndef {title}({', '.join(printer.names)}):\n{code}\n"
    header = language.header
    for line, name in (("import math\n\n", "math"), ("import jax\n", "jax"), ("import scipy.special\n", "scipy"),
                       ("import jax.scipy.special\n", r"jax\.scipy")):
        header = header if re.search(rf"\b{name}\.", text) else header.replace(line, "")
    return header + text


def to_python(fn: Any, *shapes: Any, symbols: Any = None, at: Any = None, domain: Any = None, derivatives: int = 0, name: str | None = None,
              names: Sequence[str] | None = None) -> str:
    """The source of a NumPy function that computes a function or a SymPy formula.

    `fn`, `shapes`, `at` and `domain` are as in `to_sympy`; `symbols` are the arguments for a formula, as in `from_sympy`. With `derivatives`
    1 the source gives the value and the gradient, with 2 the Hessian, too: tuples by argument. Common subexpressions are assigned once, and
    stable forms are used. Names are made into identifiers; the source contains no text of the user.

    `fn` may also be a program that `symgrad.compile` has recorded, or a compiled function, for its value: the source is then a function of arrays,
    with one line per step. Its arguments are the program's inputs, called x0, x1, and so on, or by `names`.

    Raises what `to_sympy` and `from_sympy` raise, ValueError for derivatives of a value that is no single number and for unsuitable names,
    RuntimeError for a compiled function that was not called yet, and TypeError for a word of a program that cannot be written.

    >>> import sympy
    >>> x, y = sympy.symbols("x y")
    >>> print(to_python(y * sympy.sin(x) + sympy.exp(sympy.sin(x)), name="energy"))
    import numpy as np
    <BLANKLINE>
    <BLANKLINE>
    def energy(x, y):
        v1 = np.sin(x)
        return y * v1 + np.exp(v1)
    <BLANKLINE>
    """
    return _python(NumPy, fn, names, name, shapes, symbols, at, domain, derivatives)


def to_torch(fn: Any, *shapes: Any, symbols: Any = None, at: Any = None, domain: Any = None, derivatives: int = 0, name: str | None = None,
             names: Sequence[str] | None = None) -> str:
    """The source of a PyTorch function of tensors, as `to_python` writes it for NumPy; torch need not be installed.

    >>> print(to_torch(lambda x: x.sigmoid() * x.cos(), name="gated"))
    import torch
    <BLANKLINE>
    <BLANKLINE>
    def gated(x):
        return torch.cos(x) * torch.sigmoid(x)
    <BLANKLINE>
    """
    return _python(Torch, fn, names, name, shapes, symbols, at, domain, derivatives)


def to_jax(fn: Any, *shapes: Any, symbols: Any = None, at: Any = None, domain: Any = None, derivatives: int = 0, name: str | None = None,
           names: Sequence[str] | None = None) -> str:
    """The source of a JAX function of arrays, as `to_python` writes it for NumPy; JAX need not be installed.

    >>> print(to_jax(lambda x: x.exp() / 3, name="third"))
    import jax.numpy as jnp
    <BLANKLINE>
    <BLANKLINE>
    def third(x):
        return jnp.exp(x) / 3
    <BLANKLINE>
    """
    return _python(Jax, fn, names, name, shapes, symbols, at, domain, derivatives)


def to_c(fn: Any, *shapes: Any, symbols: Any = None, at: Any = None, domain: Any = None, derivatives: int = 0, name: str | None = None) -> str:
    """The source of a C99 function of doubles, as `to_python` writes it for NumPy.

    A number is returned; arrays are `const double *`, row by row. With `derivatives`, and for results that are no single number, the function
    is void and writes to `double *value`, `double *gradient` by all numbers in order, and `double *hessian`, row by row; or to `double *out`.

    >>> print(to_c(lambda x, w: x.exp() * w[0] / 3, (), 2, name="f"))
    #include <math.h>
    <BLANKLINE>
    double f(double x, const double *w)
    {
        return w[0] * exp(x) / 3.0;
    }
    <BLANKLINE>
    """
    if recorded(fn, None, shapes, symbols, at, domain, derivatives) is not None:
        raise TypeError("to_c writes formulas of numbers; the text of a program is the source of symgrad.compile(f, backend='c')")
    found = equations_of(fn, shapes, symbols, at, domain, derivatives, stable=True)
    printer, results = _source_of(found, C, derivatives)
    arguments = [("const double *" if p.shape else "double ") + n for p, n in zip(found.parameters, printer.names)]
    body, kind = list(printer.lines), "void"
    if derivatives:
        for order, part in enumerate(_places_by_order(results, len(printer.names), derivatives)):
            target = ("value", "gradient", "hessian")[order]
            arguments.append(f"double *{target}")
            body += [f"{target}[{k}] = {printer.texts[i]};" for k, i in enumerate(part)]
    elif len(results) == 1 and not results[0][0].shape:
        kind = "double"
        body.append(f"return {printer.texts[results[0][1][0]]};")
    else:
        arguments.append("double *out")
        body += [f"out[{k}] = {printer.texts[i]};" for k, i in enumerate(printer.program.outputs)]
    code = "\n".join("    " + line for line in body)
    return f"{C.header}{printer.called(code)}\n{kind} {_function_name(name, found)}({', '.join(arguments) or 'void'})\n{{\n{code}\n}}\n"


def _places_by_order(results: Sequence[tuple[EquationResult, list[int]]], count: int, derivatives: int) -> list[list[int]]:
    """The places of the value, of the whole gradient, and of the whole Hessian row by row."""
    out = [results[0][1], [i for _, places in results[1:count + 1] for i in places]]
    if derivatives == 2:
        sizes = [len(places) for _, places in results[1:count + 1]]
        out.append([i for k, height in enumerate(sizes) for r in range(height)
                    for (_, places), n in zip(results[(k + 1) * count + 1:], sizes) for i in places[r * n:(r + 1) * n]])
    return out
