"""What transforms make of functions: pickled, bound and named as functions are."""

import functools
import pickle
import types

import pytest

import symgrad
from symgrad import func, nn
from symgrad.func.calling import Transformed
from tests.support import mapped

X = symgrad.tensor([1.0, 2.0])
SETTINGS = {
    "derivatives": ((3,), {}), "directional_derivatives": ((2,), {}), "vmap": ((), {"in_dims": (0,), "chunk_size": 1}), "divergence": ((0,), {}),
    "hessian_trace": ((), {"method": "hutchinson", "seed": 1}), "hessian": ((), {"structure": "auto"}), "jacobian": ((0,), {}),
    "laplacian": ((), {"directions": symgrad.eye(2), "weights": symgrad.ones(2)}), "grad_and_value": ((), {"argnums": (0,)}),
}
FUNCTIONS = {"derivatives": symgrad.sin, "divergence": mapped.turned, "curl": mapped.turned, "vmap": func.grad(mapped.gentle),
             "jacobian": mapped.turned, "jacrev": mapped.turned, "jacfwd": mapped.turned, "checkpoint": func.vmap(mapped.gentle)}
ARGUMENTS = {"directional_derivatives": (X, X)}
OTHERS = {"CheckpointError", "checkpoint_sequential", "custom_jvp", "custom_vjp", "foreign", "functional_call", "hvp", "implicit_argmin",
          "implicit_fixed_point", "implicit_root", "jet", "jvp", "linearize", "stack_module_state", "stop_gradient", "vhp", "vjp"}
TRANSFORMS = sorted({*func.__all__} - OTHERS)
IMPLICIT = [func.implicit_root(mapped.residual, mapped.root), func.implicit_fixed_point(mapped.halfway, mapped.root),
            func.implicit_argmin(mapped.misfit, mapped.same)]


@pytest.mark.parametrize("name", TRANSFORMS)
def test_a_transformed_function_is_pickled_as_the_call_that_made_it(name):
    settings, words = SETTINGS.get(name, ((), {}))
    made = getattr(func, name)(FUNCTIONS.get(name, mapped.energy), *settings, **words)
    again, arguments = pickle.loads(pickle.dumps(made)), ARGUMENTS.get(name, (X,))
    assert isinstance(made, Transformed) and again is not made
    found, expected = again(*arguments), made(*arguments)
    if hasattr(found, "todense"):
        found, expected = found.todense(), expected.todense()
    assert repr(found) == repr(expected)


@pytest.mark.parametrize("make", [symgrad.sin, mapped.compiled, mapped.clipped, *IMPLICIT], ids=lambda f: type(f).__name__)
def test_a_gradient_of_what_is_pickled_by_itself(make):
    slope = func.grad(make)
    x = X if make is mapped.compiled else symgrad.tensor(2.0)
    assert symgrad.equal(pickle.loads(pickle.dumps(slope))(x), slope(x))


@pytest.mark.parametrize("name", ["slope", "curvature", "clipped", "compiled"])
def test_a_decorated_function_is_pickled_by_its_name(name):
    assert pickle.loads(pickle.dumps(getattr(mapped, name))) is getattr(mapped, name)


def test_a_lambda_is_refused_as_by_pickle():
    with pytest.raises((pickle.PicklingError, AttributeError), match="lambda"):
        pickle.dumps(func.grad(lambda x: x))


def test_a_transformed_function_has_the_name_of_the_function_and_binds_as_one():
    class Spring:
        stiffness = 3.0

        @functools.partial(func.grad, argnums=1)
        def force(self, x):
            """The force at x."""
            return self.stiffness * x * x / 2

    assert Spring().force(2.0).item() == 6.0 and Spring.force.__doc__ == "The force at x."
    assert mapped.slope.__name__ == "slope" and mapped.slope.__doc__ == "The slope of x⁴."
    assert repr(mapped.slope) == "<grad of slope>" and repr(func.grad(nn.Tanh())) == "<grad of Tanh>"


MODULES = [symgrad, symgrad.linalg, symgrad.special, symgrad.fft, symgrad.func, nn.functional, nn.init]


@pytest.mark.parametrize("module", MODULES, ids=lambda m: m.__name__)
def test_public_functions_are_pickled_by_name(module):
    functions = [(name, x) for name in dir(module) if not name.startswith("_") and isinstance(x := getattr(module, name), types.FunctionType)]
    assert len(functions) > 15 and [name for name, x in functions if pickle.loads(pickle.dumps(x)) is not x] == []
