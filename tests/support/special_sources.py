"""Special functions as their sources compute them: every row of the table, with its parameters, in a language."""

import numpy as np

from symgrad.carriers import numeric
from symgrad.carriers.special.table import SPECIAL
from symgrad.codegen.languages import C
from symgrad.codegen.texts import Text, helpers_called
from symgrad.graph.op import REGISTRY
from symgrad.symbolic.catalogue import WITH_PARAMETERS
from tests.support.c_interpreter import compiled
from tests.support.points import numbers

CASES = [(name, parameters) for name in SPECIAL
         for parameters in sorted({*WITH_PARAMETERS.get(name, {}).values(), *(REGISTRY[name].docs.examples if name in REGISTRY else ())}) or [()]]

ORDERS = [1 / 3, -7 / 5, 6, -2 / 3, 17 / 4, 0.0025, -3, 17, 12.7]


def generic_cases():
    """Words whose parameters are part of the name of a function of C, with other parameters than the table has short names for."""
    for name, text in C.ops.items():
        if ":name}" in text and name.removesuffix("_derivative") in ("bessel_i", "bessel_j", "bessel_k", "bessel_y"):
            yield from [(name, (order, 2) if name.endswith("_derivative") else (order,)) for order in ORDERS]
        elif ":name}" in text and name != "orthogonal_polynomial":  # which has families, and so no others
            last = max(parameters for word, parameters in CASES if word == name)
            yield from [(name, tuple([p + (i == k) for i, p in enumerate(last)])) for k in range(len(last))]
    yield from [("orthogonal_polynomial", (family, 7, 1)) for family in range(8)]


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
    body = text.partition(" ")[2].format(*arguments, *[Text(repr(p)) for p in parameters])
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


def check(language, name, parameters, convert=np.asarray, count=24):
    """Hold the numbers of a source to those of the op."""
    source, xs = written(language, name, parameters), points(name, count)
    assert source is not None, f"{name}{parameters} has no source"
    found = _function(language, source, convert)(*xs)
    expected = getattr(numeric, name)(*xs, *parameters)
    size = np.abs(expected[np.isfinite(expected)]).max()
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-13 * (max(size, 1) if size > 1e-10 else size), err_msg=f"{name}{parameters}")
