"""Subjects of NumPy."""

from __future__ import annotations

from symgrad.testing.subjects.base import Subject

__all__ = ["NumpySubject"]


class NumpySubject(Subject):
    """A function of NumPy."""

    framework = "numpy"
