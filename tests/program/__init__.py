"""Tests of programs: recording, back ends, and compiled functions."""
