"""Random programs of vectors and matrices, for which matrix calculus must give a confirmed formula or say that there is none."""

import numpy as np

import symgrad
from symgrad import diag, dot, exp, logsumexp, norm, outer, sigmoid, sin, softmax, softplus, square, tanh, trace
from symgrad.matrixcalc import inv, logdet, solve

AXES = {"A": "mn", "B": "nn", "S": "nn", "x": "n", "y": "n", "b": "m", "c": ""}
FUNCTIONS = (exp, sin, tanh, sigmoid, softplus, square)


def leaves(rng, m=3, n=2):
    """The named arrays; S is symmetric and positive definite."""
    sizes = {"m": m, "n": n}
    out = {name: rng.uniform(0.2, 1.0, [sizes[a] for a in axes]) for name, axes in AXES.items()}
    out["S"] = out["S"] @ out["S"].T + np.eye(n)
    return {name: symgrad.tensor(value, requires_grad=True, symbol=name) for name, value in out.items()}


class Program:
    """A scalar made of the leaves, by choices that `pick(options)` makes."""

    def __init__(self, pick, leaves):
        self.pick, self.leaves = pick, leaves

    def draw(self, axes, depth):
        """A value with the given axes."""
        own = [name for name, found in AXES.items() if found == axes]
        if depth <= 0:
            if own:
                return self.leaves[self.pick(own)]
            return self.leaves["A"].T if axes == "nm" else self.leaves["A"] @ self.leaves["A"].T
        shaped = {0: self.scalar, 1: self.vector, 2: self.matrix}[len(axes)]
        kind = self.pick(["common", "special", "special"])
        return self.common(axes, depth - 1) if kind == "common" else shaped(axes, depth - 1)

    def axis(self):
        return self.pick("mn")

    def common(self, axes, depth):
        kind = self.pick(["add", "sub", "mul", "function", "scale"])
        first = self.draw(axes, depth)
        if kind == "function":
            return self.pick(FUNCTIONS)(first / 4)
        if kind == "scale":
            return self.pick([2, -3, 0.5, self.leaves["c"]]) * first
        second = self.draw(axes, depth)
        return first + second if kind == "add" else first - second if kind == "sub" else first * second

    def scalar(self, axes, depth):
        kind = self.pick(["dot", "quadratic", "trace", "sum", "mean", "norm", "logsumexp", "logdet", "quotient"])
        if kind == "dot":
            a = self.axis()
            return dot(self.draw(a, depth), self.draw(a, depth))
        if kind == "quadratic":
            a, b = self.axis(), self.axis()
            return self.draw(a, depth) @ self.draw(a + b, depth) @ self.draw(b, depth)
        if kind == "trace":
            return trace(self.draw(2 * self.axis(), depth))
        if kind in ("sum", "mean"):
            return getattr(self.draw(self.pick(["m", "n", "mn", "nn"]), depth), kind)()
        if kind == "norm":
            return norm(self.draw(self.pick(["m", "n", "mn"]), depth))
        if kind == "logsumexp":
            return logsumexp(self.draw(self.axis(), depth), 0)
        if kind == "logdet":
            return logdet(self.positive())
        return self.draw("", depth) / self.pick([1 + self.leaves["c"] ** 2, norm(self.leaves["x"])])

    def vector(self, axes, depth):
        kind = self.pick(["product", "product", "diagonal", "rows", "softmax", "solve"])
        if kind == "product":
            a = self.axis()
            return self.draw(axes + a, depth) @ self.draw(a, depth)
        if kind == "diagonal":
            return diag(self.draw(2 * axes, depth))
        if kind == "rows":
            return self.draw(axes + self.axis(), depth).sum(1)
        if kind == "softmax":
            return softmax(self.draw(axes, depth), 0)
        return solve(self.positive(), self.draw("n", depth)) if axes == "n" else self.draw("mn", depth) @ self.draw("n", depth)

    def matrix(self, axes, depth):
        kind = self.pick(["product", "product", "transpose", "outer", "diagonal", "bias", "inverse"])
        if kind == "product":
            a = self.axis()
            return self.draw(axes[0] + a, depth) @ self.draw(a + axes[1], depth)
        if kind == "transpose":
            return self.draw(axes[::-1], depth).T
        if kind == "outer":
            return outer(self.draw(axes[0], depth), self.draw(axes[1], depth))
        if kind == "diagonal":
            return diag(self.draw(axes[0], depth)) @ self.draw(axes, depth)
        if kind == "inverse" and axes == "nn":
            return inv(self.positive())
        return self.draw(axes, depth) + self.draw(axes[1], depth)

    def positive(self):
        """A matrix that has an inverse."""
        a, b, s = self.leaves["A"], self.leaves["B"], self.leaves["S"]
        return self.pick([s, s + a.T @ a, s + b.T @ b, s @ s, 2 * s])
