"""Special functions as their sources compute them: every row of the table, with its parameters, in a language."""

from __future__ import annotations

import numpy as np

from symgrad.carriers import numeric
from symgrad.carriers.special.table import SPECIAL
from symgrad.codegen.languages import C
from symgrad.codegen.texts import helpers_called
from symgrad.graph.op import REGISTRY
from symgrad.symbolic.catalogue import WITH_PARAMETERS
from tests.support.c_interpreter import compiled
from tests.support.points import numbers

CASES = [(name, parameters) for name in SPECIAL
         for parameters in sorted({*WITH_PARAMETERS.get(name, {}).values(), *(REGISTRY[name].examples if name in REGISTRY else ())}) or [()]]


def points(name, count=24):
    """Ordinary points of the domain of the op that has the function's name."""
    rng = np.random.default_rng(7)
    return [np.array(numbers(REGISTRY[name].domain[i], rng, count)) for i in range(SPECIAL[name].arity)]


def written(language, name, parameters):
    """The source of the function `f` of a special function with these parameters, None if the language has none."""
    if name not in language.ops:
        short = next((short for short, given in WITH_PARAMETERS.get(name, {}).items() if given == parameters), None)
        if short not in language.ops:
            return None
        text = language.ops[short]
    else:
        text = language.ops[name]
    arguments = "xyz"[:SPECIAL[name].arity]
    body = text.partition(" ")[2].format(*arguments, *parameters)
    head = f"{language.header}{helpers_called(body, language.helpers)}\n"
    if language is C:
        return f"{head}double f(double {', double '.join(arguments)})\n{{\n    return {body};\n}}\n"
    return f"{head}\ndef f({', '.join(arguments)}):\n    return {body}\n"


def _function(language, source, convert):
    """The function `f` of a source, which takes arrays and gives one."""
    if language is C:
        return np.vectorize(compiled(source)["f"], [float])
    space = {}
    exec(source, space)
    return lambda *xs: np.asarray(space["f"](*map(convert, xs)), np.float64)


def check(language, name, parameters, convert=np.asarray):
    """Hold the numbers of a source to those of the op."""
    source, xs = written(language, name, parameters), points(name)
    assert source is not None, f"{name}{parameters} has no source"
    found = _function(language, source, convert)(*xs)
    expected = getattr(numeric, name)(*xs, *parameters)
    size = np.abs(expected[np.isfinite(expected)]).max()
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-13 * (max(size, 1) if size > 1e-10 else size), err_msg=f"{name}{parameters}")
