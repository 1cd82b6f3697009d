"""The functions that written programs of arrays call, as source, by language."""

from __future__ import annotations

import re

__all__ = ["HELPERS", "JAX_HELPERS", "TORCH_HELPERS", "in_torch"]


def _by_name(text: str) -> dict[str, str]:
    """The functions of a text by their names, each as it stands in a module."""
    return {re.match(r"def (\w+)", source)[1]: f"\n\n{source.rstrip()}\n"  # type: ignore[index]  # as all begin
            for source in re.findall(r"^def .*?(?=^def |\Z)", text, re.DOTALL | re.MULTILINE)}


HELPERS = _by_name("""
def _place(g, index, shape):
    out = np.zeros(shape, g.dtype)
    np.add.at(out, index, g)
    return out

def _put(x, values, index):
    out = np.array(x)
    out[index] = values
    return out

def _put_add(x, values, index):
    out = np.array(x)
    np.add.at(out, index, values)
    return out

def _sum_to_size(g, shape):
    extra = g.ndim - len(shape)
    axes = (*range(extra), *(i + extra for i, n in enumerate(shape) if n == 1))
    return np.reshape(np.sum(g, axis=axes), shape)

def _centred(x, axis):
    x = x - np.mean(x, axis=axis, keepdims=True)
    return x - np.mean(x, axis=axis, keepdims=True)

def _norm(x, axis, keepdims=False):
    scale = np.max(np.abs(x), axis=axis, keepdims=True)
    scale = np.where((scale > 0) & np.isfinite(scale), scale, 1)
    length = np.sqrt(np.sum(np.abs(x / scale)**2, axis=axis, keepdims=keepdims))
    return length * np.reshape(scale, length.shape)

def _log_softmax(x, axis):
    x = x - _peak(x, axis)
    return x - _logsumexp(x, axis, True)

def _softmax(x, axis):
    out = np.exp(x - _peak(x, axis))
    return out / np.sum(out, axis=axis, keepdims=True)

def _logsumexp(x, axis, keepdims=False):
    peak = _peak(x, axis)
    largest = x == peak
    others = np.sum(np.where(largest, 0, np.exp(x - peak)), axis=axis, keepdims=keepdims)
    others = others + (np.sum(largest, axis=axis, keepdims=keepdims) - 1).astype(x.dtype)
    return np.log1p(others) + np.reshape(peak, others.shape)

def _peak(x, axis):
    peak = np.max(x, axis=axis, keepdims=True)
    return np.where(np.isfinite(peak), peak, 0)

def _cofactors(x):
    u, s, v = np.linalg.svd(x)
    one = np.eye(s.shape[-1]) > 0
    others = np.prod(np.where(one, 1, s[..., None, :]), axis=-1)
    unit = np.linalg.det(u) * np.linalg.det(v)
    return unit[..., None, None] * (np.conj(u) * others[..., None, :]) @ np.conj(v)

def _cofactors_along(x, t):
    u, s, v = np.linalg.svd(x)
    one = np.eye(s.shape[-1]) > 0
    kept = np.where(one[:, None, :] | one[None, :, :], 1, s[..., None, None, :])
    pairs = np.where(one, 0, np.prod(kept, axis=-1))
    unit = np.linalg.det(u) * np.linalg.det(v)
    u, v = np.conj(u), np.conj(v)
    turned = np.swapaxes(u, -1, -2) @ t @ np.swapaxes(v, -1, -2)
    sums = np.sum(pairs * np.diagonal(turned, 0, -2, -1)[..., None, :], axis=-1)
    return unit[..., None, None] * u @ np.where(one, sums[..., None], -pairs * np.swapaxes(turned, -1, -2)) @ v
""")


def in_torch(text: str) -> str:
    """Source of NumPy as source of PyTorch."""
    return text.replace("np.", "torch.").replace("axis=", "dim=").replace("keepdims=", "keepdim=")


TORCH_HELPERS = _by_name("""
def _place(g, index, shape):
    out = torch.zeros(shape, dtype=g.dtype, device=g.device)
    at = torch.arange(out.numel(), device=g.device).reshape(shape)[index]
    return out.reshape(-1).index_add(0, at.reshape(-1), g.expand(at.shape).reshape(-1)).reshape(shape)

def _put(x, values, index):
    out = x.clone()
    out[index] = values
    return out

def _put_add(x, values, index):
    return x + _place(values, index, x.shape)
""") | {"_centred": HELPERS["_centred"].replace("np.", "torch."), **{name: in_torch(HELPERS[name]) for name in ("_cofactors", "_cofactors_along")}}
JAX_HELPERS = {name: text.replace("np.", "jnp.") for name, text in HELPERS.items()} | _by_name("""
def _place(g, index, shape):
    return jnp.zeros(shape, g.dtype).at[index].add(g)

def _put(x, values, index):
    return x.at[index].set(values)

def _put_add(x, values, index):
    return x.at[index].add(values)
""")
