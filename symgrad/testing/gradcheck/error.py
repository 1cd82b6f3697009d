"""The error of `gradcheck`."""

__all__ = ["GradcheckError"]


class GradcheckError(RuntimeError):
    """A wrong derivative found by `gradcheck` or `gradgradcheck`; the message has both values."""
