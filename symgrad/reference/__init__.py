"""Reference values: exact, high-precision, rigorous."""
