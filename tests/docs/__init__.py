"""Tests of the pages, examples, papers, layers, stub files and benchmarks' tables."""
