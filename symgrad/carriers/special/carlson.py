"""Carlson's symmetric elliptic integrals of series, by duplication in Taylor arithmetic (DLMF 19.36)."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["Duplication"]

STEPS = 1200  # the most duplications, of numbers that are far from each other
Row = list[Any]


# Series by powers of ε, lists of coefficients; missing ones are 0


def _add(a: Row, b: Row) -> Row:
    a, b = (a, b) if len(a) >= len(b) else (b, a)
    return [x + b[i] if i < len(b) else x for i, x in enumerate(a)]


def _scaled(a: Row, c: Any) -> Row:
    return [x * c for x in a]


def _mul(a: Row, b: Row, count: int) -> Row:
    if len(a) == len(b) == 1:
        return [a[0] * b[0]]
    out = []
    for k in range(min(count, len(a) + len(b) - 1)):
        low, high = max(0, k + 1 - len(b)), min(k + 1, len(a))
        total = a[low] * b[k - low]
        for i in range(low + 1, high):
            total = total + a[i] * b[k - i]
        out.append(total)
    return out


def _sqrt(a: Row, sqrt: Any, count: int) -> Row:
    out = [sqrt(a[0])]
    twice = 2 * out[0]
    for k in range(1, count if len(a) > 1 else 1):
        inner = a[k] if k < len(a) else 0
        for i in range(1, (k + 1) // 2):
            inner = inner - 2 * out[i] * out[k - i]
        if k % 2 == 0:
            inner = inner - out[k // 2] * out[k // 2]
        out.append(inner / twice)
    return out


def _inverse(a: Row, count: int) -> Row:
    out = [1 / a[0]]
    for k in range(1, count if len(a) > 1 else 1):
        out.append(-sum(a[i] * out[k - i] for i in range(1, min(k + 1, len(a)))) / a[0])
    return out


class Duplication:
    """R_F and R_D of three series, which are halved towards each other until the eighth power of their deviations is `close`⁸.

    `sqrt` is the square root of the numbers, and `count` the number of coefficients.
    """

    def __init__(self, sqrt: Any, count: int, close: Any):
        self.sqrt, self.count, self.close = sqrt, count, close

    def _far(self, x: Row, y: Row, z: Row, weight: int) -> bool:
        """Whether a first coefficient deviates much from their mean."""
        mean = (x[0] + y[0] + weight * z[0]) / (2 + weight)
        bound = self.close * mean
        return bool(np.any((abs(mean - x[0]) > bound) | (abs(mean - y[0]) > bound)))

    def _polynomial(self, terms: list[tuple[float, int, list[Row]]]) -> Row:
        """1 + Σ p/q times the product of the factors."""
        out: Row = [1]
        for p, q, factors in terms:
            product = factors[0]
            for factor in factors[1:]:
                product = _mul(product, factor, self.count)
            out = _add(out, [x * p / q for x in product])
        return out

    def _step(self, x: Row, y: Row, z: Row) -> tuple[Row, Row, Row, Row, Row]:
        roots = [_sqrt(a, self.sqrt, self.count) for a in (x, y, z)]
        mul, count = _mul, self.count
        total = _add(_add(mul(roots[0], roots[1], count), mul(roots[1], roots[2], count)), mul(roots[2], roots[0], count))
        return (*(_scaled(_add(a, total), 0.25) for a in (x, y, z)), roots[2], _add(z, total))

    def _deviations(self, x: Row, y: Row, z: Row, weight: int) -> tuple[Row, Row, Row]:
        mean = [a / (2 + weight) for a in _add(_add(x, y), _scaled(z, weight))]
        inverse = _inverse(mean, self.count)
        return mean, *([(1 if k == 0 else 0) - a for k, a in enumerate(_mul(part, inverse, self.count))] for part in (x, y))

    def rf(self, x: Row, y: Row, z: Row) -> Row:
        """R_F(x, y, z). DLMF 19.36.1."""
        mul, count, extra = _mul, self.count, self.count - 1
        for _ in range(STEPS):
            if not self._far(x, y, z, 1):
                if not extra:
                    break
                extra -= 1
            x, y, z, *_ = self._step(x, y, z)
        mean, dx, dy = self._deviations(x, y, z, 1)
        dz = _scaled(_add(dx, dy), -1)
        e2, e3 = _add(mul(dx, dy, count), _scaled(mul(dz, dz, count), -1)), mul(mul(dx, dy, count), dz, count)
        series = self._polynomial([(-1, 10, [e2]), (1, 14, [e3]), (1, 24, [e2, e2]), (-3, 44, [e2, e3]), (-5, 208, [e2, e2, e2]), (3, 104, [e3, e3]),
                                   (1, 16, [e2, e2, e3])])
        return mul(series, _inverse(_sqrt(mean, self.sqrt, count), count), count)

    def rd(self, x: Row, y: Row, z: Row) -> Row:
        """R_D(x, y, z). DLMF 19.36.2."""
        mul, count, extra = _mul, self.count, self.count - 1
        out, factor = [0 * x[0]], 1.0
        for _ in range(STEPS):
            if not self._far(x, y, z, 3):
                if not extra:
                    break
                extra -= 1
            x, y, z, root, below = self._step(x, y, z)
            out = _add(out, _scaled(_inverse(mul(root, below, count), count), 3 * factor))
            factor = factor / 4
        mean, dx, dy = self._deviations(x, y, z, 3)
        dz = [a / -3 for a in _add(dx, dy)]
        xy, zz = mul(dx, dy, count), mul(dz, dz, count)
        e2, e3 = _add(xy, _scaled(zz, -6)), mul(_add(_scaled(xy, 3), _scaled(zz, -8)), dz, count)
        e4, e5 = _scaled(mul(_add(xy, _scaled(zz, -1)), zz, count), 3), mul(xy, mul(zz, dz, count), count)
        series = self._polynomial([(-3, 14, [e2]), (1, 6, [e3]), (9, 88, [e2, e2]), (-3, 22, [e4]), (-9, 52, [e2, e3]), (3, 26, [e5]),
                                   (-1, 16, [e2, e2, e2]), (3, 40, [e3, e3]), (3, 20, [e2, e4]), (45, 272, [e2, e2, e3]), (-9, 68, [e3, e4]),
                                   (-9, 68, [e2, e5])])
        root = _sqrt(mean, self.sqrt, count)
        return _add(out, _scaled(mul(series, _inverse(mul(root, mul(root, root, count), count), count), count), factor))
