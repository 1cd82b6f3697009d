"""Arguments that are split into parts, and results that are joined."""

from symgrad.nn.parallel.data_parallel import gather, scatter, scatter_kwargs

__all__ = ["gather", "scatter", "scatter_kwargs"]
