"""Passes are recorded at the second use of a graph's signature, so that every repeated call in these tests runs a program."""

import pytest

from symgrad.program import passes


@pytest.fixture(autouse=True)
def early_recording(monkeypatch):
    monkeypatch.setattr(passes, "RECORDING_USE", 2)
