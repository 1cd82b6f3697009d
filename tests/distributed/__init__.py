"""Tests of several processes, which `mpiexec` starts."""
