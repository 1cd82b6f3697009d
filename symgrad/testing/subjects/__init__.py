"""Ops of all frameworks under one interface."""

from __future__ import annotations

import inspect
from typing import Any

from symgrad.engine.traced import FUNCTIONS
from symgrad.frameworks.frameworks import framework_of, named_framework
from symgrad.graph.op import REGISTRY, Op
from symgrad.testing.claims import Claims
from symgrad.testing.subjects.autograd import AutogradSubject
from symgrad.testing.subjects.base import Subject, is_active
from symgrad.testing.subjects.jax import JaxSubject
from symgrad.testing.subjects.naming import name_of
from symgrad.testing.subjects.numpy import NumpySubject
from symgrad.testing.subjects.own import OpSubject, SymgradSubject
from symgrad.testing.subjects.torch import TorchSubject

__all__ = ["Subject", "is_active", "subject_of"]

SUBJECTS = {"torch": TorchSubject, "jax": JaxSubject, "autograd": AutogradSubject, "numpy": NumpySubject}


def subject_of(op: Any, claims: Claims) -> Subject:
    """The subject for an op: one of the registry, a symgrad function, a `Function` class, or a function of another framework.

    A tuple (function, gradient) is a NumPy function with its gradient.

    Raises TypeError for what cannot be called, ImportError where the framework is not installed.
    """
    if isinstance(op, tuple) and len(op) == 2 and all(map(callable, op)):
        op, claims = op[0], claims.but(gradient=op[1])
    if isinstance(op, Op) and op.kind == "composite":
        op = FUNCTIONS.get(op.name, op)  # a composite op has no rules of its own
    if isinstance(op, Op):
        return OpSubject(op, claims)
    name = name_of(op)
    if inspect.isclass(op) and callable(getattr(op, "apply", None)):
        op = op.apply  # type: ignore[attr-defined]
    if not callable(op):
        raise TypeError(f"symgrad.testing checks ops, functions and classes with apply, not {type(op).__name__}")
    framework = named_framework(claims.framework) if claims.framework else framework_of(op)
    if framework is None:
        framework = "numpy" if claims.gradient or claims.pullback or claims.pushforward else "symgrad"
    if framework == "symgrad":
        own = getattr(op, "op", None)
        if isinstance(own, Op) and REGISTRY.get(own.name) is own and own.kind != "composite" and own.prepare is None:
            return OpSubject(own, claims)
        return SymgradSubject(op, claims, name)
    return SUBJECTS[framework](op, claims, name)
