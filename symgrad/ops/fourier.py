"""The discrete Fourier transform of complex numbers, of which the functions of `symgrad.fft` are made."""

from symgrad.graph.op import linear
from symgrad.types.domains import COMPLEX

linear("dft", lambda xp, input, dim, inverse: xp.dft(input, dim, inverse), lambda xp, g, shape, dim, inverse:
       xp.dft(g, dim, not inverse),  # the adjoint, since the coefficients are complex
       public=False, node_name="FftC2C", domain=COMPLEX, examples=((0, False), (1, True)), layout="rows",
       doc="The sums over j of exp(∓2πi jk/n) x_j along `dim`, where + is that of `inverse`; no factor.")
