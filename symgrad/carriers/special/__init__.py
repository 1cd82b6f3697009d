"""Special functions in all carriers.

Their names are here, by the modules that have their rows, so that a carrier knows them without these modules, which are imported when a special
function is first computed.
"""

FAMILIES = {
    "activations": "softsign_of_real gelu_exact gelu_slope gelu_derivative gelu_tanh gelu_tanh_slope gelu_tanh_derivative tanhshrink_of_real",
    "airy": "airy_ai airy_ai_prime spherical_bessel_j0_derivative",
    "bessel": "bessel_i bessel_k i1e_derivative scaled_modified_bessel_k1 bessel_i_moment bessel_k_moment",
    "betas": "betaln beta beta_derivative polygamma_difference",
    "cylinder": "bessel_j bessel_j_derivative bessel_y bessel_y_derivative",
    "elementary": """cbrt sigmoid_of_difference sigmoid2_of_difference sigmoid_of_product sigmoid_slope_of_product sigmoid_slope_of_difference
                     sigmoid2_slope_of_difference logaddexp2 angle_slope angle_turn""",
    "elliptic": """ellipk ellipe ellipkm1 ellipk_derivative ellipe_derivative ellipkm1_derivative ellipkinc ellipeinc ellipkinc_derivative
                   ellipeinc_derivative""",
    "errors": "erfcx erfcx_derivative erf erfc erf_slope",
    "gammas": "gamma lgamma digamma digamma_derivative",
    "gates": "silu_of_real silu_slope silu_derivative mish_of_real mish_slope mish_derivative",
    "incomplete_gamma": "gammainc gammaincc gammainc_derivative gamma_density",
    "integrals": "expi expi_derivative exp1 lambertw sine_integral cosine_integral fresnel_s fresnel_c fresnel_sine fresnel_cosine",
    "inverses": "erfinv erfinv_slope ndtri ndtri_slope",
    "normal": "ndtr ndtr_slope logit logit_slope log_ndtr log_ndtr_derivative",
    "polynomials": "orthogonal_polynomial",
    "zeta": "zeta zeta_derivative",
}
SPECIAL_FUNCTIONS = tuple(name for names in FAMILIES.values() for name in names.split())
