"""Windows, short-time spectra, segments, memory of others, settings and functions of sizes, beside torch."""

import math
import warnings

import numpy as np
import pytest
import torch

import symgrad

pytestmark = pytest.mark.usefixtures("double_precision")

CALLS = """
m.bartlett_window(5)
m.bartlett_window(6, False)
m.blackman_window(5)
m.blackman_window(1, dtype=m.float32)
m.blackman_window(0)
m.hamming_window(5, True, 0.5, 0.4)
m.hann_window(7, periodic=False, dtype=m.float32)
m.hann_window(4, requires_grad=True)
m.hann_window(-1)
m.hann_window(3, dtype=m.int64)
m.hann_window(4.5)
m.kaiser_window(5)
m.kaiser_window(6, False, 3.0)
m.kaiser_window(2, False, 20.0)
x.dim_order()
x.t().dim_order()
x[None].dim_order(ambiguity_check=True)
m.tensor(1.0).dim_order()
x.resize(3, 2)
x.resize(4, 2)
x.t().resize(6)
x.resize_as(m.zeros(3, 2))
x.detach().clone().apply_(lambda v: v + 1)
x.detach().long().apply_(lambda v: v + 0.7)
x.apply_(lambda v: v)
x.detach().clone().map_(x.detach()[0], lambda a, b: a * b)
x.detach().clone().map_(x.detach().long(), lambda a, b: a * b)
x.detach().clone().map2_(x.detach(), x.detach(), lambda a, b, c: a + b * c)
x.map_(x, lambda a, b: a)
m.zeros(2, 3).module_load(x.detach())
m.zeros(2, 3).module_load(x.detach(), assign=True)
x.is_shared(), x.is_distributed(), m.is_distributed(x), x.const_data_ptr() == x.data_ptr()
m.empty_permuted((2, 3, 4), (0, 2, 1)).stride()
m.empty_permuted((2, 3, 4), (0, 2, 2))
m.empty_permuted((2, 3, 4), (0, 2))
m.empty_permuted((2, 3), (0, -1))
m.empty_permuted((2, 3), (1, 0), dtype=m.int32).dtype
m.hash_tensor(x)
m.hash_tensor(x, 1, keepdim=True)
m.hash_tensor(x.float(), (0, 1))
m.hash_tensor(x.long(), 0)
m.hash_tensor(x > 2)
m.hash_tensor(x + 1j)
m.hash_tensor(x, mode=1)
m.hash_tensor(x[:0])
m.hash_tensor(x[:0], 0)
m.hash_tensor(x[:0], 1)
m.hash_tensor(m.tensor(2.0))
x.hash_tensor(dim=5)
m.slice_inverse(x.detach()[:, 1:], x.detach(), 1, 1, None, 1).shape
x.detach().clone().polygamma_(2)
(x * x).polygamma(1) - m.special.polygamma(1, x * x)
m.binomial(m.tensor([10.0, 5.0]), m.tensor([0.0, 1.0]))
m.binomial(m.tensor([10, 5]), m.tensor([0.0, 1.0]))
m.binomial(m.tensor([1.0, 2.0]), m.tensor([[0.0], [1.0]]))
m.from_dlpack(m.to_dlpack(x.detach()))
m.from_dlpack(np.arange(3))
m.from_dlpack(x)
m.from_dlpack(3)
m.segment_reduce(x.t(), "sum", lengths=m.tensor([1, 2]))
m.segment_reduce(x.t(), "max", lengths=m.tensor([1, 0, 2]))
m.segment_reduce(x.t(), "mean", lengths=m.tensor([1, 0, 2]), initial=1.0)
m.segment_reduce(x.t(), "mean", lengths=m.tensor([1, 2]))
m.segment_reduce(x.t(), "prod", lengths=m.tensor([1, 0, 2]), initial=3.0)
m.segment_reduce(x.t(), "min", lengths=m.tensor([1, 0, 2]), initial=0.7)
m.segment_reduce(x, "min", lengths=m.tensor([[1, 2], [2, 1]]), axis=1)
m.segment_reduce(x.t(), "max", offsets=m.tensor([0, 1, 3]))
m.segment_reduce(x.t(), "min", lengths=m.tensor([1, 1]))
m.segment_reduce(x.t(), "min", lengths=m.tensor([1, 1]), unsafe=True)
m.segment_reduce(x.t(), "min", lengths=m.tensor([-1, 4]))
m.segment_reduce(x.t(), "foo", lengths=m.tensor([1, 2]))
m.segment_reduce(x.t(), "min")
m.segment_reduce(x.t(), "min", indices=m.tensor([1, 2]))
m.segment_reduce(x, "min", lengths=m.tensor([1, 2]), axis=1)
m.segment_reduce(x.detach().long(), "min", lengths=m.tensor([1, 1]))
m.segment_reduce(x.t(), "min", lengths=m.tensor([1.0, 2.0]))
m.stft(s, 8, return_complex=True)
m.stft(s, 8, 3, 6, m.hann_window(6), return_complex=True)
s.stft(8, 2, window=m.hann_window(8), center=False, normalized=True, onesided=False, return_complex=True)
m.stft(s[None] * m.tensor([[1.0], [2.0]]), 8, 2, pad_mode="constant", return_complex=False)
m.stft(s, 8, 2, pad_mode="circular", return_complex=True)
m.stft(s, 8, 2, pad_mode="replicate", return_complex=True)
m.stft(s * (1 + 2j), 8, 2)
m.stft(s, 8, 2, 6, m.hann_window(6), center=False, return_complex=True, align_to_window=True)
m.stft(s, 8)
m.stft(s, 8, 0, return_complex=True)
m.stft(s, 8, 2, 9, return_complex=True)
m.stft(s, 50, center=False, return_complex=True)
m.stft(s, 100, return_complex=True)
m.stft(s, 8, window=m.hann_window(7), return_complex=True)
m.stft(s * 1j, 8, onesided=True)
m.stft(s[None, None], 8, return_complex=True)
m.istft(m.stft(s, 8, 2, window=m.hann_window(8), return_complex=True), 8, 2, window=m.hann_window(8))
m.istft(m.stft(s, 8, 2, 6, m.hamming_window(6), normalized=True, return_complex=True), 8, 2, 6, m.hamming_window(6), normalized=True, length=20)
m.istft(m.stft(s, 8, 2, return_complex=True), 8, 2, length=40)
m.istft(m.stft(s, 8, 2, return_complex=True, onesided=False), 8, 2, onesided=False)
m.istft(m.stft(s * (1 + 2j), 8, 2), 8, 2, return_complex=True)
m.istft(m.stft(s, 8, 4, center=False, return_complex=True), 8, 4, center=False)
m.istft(m.stft(s, 8, 2, center=False, window=m.hann_window(8), return_complex=True), 8, 2, center=False, window=m.hann_window(8))
m.istft(s, 8)
m.istft(m.stft(s, 8, return_complex=True), 9)
m.istft(m.stft(s, 8, return_complex=True), 8, return_complex=True)
m.sym_float(3), m.sym_int(2.7), m.sym_int(-2.7), m.sym_ite(True, 1, 2), m.sym_max(1, 2.0), m.sym_min(1, 2.0), m.sym_max(True, 2)
m.sym_not(True), m.sym_not(3), m.sym_sqrt(4), m.sym_sum([1, 2, 3]), m.sym_sum(1, 2)
m.sym_ite(1, 1, 2)
m.sym_ite(True, 1, 2.0)
m.sym_sqrt(-4)
m.are_deterministic_algorithms_enabled()
m.use_deterministic_algorithms(True), m.are_deterministic_algorithms_enabled(), m.get_deterministic_debug_mode()
m.use_deterministic_algorithms(True, warn_only=True), m.get_deterministic_debug_mode(), m.is_deterministic_algorithms_warn_only_enabled()
m.use_deterministic_algorithms(1)
m.set_deterministic_debug_mode("error"), m.get_deterministic_debug_mode(), m.is_deterministic_algorithms_warn_only_enabled()
m.set_deterministic_debug_mode("foo")
m.set_deterministic_debug_mode(7)
m.set_deterministic_debug_mode(2.0)
m.set_deterministic_debug_mode(0), m.get_deterministic_debug_mode()
m.set_warn_always(True), m.is_warn_always_enabled(), m.set_warn_always(False), m.is_warn_always_enabled()
m.set_float32_matmul_precision("medium"), m.get_float32_matmul_precision()
m.set_float32_matmul_precision("foo"), m.get_float32_matmul_precision()
m.set_float32_matmul_precision("highest"), m.get_float32_matmul_precision()
m.set_anomaly_enabled(True, False), m.is_anomaly_enabled(), m.is_anomaly_check_nan_enabled()
m.set_anomaly_enabled(False, True), m.is_anomaly_enabled(), m.is_anomaly_check_nan_enabled()
""".strip().splitlines()
SIGNAL = np.random.default_rng(3).normal(size=33).tolist()


def outcome(m, text):
    x = m.tensor([[1.0, 2.5, -3.0], [0.5, 7.0, 4.0]], dtype=m.float64, requires_grad=True)
    s = m.tensor(SIGNAL, dtype=m.float64, requires_grad=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            y = eval(text, {"m": m, "x": x, "s": s, "np": np})
        except Exception as error:
            return type(error)
    if not hasattr(y, "detach"):
        return y if isinstance(y, (tuple, bool)) else str(y)
    out = [tuple(y.shape), str(y.dtype), y.requires_grad, np.array(y.tolist())]
    if y.requires_grad and not y.is_leaf:
        z = m.view_as_real(y) if y.is_complex() else y
        at = s if "stft" in text else x
        (g,) = m.autograd.grad((z * z.detach().cos()).sum() + (z**2).sum(), at, create_graph=True)
        out += [np.array(g.tolist())]
        if g.requires_grad:
            try:
                (h,) = m.autograd.grad((g * g).sum(), at, materialize_grads=True)
            except RuntimeError as error:
                assert "not implemented" in str(error)
            else:
                out += [np.array(h.tolist())]
    return out


@pytest.mark.parametrize("text", CALLS)
def test_beside_torch(text):
    ours, theirs = outcome(symgrad, text), outcome(torch, text)
    if not isinstance(theirs, list):
        assert ours == theirs
        return
    assert ours[:3] == theirs[:3]
    for a, b in zip(ours[3:], theirs[3:]):
        np.testing.assert_allclose(a, b, rtol=1e-6 if "float32" in text else 1e-10, atol=1e-10)
    assert len(ours) >= len(theirs)


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
