"""Tests of identity, conditions, factors, stable forms and the ladder of precision."""
