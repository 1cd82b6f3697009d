"""Every op of the registry, compiled by both back ends and printed as source: value, gradient and second derivative, broadcast, empty and 0-d."""

from __future__ import annotations

import re

import numpy as np
import pytest

import symgrad
from symgrad.carriers import MATRIX_WORDS
from symgrad.carriers.special.table import SPECIAL
from symgrad.codegen.arrays import COMMON
from symgrad.codegen.languages import Jax, NumPy, Torch, short_name
from symgrad.engine.tensor import Tensor, wrap
from symgrad.program.native import find_compiler
from symgrad.program.program import ArraySpec, Program, Step
from symgrad.testing.checks.numbers import KINDS, compiled_derivatives
from symgrad.trees import flatten
from tests.support.claims import ALL_CASES, attack_on, name_of

SLACK = 64  # ULP of the largest element of a result


def arrays(tree):
    return [np.asarray(y._value if isinstance(y, Tensor) else y) for y in flatten(tree)[0]]


def largest(found):
    return max([float(np.abs(b[np.isfinite(b)]).max(initial=0.0)) for b in found if b.dtype.kind in "fc"], default=0.0)


def compare(found, expected, what, terms):
    """Hold results to others, to some roundings of the largest of their terms: `terms` is the size of the derivatives of lower order."""
    assert len(found) == len(expected)
    for a, b in zip(found, expected):
        assert a.shape == b.shape and a.dtype == b.dtype, what
        if b.dtype.kind not in "fc":
            assert np.array_equal(a, b), what
            continue
        size = max(largest([b]), terms)
        np.testing.assert_allclose(a, b, rtol=SLACK * np.finfo(b.dtype).eps, atol=SLACK * np.finfo(b.dtype).eps * size, err_msg=what)


def is_special(note):
    """Whether a program was not compiled because of a special function or a factorization."""
    word = re.search(r"the word (\w+)", note)
    return bool(word) and (word[1] in SPECIAL or word[1] in MATRIX_WORDS)


def computed(op, parameters, backend, count, narrow=False):
    """What is computed of an op: the compiled function, its arguments, what the function itself gives, and the size of lower derivatives."""
    attack = attack_on(op, parameters, "dev")
    for p in parameters:
        getattr(p, "positions", None)  # of a view are computed once: a call that does it would be one that changes what it captures
    for kind in KINDS[:1] if narrow else KINDS:  # what becomes of shapes is the same in all dtypes
        try:
            examples = attack.examples(kind)[:count]
        except Exception:  # no example of the kind exists for this op
            continue
        for example in examples:
            if narrow:
                with np.errstate(over="ignore"):
                    example = example.mapped(lambda x: x.astype(np.float32) if x.dtype == np.float64 else x)
            terms = 0.0
            for name, order, function, compiled in compiled_derivatives(attack, example, backend):
                try:
                    expected = arrays(function(*map(wrap, example.xs)))
                except Exception:  # the op does not take these numbers
                    continue
                yield f"{name} of {op.name}{parameters} for {kind}", compiled, example.xs, expected, terms
                terms = max(terms, largest(expected)) if order else 0.0


def attacked(op, parameters, backend, narrow=False):
    """The number of comparisons that were made."""
    made = 0
    for what, compiled, xs, expected, terms in computed(op, parameters, backend, 1 if backend == "c" else 2, narrow):  # C compiles three for each
        for again in ("", ", again"):
            compare(arrays(compiled(*map(wrap, xs))), expected, what + again, terms)
        report = compiled.report
        elsewhere = [row for row in report.programs if row["backend"] != backend and "complex" not in row["note"] and not is_special(row["note"])]
        assert not report.uncompiled and not elsewhere, f"{what}: {report}"  # C has no complex numbers and few special functions
        made += 1
    return made


CASES = [pytest.param(op, parameters, id=name_of(op, parameters)) for op, parameters in ALL_CASES]


@pytest.mark.sweep
@pytest.mark.parametrize(("op", "parameters"), CASES)
def test_numpy_source(op, parameters):
    assert attacked(op, parameters, "numpy")


@pytest.mark.sweep
@pytest.mark.parametrize(("op", "parameters"), CASES)
def test_numpy_source_in_single_precision(op, parameters):
    attacked(op, parameters, "numpy", narrow=True)


needs_compiler = pytest.mark.skipif(not find_compiler(), reason="no C compiler")


@needs_compiler
@pytest.mark.sweep
@pytest.mark.parametrize("narrow", [False, True], ids=["float64", "float32"])
@pytest.mark.parametrize(("op", "parameters"), CASES)
def test_c(op, parameters, narrow):
    attacked(op, parameters, "c", narrow)


@needs_compiler
def test_a_hessian_as_a_function_runs_in_c():
    x = symgrad.tensor([0.3, 0.7, -0.2])

    def f(x):
        return (x[1:].sin() * x[:-1] ** 2).sum() + (x[0] * x).exp().sum()

    compiled = symgrad.compile(symgrad.func.hessian(f), backend="c")
    compare(arrays(compiled(x)), arrays(symgrad.func.hessian(f)(x)), "the Hessian", 0.0)
    assert [(row["backend"], row["note"]) for row in compiled.report.programs] == [("c", "")]


# Printed as source of NumPy

LANGUAGES = {symgrad.to_python: NumPy, symgrad.to_torch: Torch, symgrad.to_jax: Jax}


def run(printer, convert, program, xs):
    """The results of the printed program as arrays."""
    space = {}
    exec(printer(program), space)
    found = space["f"](*map(convert, xs))
    return [np.asarray(y.resolve_conj() if hasattr(y, "resolve_conj") else y) for y in (found if isinstance(found, tuple) else (found,))]


def check_source(op, parameters, printer, convert):
    made = 0
    for what, compiled, xs, expected, terms in computed(op, parameters, "numpy", 1):
        compiled(*map(wrap, xs))
        program, made = compiled.program(), made + 1
        words = {(step.name, short_name(step.name, step.params)) for step in program.steps if step.name in {*SPECIAL, *MATRIX_WORDS}}
        if any(not set(names) & (COMMON.keys() | LANGUAGES[printer].ops.keys()) for names in words):
            with pytest.raises(TypeError, match="cannot be written in"):
                printer(program)
            continue
        compare(run(printer, convert, program, xs), expected, what, max(terms, largest(expected)))
    assert made


@pytest.mark.sweep
@pytest.mark.parametrize(("op", "parameters"), CASES)
def test_printed_source(op, parameters):
    check_source(op, parameters, symgrad.to_python, lambda x: np.asarray(x)[()])


def test_the_comparison_can_fail():
    spec = ArraySpec((3,), np.dtype(float))
    program = Program([spec], [], [Step("sin", (0,), (), *spec)], [1])
    x = np.arange(3.0)
    compare(run(symgrad.to_python, np.array, program, [x]), [np.sin(x)], "sin", 1.0)
    with pytest.raises(AssertionError):
        compare(run(symgrad.to_python, np.array, program, [x]), [np.sin(x) * (1 + 1e-12)], "sin", 1.0)
