"""Helpers around the operating system and the interpreter: files, locks, frames, error states, limits."""
