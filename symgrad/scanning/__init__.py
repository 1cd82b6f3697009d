"""`accuracy`: how many digits of a function and its derivatives are right, over all the floats of its domain."""

from __future__ import annotations

from typing import Any

from symgrad.scanning.report import AccuracyReport, Better, Loss, Sample, Worst
from symgrad.scanning.scan import scanned

__all__ = ["AccuracyReport", "Better", "Loss", "Sample", "Worst", "accuracy"]


def accuracy(fn: Any, domain: Any = None, *, order: int = 2, points: int | None = None, seconds: float = 10.0, seed: int = 0, dtype: Any = None,
             formula: Any = None, progress: Any = None) -> AccuracyReport:
    """Scan the value and the derivatives of a function of one or more real numbers over the floats of its domain.

    Every error is measured in units in the last place (ULP) of the true value, which is computed with as many digits as it takes: by the rules of the
    library read with many digits, or by `formula`, a SymPy expression (differentiated by `sympy.diff`), its text, or a symgrad function. The
    points are floats, so that nothing is rounded before the function is called. They are drawn uniformly in their representation, region by
    region: subnormal, tiny, small, ordinary, large and huge numbers of both signs, both zeros, and what lies next to ends of the domain, special
    points, poles and zeros; and again around the worst of them. Of several arguments one at a time runs through its regions, the others being
    of ordinary size; then all lie anywhere, and close to each other.

    The report says how many points were used, the worst error of each order (up to `order`, 0 to 3) in each region, with its point and the
    condition there, where in the computation the digits are lost, and which form keeps them, where one is known and measured to be better.

    `fn` is a function written with symgrad's, torch's or NumPy's names, or the name of an op; with a formula also one of torch, JAX, HIPS autograd
    or plain floats, or a tuple (function, gradient, Hessian). `domain` is a pair (low, high), a list of pairs, a
    SymPy set, a `symgrad.types.domains.Domain`, or a mapping from arguments to these; the op's own, or all real numbers, without it. `points` are as
    many as are drawn in a region (64, if there is time), `seconds` is the time that the scan may take, `dtype` that of the arguments (float64),
    `progress` True for a bar on standard error, False for silence, None for a bar on terminals, or a function of (what, done, total).

    Raises TypeError for what is no function of real numbers or no float dtype, ValueError for a domain without floats, and for a function that is
    random or runs nowhere.

    >>> import symgrad
    >>> report = symgrad.scanning.accuracy(lambda x: 1 - x.tanh() ** 2, (0.0, 30.0), order=0, points=16)
    >>> report.of_order(0).verdict, [str(b.better) for b in report.better]
    ('digits are lost', ['sech_squared(x)'])
    """
    if type(order) is not int or order not in (0, 1, 2, 3):
        raise ValueError(f"accuracy: order must be 0, 1, 2 or 3, not {order!r}")
    if points is not None and (type(points) is not int or points < 1):
        raise ValueError(f"accuracy: points must be a positive whole number, not {points!r}")

    return scanned(fn, domain, order, points, seconds, seed, dtype, formula, progress)
