"""torch's module of `gradcheck`, which has the name of its function: the import gives the function, and the other names are its attributes."""

import sys
from typing import Any

from symgrad.testing.gradcheck.deprecated import get_analytical_jacobian, get_numerical_jacobian
from symgrad.testing.gradcheck.gradcheck import GradcheckError, gradcheck, gradgradcheck

__all__ = ["GradcheckError", "get_analytical_jacobian", "get_numerical_jacobian", "gradcheck", "gradgradcheck"]

_function: Any = gradcheck
for _each in (GradcheckError, get_analytical_jacobian, get_numerical_jacobian, gradcheck, gradgradcheck):
    setattr(_function, _each.__name__, _each)
sys.modules[__name__] = _function
