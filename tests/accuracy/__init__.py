"""Tests of `accuracy`, `kinks` and `explain_nan`."""
