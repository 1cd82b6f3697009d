"""Tensors, recording, and the passes over a recorded graph."""
