"""The snippets are run by tests/test_seeds.py, never imported."""

collect_ignore_glob = ["*.py"]
