"""AdamW, which is `Adam` with decoupled weight decay."""

from symgrad.optim.adam import AdamW

__all__ = ["AdamW"]
