"""Pearlmutter's exact product with the Hessian, Hv = R{∇}: beside finite differences of the gradient, and what it costs.

The function is Rosenbrock's in n = 10 variables, whose Hv is known by hand, at 1000 random points; operations are counted on the recorded graph.
"""

import numpy as np

import symgrad
from symgrad import func
from symgrad.graph.order import upstream

DIFFERENCES = {1e-4: "4e-05", 1e-6: "4e-07", 1e-8: "2e-08", 1e-10: "2e-06", 1e-12: "2e-04"}  # errors of [∇(w + hv) - ∇(w)] / h
BOUND = 2.5  # times the operations of a gradient


def rosenbrock(w):
    """E(w) = Σ 100 (wᵢ₊₁ - wᵢ²)² + (1 - wᵢ)², summed over all points in the rows of w."""
    return symgrad.sum(100.0 * (w[..., 1:] - w[..., :-1] ** 2) ** 2 + (1.0 - w[..., :-1]) ** 2)


def gradient(w):
    """∇ at w, recorded so that it can be differentiated."""
    return symgrad.autograd.grad(rosenbrock(w), w, create_graph=True)[0]


def product(w, v):
    """∇ and R{∇} in the direction R{w} = v: the gradient's own graph, pushed forward."""
    return func.jvp(gradient, (w,), (v,))


def by_hand(w, v):
    """Hv in NumPy: the Hessian is tridiagonal."""
    here, ahead, left, right = w[..., :-1], w[..., 1:], v[..., :-1], v[..., 1:]
    out = np.zeros_like(v)
    out[..., :-1] = (1200.0 * here**2 - 400.0 * ahead + 2.0) * left - 400.0 * here * right
    out[..., 1:] += 200.0 * right - 400.0 * here * left
    return out


def draw(*shape):
    """Points w and directions v of length 1."""
    rng = np.random.default_rng(1)
    w, v = rng.uniform(0.5, 1.5, shape), rng.normal(size=shape)
    return w, v / np.linalg.norm(v, axis=-1, keepdims=True)


def errors(found, true):
    """The length of the difference at each point, in units of the length of what is true."""
    return np.linalg.norm(found - true, axis=-1) / np.linalg.norm(true, axis=-1)


def operations(*tensors):
    """The elementwise operations that the tensors were computed with, once for each element; slicing and placing are free."""
    return sum(node.value.size for node in upstream([t._node for t in tensors]) if node.parents and node.op.kind == "elementwise")


def main():
    """Print the errors and the costs as tables, and assert them."""
    w, v = draw(1000, 10)
    true = by_hand(w, v)
    print("| Hv by | median relative error |")
    for h, error in DIFFERENCES.items():
        before, after = (func.grad(rosenbrock)(x).numpy() for x in (w, w + h * v))
        assert f"{np.median(errors((after - before) / h, true)):.0e}" == error
        print(f"| finite differences, h = {h:.0e} | {error} |")
    for name, exact in ("`jvp` of the gradient", product(w, v)[1]), ("`hvp`", func.hvp(rosenbrock, w, v)):
        assert errors(exact.numpy(), true).max() < 1e-15
        print(f"| R{{∇}}, {name}, the largest | below 1e-15 |")

    print("| n | operations of R{∇} / operations of ∇ |")
    for n in (10, 100, 1000, 10000):
        slope, exact = product(*(symgrad.tensor(x, requires_grad=True) for x in draw(n)))
        assert 1.0 < operations(exact) / operations(slope) < BOUND
        print(f"| {n} | below {BOUND} |")


if __name__ == "__main__":
    main()
