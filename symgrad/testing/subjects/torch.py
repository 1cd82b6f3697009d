"""Subjects of torch."""

from __future__ import annotations

from symgrad.testing.subjects.base import Subject

__all__ = ["TorchSubject"]


class TorchSubject(Subject):
    """A function of torch."""

    framework = "torch"
