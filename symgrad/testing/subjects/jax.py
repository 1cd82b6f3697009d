"""Subjects of JAX."""

from __future__ import annotations

from symgrad.testing.subjects.base import Subject

__all__ = ["JaxSubject"]


class JaxSubject(Subject):
    """A function of JAX."""

    framework = "jax"
