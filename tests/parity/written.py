"""The calls of functions that torch's database does not have: those of a related function, or a call that is written here."""

from __future__ import annotations

import contextlib
import functools
import itertools
import re
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
from torch.testing import make_tensor

from .database import Call, database, from_database, seeded

# In the texts `v` is a vector of four numbers, `a` a matrix of 2 x 3, `c` an image of 1 x 4 x 4 x 4, `s` a square matrix, `p` probabilities,
# `t` signs, `k` class numbers, `i` integers; `w` has one number for each channel of `c`.
TEXTS = """
as_tensor(a) as_tensor([1, 2.0]) as_tensor(3, dtype=torch.float32) asarray(a) asarray(a, dtype=torch.float32, copy=True) asarray([[1], [2]])
tensor([1.0, 2.0]) tensor([[1, 2]], dtype=torch.float16) tensor([]) tensor(True) tensor([1j, 2])
bartlett_window(5) bartlett_window(4, False) blackman_window(5) blackman_window(4, False) hamming_window(5) hamming_window(4, True, 0.5, 0.3)
hann_window(5) hann_window(4, False) kaiser_window(5) kaiser_window(4, True, 9.0) kaiser_window(1, dtype=torch.float32)
fft.fftfreq(5) fft.fftfreq(4, 0.5) fft.rfftfreq(5) fft.rfftfreq(4, 0.5) range(1, 4) range(0, 2, 0.5) rand(2, 3) randperm(5) randperm(0)
batch_norm(c, w, w, w, w * w, True, 0.1, 1e-5, False) batch_norm(c, None, None, w, w * w, False, 0.1, 1e-5, False)
instance_norm(c, w, w, None, None, True, 0.1, 1e-5, False) instance_norm(c, None, None, w, w * w, False, 0.1, 1e-5, False)
bilinear(a, s[:2], s.reshape(1, 3, 3), None) bilinear(a, s[:2], s.expand(2, 3, 3), v[:2]) channel_shuffle(c, 2) native_channel_shuffle(c, 2)
nn.functional.native_channel_shuffle(c, 2)
chain_matmul(a, s) chain_matmul(a, s, s) cosine_embedding_loss(a, 2 * a, t[:2]) cosine_embedding_loss(a, s[:2], t[:2], 0.1, 2)
cosine_similarity(a, s[:2]) cosine_similarity(a, v[:3], 0, 1e-6) embedding(s, k) embedding(a, k[:2], 1) embedding_renorm_(s, k, 0.5, 2.0)
frobenius_norm(a, (0, 1)) frobenius_norm(a, 1, True) frobenius_norm(c, (1, -1)) nuclear_norm(a) nuclear_norm(c, (2, 3), True)
from_numpy(np.ones(3)) from_numpy(np.ones((2, 3), 'f')[:, ::2]) frombuffer(bytearray(16), dtype=torch.int64)
get_device(a) is_complex(a) is_conj(a) is_conj(i) is_floating_point(a) is_neg(a) is_nonzero(v[:1]) is_nonzero(v) is_same_size(a, s)
is_same_size(a, 2 * a) is_signed(a) is_signed(i) is_inference(a) is_distributed(a) is_storage(a) is_tensor(a) is_tensor(1.0) numel(a) numel(c)
typename(a) can_cast(torch.float64, torch.int64) can_cast(torch.int64, torch.float32) promote_types(torch.int64, torch.float16)
promote_types(torch.uint8, torch.int8) result_type(a, i) result_type(a, 1j) result_type(i, 2.0) result_type(1, True)
hinge_embedding_loss(v, t) hinge_embedding_loss(v, t, 0.5, 2) index_put_(a, (k[:2],), v[:3]) index_put_(a, (k[:2], k[1:3]), v[0], True)
kl_div(p.log(), p) kl_div(v, p, 2) kl_div(v, v, 1, log_target=True) lobpcg(s @ s.mT + s.new_ones(3).diag(), 1)
margin_ranking_loss(v, v.flip(0), t) margin_ranking_loss(v, v[:1], t, 0.3, 2) native_dropout(a, 0.5, False) norm_except_dim(c, 2, 1)
norm_except_dim(s, 2, 0) pairwise_distance(a, s[:2]) pairwise_distance(a, v[:3], 1.0, 1e-6, True) pdist(s) pdist(a, 3.0) pixel_shuffle(c, 2)
pixel_unshuffle(c, 2) poisson(p) binomial(i[:4] * 1.0, p.double()) poisson_nll_loss(v, p, True, False, 1e-8, 1)
poisson_nll_loss(v, p, False, True, 1e-8, 2) prelu(a, v[:1]) prelu(c, w) rrelu(v, 0.1, 0.3, False) segment_reduce(v, 'sum', lengths=k[1:3] + 1)
segment_reduce(v, 'max', lengths=i[:2] + 1) segment_reduce(s, 'mean', lengths=k[1:3], unsafe=True) select_copy(c, 1, 2) select_copy(a, 0, -1)
slice_copy(a, 1, 0, 2) slice_copy(v, 0, 1, 4, 2) slice_inverse(a, c[0], 0, 1, 3) split_copy(v, 2) split_copy(a, 2, dim=1)
unsafe_split_with_sizes(v, (1, 3)) unsafe_split_with_sizes(a, (2, 1), 1) sym_float(2) sym_int(2.5) sym_max(1, 2.5) sym_min(1, 2) sym_not(True)
sym_sqrt(4.0) sym_sum([1, 2, 3]) sym_ite(True, 1, 2)
triplet_margin_loss(a, s[:2], 2 * a) triplet_margin_loss(a, s[:2], 2 * a, 1.0, 3.0, 1e-6, True, 2) vander(v) vander(v, 3, True) vander(i)
view_as_complex_copy(v.reshape(2, 2)) view_as_real_copy(z) nn.functional.fold(c[0, :, 0], (3, 3), (2, 2)) nn.functional.fold(c[0], (3, 3), 2)
nn.functional.dropout1d(c[0], 0.5, False) nn.functional.gumbel_softmax(a) dropout(a, 0.5, False) dropout_(a, 0.5, False) alpha_dropout(a, 0.5, False)
alpha_dropout_(a, 0.5, False) feature_dropout(c, 0.5, False) feature_dropout_(c, 0.5, False) feature_alpha_dropout(c, 0.5, False)
feature_alpha_dropout_(c, 0.5, False) binary_cross_entropy_with_logits(v, p, None, None, 1) detach(a) detach_copy(a) as_strided_(v, (2, 2), (2, 1))
rrelu_(v, 0.1, 0.3, False) nn.functional.rrelu_(v, 0.1, 0.3, False) detach_(a) fill_(a, 2.0) fill_(a, v[0]) threshold_(v, 0.1, 2.0)
affine_grid_generator(a[None], (1, 1, 2, 3), False) nn.functional.affine_grid(a[None], (1, 1, 2, 3), False)
grid_sampler(c, c[:, :, :2, :2].permute(0, 3, 2, 1)[:, :, :, :2] / 3, 0, 0, False) conv_tbc(c[0], c[0, :3], w, 1)
nn.functional.conv_tbc(c[0], c[0, :3], w, 1) convolution(c, c[:, :, :2, :2], w[:1], [1, 1], [0, 0], [1, 1], False, [0, 0], 1)
max_pool1d_with_indices(a, 2) nn.functional.max_pool1d_with_indices(a, 2, 1) nn.functional.max_pool2d_with_indices(c, 2, 1)
nn.functional.max_pool3d_with_indices(c, 2, 1) nn.functional.adaptive_max_pool1d_with_indices(a, 2)
nn.functional.adaptive_max_pool2d_with_indices(c, 3) nn.functional.adaptive_max_pool3d_with_indices(c, 3)
nn.functional.fractional_max_pool2d_with_indices(c, 2, 3, None, False, c.new_ones(1, 4, 2) / 3)
nn.functional.fractional_max_pool3d_with_indices(c, 2, 3, None, False, c.new_ones(1, 1, 3) / 3)
nn.functional.lp_pool1d(a, 2.0, 2) nn.functional.lp_pool2d(c, 2.0, 2, 1) nn.functional.lp_pool3d(c, 2.0, 2, 1) nn.functional.upsample(c, 8)
rnn_tanh_cell(a, a, s, s) rnn_relu_cell(a, a, s, s, v[:3], v[:3]) gru_cell(a, a, s.repeat(3, 1), s.repeat(3, 1))
lstm_cell(a, (a, a), s.repeat(4, 1), s.repeat(4, 1)) rnn_tanh(s[None], s[None], [s, s], False, 1, 0.0, False, False, False)
rnn_relu(s[None], s[:1][None], [s, s], False, 1, 0.0, False, False, True)
gru(s[None], s[:1][None], [s.repeat(3, 1)] * 2, False, 1, 0.0, False, False, True)
lstm(s[None], (s[:1][None], s[:1][None]), [s.repeat(4, 1)] * 2, False, 1, 0.0, False, False, True)
special.gammainc(p, p + 1) special.gammaincc(p + 0.5, p) slogdet(s) hardtanh(v, -0.5, 0.5)
"""
# What sets or asks for a state of the whole library, reads and writes files, or transforms functions, has no arguments to draw.
NOT_DRAWN = """
are_deterministic_algorithms_enabled compile from_dlpack from_file get_default_device get_default_dtype get_deterministic_debug_mode
get_float32_matmul_precision get_rng_state initial_seed is_anomaly_check_nan_enabled is_anomaly_enabled
is_deterministic_algorithms_warn_only_enabled is_grad_enabled is_inference_mode_enabled is_warn_always_enabled load manual_seed save seed
set_anomaly_enabled set_default_device set_default_dtype set_default_tensor_type set_deterministic_debug_mode set_float32_matmul_precision
set_flush_denormal set_printoptions set_rng_state set_warn_always to_dlpack use_deterministic_algorithms vmap
""".split()


@functools.cache
def texts() -> dict[str, list[str]]:
    """The arguments of the written calls by the names of functions."""
    found: dict[str, list[str]] = {}
    for text in re.split(r"(?<=\))\s+(?=[\w.]+\()", TEXTS.strip()):
        name, _, arguments = text.partition("(")
        found.setdefault(name, []).append("call(" + arguments)
    return found


def named(dtype: torch.dtype, grad: bool) -> dict[str, Any]:
    """The arguments that the texts name, of one dtype."""
    seeded()
    grad = grad and (dtype.is_floating_point or dtype.is_complex)
    shapes = {"v": (4,), "a": (2, 3), "c": (1, 4, 4, 4), "s": (3, 3), "w": (4,)}
    tensors = {name: make_tensor(shape, device="cpu", dtype=dtype, low=-3, high=3, requires_grad=grad) for name, shape in shapes.items()}
    real = dtype if dtype.is_floating_point else torch.float64
    return {**tensors, "p": torch.tensor([0.25, 0.5, 0.125, 0.875], dtype=real, requires_grad=grad), "t": torch.tensor([1, -1, -1, 1], dtype=real),
            "k": torch.tensor([0, 2, 1]), "i": torch.tensor([3, 1, -2, 0]), "z": torch.tensor([1 + 2j, -0.5j], requires_grad=grad)}


def written(name: str, dtype: torch.dtype, grad: bool) -> Iterator[Call]:
    """The calls of a function without an entry in torch's database."""
    space = {"torch": torch, "np": np, "call": lambda *args, **kwargs: (args, kwargs), **named(dtype, grad)}
    for text in texts().get(name, ()):
        with contextlib.suppress(RuntimeError):  # an argument that is not made of this dtype
            yield Call(*eval(text, space))


def on_a_copy(function: Callable[..., Any], first: Any, *rest: Any, **kwargs: Any) -> Any:
    """The function of a copy of its first argument, which it writes."""
    return function(first.clone(), *rest, **kwargs)


@functools.lru_cache(32)
def calls(name: str, dtype: torch.dtype, grad: bool, most: int) -> list[Call]:
    """The first calls of any function for one dtype."""
    base = name.removesuffix("_")
    last = base.rpartition(".")[2]
    entry = next((n for n in (name, base, last, f"nn.functional.{last}") if n in database()), None)
    found = list(itertools.islice(written(name, dtype, grad) if entry is None or name in texts() else from_database(entry, dtype, grad), most))
    return [call._replace(wrapped=on_a_copy) for call in found] if base != name else found
