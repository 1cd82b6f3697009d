"""Random programs: the same steps on Tensors and on a naive model of scalars, compared in value, gradient and second derivatives."""

import functools
import math
import operator
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, initialize, multiple, rule, run_state_machine_as_test

import symgrad
from symgrad import autograd
from tests.support.second_order import Scalar

LARGE = 30.0  # values beyond it are not computed with any further: exact agreement would say nothing about rules
EIGHTHS = st.integers(-20, 20).map(lambda n: n / 8)


class Pair(NamedTuple):
    """A value in two representations: a Tensor, and an array of Scalars."""

    tensor: Any
    model: Any


def cells(scalars, shape):
    out = np.empty(len(scalars), object)
    out[:] = scalars
    return out.reshape(shape)


def each(function, *models):
    """A function of Scalars, elementwise with broadcasting."""
    spread = np.broadcast_arrays(*models)
    return cells([function(*row) for row in zip(*(m.ravel() for m in spread))], spread[0].shape)


def numbers(model):
    return np.array([s.value for s in model.ravel()]).reshape(model.shape)


def total(model, axis=None):
    """The sum of Scalars over everything, or along one axis."""
    rows = [model.ravel()] if axis is None else list(np.moveaxis(model, axis, -1).reshape(-1, model.shape[axis]))
    shape = () if axis is None else np.delete(model.shape, axis)
    return cells([functools.reduce(operator.add, row) for row in rows], tuple(int(n) for n in shape))


SAFE = {"sin": Scalar.sin, "cos": Scalar.cos, "tanh": Scalar.tanh, "sigmoid": Scalar.sigmoid, "atan": Scalar.atan, "neg": Scalar.__neg__,
        "square": lambda s: s**2}
POSITIVE = {"log": Scalar.log, "sqrt": Scalar.sqrt}
KINKED = {"abs": Scalar.__abs__, "relu": Scalar.relu}
BINARY = {"add": operator.add, "sub": operator.sub, "mul": operator.mul}


class Programs(RuleBasedStateMachine):
    """Builds programs step by step; every step gives a new value, and any value may be differentiated at any time."""

    values = Bundle("values")

    @initialize(target=values, data=st.lists(EIGHTHS, min_size=6, max_size=6))
    def inputs(self, data):
        scalars, self.leaves, at = Scalar.inputs(data), [], 0
        pairs = []
        for shape in ((), (3,), (2, 1)):
            size = int(np.prod(shape, dtype=int))
            leaf = symgrad.tensor(np.array(data[at:at + size]).reshape(shape), requires_grad=True)
            self.leaves.append(leaf)
            pairs.append(Pair(leaf, cells(scalars[at:at + size], shape)))
            at += size
        return multiple(*pairs)

    def keep(self, tensor, model):
        """The new value if its size is moderate, after the comparison of the numbers."""
        expected = numbers(model)
        assert tensor.shape == expected.shape and tensor.dtype is symgrad.float64
        if expected.size and np.max(np.abs(expected)) > LARGE:
            return multiple()
        np.testing.assert_allclose(tensor.detach().numpy(), expected, rtol=1e-11, atol=1e-11)
        return Pair(tensor, model)

    def apart(self, *differences):
        """Whether every element is clearly on one side of a kink, or exactly on it in both representations."""
        return all(np.all((np.abs(d) > 1e-6) | (d == 0)) for d in differences) and len({tuple((d == 0).ravel()) for d in differences}) == 1

    @rule(target=values, a=values, name=st.sampled_from(sorted(SAFE)))
    def smooth(self, a, name):
        return self.keep(getattr(symgrad, name)(a.tensor), each(SAFE[name], a.model))

    @rule(target=values, a=values, name=st.sampled_from(sorted(POSITIVE)))
    def of_positive(self, a, name):
        return self.keep(getattr(symgrad, name)(a.tensor.square() + 1), each(lambda s: POSITIVE[name](s**2 + s.constant(1.0)), a.model))

    @rule(target=values, a=values)
    def exponential(self, a):
        return self.keep(a.tensor.exp(), each(Scalar.exp, a.model)) if np.max(numbers(a.model), initial=0) < 3 else multiple()

    @rule(target=values, a=values, name=st.sampled_from(sorted(KINKED)))
    def kinked(self, a, name):
        if not self.apart(numbers(a.model), a.tensor.detach().numpy()):
            return multiple()
        return self.keep(getattr(a.tensor, name)(), each(KINKED[name], a.model))

    @rule(target=values, a=values, n=st.integers(2, 4), as_tensor=st.booleans())
    def power(self, a, n, as_tensor):
        if np.max(np.abs(numbers(a.model)), initial=0) > 3 or (as_tensor and np.any(numbers(a.model) <= 0)):
            return multiple()
        return self.keep(a.tensor ** (symgrad.tensor(float(n)) if as_tensor else n), each(lambda s: s**n, a.model))

    def fit(self, *pairs):
        try:
            return np.prod(np.broadcast_shapes(*(p.model.shape for p in pairs)), dtype=int) <= 12
        except ValueError:
            return False

    @rule(target=values, a=values, b=values, name=st.sampled_from(sorted(BINARY)))
    def binary(self, a, b, name):
        return self.keep(getattr(symgrad, name)(a.tensor, b.tensor), each(BINARY[name], a.model, b.model)) if self.fit(a, b) else multiple()

    @rule(target=values, a=values, b=values)
    def quotient(self, a, b):
        if not self.fit(a, b):
            return multiple()
        return self.keep(a.tensor / (1 + b.tensor * b.tensor), each(lambda s, t: s / (t * t + t.constant(1.0)), a.model, b.model))

    @rule(target=values, a=values, b=values)
    def larger(self, a, b):
        if not self.fit(a, b):
            return multiple()
        difference = (a.tensor - b.tensor).detach().numpy()
        if not self.apart(difference, np.asarray(numbers(a.model) - numbers(b.model))):
            return multiple()
        return self.keep(symgrad.maximum(a.tensor, b.tensor), each(Scalar.maximum, a.model, b.model))

    @rule(target=values, a=values, b=values, c=values)
    def choice(self, a, b, c):
        if not self.fit(a, b, c) or not self.apart(numbers(a.model), a.tensor.detach().numpy()):
            return multiple()
        return self.keep(symgrad.where(a.tensor > 0, b.tensor, c.tensor), each(lambda s, t, u: t if s.value > 0 else u, a.model, b.model, c.model))

    @rule(target=values, a=values, number=EIGHTHS, how=st.integers(0, 3))
    def with_number(self, a, number, how):
        tensor = (a.tensor * number, number - a.tensor, a.tensor / 4, number / (2 + a.tensor.sin()))[how]
        model = (lambda s: s * s.constant(number), lambda s: s.constant(number) - s, lambda s: s * s.constant(0.25),
                 lambda s: s.constant(number) / (s.constant(2.0) + s.sin()))[how]
        return self.keep(tensor, each(model, a.model))

    @rule(target=values, a=values)
    def constant(self, a):
        return self.keep(a.tensor.detach(), each(lambda s: s.constant(s.value), a.model))

    @rule(target=values, a=values, axis=st.integers(0, 1), average=st.booleans())
    def reduce(self, a, axis, average):
        axis = axis if axis < a.model.ndim else None
        count = a.model.size if axis is None else a.model.shape[axis]
        summed = total(a.model, axis)
        if average:
            return self.keep(a.tensor.mean(axis), each(lambda s: s * s.constant(1 / count), summed))
        return self.keep(a.tensor.sum(axis), summed)

    @rule(target=values, a=values, how=st.integers(0, 5))
    def rearrange(self, a, how):
        t, m = a.tensor, a.model
        if how == 0:
            return self.keep(t.reshape(-1), m.reshape(-1))
        if how == 1:
            return self.keep(t.permute(*reversed(range(t.ndim))), m.transpose())
        if how == 2:
            return self.keep(t.unsqueeze(0), m[None])
        if t.ndim == 0:
            return multiple()
        if how == 3:
            return self.keep(t[-1], np.asarray(m[-1], object))
        if how == 4:
            return self.keep(t[[0, -1, 0]], m[[0, -1, 0]])
        return self.keep(t.flip(0), np.flip(m, 0))

    @rule(target=values, a=values, b=values, axis=st.integers(0, 1))
    def join(self, a, b, axis):
        if a.model.shape != b.model.shape or 2 * a.model.size > 12 or axis > a.model.ndim:
            return multiple()
        return self.keep(symgrad.stack([a.tensor, b.tensor], axis), np.stack([a.model, b.model], axis))

    @rule(target=values, a=values, b=values)
    def product(self, a, b):
        if a.model.ndim not in (1, 2) or b.model.ndim not in (1, 2) or a.model.shape[-1] != b.model.shape[0]:
            return multiple()
        left, right = a.model.reshape(-1, a.model.shape[-1]), b.model.reshape(b.model.shape[0], -1)
        out = [[functools.reduce(operator.add, (s * t for s, t in zip(row, column))) for column in right.T] for row in left]
        shape = (*a.model.shape[:-1], *b.model.shape[1:])
        return self.keep(a.tensor @ b.tensor, cells([s for row in out for s in row], shape))

    @rule(a=values, seed=st.integers(0, 2**16))
    def differentiate(self, a, seed):
        """The gradient of Σ w y by `grad` and, twice over, by `backward`; and the Hessian times a vector."""
        if not a.tensor.requires_grad:
            return
        rng = np.random.default_rng(seed)
        w = rng.integers(-8, 9, a.model.shape) / 8.0
        y = total(each(lambda s, v: s * s.constant(v), a.model, np.asarray(w, object)))[()]
        v = rng.integers(-8, 9, 6) / 8.0
        expected, product = np.array(y.gradient), np.array(y.hessian) @ v
        scale = max(1.0, np.max(np.abs(expected)), np.max(np.abs(y.hessian)))
        vectors, at = [], 0
        for leaf in self.leaves:
            vectors.append(symgrad.tensor(v[at:at + leaf.numel()].reshape(leaf.shape)))
            at += leaf.numel()

        def compare(found, true):
            flat = np.concatenate([np.ravel(g.detach().numpy()) for g in found])
            np.testing.assert_allclose(flat, true, rtol=1e-9, atol=1e-9 * scale)

        cotangent = symgrad.tensor(w)
        compare(autograd.grad(a.tensor, self.leaves, cotangent, retain_graph=True, materialize_grads=True), expected)
        gradient = autograd.grad(a.tensor, self.leaves, cotangent, create_graph=True, materialize_grads=True)
        compare(gradient, expected)
        along = sum((g * u).sum() for g, u in zip(gradient, vectors))
        if along.requires_grad:
            compare(autograd.grad(along, self.leaves, retain_graph=True, materialize_grads=True), product)
        else:
            assert not np.any(product)
        for _ in range(2):
            a.tensor.backward(cotangent, retain_graph=True)
        compare([symgrad.zeros_like(x) if x.grad is None else x.grad for x in self.leaves], 2 * expected)
        for leaf in self.leaves:
            leaf.grad = None


TestPrograms = Programs.TestCase
TestPrograms.settings = settings(stateful_step_count=30, max_examples=2 * settings.default.max_examples)


@pytest.mark.sweep
@pytest.mark.parametrize("factors", [(1 + 1e-6, 1.0), (1.0, 1 + 1e-6)], ids=["gradient", "second derivative"])
def test_one_of_the_two_off_by_a_millionth_is_noticed(monkeypatch, factors):
    def wrong(s):
        y = math.tanh(s.value)
        return s.of(y, factors[0] * (1 - y * y), -2 * factors[1] * y * (1 - y * y))

    monkeypatch.setitem(SAFE, "tanh", wrong)
    with pytest.raises((AssertionError, ExceptionGroup)):
        run_state_machine_as_test(Programs, settings=settings(TestPrograms.settings, max_examples=20_000, database=None, derandomize=True,
                                                              phases=[Phase.generate], print_blob=False, report_multiple_bugs=False))
