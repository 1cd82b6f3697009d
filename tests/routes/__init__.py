"""Tests that compute one thing by every route."""
