"""Pitfalls of automatic differentiation, after Hückelheim et al. 2024: a program for each, its derivative, the one wanted, and what symgrad says.

Where symgrad does not notice a pitfall, that is asserted, too.
"""

import math

import symgrad
from symgrad import explain_nan, func, kinks


def slope(function, x):
    """The derivative by the pullback; 0 where the result does not depend on x."""
    x = symgrad.tensor(x, requires_grad=True)
    y = function(x)
    return symgrad.autograd.grad(y, x)[0].item() if y.requires_grad else 0.0


# Problems of the mathematical function


def chaotic(x):
    """Forty steps of the logistic map."""
    for _ in range(40):
        x = 4 * x * (1 - x)
    return x


def chaos():
    """The derivative is right, and so large that the value itself has no digits left."""
    report = symgrad.check(chaotic, 0.2, order=1, points=2)
    value, gradient = report.errors
    assert report.verdict == "verified" and value.condition > 1e11 and gradient.condition > 1e11
    return ("chaos", "40 steps of l ← 4 l (1 - l) from 0.2", f"{report.gradient['x']:.1e}", "a trend", f"check: verified, with a condition of "
            f"{value.condition:.0e}")


def average(w):
    """The mean of sin(w t)² over 0 < t < 100."""
    t = (symgrad.arange(400.0) + 0.5) * 0.25
    return (w * t).sin().square().mean()


def time_average():
    """The mean over all time is 1/2 for every w; the derivative of a finite mean does not tend to 0."""
    report = symgrad.check(average, 1.0, order=1, points=2)
    found = report.gradient["w"]
    assert report.verdict in ("proved", "verified") and abs(average(symgrad.tensor(1.0)).item() - 0.5) < 0.01 and abs(found) > 0.1
    return "time averages", "mean of sin(w t)² for t < 100, at w = 1", f"{found:.3f}", "0", "not detected (check: right)"


# Problems of the implementation


def stepped(x):
    """x, on a grid."""
    return (x / 0.1).floor() * 0.1


def discretization():
    """A rounded number of steps has the derivative 0 everywhere."""
    report = kinks(stepped, inputs=0.55, distance=0.5)
    assert slope(stepped, 0.55) == 0 and [k.kind for k in report.kinks] == ["jump"] and report.verdict == "inside"
    return "discretization", "0.1 floor(x / 0.1) at 0.55", "0", "1", "kinks: a jump of floor within 0.5"


def heron(a):
    """The square root by Heron's iteration, which begins at 2 and stops where the residual is small."""
    x = symgrad.tensor(2.0)
    for _ in range(40):
        if abs(x * x - a) <= 1e-8:
            break
        x = (x + a / x) / 2
    return x


def fixed_point():
    """Where the first guess is right, the loop is left before the result depends on a; the implicit function theorem does not mind."""
    report = symgrad.check(heron, 4.0, order=1, points=2)
    assert report.verdict == "not checkable" and "does not depend on the inputs" in report.reason
    right = func.grad(func.implicit_root(lambda x, a: x * x - a, heron))(symgrad.tensor(4.0)).item()
    assert right == 0.25
    return ("fixed-point loops", "√a by iteration from 2, at a = 4", f"{slope(heron, 4.0):g}", "0.25",
            f"check: no dependence; implicit_root: {right:g}")


def tabulated(x):
    """sin(x) from a table of steps of 1/2, by lines between its points."""
    table = [math.sin(k / 2) for k in range(8)]
    k = int(x.item() * 2)
    return table[k] + (table[k + 1] - table[k]) * (2 * x - k)


def lookup():
    """The derivative is that of the lines."""
    found = slope(tabulated, 1.1)
    assert kinks(tabulated, inputs=1.1).verdict == "inside" and abs(found - math.cos(1.1)) > 0.1
    assert symgrad.check(tabulated, 1.1, order=1, points=2, formula="sin(x)").verdict == "refuted"
    return ("lookup tables", "sin(1.1) by lines between points 1/2 apart", f"{found:.3f}", f"{math.cos(1.1):.3f}",
            "refuted only by check with the formula sin(x)")


def jacobi(theta):
    """x with [[2, θ], [θ, 2]] x = (1, 0), by twelve steps of Jacobi's iteration."""
    x, y = symgrad.tensor(0.0), symgrad.tensor(0.0)
    for _ in range(12):
        x, y = (1 - theta * y) / 2, -theta * x / 2
    return symgrad.stack([x, y])


def linear_solver():
    """The derivative of the iterates converges more slowly than they do."""
    at, x = symgrad.tensor(1.0), 2 / 3
    true = 2 * 2 / (4 - 1) ** 2  # of 2 / (4 - θ²), by θ
    error = abs(jacobi(at)[0].item() - x) / x
    found = slope(lambda theta: jacobi(theta)[0], 1.0)
    solution = func.implicit_root(lambda v, theta: symgrad.stack([2 * v[0] + theta * v[1] - 1, theta * v[0] + 2 * v[1]]),
                                  lambda theta: symgrad.tensor([2.0, -1.0]) / 3)
    right = func.grad(lambda theta: solution(theta)[0])(at).item()
    assert 5 * error < abs(found - true) / true < 20 * error and abs(right - true) < 1e-15
    return ("linear solvers", "12 steps of Jacobi's iteration", f"error {abs(found - true) / true:.1e}", f"error {error:.1e}, as the value",
            "not detected; implicit_root is right")


def coins(p):
    """The share of heads among a thousand coins."""
    return (symgrad.rand(1000) < p).to(symgrad.float64).mean() + 0 * p


def probabilistic():
    """A sample is a step function of its probability."""
    symgrad.manual_seed(0)  # two samples can be equal by chance
    report = symgrad.check(coins, 0.3, order=1, points=2)
    assert report.verdict == "not checkable" and "random or keeps a state" in report.reason and slope(coins, 0.3) == 0
    return "probabilistic programs", "share of heads, probability p", "0", "1", "check: not checkable, the function is random"


# Problems of single operations, and others


def overflow():
    """What is finite goes through infinity."""
    def naive(x):
        return (1 + x.exp()).log()

    report = explain_nan(naive, inputs=800.0)
    assert report.forward.op == "exp" and report.order == 0 and "softplus" in report.remedies[0] and math.isnan(slope(naive, 800.0))
    assert slope(symgrad.softplus, 800.0) == 1
    return "overflow", "log(1 + exp(x)) at 800", "nan", "1", "explain_nan: exp overflows; softplus"


def cancellation():
    """A rule in a form that loses its digits."""
    found = slope(symgrad.tanh, 20.0)
    y = math.tanh(20.0)
    assert abs(found / 1.6993417021166355e-17 - 1) < 4e-16 and 1 - y * y == 0
    return "cancellation in a rule", "tanh at 20, with 1 - y²", f"{1 - y * y:g}", "1.7e-17", f"right by construction: {found:.1e}"


def infinite_times_zero():
    """The root of a square."""
    def root(x):
        return (x * x).sqrt()

    report = explain_nan(root, inputs=0.0)
    assert report.backward.op == "SqrtBackward0" and math.isnan(slope(root, 0.0)) and kinks(root, inputs=0.0).verdict == "outside"
    return "0 times infinity", "√(x²) at 0", "nan", "-1 to 1", "kinks: outside; explain_nan: sqrt at 0"


def untaken():
    """A branch of where that is not taken."""
    found = slope(lambda x: symgrad.where(x > 0, x.sqrt(), 0 * x), 0.0)
    assert found == 0
    return "an untaken branch", "where(x > 0, √x, 0) at 0", "nan in other systems", "0", f"right by construction: {found:g}"


def kinked():
    """Two kinks that cancel."""
    def straight(x):
        return symgrad.relu(x) - symgrad.relu(-x)

    assert kinks(straight, inputs=0.0).verdict == "outside" and slope(straight, 0.0) == 0
    return "kinks", "relu(x) - relu(-x) at 0", "0", "1", "kinks: outside"


def special_case(x):
    """x², with a short cut."""
    if x == 1:
        return 1 + 0 * x
    return x * x


def branch():
    """The derivative of a branch that holds at one point is that of its formula."""
    assert kinks(special_case, inputs=1.0).verdict == "outside" and symgrad.check(special_case, 1.0, order=1, points=2).verdict == "proved"
    return "a branch at one point", "x², by `if x == 1: return 1`, at 1", f"{slope(special_case, 1.0):g}", "2", "kinks: outside"


def detached():
    """A value that leaves the graph."""
    def square(x):
        return x * x.item()

    report = symgrad.check(square, 3.0, order=1, points=2)
    assert report.verdict == "refuted" and "numbers leave the graph by item()" in str(report)
    return "a value that left the graph", "x · x.item() at 3", f"{slope(square, 3.0):g}", "6", "check: refuted, with the line of item()"


def overwritten():
    """A value that the pullback needs, written in place."""
    x = symgrad.tensor(1.0, requires_grad=True)
    y = x.exp()
    y.add_(1)
    try:
        y.backward()
    except RuntimeError as error:
        assert "modified by an inplace operation" in str(error)
        return "a value written in place", "y = exp(x); y += 1", "wrong where it is not noticed", "2.72", "an error, with the line"
    raise AssertionError("no error")


PITFALLS = (chaos, time_average, discretization, fixed_point, lookup, linear_solver, probabilistic,
            cancellation, overflow, infinite_times_zero, untaken, kinked, branch, detached, overwritten)


def main():
    """Print a row for each pitfall, and assert what it says."""
    print("| pitfall | program | derivative by AD | wanted | symgrad says |")
    for pitfall in PITFALLS:
        print("| " + " | ".join(pitfall()) + " |")


if __name__ == "__main__":
    main()
