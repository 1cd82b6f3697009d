"""Discrete Fourier transforms, of which the functions of `symgrad.fft` are made.

The adjoint of a transform of complex numbers is its inverse without the factor. A spectrum of real numbers is the first half of that of complex ones,
since the rest is its conjugate; so real numbers are the real part of the transform of a half whose inner terms are doubled.
"""

from symgrad.graph.domains import COMPLEX
from symgrad.graph.op import linear
from symgrad.layouts.strides import is_plain


def _transformed(xp, x, dims, inverse, divisor):
    for dim in dims:
        x = xp.dft(x, dim, inverse)
    return x if divisor == 1 else x / divisor


def _part(x, dim, start, stop):
    """The index of slices of `x` along a dimension."""
    return (slice(None),) * dim + (slice(start, stop),)


def _real(xp, x):
    return xp.copy(xp.getitem(xp.view_as_real(x), (..., 0)))


def _as_complex(xp, g):
    """Real numbers as complex ones, with their tangents, which a sum with 0j leaves real."""
    return g + 0j if is_plain(g) else xp.view_as_complex(xp.stack((g, xp.zeros_like(g)), -1))


def _of_real(xp, x, dims, inverse, divisor, half):
    *others, last = dims
    if not half:
        return _transformed(xp, x + 0j, dims, inverse, divisor)
    out = xp.getitem(xp.dft(x + 0j, last, inverse), _part(x, last, 0, x.shape[last] // 2 + 1))
    return _transformed(xp, out, others, inverse, divisor)


def _of_real_transpose(xp, g, shape, dims, inverse, divisor, half):
    *others, last = dims
    g = _transformed(xp, g, others, not inverse, divisor)
    g = xp.place(g, _part(g, last, 0, g.shape[last]), tuple(shape)) if half else g
    return _real(xp, xp.dft(g, last, not inverse))


def _doubled(xp, x, last, n):
    """A half of a spectrum of n numbers with the terms doubled that have a conjugate in the other half."""
    inner = _part(x, last, 1, (n + 1) // 2)
    return x + xp.place(xp.getitem(x, inner), inner, tuple(x.shape)) if n > 2 else x


def _to_real(xp, x, dims, inverse, divisor, n):
    *others, last = dims
    x = _doubled(xp, _transformed(xp, x, others, inverse, divisor), last, n)
    whole = tuple(n if i == last else size for i, size in enumerate(x.shape))
    return _real(xp, xp.dft(xp.place(x, _part(x, last, 0, x.shape[last]), whole), last, inverse))


def _to_real_transpose(xp, g, shape, dims, inverse, divisor, n):
    *others, last = dims
    half = xp.getitem(xp.dft(_as_complex(xp, g), last, not inverse), _part(g, last, 0, shape[last]))
    return _transformed(xp, _doubled(xp, half, last, n), others, not inverse, divisor)


linear("dft", lambda xp, input, dim, inverse: xp.dft(input, dim, inverse), lambda xp, g, shape, dim, inverse:
       xp.dft(g, dim, not inverse),  # the adjoint, since the coefficients are complex
       public=False, node_name="FftC2C", domain=COMPLEX, examples=((0, False), (1, True)), layout="rows",
       doc="The sums over j of exp(∓2πi jk/n) x_j along `dim`, where + is that of `inverse`; no factor.")
linear("fourier", lambda xp, input, dims, inverse, divisor: _transformed(xp, input, dims, inverse, divisor),
       lambda xp, g, shape, dims, inverse, divisor: _transformed(xp, g, dims, not inverse, divisor), public=False, node_name="FftC2C",
       domain=COMPLEX, examples=(((0,), False, 1), ((1, 0), True, 6)), layout="rows",
       doc="The transform of complex numbers along `dims`, divided by a number.")
linear("fourier_of_real", _of_real, _of_real_transpose, public=False, node_name="FftR2C", domain=COMPLEX, layout="rows",
       examples=(((0,), False, 1, False), ((0, 1), True, 6, True)),
       doc="The transform of real numbers along `dims`, or with `half` the first half of it along the last of these.")
linear("fourier_to_real", _to_real, _to_real_transpose, public=False, node_name="FftC2R", domain=COMPLEX, layout="rows",
       examples=(((0,), False, 1, 4), ((0, 1), True, 6, 7)), doc="The n real numbers whose transform has this first half along the last of `dims`.")
