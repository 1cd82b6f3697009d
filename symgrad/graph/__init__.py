"""Ops, nodes, and the modes of recording."""
