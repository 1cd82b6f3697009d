"""Tests of tensors, recording, storage, views, hooks, saved values and modes."""
