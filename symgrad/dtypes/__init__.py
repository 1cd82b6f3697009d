"""Dtypes with the names of PyTorch, their promotion, and the unit in the last place."""
