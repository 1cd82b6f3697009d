"""Programs keep the sign of every zero: what is simplified is the same number in every bit."""

import itertools

import numpy as np
import pytest

import symgrad
from symgrad import func
from symgrad.program.backends import has_compiler

tensor = symgrad.tensor
BACKENDS = ["numpy", "interpreter", pytest.param("c", marks=pytest.mark.skipif(not has_compiler(), reason="no C compiler"))]
ZEROS = {"0": 0, "0.0": 0.0, "-0.0": -0.0, "a tensor": tensor(0.0), "a negative tensor": tensor(-0.0), "an array": symgrad.full((16,), -0.0),
        "product of zeros": lambda x: 0.0 * x}
FORMS = {
    "x + z": lambda x, y, z: x + z, "z + x": lambda x, y, z: z + x, "x - z": lambda x, y, z: x - z, "z - x": lambda x, y, z: z - x,
    "-(x - y)": lambda x, y, z: -(x - y) + z, "(x - y) * -1 - z": lambda x, y, z: (x - y) * -1.0 - z, "-x + y": lambda x, y, z: -x + y - z,
    "x + -y": lambda x, y, z: x + -y + z, "-x - y": lambda x, y, z: (-x - y) * (z + 1.0), "-(-x)": lambda x, y, z: (-x).neg() - z,
    "-x * y": lambda x, y, z: -x * y + z, "-x / 3 - y": lambda x, y, z: -x / 3 - y + z, "(-x) * (-y)": lambda x, y, z: (-x) * (-y) - z,
    "x * -1 * -1": lambda x, y, z: x * -1.0 * -1.0 + z, "0 - x - y": lambda x, y, z: z - x - y,
}
VALUES = (0.0, -0.0, 1.0, -1.0)


@pytest.mark.parametrize("backend", BACKENDS)
def test_sums_and_signs_of_zeros(backend):
    x, y = (tensor(list(column)) for column in zip(*itertools.product(VALUES, VALUES)))

    def f(x, y):
        return symgrad.stack([form(x, y, zero(x) if callable(zero) else zero) for form in FORMS.values() for zero in ZEROS.values()])

    for true, found in zip(f(x, y).numpy(), symgrad.compile(f, backend=backend)(x, y).numpy()):
        assert true.tobytes() == found.tobytes()


def test_gradients_keep_the_sign_of_zeros():
    f = lambda x: (symgrad.exp(-1 / (x + 0.0)) + 1 / (2.0 - (x - x))).sum()  # noqa: E731
    with np.errstate(all="ignore"):
        for x in (tensor([0.0]), tensor([-0.0])):
            for transform in (lambda f: f, func.grad):
                np.testing.assert_array_equal(symgrad.compile(transform(f))(x).numpy(), transform(f)(x).numpy())
