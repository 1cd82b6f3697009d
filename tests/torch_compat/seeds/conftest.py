"""The snippets are run by tests/torch_compat/test_seeds.py, never imported."""

collect_ignore_glob = ["*.py"]
