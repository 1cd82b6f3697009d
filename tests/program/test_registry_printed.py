"""Every op of the registry as printed source of NumPy: value, gradient and second derivative, broadcast, empty and 0-d."""

from __future__ import annotations

import numpy as np
import pytest

import symgrad
from symgrad.carriers import MATRIX_WORDS
from symgrad.carriers.special.table import SPECIAL
from symgrad.codegen.arrays import COMMON
from symgrad.codegen.languages import Jax, NumPy, Torch, short_name
from symgrad.engine.tensor import wrap
from symgrad.program.program import ArraySpec, Program, Step
from symgrad.testing.checks.numbers import KINDS, compiled_derivatives
from tests.program.test_registry_compiled import CASES, arrays, compare, largest
from tests.support.claims import attack_on

LANGUAGES = {symgrad.to_python: NumPy, symgrad.to_torch: Torch, symgrad.to_jax: Jax}


def run(printer, convert, program, xs):
    """The results of the printed program as arrays."""
    space = {}
    exec(printer(program), space)
    found = space["f"](*map(convert, xs))
    return [np.asarray(y.resolve_conj() if hasattr(y, "resolve_conj") else y) for y in (found if isinstance(found, tuple) else (found,))]


def attacked(op, parameters, printer, convert):
    attack, count = attack_on(op, parameters, "dev"), 0
    for kind in KINDS:
        try:
            example = attack.examples(kind)[0]
        except Exception:  # no example of the kind exists for this op
            continue
        terms = 0.0
        for name, _, function, compiled in compiled_derivatives(attack, example, "numpy"):
            tensors = [wrap(x) for x in example.xs]
            try:
                expected = arrays(function(*tensors))
            except Exception:  # the op does not take these numbers
                continue
            compiled(*tensors)
            terms = max(terms, largest(expected))
            program, count = compiled.program(), count + 1
            words = {(step.name, short_name(step.name, step.params)) for step in program.steps if step.name in {*SPECIAL, *MATRIX_WORDS}}
            if any(not set(names) & (COMMON.keys() | LANGUAGES[printer].ops.keys()) for names in words):
                with pytest.raises(TypeError, match="cannot be written in"):
                    printer(program)
                continue
            compare(run(printer, convert, program, example.xs), expected, f"{name} of {op.name}{parameters} for {kind}", terms)
    assert count


@pytest.mark.sampled(40)
@pytest.mark.parametrize(("op", "parameters"), CASES)
def test_numpy(op, parameters):
    attacked(op, parameters, symgrad.to_python, lambda x: np.asarray(x)[()])


def test_the_comparison_can_fail():
    spec = ArraySpec((3,), np.dtype(float))
    program = Program([spec], [], [Step("sin", (0,), (), *spec)], [1])
    x = np.arange(3.0)
    compare(run(symgrad.to_python, np.array, program, [x]), [np.sin(x)], "sin", 1.0)
    with pytest.raises(AssertionError):
        compare(run(symgrad.to_python, np.array, program, [x]), [np.sin(x) * (1 + 1e-12)], "sin", 1.0)
