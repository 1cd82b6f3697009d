"""torch's module of `gradcheck`, which has the name of its function: after an import of the module, it is called in place of the function."""

import sys
from types import ModuleType

from symgrad.testing.gradcheck.gradcheck import GradcheckError, gradcheck, gradgradcheck

__all__ = ["GradcheckError", "gradcheck", "gradgradcheck"]


class _CallableModule(ModuleType):
    """A module that is called as its function."""

    __call__ = staticmethod(gradcheck)


sys.modules[__name__].__class__ = _CallableModule
