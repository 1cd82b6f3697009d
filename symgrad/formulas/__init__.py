"""Formulas of tensors: expressions, let-form, parsing."""
