"""Kinks and the causes of NaN."""
