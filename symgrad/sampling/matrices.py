"""Matrices of the domains of matrices, made of arbitrary numbers."""

from __future__ import annotations

import numpy as np

from symgrad.graph.domains import MatrixDomain

__all__ = ["fit"]


def fit(domain: MatrixDomain, x: np.ndarray) -> np.ndarray:
    """A well-conditioned matrix of a kind, made of the numbers of `x`; leading axes are a batch. The elements have like sizes, since the error of
    a factorization is relative to the norm of the matrix.

    >>> from symgrad.graph.domains import SPD
    >>> fit(SPD, np.ones((2, 2)))
    array([[1.75, 0.5 ],
           [0.5 , 1.75]])
    """
    n, size = x.shape[-1], np.abs(x)
    signs = x / np.where(size == 0, 1, size)
    if domain.kind == "distinct":
        return signs / 4 + np.arange(n)
    parts = signs * (size / (size.max(initial=0) or 1)) ** 0.125 / max(n, 1)  # the absolute values of a row have a sum of at most 1
    identity = np.eye(*x.shape[-2:])
    signed = parts + identity * np.copysign(1.25, parts.real)  # so that determinants have both signs
    if domain.kind == "well_separated_singular_values":
        return parts / 2 + identity * 2 * np.arange(1, n + 1)
    if domain.kind == "nonsingular":
        return signed
    if domain.kind == "full":
        return parts + identity * 1.25 + np.tril(np.ones_like(parts), -1)
    symmetric = (parts + np.conj(np.swapaxes(parts, -1, -2))) / 2
    if domain.kind == "spd":
        return symmetric + identity * 1.25
    if domain.kind == "symmetric":
        return symmetric
    if domain.kind == "well_separated_spectrum":
        return symmetric / 2 + identity * np.arange(1, n + 1)
    if domain.kind == "triangular":
        return signed
    return np.tril(signed) if domain.kind == "lower_triangular" else np.linalg.qr(parts + identity * 1.25)[0]
