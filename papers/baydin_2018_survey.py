"""Baydin, Pearlmutter, Radul and Siskind 2018: expression swell, the error of finite differences, and a trace by hand, each with its answer here."""

import math

import sympy

import symgrad
from symgrad import func

POINT = 0.2
DERIVATIVE = (64, -2688, 32256, -168960, 450560, -638976, 458752, -131072)  # of the fourth iterate, from x⁰ to x⁷
SWELL = {2: (2, 2), 3: (21, 12), 4: (82, 27), 5: (264, 45), 6: (768, 67), 7: (2096, 93), 8: (5472, 123)}  # written out, shared


def logistic(x, n):
    """The n-th iterate of the logistic map: l₁ = x, lₙ₊₁ = 4 lₙ (1 - lₙ)."""
    for _ in range(n - 1):
        x = 4 * x * (1 - x)
    return x


def operations(*formulas):
    """The operations of formulas, as SymPy counts them."""
    return sum(int(sympy.count_ops(formula)) for formula in formulas)


def swell():
    """Table 1's subject: how the derivative of the iterates grows when it is written out, and what it is when parts are shared."""
    x = sympy.Symbol("x", real=True)
    print("| n | operations of lₙ' written out | with shared parts | lines in symgrad | lₙ'(0.2) |")
    for n, expected in SWELL.items():
        raw = sympy.diff(logistic(x, n), x)
        lines, last = sympy.cse(raw)
        found = operations(raw), operations(*(e for _, e in lines), *last)
        assert found == expected
        at = symgrad.tensor(POINT, requires_grad=True, symbol="x")
        logistic(at, n).backward()
        steps = at.grad.assignments()
        assert steps[-1][1].free_symbols and len(steps) <= 7 * n
        true = float(raw.subs(x, sympy.Rational(1, 5)))
        assert math.isclose(at.grad.item(), true, rel_tol=1e-13)
        print(f"| {n} | {found[0]} | {found[1]} | {len(steps)} | {true:.7f} |")
    at = symgrad.tensor(POINT, requires_grad=True, symbol="x")
    logistic(at, 4).backward()
    assert sympy.Poly(at.grad.expr, sympy.Symbol("x", real=True)).all_coeffs()[::-1] == list(DERIVATIVE)


def differences():
    """Figure 3's subject: the error of difference quotients of l₄ at 0.2, and that of the derivatives computed here."""
    exact, bend = (float(sum(math.prod(range(k, k - order, -1)) * sympy.Rational(c, k) * sympy.Rational(1, 5) ** (k - order) if k >= order else 0
                             for k, c in enumerate(DERIVATIVE, 1))) for order in (1, 2))
    assert (round(exact, 7), round(bend, 6)) == (9.0660864, 67.395584)

    def f(x):  # the form in which the paper writes l₄
        return 64 * x * (1 - x) * (1 - 2 * x) ** 2 * (1 - 8 * x + 8 * x**2) ** 2

    print("\n| h | error of (f(x + h) - f(x)) / h | error of (f(x + h) - f(x - h)) / 2h |")
    best = [(math.inf, 0.0), (math.inf, 0.0)]
    for k in range(1, 14):
        h = 10.0**-k
        errors = abs((f(POINT + h) - f(POINT)) / h - exact), abs((f(POINT + h) - f(POINT - h)) / (2 * h) - exact)
        best = [min(old, (e, h)) for old, e in zip(best, errors)]
        print(f"| 1e-{k} | {errors[0]:.1e} | {errors[1]:.1e} |")
    (forward, h), (central, k) = best
    assert (f"{forward:.1e}", h) == ("7.4e-08", 1e-9) and (f"{central:.1e}", k) == ("5.5e-11", 1e-7)
    first, second = func.grad(f)(POINT).item(), func.grad(func.grad(f))(POINT).item()
    assert abs(first - exact) <= 4 * math.ulp(exact) and abs(second - bend) <= 16 * math.ulp(bend)
    print(f"| symgrad | {abs(first - exact):.0e} | {abs(second - bend):.0e} for the second derivative |")


def trace():
    """Tables 2 to 4: y = ln x₁ + x₁ x₂ - sin x₂ at (2, 5), forward, in reverse, and once more for the Hessian."""
    def f(x):
        return symgrad.log(x[0]) + x[0] * x[1] - symgrad.sin(x[1])

    x = symgrad.tensor([2.0, 5.0])
    value, slope = func.jvp(f, (x,), (symgrad.tensor([1.0, 0.0]),))
    gradient, hessian = func.grad(f)(x).tolist(), func.hessian(f)(x).tolist()
    true = [0.5 + 5, 2 - math.cos(5.0)]
    assert f"{value.item():.4f}" == "11.6521" and slope.item() == gradient[0] == true[0] and math.isclose(gradient[1], true[1], rel_tol=1e-15)
    assert [[round(e, 4) for e in row] for row in hessian] == [[-0.25, 1.0], [1.0, -0.9589]]
    print("\n| at (2, 5) | value |")
    print(f"| y | {value.item():.4f} |\n| ∂y/∂x₁, forward | {slope.item():.4f} |")
    print(f"| ∂y/∂x₁, ∂y/∂x₂, in reverse | {gradient[0]:.4f}, {gradient[1]:.4f} |")
    print(f"| Hessian | {', '.join(f'{e:.4f}' for row in hessian for e in row)} |")


def main():
    """Print the three tables and assert their numbers."""
    swell()
    differences()
    trace()


if __name__ == "__main__":
    main()
