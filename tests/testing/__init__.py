"""Tests of the testing kit: checks, strategies, the plugin, gradcheck, ghostwriting, mutants."""
