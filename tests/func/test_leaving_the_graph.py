"""Numbers that leave the graph inside a transform: every way out in every transform raises, warns or is silent as stated, and names the line.

An array of a tensor that is differentiated raises; a number of it warns, and raises where the result is not connected to the arguments; conditions,
sizes, prints and what is detached are silent. Plain autograd raises for arrays, and warns for `float` as torch does.
"""

import array
import copy
import inspect
import math
import pickle
import warnings

import numpy as np
import pytest
import scipy.integrate
import scipy.optimize

import symgrad
from symgrad import func
from symgrad.func import foreign
from tests.support.tables import table

AT = [1.3, -0.7]
SHARE = 1 / 3


def _element(v):
    out = np.zeros(2)
    out[0] = v[0] ** 2  # leaves
    return out


def _matrix_element(v):
    out = np.zeros((2, 2), np.float32)
    out[1, 0] = v[1]  # leaves
    return out


def _flat_element(v):
    out = np.zeros(2)
    out.flat[0] = v[0]  # leaves
    return out


def _slice(v):
    out = np.zeros(2)
    out[:] = v  # leaves
    return out


def _in_place(v):
    out = np.ones(2)
    out += v  # leaves
    return out


def _list_of_numbers(v):
    return [float(x) for x in v]  # leaves


# Each way out computes with plain numbers: lines that leave the graph are marked, so that the test finds their numbers.
ARRAYS = {
    "asarray": lambda v: np.asarray(v),  # leaves
    "array": lambda v: np.array(v),  # leaves
    "array of a list": lambda v: np.array([v[0], v[1]]),  # leaves
    "__array__": lambda v: v.__array__(),  # leaves
    "numpy": lambda v: v.numpy(),  # leaves
    "tolist": lambda v: v.tolist(),  # leaves
    "full": lambda v: np.full(2, v[0]),  # leaves
    "float32": lambda v: np.float32(v[0]),  # leaves
    "fsolve": lambda v: scipy.optimize.fsolve(lambda x: x - 1.0, v),  # leaves
    "spacing": lambda v: np.spacing(v),  # leaves
    "from_dlpack": lambda v: np.from_dlpack(v),  # leaves
    "memoryview": lambda v: memoryview(v),  # leaves
    "storage": lambda v: v.untyped_storage(),  # leaves
    "pickle": lambda v: pickle.dumps(v),  # leaves
    "copy": lambda v: copy.copy(v),  # leaves
    "deepcopy": lambda v: copy.deepcopy(v),  # leaves
    "element": _element, "matrix element": _matrix_element, "flat element": _flat_element, "slice": _slice, "in place": _in_place,
}
NAMELESS = ("from_dlpack", "memoryview", "deepcopy")  # refused with the errors that torch has, whose traceback has the line
NOT_OF_A_BATCH = ("pickle", "copy", "deepcopy", "memoryview", "tensor", "storage", "in place", "flat element")  # errors of the class or of NumPy
NUMBERS = {
    "float": lambda v: float(v[0] ** 2),  # leaves
    "complex": lambda v: complex(v[0]).real,  # leaves
    "item": lambda v: v[0].item(),  # leaves
    "tolist of one": lambda v: v[0].tolist(),  # leaves
    "math": lambda v: math.exp(v[0]),  # leaves
    "atan2": lambda v: math.atan2(v[1], v[0]),  # leaves
    "numpy.float64": lambda v: float(np.float64(v[0])),  # leaves
    "array.array": lambda v: array.array("d", [v[0]])[0],  # leaves
    "fill": lambda v: (out := np.zeros(2)).fill(v[0]) or out[0],  # leaves
    "tensor of a list": lambda v: symgrad.tensor([v[0], v[1]]),  # leaves
    "tensor": lambda v: symgrad.tensor(v),  # leaves
    "new_tensor": lambda v: v.new_tensor([v[0]]),  # leaves
    "linspace": lambda v: symgrad.linspace(0, v[0], 3),  # leaves
    "quad": lambda v: scipy.integrate.quad(lambda t: v[0] * t, 0, 1)[0],  # leaves
    "brentq": lambda v: scipy.optimize.brentq(lambda t: t**3 - v[0], 0, 3),  # leaves
    "list": _list_of_numbers,
}
SILENT = table(globals(), "SILENT")
EXP = foreign(lambda x: np.exp(x))
EXP.defjvps(lambda t, y, x: t * y)


def _halved(v):
    while v.norm() > 0.3:
        v = v / 2
    return v


def _without_grad(v):
    with symgrad.no_grad():
        return float(v[0]) + np.asarray(v)[1]


def _hessian_product(f, v):
    return func.hvp(f, v, symgrad.ones_like(v))


# A function that is given f, of vectors and with scalar values, and a point
TRANSFORMS = table(globals(), "TRANSFORMS")


def _line(way):
    """The number of the line by which a way leaves the graph."""
    lines, start = inspect.getsourcelines(way)
    (number,) = [start + i for i, line in enumerate(lines) if "# leaves" in line]
    return number


def _total(found):
    return symgrad.as_tensor(np.sum(found) if not isinstance(found, symgrad.Tensor) else found.sum())


def _connected(way):
    """A function with a derivative, which reads numbers on its way."""
    return lambda v: (v * v).sum() * _total(way(v))


@pytest.mark.sampled(42)
@pytest.mark.parametrize("way", ARRAYS)
@pytest.mark.parametrize("transform", TRANSFORMS)
def test_an_array_of_what_is_differentiated_raises(transform, way):
    with pytest.raises((RuntimeError, TypeError, BufferError)) as caught:
        TRANSFORMS[transform](_connected(ARRAYS[way]), symgrad.tensor(AT))
    kind = {"from_dlpack": BufferError, "spacing": TypeError, "in place": TypeError, "memoryview": TypeError}.get(way, RuntimeError)
    assert type(caught.value) is kind
    if way not in NAMELESS:
        assert f"{__file__}:{_line(ARRAYS[way])}" in str(caught.value)
        assert "symgrad.func.foreign" in str(caught.value) or way == "in place"


@pytest.mark.sampled(42)
@pytest.mark.parametrize("way", NUMBERS)
@pytest.mark.parametrize("transform", TRANSFORMS)
def test_a_number_of_what_is_differentiated_warns_with_its_line(transform, way):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        NUMBERS[way].__globals__.pop("__warningregistry__", None)
        TRANSFORMS[transform](_connected(NUMBERS[way]), symgrad.tensor(AT))
    assert {(w.category, w.filename, w.lineno) for w in caught} == {(UserWarning, __file__, _line(NUMBERS[way]))}
    assert len(caught) == 1 or way == "tensor" and transform in ("checkpoint", "grad of compile")  # plain autograd has torch's text for it
    assert any("symgrad.stack" in str(w.message) and ".detach()" in str(w.message) for w in caught)


@pytest.mark.sampled(42)
@pytest.mark.filterwarnings("ignore:Converting a tensor")
@pytest.mark.parametrize("way", NUMBERS)
@pytest.mark.parametrize("transform", TRANSFORMS)
def test_a_result_of_such_numbers_alone_raises(transform, way):
    with pytest.raises(RuntimeError) as caught:
        TRANSFORMS[transform](lambda v: _total(NUMBERS[way](v)), symgrad.tensor(AT))
    assert f"{__file__}:{_line(NUMBERS[way])}" in str(caught.value) and "symgrad.func.foreign" in str(caught.value)


@pytest.mark.sampled(42)
@pytest.mark.parametrize("way", SILENT)
@pytest.mark.parametrize("transform", [name for name in TRANSFORMS if name not in ("structure", "grad of compile", "compile of grad")])
def test_conditions_sizes_prints_and_detached_numbers_are_silent(transform, way):
    TRANSFORMS[transform](lambda v: (SILENT[way](v) * v).sum(), symgrad.tensor(AT))


@pytest.mark.parametrize("way", [way for way in (*ARRAYS, *NUMBERS) if way not in NOT_OF_A_BATCH])
def test_in_vmap_every_way_out_raises_with_its_line(way):
    found = {**ARRAYS, **NUMBERS}[way]
    with pytest.raises((RuntimeError, TypeError)) as caught:
        func.vmap(lambda v: v * _total(found(v)))(symgrad.tensor([AT, AT]))
    assert f"{__file__}:{_line(found)}" in str(caught.value)


def test_what_is_captured_and_constant_is_silent():
    w = symgrad.tensor(0.3, requires_grad=True)
    assert func.grad(lambda v: v * w.item())(1.3) == symgrad.tensor(0.3)
    assert func.grad(lambda v: symgrad.tensor(2.0))(1.3) == 0 == func.grad(lambda v: v.detach() * 2)(1.3)
    assert func.grad(lambda v: v.long() * 1.0)(1.3) == 0 == func.grad(lambda v: int(v) * 1.0)(1.3)


def test_an_argument_all_of_whose_numbers_left_raises_beside_one_that_is_connected():
    def scaled(a, b):
        return float(a) * b

    with pytest.warns(UserWarning, match="float"), pytest.raises(RuntimeError, match=f"{__file__}:"):
        func.grad(scaled, (0, 1))(1.3, 0.7)
    with pytest.warns(UserWarning, match="float"):
        assert func.grad(scaled, 1)(symgrad.tensor(1.3, requires_grad=True), 0.7) == symgrad.tensor(1.3)


@pytest.mark.parametrize("make", [symgrad.asarray, symgrad.nn.Parameter, symgrad.normal, lambda v: symgrad.asarray(v, dtype=symgrad.float32)])
def test_a_tensor_made_of_the_numbers_of_one_that_is_differentiated_warns(make):
    v = symgrad.tensor(AT)
    with pytest.warns(UserWarning, match="is a constant to every derivative"):
        func.grad(lambda v: (make(v) * v).sum())(v)
    with pytest.warns(UserWarning), pytest.raises(RuntimeError, match="not connected"):
        func.jvp(lambda v: make(v) * 2, (v,), (v,))
    func.grad(lambda v: (make(v.detach()) * v).sum())(v)
    make(v.requires_grad_())


def test_one_of_several_results_that_is_not_connected_raises():
    def several(v):
        return v.sum(), symgrad.tensor(math.exp(v[0])), v.argmax()

    with pytest.warns(UserWarning, match="float"), pytest.raises(RuntimeError, match="not connected"):
        func.vjp(several, symgrad.tensor(AT))
    with pytest.warns(UserWarning, match="float"):
        func.vjp(lambda v: (v.sum() * float(v[0]), v.argmax()), symgrad.tensor(AT))


def test_a_warning_comes_once_a_line():
    def summed(v):
        total = 0.0
        for x in v:
            total = total + x * x.item()
        return total

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        summed.__globals__.pop("__warningregistry__", None)
        for _ in range(3):
            func.grad(summed)(symgrad.tensor(AT))
    assert len(caught) == 1


@pytest.mark.parametrize("way", {**ARRAYS, **NUMBERS})
def test_plain_autograd_raises_for_arrays_and_warns_for_floats(way):
    v = symgrad.tensor(AT, requires_grad=True) * 1
    found = {**ARRAYS, **NUMBERS}[way]
    if way in ("item", "tolist", "tolist of one", "storage", "pickle", "copy", "linspace"):
        found(v)
    elif way in NUMBERS or way.endswith("element"):
        with pytest.warns(UserWarning) as caught:
            found(v)
        assert {w.lineno for w in caught} == {_line(found)}
    else:
        with pytest.raises((RuntimeError, TypeError, BufferError)):
            found(v)
    with symgrad.no_grad():
        if way in NUMBERS and way not in ("tensor",):
            found(v)


def test_the_residual_and_the_solver_of_an_implicit_function():
    root = func.implicit_root(lambda x, a: x**2 - a * a.item(), lambda a: float(a))
    with pytest.warns(UserWarning, match="item"):
        func.grad(root)(1.3)
    solver = func.implicit_root(lambda x, a: x**2 - a, lambda a: math.sqrt(a))
    assert func.grad(solver)(1.3).item() == pytest.approx(0.5 / math.sqrt(1.3), rel=1e-14)


def test_a_rerun_of_a_checkpoint_outside_of_a_transform_is_plain():
    x = symgrad.tensor(1.3, requires_grad=True)
    symgrad.utils.checkpoint.checkpoint(lambda v: v * v.item(), x, use_reentrant=False).backward()
    assert x.grad == symgrad.tensor(1.3)


@pytest.mark.filterwarnings("ignore:Converting a tensor", "ignore:tensor. the data is a Tensor")
@pytest.mark.parametrize("way", [*NUMBERS, "asarray"])
def test_a_compiled_function_of_numbers_has_no_silent_derivative(way):
    found = {**NUMBERS, **ARRAYS}[way]
    f = symgrad.compile(lambda v: _total(found(v)))
    for point in (AT, [0.9, -0.2], AT):
        v = symgrad.tensor(point)
        assert f(v) == pytest.approx(_total(found(v)).item(), rel=1e-12)
        with pytest.raises(RuntimeError):
            func.grad(f)(v)


def test_a_compiled_function_that_reads_what_is_not_differentiated_stays_compiled():
    f = symgrad.compile(lambda v, k: v.sum() * k.item() if v[0] > 0 else v.sum())
    for _ in range(3):
        v = symgrad.tensor(AT, requires_grad=True)
        f(v, symgrad.tensor(3.0)).backward()
        assert v.grad.tolist() == [3.0, 3.0]
    assert [(row["runs"], "uncompiled" in row["note"]) for row in f.report.programs if row["of"] == "value"] == [(3, True)]
