"""Griewank's Helmholtz energy: a gradient costs a few evaluations of the function, however many variables there are.

Operations are counted on the recorded graph, for n = 1 to 50 components; value and gradient are held to NumPy's in closed form.
"""

import numpy as np

import symgrad
from symgrad.graph.order import upstream

BOUND = 5.0  # the paper: a gradient at no more than five times the cost of the function
SHOWN = (1, 2, 5, 10, 20, 50)
GAS = 8.3145 * 300.0
ROOT2 = np.sqrt(2.0)
FREE = {"reshape", "broadcast_to", "derivative"}  # these only name or repeat what is there


def problem(n):
    """Amounts x, volumes b and attractions A of n components, with b·x < 1, so that every logarithm is defined."""
    rng = np.random.default_rng(n)
    root = rng.uniform(0.0, 1.0, (n, n))
    return rng.uniform(0.5, 1.5, n) / n, rng.uniform(0.1, 0.5, n), root + root.T


def energy(x, b, attraction):
    """E(x) = RT Σᵢ xᵢ log(xᵢ / (1 - b·x)) - xᵀAx / (√8 b·x) · log((1 + (1 + √2) b·x) / (1 + (1 - √2) b·x))."""
    filled = symgrad.dot(b, x)
    mixing = GAS * symgrad.sum(x * symgrad.log(x / (1.0 - filled)))
    attracted = symgrad.dot(x, symgrad.mv(attraction, x)) / (np.sqrt(8.0) * filled)
    return mixing - attracted * symgrad.log((1.0 + (1.0 + ROOT2) * filled) / (1.0 + (1.0 - ROOT2) * filled))


def by_hand(x, b, attraction):
    """The energy and its gradient in NumPy; the last logarithm has the derivative √8 / (1 + 2β - β²) with respect to β = b·x."""
    filled, pulled = b @ x, attraction @ x
    logarithm = np.log((1.0 + (1.0 + ROOT2) * filled) / (1.0 + (1.0 - ROOT2) * filled))
    value = GAS * np.sum(x * np.log(x / (1.0 - filled))) - x @ pulled / (np.sqrt(8.0) * filled) * logarithm
    mixing = GAS * (np.log(x / (1.0 - filled)) + 1.0 + b * x.sum() / (1.0 - filled))
    return value, mixing - ((2.0 * pulled - x @ pulled / filled * b) * logarithm / (np.sqrt(8.0) * filled)
                            + x @ pulled * b / (filled * (1.0 + 2.0 * filled - filled**2)))


def operations(node):
    """The additions, multiplications, divisions and logarithms of one recorded operation."""
    if not node.parents or node.op.name in FREE:
        return 0
    results = node.value.size
    if node.op.kind == "elementwise":
        return results
    if node.op.name in ("dot", "mv"):
        terms = node.args[-1].size
        return results * (2 * terms - 1)
    if node.op.name in ("sum", "sum_to_size"):
        return node.args[0].size - results
    raise ValueError(f"no rule says what {node.op.name} costs")


def count(*tensors):
    """All operations that the tensors were computed with, each once."""
    return sum(operations(node) for node in upstream([t._node for t in tensors]))


def measure(n):
    """The operations of the value, those of the value with its gradient, and the largest relative error of both."""
    amounts, b, attraction = problem(n)
    x = symgrad.tensor(amounts, requires_grad=True)
    seed = symgrad.tensor(1.0, requires_grad=True)  # everything that is done to the cotangent depends on it, so all of it is recorded
    value = energy(x, b, attraction)
    (gradient,) = symgrad.autograd.grad(value, x, seed, create_graph=True)
    true_value, true_gradient = by_hand(amounts, b, attraction)
    error = max(abs(value.item() / true_value - 1.0), np.abs(gradient.detach().numpy() / true_gradient - 1.0).max())
    return count(value), count(value, gradient), error


def main():
    """Print the counts as a table, and assert the bound and the derivatives for every n."""
    largest = 0.0
    print("| n | operations of E | of E and ∇E together | ratio | at most |")
    for n in range(1, 51):
        function, both, error = measure(n)
        assert error < 1e-13
        assert (function, both) == (2 * n**2 + 7 * n + 9, 4 * n**2 + 22 * n + 32)
        assert both <= BOUND * function
        largest = max(largest, both / function)
        if n in SHOWN:
            print(f"| {n} | {function} | {both} | {both / function:.2f} | {BOUND:.0f} |")
    assert largest == 58 / 18
    print(f"| 1 to 50 | 2n² + 7n + 9 | 4n² + 22n + 32 | {largest:.2f} or less | {BOUND:.0f} |")


if __name__ == "__main__":
    main()
