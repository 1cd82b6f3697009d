"""Doctests of modules whose optional package is not installed are not collected."""

from importlib.util import find_spec

PACKAGES = {"carriers/ball.py": "flint", "utils/tensorboard/writer.py": "tensorboard"}
collect_ignore = [path for path, package in PACKAGES.items() if find_spec(package) is None]
