"""The error of `gradcheck`."""

__all__ = ["GradcheckError"]


class GradcheckError(RuntimeError):
    """A derivative that `gradcheck` or `gradgradcheck` found wrong; the message says which, with both values."""
