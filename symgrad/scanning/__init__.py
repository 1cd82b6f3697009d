"""Accuracy over the floats: how many digits a function and its derivatives keep, region by region."""
