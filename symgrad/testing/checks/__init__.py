"""The checks: each a public function, all of them in the table CHECKS, in the order in which they run."""

from symgrad.testing.attack import Check
from symgrad.testing.checks.base import CHECKS, check, run
from symgrad.testing.checks.calling import check_determinism, check_errors, check_pickling, check_threads
from symgrad.testing.checks.consistency import check_adjoint, check_linearity, check_mixed, check_symmetry
from symgrad.testing.checks.differences import check_differences
from symgrad.testing.checks.dtypes import check_complex, check_dtypes
from symgrad.testing.checks.memory import check_aliasing, check_layouts, check_mutation
from symgrad.testing.checks.numbers import (
    check_compiled,
    check_digits,
    check_formulas,
    check_proof,
    check_pullback,
    check_pushforward,
    check_second,
    check_special,
    check_third,
    check_value,
)
from symgrad.testing.checks.shapes import check_batching, check_broadcasting, check_empty, check_scalars, check_structure
from symgrad.testing.checks.sizes import check_sizes

__all__ = ["CHECKS", "Check", "check", "check_adjoint", "check_aliasing", "check_batching", "check_broadcasting", "check_compiled", "check_complex",
           "check_determinism", "check_differences", "check_digits", "check_dtypes", "check_empty", "check_errors", "check_formulas", "check_layouts",
           "check_linearity", "check_mixed", "check_mutation", "check_pickling", "check_proof", "check_pullback", "check_pushforward",
           "check_scalars", "check_second", "check_sizes", "check_special", "check_structure", "check_symmetry", "check_third", "check_threads",
           "check_value", "run"]

ORDER = ("value", "pullback", "pushforward", "second", "third", "special", "digits", "differences", "dtypes", "proof", "formulas",
         "adjoint", "linearity", "symmetry", "mixed", "complex", "structure", "sizes", "broadcasting", "batching", "scalars", "empty", "layouts",
         "mutation", "aliasing", "determinism", "threads", "pickling", "compiled", "errors")
for _name in ORDER:  # the checks with the most informative failures come first
    CHECKS[_name] = CHECKS.pop(_name)
