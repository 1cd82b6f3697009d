"""AdamW, which is `Adam` with decoupled weight decay."""

from symgrad.optim.adam import AdamW
from symgrad.types.absent import explained

__all__ = ["AdamW"]


__getattr__, __path__ = explained(__name__), list[str]()
