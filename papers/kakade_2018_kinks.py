"""Derivatives at kinks, after Kakade and Lee 2018, Bolte and Pauwels 2020 and Bertoin et al. 2021: programs of one function with several derivatives.

Each program is differentiated at a kink by symgrad, with relu'(0) = 0, and with the choices 1/2 and 1; `symgrad.kinks` says which of these
numbers is a derivative at all. Then it is counted how often rounding puts a number on the kink, by the digits that a float has.
"""

import numpy as np

import symgrad
from symgrad import kinks

CHOICES = (0.0, 0.5, 1.0)
BITS = (8, 11, 14, 17, 20)
NETS, BATCH, WIDTH = 8, 2048, 256  # 4,194,304 numbers that relu is taken of
RELU = {s: symgrad.elementwise(f"relu_{k}", lambda xp, x: xp.relu(x),
                               lambda xp, y, x, s=s: xp.where(xp.eq(x, 0), s + 0 * x, xp.indicator(xp.gt(x, 0), y)))
        for k, s in enumerate(CHOICES)}  # relu with each choice of its derivative at 0


def straight(x, relu):
    """Kakade and Lee's second function: x."""
    return relu(x) - relu(-x)


# Each function as a program over relu, what it is in truth, and the derivative at 0 that the papers have for relu'(0) = 0.
PROGRAMS = [
    ("f1(x) = x", lambda x, relu: x, lambda x: x, 1.0),
    ("f2(x) = relu(x) - relu(-x)", straight, lambda x: x, 0.0),
    ("f3(x) = 10 f1(x) - 9 f2(x)", lambda x, relu: 10 * x - 9 * straight(x, relu), lambda x: x, 10.0),
    ("relu(x)", lambda x, relu: relu(x), lambda x: max(x, 0.0), 0.0),
    ("relu2(x) = relu(-x) + x", lambda x, relu: relu(-x) + x, lambda x: max(x, 0.0), 1.0),
    ("relu3(x) = (relu(x) + relu2(x)) / 2", lambda x, relu: (relu(x) + relu(-x) + x) / 2, lambda x: max(x, 0.0), 0.5),
    ("zero(x) = relu2(x) - relu(x)", lambda x, relu: relu(-x) + x - relu(x), lambda x: 0.0, 1.0),
    ("x - zero(x)", lambda x, relu: x - (relu(-x) + x - relu(x)), lambda x: x, 0.0),
    ("relu(x) - relu(x - relu(-x))", lambda x, relu: relu(x) - relu(x - relu(-x)), lambda x: 0.0, None),
]


def of_one(program, relu):
    """A program as a function of x alone."""
    return lambda x: program(x, relu)


def derivative(program, relu):
    """The derivative at 0 by the pullback."""
    x = symgrad.tensor(0.0, requires_grad=True)
    program(x, relu).backward()
    return x.grad.item()


def number(x):
    """A number as a table shows it."""
    return f"{x + 0.0:g}"


def programs():
    """The first table: three choices of relu'(0), the derivatives that there are, and what the kink report says of relu'(0) = 0."""
    print("| program | relu'(0) = 0 | 1/2 | 1 | true derivatives | kink report of the first |")
    for name, program, function, known in PROGRAMS:
        for x in (-1.5, -0.25, 0.0, 0.5, 3.0):
            assert program(symgrad.tensor(x), symgrad.relu).item() == function(x)
        found = [derivative(program, RELU[s]) for s in CHOICES]
        report = kinks(of_one(program, symgrad.relu), inputs=0.0)
        low, high = report.interval
        assert (low, high) == tuple(sorted((function(0.0) - function(-1.0), function(1.0) - function(0.0))))
        assert report.returned == found[0] == derivative(program, symgrad.relu) and known in (None, found[0])
        assert report.inside == (low <= found[0] <= high) and report.complete
        for s, slope in zip(CHOICES, found):
            assert kinks(of_one(program, RELU[s]), inputs=0.0).inside == (low <= slope <= high)
        true = number(low) if low == high else f"{number(low)} to {number(high)}"
        print(f"| {name} | {' | '.join(map(number, found))} | {true} | {report.verdict} |")


def rounded(x, bits):
    """Numbers with so many significant bits, the last one rounded."""
    mantissa, exponent = np.frexp(x)
    return np.ldexp(np.rint(np.ldexp(mantissa, bits)), exponent - bits)


def preactivations(seed, bits):
    """What the units of a layer take relu of, for random weights and data, where every operation is rounded to so many bits."""
    rng = np.random.default_rng(seed)

    def uniform(*shape):
        return rounded(rng.integers(-2**24, 2**24, shape) / 2**24, bits)

    data, weights, bias = uniform(BATCH, 2), uniform(2, WIDTH), uniform(WIDTH)
    products = [rounded(data[:, i, None] * weights[i], bits) for i in range(2)]
    return rounded(rounded(products[0] + products[1], bits) + bias, bits)


def counts():
    """The second table: how many of the numbers that relu is taken of are 0, and are so in how many of the layers."""
    total = NETS * BATCH * WIDTH
    print(f"| bits | zeros among {total:,} | layers with one, of {NETS} | expected by the first row |")
    first = 0
    for bits in BITS:
        zeros = [int((preactivations(seed, bits) == 0).sum()) for seed in range(NETS)]
        first = first or sum(zeros)
        expected = first / 2 ** (bits - BITS[0])
        assert abs(sum(zeros) - expected) <= 4 * expected**0.5 + 0.1 * expected
        print(f"| {bits} | {sum(zeros)} | {sum(z > 0 for z in zeros)} | {expected:.0f} |")
    rate = first / total * 2 ** BITS[0]
    for name, bits in (("half", 11), ("single", 24), ("double", 53)):
        print(f"{name} precision ({bits} bits): half of the passes meet a kink from {np.log(2) / (rate / 2**bits):.0e} units on")


def precisions():
    """The third table: 0.3 - (0.1 + 0.2) is 0 in single precision only, and then relu'(0) decides what the derivative of its relu is."""
    print("| dtype | 0.3 - (0.1 + 0.2) | relu'(0) = 0 | 1/2 | 1 | kink report of the first |")
    for dtype, slopes, verdict in ((symgrad.float32, [0.0, -0.5, -1.0], "outside"), (symgrad.float64, [0.0, 0.0, 0.0], "inside")):
        def difference(x, dtype=dtype):
            return symgrad.tensor(0.3, dtype=dtype) - (x + symgrad.tensor(0.2, dtype=dtype))

        found = []
        for s in CHOICES:
            x = symgrad.tensor(0.1, dtype=dtype, requires_grad=True)
            RELU[s](difference(x)).backward()
            found.append(x.grad.item())
        value = difference(symgrad.tensor(0.1, dtype=dtype)).item()
        report = kinks(lambda x: symgrad.relu(difference(x)), inputs=(symgrad.tensor(0.1, dtype=dtype),))
        assert found == slopes and report.verdict == verdict and (value == 0) == any(k.rounded for k in report.kinks)
        print(f"| {str(dtype).removeprefix('torch.')} | {value:.2g} | {' | '.join(map(number, found))} | {report.verdict} |")


def main():
    """Print the three tables, and assert them."""
    programs()
    counts()
    precisions()


if __name__ == "__main__":
    main()
