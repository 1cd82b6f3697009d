"""Bettencourt, Johnson and Duvenaud's Taylor mode: nested derivatives grow exponentially with their order, Taylor mode quadratically.

The operations are counted on the recorded graphs, for orders 1 to 8, beside the sizes of the programs that JAX makes for the same function.
"""

import symgrad
from symgrad import func
from symgrad.graph.modes import Recorder, in_mode
from symgrad.graph.order import upstream

POINT = 0.5
# Equations of jax.make_jaxpr for jax.grad, nested, and for jax.experimental.jet with the series [1, 0, 0, ...]; JAX 0.10.2.
JAX_NESTED = (22, 64, 154, 358, 849, 2098, 5419, 14540)
JAX_TAYLOR = (55, 113, 189, 283, 395, 525, 673, 839)
MADE_UP = {"input", "derivative"}  # nodes of arguments and of derivatives, which compute nothing


def f(x):
    """f(x) = sin(x tanh x) + exp(-x²)."""
    return symgrad.sin(x * symgrad.tanh(x)) + symgrad.exp(-x * x)


def recorded(transform, *args):
    """What a transform returns; under an observer every operation of it is recorded as a node of its own."""
    with in_mode(observers=(Recorder(),)):
        return transform(*args)


def operations(*tensors):
    """The operations that the tensors were computed with, each once."""
    return sum(bool(node.parents) and node.op.name not in MADE_UP for node in upstream([t._node for t in tensors]))


def main():
    """Print the sizes as a table, and assert them, how they grow, and that the derivatives are the same."""
    x = symgrad.tensor(POINT, requires_grad=True)
    nested, taylor, exact, function = [], [], f(x), f
    print("| order | nested, JAX | nested | Taylor, JAX | Taylor |")
    for order in range(1, 9):
        (exact,) = symgrad.autograd.grad(exact, x, create_graph=True)
        function = func.grad(function)
        value, series = recorded(func.jet, f, (x,), ([1.0] + [0.0] * (order - 1),))
        for found in series[-1], function(x):
            assert abs(found.item() / exact.item() - 1.0) < 1e-14
        nested.append(operations(exact))
        taylor.append(operations(value, *series))
        print(f"| {order} | {JAX_NESTED[order - 1]} | {nested[-1]} | {JAX_TAYLOR[order - 1]} | {taylor[-1]} |")
    assert tuple(nested) == (18, 47, 111, 270, 674, 1734, 4577, 12362)
    assert all(larger > 2.3 * smaller for sizes in (nested, JAX_NESTED) for smaller, larger in zip(sizes, sizes[1:]))
    assert taylor == [(15 * k**2 + 19 * k + 12) // 2 for k in range(1, 9)]
    assert list(JAX_TAYLOR) == [9 * k**2 + 31 * k + 15 for k in range(1, 9)]


if __name__ == "__main__":
    main()
