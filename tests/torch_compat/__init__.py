"""Tests of what programs written for torch expect: names, snippets, data loaders, state dicts, event files."""
