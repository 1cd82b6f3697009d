"""Memory that a pullback frees stays with the process, to be used by the next forward pass.

The allocator of glibc returns the top of the heap to the system when it is free and long enough, and the next pass gets it back page by page, which
takes as long as the arithmetic. One block above the arrays of a graph prevents this. Nobody writes into it, so that it takes addresses, not memory.
"""

from __future__ import annotations

import numpy as np

LEAST, MOST = 1 << 16, 1 << 25  # bytes; smaller arrays stay in any case, and larger ones are never part of the heap
_held = [np.empty(0, np.uint8)]


def hold_heap(nbytes: int) -> None:
    """Hold a block as long as the last array of a graph, which is allocated above the arrays of the graph."""
    if LEAST < nbytes <= MOST and nbytes > _held[0].nbytes:
        _held[0] = np.empty(nbytes, np.uint8)
