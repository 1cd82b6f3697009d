"""Proofs of the rules of ops."""
