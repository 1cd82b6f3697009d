"""Strides, memory layouts, and index arrays."""
