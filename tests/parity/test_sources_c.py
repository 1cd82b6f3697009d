"""C is compiled by a compiler, without a warning, and agrees; the folder's conftest collects this where there is one."""

import ctypes
import subprocess

import numpy as np

import symgrad
from symgrad import tensor
from symgrad.codegen.languages import C
from symgrad.codegen.sources import to_c
from symgrad.engine.traced import core
from symgrad.graph.op import REGISTRY
from tests.support.points import examples, numbers, of_numbers
from tests.support.sources import check_refused

CASES = [(op, parameters) for op in REGISTRY.values()
         if op.kind == "elementwise" and op.differentiable and of_numbers(op) for parameters in examples(op)]


def compiled(folder):
    """All sources of a folder as one library."""
    library = folder / "all.so"
    warnings = ["-std=c99", "-pedantic", "-Wall", "-Werror"]
    subprocess.run(["cc", *warnings, "-O1", "-shared", "-fPIC", "-o", library, *sorted(folder.glob("*.c")), "-lm"], check=True)
    return ctypes.CDLL(str(library))


def test_every_op_compiled(tmp_path):
    rng = np.random.default_rng(5)
    expected = {}
    for k, (op, parameters) in enumerate(CASES):
        columns = [np.array(numbers(op.domain[i], rng, 10)) for i in range(op.arity)]
        call = core(op)
        xs = [tensor(c, requires_grad=True) for c in columns]
        y = call(*xs, *parameters)
        function = lambda *given, call=call, parameters=parameters: call(*given, *parameters)  # noqa: E731
        try:
            (tmp_path / f"f{k}.c").write_text(to_c(function, at=[c[0] for c in columns], derivatives=1, name=f"f{k}"))
        except TypeError as error:
            check_refused(error, C)
            continue
        expected[k] = op, columns, y.detach().numpy(), [g.numpy() for g in symgrad.autograd.grad(y.sum(), xs, materialize_grads=True)]
    assert len(expected) > 80
    functions = compiled(tmp_path)
    for k, (op, columns, value, gradient) in expected.items():
        for i in range(10):
            v, g = (ctypes.c_double * 1)(), (ctypes.c_double * op.arity)()
            getattr(functions, f"f{k}")(*[ctypes.c_double(c[i]) for c in columns], v, g)
            for found, true, column in zip((v[0], *g), (value[i], *[b[i] for b in gradient]), (value, *gradient)):
                np.testing.assert_allclose(found, true, rtol=1e-12, atol=1e-13 * (1 + abs(column).max()), err_msg=op.name)


def test_numbers_arrays_and_derivatives_compiled(tmp_path):
    def f(x, w):
        return (w * x).sum().exp() / 3 + symgrad.where(x > 0, x, 0.1 * x)

    (tmp_path / "f.c").write_text(to_c(f, (), 2, derivatives=2, name="f") + to_c(f, (), 2, name="value").partition("\n")[2])
    library = compiled(tmp_path)
    library.value.restype = ctypes.c_double
    x, w = 0.5, [0.25, -1.5]
    v, g, h = (ctypes.c_double * 1)(), (ctypes.c_double * 3)(), (ctypes.c_double * 9)()
    library.f(ctypes.c_double(x), (ctypes.c_double * 2)(*w), v, g, h)
    flat = lambda u: f(u[0], u[1:])  # noqa: E731
    u = tensor([x, *w])
    assert library.value(ctypes.c_double(x), (ctypes.c_double * 2)(*w)) == v[0]
    np.testing.assert_allclose(v[0], flat(u).item(), rtol=1e-14)
    np.testing.assert_allclose(list(g), symgrad.func.grad(flat)(u).numpy(), rtol=1e-14)
    np.testing.assert_allclose(np.reshape(list(h), (3, 3)), symgrad.func.hessian(flat)(u).numpy(), rtol=1e-13)
