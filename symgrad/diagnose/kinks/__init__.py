"""Kinks: points without a derivative, and the gradient returned there."""
