"""Memory of others, files and anomaly mode beside torch. Calls of one line are in `calls/settings_and_windows.txt`."""

import math
import warnings

import numpy as np
import pytest
import torch

import symgrad

pytestmark = pytest.mark.usefixtures("double_precision")


def test_memory_is_shared_through_dlpack_and_files(tmp_path):
    x = np.zeros(3)
    symgrad.from_dlpack(x)[1] = 2.0
    assert x.tolist() == [0.0, 2.0, 0.0]
    y = symgrad.zeros(3)
    np.from_dlpack(y)[0] = 5.0
    torch.from_dlpack(y)[1] = 6.0
    symgrad.from_dlpack(torch.from_dlpack(y))[2] = 7.0
    symgrad.from_dlpack(symgrad.to_dlpack(y))
    assert y.tolist() == [5.0, 6.0, 7.0] and y.__dlpack_device__() == (1, 0)
    assert symgrad.from_dlpack(x, copy=True).fill_(1.0).sum() == 3 and x.sum() == 2
    path = str(tmp_path / "numbers")
    symgrad.from_file(path, shared=True, size=3, dtype=symgrad.float32).copy_(symgrad.tensor([1.0, 2.0, 3.0]))
    assert torch.from_file(path, size=3, dtype=torch.float32).tolist() == [1.0, 2.0, 3.0]
    private = symgrad.from_file(path, size=2, dtype=symgrad.float32)
    private.zero_()
    assert symgrad.from_file(path, size=3, dtype=symgrad.float32).tolist() == [1.0, 2.0, 3.0]
    with pytest.raises(RuntimeError, match="has not the size for 9 elements"):
        symgrad.from_file(path, size=9)


def test_anomaly_mode_is_switched():
    symgrad.set_anomaly_enabled(True)
    try:
        x = symgrad.tensor(0.0, requires_grad=True)
        with pytest.raises(RuntimeError, match="returned nan values"), warnings.catch_warnings(action="ignore"):
            (0 * x.sqrt()).backward()
    finally:
        symgrad.set_anomaly_enabled(False)
    assert not symgrad.set_flush_denormal(True) and math.ulp(0.0) * symgrad.ones(()) > 0
