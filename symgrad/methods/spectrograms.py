"""Short-time Fourier transforms, with torch's names: products with a window that moves along a signal, transformed one by one."""

from __future__ import annotations

from typing import Any

import numpy as np

from symgrad import fft
from symgrad.arguments import check_dims, check_kind, check_option, check_positive, check_range
from symgrad.engine.method_table import MethodTable
from symgrad.engine.refusals import taking_tensors
from symgrad.engine.tensor import Tensor, wrap
from symgrad.engine.traced import traced

METHODS = MethodTable()


def _reflected(n: int, width: int, mode: str) -> np.ndarray:
    """The indices of a signal with a border on both sides."""
    return np.pad(np.arange(n), width, mode={"reflect": "reflect", "replicate": "edge", "circular": "wrap"}[mode])  # type: ignore[call-overload]


def _full_window(name: str, window: Tensor | None, n_fft: int, win_length: int, dtype: Any) -> Any:
    """The window in the middle of zeros."""
    if window is not None and (window.ndim != 1 or window.shape[0] != win_length):
        raise RuntimeError(f"{name}: window must be a vector of win_length={win_length} numbers, but its shape is {list(window.shape)}")
    inside: Any = wrap(np.ones(win_length, dtype.to_real().numpy)) if window is None else window
    left = (n_fft - win_length) // 2
    if win_length == n_fft:
        return inside
    ends = [traced.zeros_like(inside, (n,)) for n in (left, n_fft - win_length - left)]
    return traced.cat([ends[0], inside, ends[1]], 0)


def _lengths(name: str, n_fft: int, hop_length: int | None, win_length: int | None) -> tuple[int, int]:
    hop, length = n_fft // 4 if hop_length is None else hop_length, n_fft if win_length is None else win_length
    check_positive(name, "hop_length", hop)
    check_range(name, "win_length", length, 1, n_fft)
    return hop, length


@METHODS.define
@taking_tensors
def stft(input: Tensor, n_fft: int, hop_length: int | None = None, win_length: int | None = None, window: Tensor | None = None, center: bool = True,
         pad_mode: str = "reflect", normalized: bool = False, onesided: bool | None = None, return_complex: bool | None = None,
         align_to_window: bool | None = None) -> Tensor:
    """The Fourier transforms of a signal times a window at steps of `hop_length` (a quarter of `n_fft`): (T,) or (B, T) give (..., F, frames).

    With `center` the frames are around multiples of the step, and the signal is padded by n_fft / 2 on both sides. `normalized` divides by √n_fft.
    A real signal has the n_fft / 2 + 1 frequencies from 0 on, unless `onesided` is False. Without `return_complex` the result of a real signal has
    a last dimension of real and imaginary parts, which must be asked for by False.

    Raises RuntimeError for sizes that do not fit.

    >>> import symgrad
    >>> symgrad.stft(symgrad.ones(8), 4, return_complex=True).abs()[:, 0]
    tensor([4., 0., 0.])
    """
    hop, length = _lengths("stft", n_fft, hop_length, win_length)
    is_complex = input.is_complex() or window is not None and window.is_complex()
    if return_complex is None:
        if not is_complex:
            raise RuntimeError("stft: give return_complex for real inputs, True for complex numbers as the result")
        return_complex = True
    if center and align_to_window:
        raise RuntimeError("stft: align_to_window goes with center=False")
    check_kind("stft", input, "fc")
    check_dims("stft", input, 1, 2)
    onesided = not is_complex if onesided is None else onesided
    if onesided and is_complex:
        raise RuntimeError("stft: onesided=True goes with a real input and a real window")
    signal: Any = input if input.ndim == 2 else input.unsqueeze(0)
    if center:
        if pad_mode == "constant":
            border = traced.zeros_like(signal, (signal.shape[0], n_fft // 2))
            signal = traced.cat([border, signal, border], 1)
        else:
            check_option("stft", "pad_mode", pad_mode, ("constant", "reflect", "replicate", "circular"), NotImplementedError)
            check_range("stft", "the padding n_fft // 2", n_fft // 2, high=signal.shape[1] - 1)
            signal = traced.index_select(signal, 1, wrap(_reflected(signal.shape[1], n_fft // 2, pad_mode)))
    window, size = _full_window("stft", window, n_fft, length, input.dtype), n_fft
    if align_to_window:
        window, size = window[(n_fft - length) // 2:(n_fft - length) // 2 + length], length
    if not 0 < n_fft <= signal.shape[1] and not align_to_window or size > signal.shape[1]:
        raise RuntimeError(f"stft: n_fft={n_fft} must be from 1 to the length {signal.shape[1]} of the padded signal")
    frames = traced.unfold(signal, 1, size, hop) * window
    if size != n_fft:
        before = (n_fft - length) // 2
        ends = [traced.zeros_like(frames, (*frames.shape[:2], n)) for n in (before, n_fft - length - before)]
        frames = traced.cat([ends[0], frames, ends[1]], -1)
    norm = "ortho" if normalized else "backward"
    out: Any = fft.rfft(frames, n_fft, -1, norm) if onesided else fft.fft(frames, n_fft, -1, norm)
    out = traced.transpose(out, 1, 2)
    out = out if input.ndim == 2 else traced.squeeze(out, 0)
    return out if return_complex else traced.view_as_real(out)


@METHODS.define
@taking_tensors
def istft(input: Tensor, n_fft: int, hop_length: int | None = None, win_length: int | None = None, window: Tensor | None = None, center: bool = True,
          normalized: bool = False, onesided: bool | None = None, length: int | None = None, return_complex: bool = False) -> Tensor:
    """The inverse of `stft`: the sum of the transformed frames times the window, divided by the sum of its squares (Griffin and Lim 1984).

    `length` is that of the signal, whose end may be missing in the frames. Raises RuntimeError for sizes that do not fit and for a window whose
    squares have a sum that is zero somewhere.

    >>> import symgrad
    >>> x = symgrad.arange(8.0)
    >>> w = symgrad.hann_window(4)
    >>> symgrad.istft(symgrad.stft(x, 4, window=w, return_complex=True), 4, window=w)
    tensor([0.0000, 1.0000, 2.0000, 3.0000, 4.0000, 5.0000, 6.0000, 7.0000])
    """
    check_kind("istft", input, "c")
    hop, size = _lengths("istft", n_fft, hop_length, win_length)
    check_positive("istft", "the number of elements", input.numel())
    check_dims("istft", input, 2, 3)
    spectra: Any = traced.transpose(input if input.ndim == 3 else input.unsqueeze(0), 1, 2)
    frames, bins = spectra.shape[1:]
    onesided = bins != n_fft if onesided is None else onesided
    check_option("istft", f"the number of frequencies with onesided={onesided}", bins, (n_fft // 2 + 1 if onesided else n_fft,))
    if return_complex and onesided:
        raise RuntimeError("istft: return_complex=True goes with onesided=False")
    full = _full_window("istft", window, n_fft, size, input.dtype)
    norm = "ortho" if normalized else "backward"
    if return_complex:
        pieces: Any = fft.ifft(spectra, n_fft, -1, norm)
    else:
        pieces = fft.irfft(spectra if onesided else spectra[..., :n_fft // 2 + 1], n_fft, -1, norm)
    total = n_fft + hop * (frames - 1)
    at = wrap((np.arange(frames)[:, None] * hop + np.arange(n_fft)).reshape(-1))

    def overlapped(x: Any) -> Any:
        flat = traced.reshape(x, (x.shape[0], -1))
        return traced.index_add(traced.zeros_like(flat, (x.shape[0], total)), 1, at, flat)

    signal = overlapped(pieces * full)
    weight = overlapped(traced.broadcast_to(traced.reshape(full * full, (1, 1, n_fft)), (1, frames, n_fft)))
    start = n_fft // 2 if center else 0
    end = start + length if length is not None else total - n_fft // 2 if center else total
    kept = min(end, total)
    signal, weight = traced.narrow(signal, 1, start, kept - start), traced.narrow(weight, 1, start, kept - start)
    if not bool((traced.abs(weight) > 1e-11).all()):
        raise RuntimeError("istft: the sum of the squares of the moved window is 0 at some place, where the signal is not known")
    signal = signal / weight
    if end > total:
        signal = traced.cat([signal, traced.zeros_like(signal, (signal.shape[0], end - total))], 1)
    return signal if input.ndim == 3 else traced.squeeze(signal, 0)
