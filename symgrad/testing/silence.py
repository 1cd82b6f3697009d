"""The context in which the code of an op under test is called."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from symgrad.autograd import is_grad_enabled, set_grad_enabled
from symgrad.types.dtypes import get_default_dtype, set_default_dtype

__all__ = ["silence"]


class silence:
    """A context without floating-point errors and warnings, which restores the default dtype and the grad mode that the op may have changed."""

    def __enter__(self) -> None:
        self.modes = get_default_dtype(), is_grad_enabled()
        self.errors = np.errstate(all="ignore")
        self.warnings = warnings.catch_warnings()
        self.errors.__enter__()
        self.warnings.__enter__()
        warnings.simplefilter("ignore")

    def __exit__(self, *error: Any) -> None:
        self.warnings.__exit__(*error)
        self.errors.__exit__(*error)
        set_default_dtype(self.modes[0])
        set_grad_enabled(self.modes[1])
