"""The checks: each a public function, all of them in the table CHECKS, in the order in which they run."""

from symgrad.testing.attack import Check
from symgrad.testing.checks import calling, complexes, consistency, differences, dtypes, memory, numbers, shapes, sizes  # noqa: F401  they fill the table
from symgrad.testing.checks.base import CHECKS, check, run

__all__ = ["CHECKS", "Check", "check", "run"]

ORDER = ("value", "pullback", "pushforward", "second", "third", "special", "digits", "differences", "dtypes", "proof", "formulas",
         "adjoint", "linearity", "symmetry", "mixed", "complex", "structure", "sizes", "broadcasting", "batching", "scalars", "empty", "layouts",
         "mutation", "aliasing", "determinism", "threads", "pickling", "compiled", "errors")
for _name in ORDER:  # the checks with the most informative failures come first
    CHECKS[_name] = CHECKS.pop(_name)
