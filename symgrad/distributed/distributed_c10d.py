"""The functions of `symgrad.distributed`, in torch's place for them."""

from symgrad import distributed
from symgrad.distributed import *  # noqa: F403  the names that its __all__ lists

__all__ = distributed.__all__
__getattr__, __path__ = distributed.__getattr__, list[str]()
