"""Special functions as `to_python` writes them: every row of the table, with its parameters, has the numbers of the op."""

import numpy as np
import pytest

import symgrad
from symgrad.carriers.special.table import SPECIAL
from symgrad.codegen.languages import C, NumPy
from symgrad.graph.op import REGISTRY
from tests.support.special_sources import CASES, check, written

WITHOUT = {"gammainc_derivative": "SciPy has no such function, and the integral of the other languages has up to 47 ULP at the points of this test"}
WITHOUT_C = {
    "integrals, summed along an axis of points": "airy_ai airy_ai_prime bessel_k bessel_k_moment cosine_integral ellipe ellipe_derivative ellipeinc "
        "ellipeinc_derivative ellipk_derivative ellipkinc ellipkinc_derivative ellipkm1_derivative erfcx erfcx_derivative fresnel_c fresnel_s "
        "gammainc gammaincc gammainc_derivative log_ndtr log_ndtr_derivative scaled_modified_bessel_k1 sine_integral",
    "functions of libraries, which the standard one of C lacks": "bessel_i erfinv erfinv_slope ndtri ndtri_slope zeta",
    "sums over lists of derivatives of lower orders": "bessel_j_derivative bessel_y_derivative beta_derivative gamma_density gelu_derivative "
        "gelu_tanh_derivative orthogonal_polynomial zeta_derivative",
    "loops with numbers alone, not written in C yet": "bessel_i_moment expi expi_derivative i1e_derivative spherical_bessel_j0_derivative"}


@pytest.mark.parametrize(("name", "parameters"), [case for case in CASES if case[0] not in WITHOUT])
def test_numpy(name, parameters):
    check(NumPy, name, parameters, np.asarray)


def test_what_has_no_source_is_refused_with_a_remedy():
    assert WITHOUT.keys() == {name for name, parameters in CASES if written(NumPy, name, parameters) is None}
    with pytest.raises(TypeError, match="gammainc_derivative1 cannot be written here.*no source in NumPy; symgrad.compile runs it"):
        symgrad.to_python("gammainc(a, x)", derivatives=1)


def test_what_has_no_source_in_c_has_a_reason():
    names = [name for names in WITHOUT_C.values() for name in names.split()]
    assert len({*names}) == len(names) and {*names} == {name for name, parameters in CASES if written(C, name, parameters) is None}


def test_every_special_function_is_an_op():
    assert not SPECIAL.keys() - REGISTRY.keys()


def test_a_wrong_source_is_found():
    class Wrong(NumPy):
        ops = NumPy.ops | {"erf": "9 np.tanh({0})"}

    with pytest.raises(AssertionError, match="erf"):
        check(Wrong, "erf", (), np.asarray)
