"""The rule tables. Importing this package imports its modules, which fill the registry."""

import importlib

for _name in """
activations arithmetic arranging convolution elementary elimination factorizations ldl linalg matrices matrix_functions mixed neural norms
reduction scatter selection shape special special_bessel spectra statistics
""".split():
    importlib.import_module(f"{__name__}.{_name}")
