"""The checks: each a public function, all of them in the table CHECKS, in the order in which they are run."""

from symgrad.testing.checks.base import CHECKS, Check, check, run
from symgrad.testing.checks.consistency import check_adjoint, check_linearity, check_symmetry
from symgrad.testing.checks.shapes import check_batching, check_broadcasting, check_empty, check_scalars, check_structure

__all__ = ["CHECKS", "Check", "check", "check_adjoint", "check_batching", "check_broadcasting", "check_empty", "check_linearity", "check_scalars",
           "check_structure", "check_symmetry", "run"]
