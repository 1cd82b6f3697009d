"""The functions of `symgrad.distributed`, in torch's place for them."""

from symgrad import distributed
from symgrad.distributed import *  # noqa: F403  the names that its __all__ lists

__all__ = distributed.__all__
