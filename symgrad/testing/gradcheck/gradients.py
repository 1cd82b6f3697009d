"""The search of `autograd.gradcheck` for wrong derivatives of a function that passes at the given inputs: exact derivatives, other points.

Only wrong derivatives count as failures. Everything left out is counted with its reason: points where the function raises, is not finite,
changes its outputs' shapes, or has a kink; functions that are random or keep a state; derivatives that do not exist.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from symgrad.frameworks.generators import restored
from symgrad.frameworks.problem import silence
from symgrad.testing.gradcheck.jacobians import FunctionAtPoint
from symgrad.testing.gradcheck.points import LeftOut, Points, Unattacked
from symgrad.testing.gradcheck.report import GradientAttack
from symgrad.testing.gradcheck.search import Search

__all__ = ["attack_gradients"]


def attack_gradients(func: Callable[..., Any], inputs: tuple[Any, ...], *, order: int = 1, eps: float = 1e-6, atol: float = 1e-5, rtol: float = 1e-3,
                     backward: bool = True, forward: bool = False, seed: int = 0) -> GradientAttack:
    """Search for wrong first derivatives of a function that `gradcheck` passed at these inputs; `order` is the order shown in the report.

    The inputs are written in place and restored, as `gradcheck` does, so that tensors in a closure change along; random generators are
    restored, too. Output and warnings of the function at other points are suppressed.

    >>> import symgrad
    >>> report = attack_gradients(symgrad.tanh, (symgrad.tensor([0.5, 1.0], requires_grad=True),))
    >>> report.failure is None, report.attacked > 2, report.exact == report.attacked
    (True, True, True)
    """
    start = time.perf_counter()
    report = GradientAttack(order, seed=seed)
    try:
        with restored(), silence():
            rng = np.random.default_rng(seed)
            Search(Points(FunctionAtPoint(func, inputs, eps), rng), report, (atol, rtol), backward, forward, rng).run()
    except (Unattacked, LeftOut) as error:
        report.reason = str(error)
    except Exception as error:  # a repeated call may raise anything
        report.reason = f"called again it raised {type(error).__name__}: {error}"
    report.seconds = time.perf_counter() - start
    return report
