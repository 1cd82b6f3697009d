"""The special functions, with torch's names: ops of the registry, differentiable to every order in both modes."""

from symgrad.engine.traced import FUNCTIONS

NAMES = """
airy_ai bessel_j0 bessel_j1 bessel_y0 bessel_y1 digamma entr erf erfc erfcx erfinv exp2 expit expm1 gammainc gammaincc gammaln i0 i0e i1 i1e
log1p log_ndtr log_softmax logit logsumexp modified_bessel_i0 modified_bessel_i1 modified_bessel_k0 modified_bessel_k1 multigammaln ndtr ndtri
polygamma psi round scaled_modified_bessel_k0 scaled_modified_bessel_k1 sinc softmax spherical_bessel_j0 xlog1py xlogy zeta
chebyshev_polynomial_t chebyshev_polynomial_u chebyshev_polynomial_v chebyshev_polynomial_w hermite_polynomial_h hermite_polynomial_he
laguerre_polynomial_l legendre_polynomial_p
shifted_chebyshev_polynomial_t shifted_chebyshev_polynomial_u shifted_chebyshev_polynomial_v shifted_chebyshev_polynomial_w
airy_ai_prime beta betaln cosine_integral ellipe ellipeinc ellipk ellipkinc ellipkm1
exp1 expi fresnel fresnel_c fresnel_s gamma iv jv kv lambertw sici sine_integral yv
""".split()  # those of torch, and of SciPy; it has what is an op

__all__ = [name for name in NAMES if name in FUNCTIONS]  # noqa: PLE0605  derived from the registry

globals().update({name: FUNCTIONS[name] for name in __all__})
