"""Tests that run torch beside symgrad."""
