"""Factories: unavailable devices, and symbols."""

import pytest

import symgrad


@pytest.mark.parametrize("make", [
    lambda: symgrad.zeros(2, device="cuda"), lambda: symgrad.tensor([1.0], device="cuda:0"), lambda: symgrad.ones(2).to("cuda"),
    lambda: symgrad.ones(2).cuda(), lambda: symgrad.ones_like(symgrad.ones(2), device=symgrad.device("cuda")), lambda: symgrad.ones(2).cuda(0),
    lambda: symgrad.rand(2, device="cuda"), lambda: symgrad.cuda.synchronize(), lambda: symgrad.ones(2).type("torch.cuda.FloatTensor"),
    lambda: symgrad.arange(3, device="cuda"), lambda: symgrad.Generator("cuda"),
])
def test_a_gpu_is_refused_with_torchs_error_and_the_remedy(make):
    with pytest.raises(AssertionError, match=r"Torch not compiled with CUDA enabled.*device=\"cpu\".*is_available"):
        make()


def test_other_devices_are_refused():
    for where in ("mps", "meta", "xla:1"):
        with pytest.raises(RuntimeError, match=f"there are no {where.partition(':')[0]} devices.*CPU"):
            symgrad.zeros(2, device=where)
    with pytest.raises(RuntimeError, match="strided"):
        symgrad.zeros(2, layout=symgrad.sparse_coo)


def test_the_default_device_is_that_of_a_thread():
    try:
        symgrad.set_default_device("cuda")
        assert symgrad.get_default_device() == symgrad.device("cuda")
        with pytest.raises(AssertionError, match="CUDA"):
            symgrad.zeros(2)
        with symgrad.device("cpu"):
            assert symgrad.zeros(2).device.type == "cpu"
    finally:
        symgrad.set_default_device(None)
    with symgrad.device("cuda:1"), pytest.raises(AssertionError, match="cuda:1"):
        symgrad.tensor(1.0)
    assert symgrad.zeros(1).tolist() == [0.0]


def test_rand_is_below_one_in_every_dtype():
    for dtype in (symgrad.float16, symgrad.bfloat16, symgrad.float32, symgrad.float64):
        x = symgrad.rand(20000, dtype=dtype)
        assert x.dtype is dtype and float(x.max()) < 1 and float(x.min()) >= 0
