"""Kinks: where a function is not differentiable, and what was returned there."""
