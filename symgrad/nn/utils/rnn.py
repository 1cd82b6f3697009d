"""Sequences of different lengths, for recurrent networks."""

from symgrad.nn.sequences import (
    PackedSequence,
    invert_permutation,
    pack_padded_sequence,
    pack_sequence,
    pad_packed_sequence,
    pad_sequence,
    unpack_sequence,
    unpad_sequence,
)
from symgrad.types.absent import explained

__all__ = ["PackedSequence", "invert_permutation", "pack_padded_sequence", "pack_sequence", "pad_packed_sequence", "pad_sequence", "unpack_sequence",
           "unpad_sequence"]


__getattr__, __path__ = explained(__name__), list[str]()
