"""Formulas as LaTeX: `to_latex`, through SymPy's printer; recorded programs as LaTeX equations and as graphs, with one line per step."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import count
from typing import Any

import numpy as np
import sympy

from symgrad.codegen.equations import EquationResult, Equations, equations_of
from symgrad.codegen.texts import Text
from symgrad.compiled.function import CompiledFunction
from symgrad.program.program import LISTS, Program, Step, arguments
from symgrad.trees import LEAF

KNOWN = frozenset("sin cos tan sinh cosh tanh log exp".split())  # LaTeX's own functions
NOTATION = {
    "add": "{0} + {1}", "sub": "{0} - {1}", "neg": "-{0}", "div": r"\frac{{{0}}}{{{1}}}", "square": "{0}^{{2}}", "pow": "{0}^{{{1}}}",
    "mul": r"{0} \odot {1}", "scale": r"{0} \, {1}", "transpose": r"{0}^\top", "abs": r"\left|{0}\right|", "sqrt": r"\sqrt{{{0}}}",
    "reciprocal": r"\frac{{1}}{{{0}}}", **dict.fromkeys(("matmul", "mm", "mv", "dot"), r"{0} \, {1}"),
    **{name: rf"\left[{{0}} {sign} {{1}}\right]" for name, sign in (("eq", "="), ("ne", r"\neq"), ("lt", "<"), ("le", r"\leq"), ("gt", ">"),
                                                                  ("ge", r"\geq"))}}


def recorded(fn: Any, names: Any, *settings: Any) -> Program | None:
    """The program to print, for a program and for a compiled function without settings for formulas; None for everything else.

    Raises TypeError for a program with such settings, and for names without a program.
    """
    formula = any(x is not None and x != () and x != 0 for x in settings)
    if isinstance(fn, CompiledFunction) and not formula:
        return fn.program()
    if isinstance(fn, Program) and formula:
        raise TypeError("shapes, symbols, at, domain and derivatives are for formulas; a gradient is the program f.program('gradient')")
    if names is not None and not isinstance(fn, Program):
        raise TypeError("names are for recorded programs; the arguments of a formula are named by symbols=")
    return fn if isinstance(fn, Program) else None


def argument_names(program: Program, names: Sequence[str] | None, reserved: frozenset[str]) -> list[str]:
    """The names of a program's inputs, which are x0, x1, and so on if none are given.

    Raises ValueError for names that are no distinct identifiers, or are reserved, and for a wrong number of them.
    """
    found = [f"x{i}" for i in range(len(program.inputs))] if names is None else list(names)
    if len(found) != len(program.inputs):
        raise ValueError(f"the program has {len(program.inputs)} inputs, and there are {len(found)} names")
    for name in found:
        if not isinstance(name, str) or not re.fullmatch(r"[A-Za-z]\w*", name, re.ASCII) or name in reserved or found.count(name) > 1:
            raise ValueError(f"inputs are named by distinct identifiers that are not reserved, not {name!r}")
    return found


def latex_of_program(program: Program, title: str, names: Sequence[str]) -> str:
    """The steps of a program as `aligned` equations."""
    uses, variables = program.uses(), count(1)
    results = [title if len(program.outputs) == 1 else f"{title}_{{{i}}}" for i, _ in enumerate(program.outputs, 1)]
    labels = {slot: label for slot, label in reversed(list(zip(program.outputs, results))) if slot >= program.first_step}
    texts = [sympy.latex(sympy.Symbol(name)) for name in names]
    texts += [f"C_{{{i}}}" if np.ndim(x) else _number(x) for i, x in enumerate(program.constants)]
    rows = []
    for slot, step in enumerate(program.steps, program.first_step):
        texts.append(labels.get(slot) or f"v_{{{next(variables)}}}" if uses[slot] else "")
        if uses[slot]:
            rows.append(f"{texts[slot]} &= {_equation(program, step, texts)}")
    rows += [f"{label} &= {texts[slot]}" for slot, label in zip(program.outputs, results) if labels.get(slot) != label]
    return "\\begin{aligned}\n" + " \\\\\n".join(rows) + "\n\\end{aligned}"


def _number(x: Any) -> str:
    text = sympy.latex(sympy.sympify(np.asarray(x).item()))
    return text if re.fullmatch(r"[\d.]+|\\infty", text) else rf"\left({text}\right)"


def _equation(program: Program, step: Step, texts: Sequence[str]) -> str:
    name, ins = step.name, [Text(texts[i]) for i in step.ins]
    if name == "mul" and not all(program.spec(i).shape for i in step.ins):
        name, ins = "scale", ins if program.first_constant > step.ins[1] or step.ins[1] >= program.first_step else ins[::-1]  # numbers come first
    elif name == "permute" and tuple(step.params[0]) == (1, 0):
        name = "transpose"
    if name in NOTATION:
        return NOTATION[name].format(*ins)
    given = arguments(step, ins)
    place = LISTS.get(name)
    parts = [", ".join(x) if i == place else _latex(x) for i, x in enumerate(given)]
    while parts and given[len(parts) - 1] is False:
        parts.pop()
    function = rf"\{name}" if name in KNOWN else rf"\operatorname{{{name.replace('_', chr(92) + '_')}}}"
    return rf"{function}\left({', '.join(parts)}\right)"


def _latex(x: Any) -> str:
    """An operand or a parameter in LaTeX."""
    if isinstance(x, Text):
        return str(x)
    if type(x) in (tuple, list):
        return rf"({', '.join(map(_latex, x))})"
    if type(x) is slice:
        return "{:}".join("" if i is None else str(i) for i in (x.start, x.stop, *[x.step] * (x.step is not None)))
    if isinstance(x, np.ndarray):
        return rf"[{', '.join(map(_latex, x.tolist()))}]" if x.ndim == 1 and x.size <= 8 else rf"\text{{array {list(x.shape)}}}"
    text = r"\ldots" if x is Ellipsis else str(x)
    return text if isinstance(x, (int, float)) or x is Ellipsis else rf"\text{{{re.sub(r'[^A-Za-z0-9 ,.>-]', '', text)}}}"


def to_dot(fn: Any, *, names: Sequence[str] | None = None) -> str:
    r"""The graph of a recorded program, or of the value of a compiled function, in the DOT language of Graphviz.

    Each input, constant and step is a box with its word, its dtype and its shape; results have a double frame.

    Raises TypeError for what is no program, RuntimeError for a compiled function that was not called yet, and ValueError for unsuitable names.

    >>> import symgrad
    >>> f = symgrad.compile(lambda x: x.sin() * 2)
    >>> f(symgrad.ones(3))
    tensor([1.6829, 1.6829, 1.6829])
    >>> print(to_dot(f, names=["x"]))
    digraph program {
        node [shape=box]
        0 [label="x\nfloat64[3]"]
        1 [label="2.0"]
        2 [label="sin\nfloat64[3]"]
        3 [label="mul\nfloat64[3]", peripheries=2]
        0 -> 2
        2 -> 3
        1 -> 3
    }
    """
    program = recorded(fn, None)
    if program is None:
        raise TypeError(f"to_dot: expected a recorded program or a compiled function, not {type(fn).__name__}; see symgrad.compile")
    labels = argument_names(program, names, frozenset())
    labels += [_described(x) for x in program.constants] + [step.name for step in program.steps]
    boxes, edges = [], []
    for slot, uses in enumerate(program.uses()):
        if uses or slot < program.first_constant:
            spec = program.spec(slot)
            number = program.first_constant <= slot < program.first_step and not spec.shape
            label = labels[slot] if number else rf"{labels[slot]}\n{spec.dtype}{list(spec.shape)}"
            boxes.append(f'    {slot} [label="{label}"{", peripheries=2" if slot in program.outputs else ""}]\n')
            if slot >= program.first_step:
                edges += [f"    {i} -> {slot}\n" for i in program.steps[slot - program.first_step].ins]
    return f"digraph program {{\n    node [shape=box]\n{''.join(boxes)}{''.join(edges)}}}"


def _described(x: Any) -> str:
    return "constant" if np.ndim(x) else str(np.asarray(x).item())


def to_latex(fn: Any, *shapes: Any, symbols: Any = None, at: Any = None, domain: Any = None, derivatives: int = 0, name: str | None = None,
             names: Sequence[str] | None = None) -> str:
    r"""The formula of a function, a Tensor or a SymPy expression in LaTeX.

    `fn`, `shapes`, `at` and `domain` are as in `to_sympy`. A single short formula is written by itself; with `derivatives` (1 for the
    gradient, 2 for the Hessian, too), for several results and for long formulas there are `aligned` equations, in which long parts have
    names. `name` is the name of the function in them.

    A program that `symgrad.compile` has recorded, and a compiled function, are written with one equation per step; `names` are those of the inputs.

    Raises what `to_sympy` raises, and ValueError for derivatives of a value that is no single number and for unsuitable names.

    >>> print(to_latex(lambda x: (x / 2).tanh()))
    \tanh{\left(\frac{x}{2} \right)}
    >>> print(to_latex(lambda x, y: x.sin() * y, derivatives=1))
    \begin{aligned}
    f &= y \sin{\left(x \right)} \\
    \frac{\partial f}{\partial x} &= y \cos{\left(x \right)} \\
    \frac{\partial f}{\partial y} &= \sin{\left(x \right)}
    \end{aligned}
    """
    title = sympy.latex(sympy.Symbol(name or "f"))
    program = recorded(fn, names, shapes, symbols, at, domain, derivatives)
    if program is not None:
        return latex_of_program(program, title, argument_names(program, names, frozenset()))
    found = equations_of(fn, shapes, symbols, at, domain, derivatives)
    flat = found.flat
    results = found.valid(found.results if flat is None else flat)
    if flat is not None and found.form is LEAF:
        return str(sympy.latex(_as_array(results[0])))
    equations = [(sympy.latex(symbol), e) for symbol, e in found.equations] if flat is None else []
    for label, result in zip(_labels(found, title, derivatives), results):
        equations.append((label, _as_array(result)))
    rows = [rf"{label} &= {sympy.latex(e)}" for label, e in equations]
    return "\\begin{aligned}\n" + " \\\\\n".join(rows) + "\n\\end{aligned}"


def _as_array(result: EquationResult) -> Any:
    if not result.shape:
        return result.elements[0]
    array = sympy.ImmutableDenseNDimArray(result.elements, result.shape)
    return sympy.Matrix(result.elements) if len(result.shape) == 1 else array.tomatrix() if len(result.shape) == 2 else array


def _labels(found: Equations, title: str, derivatives: int) -> list[str]:
    if not derivatives:
        return [title] if len(found.results) == 1 else [f"{title}_{{{i}}}" for i, _ in zip(count(1), found.results)]
    by = [sympy.latex(sympy.Symbol(p.name)) for p in found.parameters]
    first = [rf"\frac{{\partial {title}}}{{\partial {x}}}" for x in by]
    second = [rf"\frac{{\partial^{{2}} {title}}}{{\partial {x}" + ("^{2}}" if x == y else rf" \partial {y}}}") for x in by for y in by]
    return [title, *first, *second[:len(second) * (derivatives > 1)]]
