"""Ops that are wrong in one way each, and right ones that are difficult, for the testing kit to tell apart."""
