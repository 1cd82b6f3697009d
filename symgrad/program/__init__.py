"""Recorded computations as lists of steps."""
