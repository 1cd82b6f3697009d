"""Tests of modules and optimisers."""
