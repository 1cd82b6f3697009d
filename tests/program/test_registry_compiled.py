"""Every op of the registry, compiled: value, gradient and second derivative by both back ends, in float64 and float32, broadcast, empty and 0-d."""

from __future__ import annotations

import re

import numpy as np
import pytest

import symgrad
from symgrad.carriers import MATRIX_WORDS
from symgrad.carriers.special.table import SPECIAL
from symgrad.engine.tensor import Tensor, wrap
from symgrad.program.backends import has_compiler
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


def attacked(op, parameters, backend, narrow=False):
    """The number of comparisons that were made."""
    attack, count = attack_on(op, parameters, "dev"), 0
    for kind in KINDS[:1] if narrow else KINDS:  # what becomes of shapes is the same in all dtypes
        try:
            examples = attack.examples(kind)[:1 if backend == "c" else 2]  # three programs are compiled for each
        except Exception:  # no example of the kind exists for this op
            continue
        for example in examples:
            if narrow:
                with np.errstate(over="ignore"):
                    example = example.mapped(lambda x: x.astype(np.float32) if x.dtype == np.float64 else x)
            terms = 0.0
            for name, order, function, compiled in compiled_derivatives(attack, example, backend):
                tensors = [wrap(x) for x in example.xs]
                try:
                    expected = arrays(function(*tensors))
                except Exception:  # the op does not take these numbers
                    continue
                what = f"{name} of {op.name}{parameters} for {kind}"
                for again in ("", ", again"):
                    compare(arrays(compiled(*tensors)), expected, what + again, terms)
                terms = max(terms, largest(expected)) if order else 0.0
                report = compiled.report
                elsewhere = [row for row in report.programs
                             if row["backend"] != backend and "complex" not in row["note"] and not is_special(row["note"])]
                assert not report.uncompiled and not elsewhere, f"{what}: {report}"  # C has no complex numbers and few special functions
                count += 1
    return count


CASES = [pytest.param(op, parameters, id=name_of(op, parameters)) for op, parameters in ALL_CASES]


@pytest.mark.sampled(40)
@pytest.mark.parametrize(("op", "parameters"), CASES)
def test_numpy_source(op, parameters):
    assert attacked(op, parameters, "numpy")


@pytest.mark.sweep
@pytest.mark.parametrize(("op", "parameters"), CASES)
def test_numpy_source_in_single_precision(op, parameters):
    attacked(op, parameters, "numpy", narrow=True)


needs_compiler = pytest.mark.skipif(not has_compiler(), reason="no C compiler")


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
