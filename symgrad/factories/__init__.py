"""Functions that create tensors."""
