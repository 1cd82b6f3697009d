"""Tests of programs and of what runs them."""
