"""`autograd.functional`: values, structure and messages recorded from torch, and higher derivatives."""

import pytest

import symgrad
from symgrad import autograd, tensor
from symgrad.autograd import functional

STRICT = "This is not allowed in strict mode"
NO_GRADIENTS = ("Output 0 of the user-provided function does not require gradients. The outputs must be computed in a differentiable manner from the "
                "input when running in strict mode.")
OUTPUT_INDEPENDENT = f"The output of the user-provided function is independent of input 0. {STRICT}."
JACOBIAN_CONSTANT = f"The jacobian of the user-provided function is independent of input 0. {STRICT} when create_graph=True."
GRADIENT_CONSTANT = ("While computing the hessian, found that the jacobian of the user-provided function with respect to input 0 is independent of "
                     f"the input. {STRICT}. You should ensure that your function is twice differentiable and that the jacobian depends on the inputs "
                     "(this would be violated by a linear function for example).")


def point(t):
    return t.tensor([1.0, 2.0])


def direction(t):
    return t.tensor([3.0, 4.0])


def leaf(t):
    return t.tensor([1.0, 2.0], requires_grad=True)


def matrix(t):
    return t.tensor([[1.0, 2.0], [0.5, -1.0]])


def pair(t):
    return point(t), matrix(t)


# What torch 2.13 prints, with float64 as its default dtype. Each case takes torch (or what stands for it) and its `autograd.functional`.
VALUES = {
    "jacobian": (lambda t, f: f.jacobian(lambda x: x.exp() * x[0], point(t)), "tensor([[5.4366, 0.0000],\n        [7.3891, 7.3891]])"),
    "jacobian of a scalar": (lambda t, f: f.jacobian(lambda x: x**2, t.tensor(3.0)), "tensor(6.)"),
    "jacobian of outputs": (lambda t, f: f.jacobian(lambda x: (x**2, x.sum()), point(t)),
                            "(tensor([[2., 0.],\n        [0., 4.]]), tensor([1., 1.]))"),
    "jacobian of inputs": (lambda t, f: f.jacobian(lambda x, a: a @ x, pair(t)),
                           "(tensor([[ 1.0000,  2.0000],\n        [ 0.5000, -1.0000]]), tensor([[[1., 2.],\n         [0., 0.]],\n\n"
                           "        [[0., 0.],\n         [1., 2.]]]))"),
    "jacobian of both": (lambda t, f: f.jacobian(lambda x, a: (a @ x, x.sum()), pair(t)),
                         "((tensor([[ 1.0000,  2.0000],\n        [ 0.5000, -1.0000]]), tensor([[[1., 2.],\n         [0., 0.]],\n\n"
                         "        [[0., 0.],\n         [1., 2.]]])), (tensor([1., 1.]), tensor([[0., 0.],\n        [0., 0.]])))"),
    "jacobian of one input in a tuple": (lambda t, f: f.jacobian(lambda x: x**2, (point(t),)), "(tensor([[2., 0.],\n        [0., 4.]]),)"),
    "jacobian vectorized": (lambda t, f: f.jacobian(lambda x: (x**2, x.sum()), point(t), vectorize=True),
                            "(tensor([[2., 0.],\n        [0., 4.]]), tensor([1., 1.]))"),
    "jacobian of a complex output": (lambda t, f: f.jacobian(lambda x: x * (1 + 2j), point(t), vectorize=True),
                                     "tensor([[1., 0.],\n        [0., 1.]])"),
    "jacobian in forward mode": (lambda t, f: f.jacobian(lambda x: x**2, point(t), vectorize=True, strategy="forward-mode"),
                                 "tensor([[2., 0.],\n        [0., 4.]])"),
    "jacobian of a matrix laid out by columns": (
        lambda t, f: f.jacobian(lambda x: (matrix(t) * x).t(), point(t)).sum(0), "tensor([[ 1.0000,  2.0000],\n        [ 0.5000, -1.0000]])"),
    "jacobian of inputs in forward mode": (
        lambda t, f: tuple(f.jacobian(lambda x, a: a @ x, pair(t), vectorize=True, strategy="forward-mode")),
        "(tensor([[ 1.0000,  2.0000],\n        [ 0.5000, -1.0000]]), tensor([[[1., 2.],\n         [0., 0.]],\n\n        [[0., 0.],\n"
        "         [1., 2.]]]))"),
    "jacobian of two dtypes": (lambda t, f: f.jacobian(lambda x, y: x * y, (point(t), direction(t).float())),
                               "(tensor([[3., 0.],\n        [0., 4.]]), tensor([[1., 0.],\n        [0., 2.]], dtype=torch.float32))"),
    "jacobian of two dtypes in forward mode": (
        lambda t, f: tuple(f.jacobian(lambda x, y: x * y, (point(t), direction(t).float()), vectorize=True, strategy="forward-mode")),
        "(tensor([[3., 0.],\n        [0., 4.]]), tensor([[1., 0.],\n        [0., 2.]]))"),
    "jacobian of integers": (lambda t, f: f.jacobian(lambda x: x.argmax(), point(t)), "tensor([0., 0.])"),
    "jacobian to differentiate": (lambda t, f: f.jacobian(lambda x: x**2, leaf(t), create_graph=True),
                                  "tensor([[2., 0.],\n        [0., 4.]], grad_fn=<ViewBackward0>)"),
    "jacobian to differentiate of no leaf": (lambda t, f: f.jacobian(lambda x: x**2, point(t), create_graph=True),
                                             "tensor([[2., 0.],\n        [0., 4.]], grad_fn=<ViewBackward0>)"),
    "jacobian of a leaf": (lambda t, f: f.jacobian(lambda x: x**2, leaf(t)), "tensor([[2., 0.],\n        [0., 4.]])"),
    "hessian": (lambda t, f: f.hessian(lambda x: (x**3).sum() * x[0], point(t)), "tensor([[12., 12.],\n        [12., 12.]])"),
    "hessian of a scalar": (lambda t, f: f.hessian(lambda x: x**3, t.tensor(3.0)), "tensor(18.)"),
    "hessian of one element": (lambda t, f: f.hessian(lambda x: (x**3).sum(0, keepdim=True), point(t)), "tensor([[ 6.,  0.],\n        [ 0., 12.]])"),
    "hessian of inputs": (lambda t, f: f.hessian(lambda x, y: (x**2 * y).sum(), (point(t), t.tensor(3.0))),
                          "((tensor([[6., 0.],\n        [0., 6.]]), tensor([2., 4.])), (tensor([2., 4.]), tensor(0.)))"),
    "hessian in forward mode": (
        lambda t, f: f.hessian(lambda x: (x**3).sum() * x[0], point(t), vectorize=True, outer_jacobian_strategy="forward-mode").detach(),
        "tensor([[12., 12.],\n        [12., 12.]])"),
    "hessian to differentiate": (lambda t, f: f.hessian(lambda x: (x**3).sum(), leaf(t), create_graph=True),
                                 "tensor([[ 6.,  0.],\n        [ 0., 12.]], grad_fn=<ViewBackward0>)"),
    "vjp": (lambda t, f: f.vjp(lambda x: x.exp().sum(), point(t)), "(tensor(10.1073), tensor([2.7183, 7.3891]))"),
    "vjp with v": (lambda t, f: f.vjp(lambda x, a: a @ x, pair(t), direction(t)),
                   "(tensor([ 5.0000, -1.5000]), (tensor([5., 2.]), tensor([[3., 6.],\n        [4., 8.]])))"),
    "vjp of outputs": (lambda t, f: f.vjp(lambda x: (x**2, x.sum()), point(t), (direction(t), t.tensor(1.0))),
                       "((tensor([1., 4.]), tensor(3.)), tensor([ 7., 17.]))"),
    "vjp of integers": (lambda t, f: f.vjp(lambda x: x.argmax(), point(t)), "(tensor(1), tensor([0., 0.]))"),
    "vjp to differentiate": (lambda t, f: f.vjp(lambda x: x**2, leaf(t), direction(t), create_graph=True),
                             "(tensor([1., 4.], grad_fn=<PowBackward0>), tensor([ 6., 16.], grad_fn=<MulBackward0>))"),
    "jvp": (lambda t, f: f.jvp(lambda x: (x**2, x.sum()), point(t), direction(t)),
            "((tensor([1., 4.]), tensor(3.)), (tensor([ 6., 16.]), tensor(7.)))"),
    "jvp of inputs": (lambda t, f: f.jvp(lambda x, a: a @ x, pair(t), (direction(t), matrix(t))),
                      "(tensor([ 5.0000, -1.5000]), tensor([16., -4.]))"),
    "jvp without v": (lambda t, f: f.jvp(lambda x: (x, x**2), t.tensor([3.0])), "((tensor([3.]), tensor([9.])), (tensor([1.]), tensor([6.])))"),
    "jvp of complex": (lambda t, f: f.jvp(lambda x: x * x * (1 + 2j), point(t) * (1 + 1j), direction(t) * (1 - 1j)),
                       "(tensor([ -4.+2.j, -16.+8.j]), tensor([12.+24.j, 32.+64.j]))"),
    "jvp to differentiate": (lambda t, f: f.jvp(lambda x: x**2, leaf(t), direction(t), create_graph=True),
                             "(tensor([1., 4.], grad_fn=<PowBackward0>), tensor([ 6., 16.], grad_fn=<MulBackward0>))"),
    "hvp": (lambda t, f: f.hvp(lambda x: (x**3).sum() * x[0], point(t), direction(t)), "(tensor(9.), tensor([84., 84.]))"),
    "hvp of inputs": (lambda t, f: f.hvp(lambda x, y: (x**2 * y).sum(), (point(t), t.tensor(3.0)), (direction(t), t.tensor(1.0))),
                      "(tensor(15.), (tensor([20., 28.]), tensor(22.)))"),
    "hvp to differentiate": (lambda t, f: f.hvp(lambda x: (x**3).sum(), leaf(t), direction(t), create_graph=True),
                             "(tensor(9., grad_fn=<SumBackward0>), tensor([18., 48.], grad_fn=<MulBackward0>))"),
    "vhp": (lambda t, f: f.vhp(lambda x: (x**3).sum() * x[0], point(t), direction(t)), "(tensor(9.), tensor([84., 84.]))"),
    "vhp of a linear function": (lambda t, f: f.vhp(lambda x: x.sum(), point(t), direction(t)), "(tensor(3.), tensor([0., 0.]))"),
    "vhp without v": (lambda t, f: f.vhp(lambda x: x**3, t.tensor(3.0)), "(tensor(27.), tensor(18.))"),
    "vhp to differentiate": (lambda t, f: f.vhp(lambda x: (x**3).sum(), leaf(t), direction(t), create_graph=True),
                             "(tensor(9., grad_fn=<SumBackward0>), tensor([18., 48.], grad_fn=<MulBackward0>))"),
    "strict": (lambda t, f: f.hvp(lambda x: (x**3).sum(), point(t), direction(t), True, True)[1].detach(), "tensor([18., 48.])"),
    "strict vjp of outputs one of which depends": (
        lambda t, f: f.vjp(lambda x: (x**2, leaf(t) * 2), point(t), (direction(t), direction(t)), strict=True),
        "((tensor([1., 4.]), tensor([2., 4.])), tensor([ 6., 16.]))"),
}

GIVEN = "must be either a Tensor or a tuple of Tensors but the"
ERRORS = {
    "inputs in a list": (lambda t, f: f.jacobian(lambda x, y: x * y, [point(t), point(t)]), TypeError,
                         f"The inputs given to jacobian {GIVEN} given inputs has type <class 'list'>."),
    "a number among inputs": (lambda t, f: f.vjp(lambda x, y: x, (point(t), 1)), TypeError,
                              f"The inputs given to vjp {GIVEN} value at index 1 has type <class 'int'>."),
    "outputs in a list": (lambda t, f: f.jvp(lambda x: [x * x], point(t), point(t)), TypeError,
                          f"The outputs of the user-provided function given to jvp {GIVEN} given outputs of the user-provided function has type "
                          "<class 'list'>."),
    "a number for v": (lambda t, f: f.hvp(lambda x: x.sum(), point(t), 1.0), TypeError,
                       f"The v given to hvp {GIVEN} given v has type <class 'float'>."),
    "v for one tensor": (lambda t, f: f.jvp(lambda x: x, point(t), (point(t), point(t))), RuntimeError,
                         "The given v should contain a single Tensor."),
    "v of another length": (lambda t, f: f.jvp(lambda x, a: a @ x, pair(t), point(t)), RuntimeError,
                            "v is a tuple of invalid length: should be 2 but got 1."),
    "v of another shape": (lambda t, f: f.vjp(lambda x: x, point(t), t.ones(3)), RuntimeError,
                           "v has invalid size: should be torch.Size([2]) but got torch.Size([3])."),
    "an entry of v of another shape": (lambda t, f: f.hvp(lambda x, a: (a @ x).sum(), pair(t), (point(t), point(t))), RuntimeError,
                                       "Entry 1 in v has invalid size: should be torch.Size([2, 2]) but got torch.Size([2])."),
    "vjp without v": (lambda t, f: f.vjp(lambda x: x, point(t)), RuntimeError,
                      "The vector v can only be None if the user-provided function returns a single Tensor with a single element."),
    "jvp without v": (lambda t, f: f.jvp(lambda x: x, point(t)), RuntimeError,
                      "The vector v can only be None if the input to the user-provided function is a single Tensor with a single element."),
    "vhp without v": (lambda t, f: f.vhp(lambda x: x.sum(), point(t)), RuntimeError,
                      "The vector v can only be None if the input to the user-provided function is a single Tensor with a single element."),
    "hessian of a tuple": (lambda t, f: f.hessian(lambda x: (x.sum(),), point(t)), RuntimeError,
                           "The function given to hessian should return a single Tensor"),
    "hvp of a tuple": (lambda t, f: f.hvp(lambda x: (x.sum(),), point(t), point(t)), RuntimeError,
                       "The function given to hvp should return a single Tensor"),
    "hessian of a vector": (lambda t, f: f.hessian(lambda x: x, point(t)), RuntimeError,
                            "The Tensor returned by the function given to hessian should contain a single element"),
    "vhp of a vector": (lambda t, f: f.vhp(lambda x: x, point(t), point(t)), RuntimeError,
                        "The Tensor returned by the function given to vhp should contain a single element"),
    "another strategy": (lambda t, f: f.jacobian(lambda x: x, point(t), strategy="sideways"), AssertionError,
                         'Expected strategy to be either "forward-mode" or "reverse-mode". Hint: If your function has more outputs than inputs, '
                         '"forward-mode" tends to be more performant. Otherwise, prefer to use "reverse-mode".'),
    "another outer strategy": (lambda t, f: f.hessian(lambda x: x.sum(), point(t), outer_jacobian_strategy="sideways"), AssertionError,
                               'Expected strategy to be either "forward-mode" or "reverse-mode".'),
    "a complex output": (lambda t, f: f.jacobian(lambda x: x * (1 + 2j), point(t)), RuntimeError,
                         "grad can be implicitly created only for real scalar outputs but got torch.complex128"),
    "integers": (lambda t, f: f.jacobian(lambda x: x, t.tensor([1, 2])), RuntimeError, "only Tensors of floating point dtype can require gradients"),
}

FUNCTIONS = {  # of x and of a tensor that requires grad
    "detached": lambda x, w: x.detach() * 2,
    "captured": lambda x, w: w * 1,
    "linear": lambda x, w: 2 * x,
    "square": lambda x, w: x**2,
}


def strict(name, caller, create_graph):
    """A call in strict mode."""
    def call(t, f):
        w, function = leaf(t), FUNCTIONS[name]
        if caller in ("jacobian", "vjp", "jvp"):
            rest = () if caller == "jacobian" else (direction(t),)
            return getattr(f, caller)(lambda x: function(x, w), point(t), *rest, create_graph=create_graph, strict=True)
        rest = () if caller == "hessian" else (direction(t),)
        return getattr(f, caller)(lambda x: function(x, w).sum(), point(t), *rest, create_graph=create_graph, strict=True)

    return call


def refusal(name, caller, create_graph):
    """What torch says to it; None where it gives an answer."""
    if name == "detached":
        return NO_GRADIENTS
    if name == "captured":
        return {"jacobian": f"Output 0 of the user-provided function is independent of input 0. {STRICT}.",
                "hessian": GRADIENT_CONSTANT}.get(caller, OUTPUT_INDEPENDENT)
    if name == "linear":
        return GRADIENT_CONSTANT if caller in ("hessian", "vhp", "hvp") else JACOBIAN_CONSTANT if create_graph else None
    return None


for _name in FUNCTIONS:
    for _asking in functional.__all__:
        for _create_graph in (False, True):
            _key = f"strict {_asking} of {_name}{', to differentiate' * _create_graph}"
            if (_message := refusal(_name, _asking, _create_graph)) is not None:
                ERRORS[_key] = strict(_name, _asking, _create_graph), RuntimeError, _message
for _asking in ("jacobian", "hessian"):
    ERRORS[f"strict {_asking} in batches"] = (
        lambda t, f, asking=_asking: getattr(f, asking)(lambda x: (x**3).sum(), point(t), strict=True, vectorize=True), RuntimeError,
        "torch.autograd.functional.jacobian: `strict=True` and `vectorized=True` are not supported together. "
        "Please either set `strict=False` or `vectorize=False`.")
ERRORS |= {
    "strict jacobian of two outputs": (lambda t, f: f.jacobian(lambda x: (x**2, leaf(t) * 2), point(t), strict=True), RuntimeError,
                                       f"Output 1 of the user-provided function is independent of input 0. {STRICT}."),
    "strict jvp of two outputs": (lambda t, f: f.jvp(lambda x: (x**2, leaf(t) * 2), point(t), direction(t), strict=True), RuntimeError,
                                  "The gradient with respect to the input is independent of entry 1 in the grad_outputs when using the double "
                                  f"backward trick to compute forward mode gradients. {STRICT}."),
    "strict hvp of two inputs": (lambda t, f: f.hvp(lambda x, y: (x**2).sum(), (point(t), point(t)), (point(t), point(t)), strict=True), RuntimeError,
                                 f"The output of the user-provided function is independent of input 1. {STRICT}."),
    "strict vhp of a gradient that depends on something else": (
        lambda t, f: f.vhp(lambda x, y: (x**2).sum() + (y * leaf(t)).sum(), (point(t), point(t)), (point(t), point(t)), strict=True), RuntimeError,
        f"The jacobian of the user-provided function is independent of input 1. {STRICT}."),
    "strict vhp of two inputs": (lambda t, f: f.vhp(lambda x, y: (x**2).sum() + y.sum(), (point(t), point(t)), (point(t), point(t)), strict=True),
                                 RuntimeError, GRADIENT_CONSTANT.replace("input 0", "input 1")),
}


@pytest.mark.parametrize("name", VALUES)
def test_values_and_structure_match_torch(name):
    call, expected = VALUES[name]
    assert repr(call(symgrad, functional)) == expected


@pytest.mark.parametrize("name", ERRORS)
def test_messages_match_torch(name):
    call, error, message = ERRORS[name]
    with pytest.raises(error) as caught:
        call(symgrad, functional)
    assert type(caught.value) is error and str(caught.value).startswith(message)


@pytest.mark.parametrize("caller", functional.__all__)
@pytest.mark.parametrize("create_graph", [False, True])
def test_strict_mode_accepts_outputs_that_depend_on_the_input(caller, create_graph):
    assert strict("square", caller, create_graph)(symgrad, functional) is not None


def test_results_require_grad_only_with_create_graph():
    x, v = leaf(symgrad), direction(symgrad)
    for caller in ("vjp", "jvp"):
        for create_graph in (False, True):
            y, product = getattr(functional, caller)(lambda x: x**2, x, v, create_graph)
            assert y.requires_grad is product.requires_grad is create_graph
    for caller in ("vhp", "hvp"):
        for create_graph in (False, True):
            y, product = getattr(functional, caller)(lambda x: (x**3).sum(), x, v, create_graph)
            assert y.requires_grad is product.requires_grad is create_graph
    assert x.grad is None


@pytest.mark.parametrize("strategy", ["reverse-mode", "forward-mode"])
def test_results_can_be_differentiated_again(strategy):
    x, v = leaf(symgrad), tensor([3.0, 4.0], requires_grad=True)

    def cubes(x):
        return x**3

    def total(x):
        return (x**4).sum()

    gradients = {
        "jacobian": autograd.grad(functional.jacobian(cubes, x, True, strategy=strategy).sum(), x),
        "hessian": autograd.grad(functional.hessian(total, x, True, outer_jacobian_strategy=strategy).sum(), x),
        "vjp": autograd.grad(functional.vjp(cubes, x, v, True)[1].sum(), (x, v)),
        "jvp": autograd.grad(functional.jvp(cubes, x, v, True)[1].sum(), (x, v)),
        "vhp": autograd.grad(functional.vhp(total, x, v, True)[1].sum(), (x, v)),
        "hvp": autograd.grad(functional.hvp(total, x, v, True)[1].sum(), (x, v)),
    }
    assert {name: [g.tolist() for g in found] for name, found in gradients.items()} == {
        "jacobian": [[6.0, 12.0]], "hessian": [[24.0, 48.0]],
        "vjp": [[18.0, 48.0], [3.0, 12.0]], "jvp": [[18.0, 48.0], [3.0, 12.0]],
        "vhp": [[72.0, 192.0], [12.0, 48.0]], "hvp": [[72.0, 192.0], [12.0, 48.0]]}


def test_a_constant_derivative_has_derivative_zero():
    x = leaf(symgrad)
    for found in (functional.jacobian(lambda x: 2 * x, x, True), functional.jvp(lambda x: 2 * x, x, direction(symgrad), True)[1],
                  functional.vjp(lambda x: 2 * x, x, direction(symgrad), True)[1]):
        (g,) = autograd.grad(found.sum(), x)
        assert g.tolist() == [0.0, 0.0]


def test_a_captured_input_is_a_constant_of_the_function():
    x = leaf(symgrad)
    assert functional.jacobian(lambda y: x * y, x).tolist() == [[1.0, 0.0], [0.0, 2.0]]
    assert functional.jvp(lambda y: x * y, x, direction(symgrad))[1].tolist() == [3.0, 8.0]
    through = functional.jacobian(lambda y: x * y, x, create_graph=True).sum()
    assert autograd.grad(through, x)[0].tolist() == [1.0, 1.0]


def test_a_function_is_called_once():
    calls = []

    def counted(x):
        calls.append(1)
        return (x**3).sum()

    x, v = point(symgrad), direction(symgrad)
    for ask in (lambda: functional.jacobian(counted, x), lambda: functional.jacobian(counted, x, strategy="forward-mode"),
                lambda: functional.hessian(counted, x), lambda: functional.hvp(counted, x, v), lambda: functional.jvp(counted, x, v)):
        calls.clear()
        ask()
        assert len(calls) == 1


def test_strict_mode_and_create_graph_in_forward_mode():
    with pytest.raises(RuntimeError, match="Output 0 of the user-provided function is independent of input 1"):
        functional.jacobian(lambda x, y: x**2, (point(symgrad), point(symgrad)), strict=True, strategy="forward-mode")
    with pytest.raises(RuntimeError, match="The jacobian of the user-provided function is independent of input 0"):
        functional.jacobian(lambda x: 2 * x, point(symgrad), True, True, strategy="forward-mode")


def test_no_elements_and_no_inputs():
    assert functional.jacobian(lambda x: x[:0], point(symgrad)).shape == (0, 2)
    assert functional.jacobian(lambda x: x.sum(), symgrad.zeros(0), strategy="forward-mode").shape == (0,)
    with pytest.raises(ValueError, match="give at least one Tensor"):
        functional.jacobian(lambda: point(symgrad), ())


def test_results_do_not_alias_the_arguments():
    x, v = point(symgrad), direction(symgrad)
    _, pushed = functional.jvp(lambda x: x, x, v)
    _, pulled = functional.vjp(lambda x: x, x, v)
    assert pushed.tolist() == pulled.tolist() == [3.0, 4.0]
    assert not pushed.shares_memory_with(v) and not pulled.shares_memory_with(v)


def test_functional_works_under_no_grad():
    with symgrad.no_grad():
        assert functional.jvp(lambda x: x**2, point(symgrad), direction(symgrad))[1].tolist() == [6.0, 16.0]
        assert functional.hessian(lambda x: (x**3).sum(), tensor([1.0])).tolist() == [[6.0]]
        found = functional.jvp(lambda x: x**3, leaf(symgrad), direction(symgrad), create_graph=True)[1]
        assert found.requires_grad and not symgrad.is_grad_enabled()


def test_formulas_pass_through():
    x = tensor(2.0, symbol="x", requires_grad=True)
    found = functional.jacobian(lambda x: x.sin() * x, x, create_graph=True)
    assert str(found.expr) in ("x*cos(x) + sin(x)", "sin(x) + x*cos(x)")


class Cube(autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return 3 * grad * x**2


class Cut(Cube):
    @staticmethod
    def backward(ctx, grad):
        return None


def test_jvp_by_double_backward_for_a_function_without_jvp():
    x, v = leaf(symgrad), direction(symgrad)
    assert functional.jvp(lambda x: (Cube.apply(x), x * 2), x, v)[1][0].tolist() == [9.0, 48.0]
    assert functional.jvp(lambda x: (x.detach() * 2, Cube.apply(x)), x, v)[1][0].tolist() == [0.0, 0.0]
    assert functional.jvp(Cut.apply, x, v)[1].tolist() == [0.0, 0.0]
    assert functional.jacobian(lambda x: Cube.apply(x.exp()).log(), x, strategy="forward-mode").allclose(3 * symgrad.eye(2))
    assert functional.hvp(lambda x: Cube.apply(x).sum(), x, v)[1].tolist() == [18.0, 48.0]
    again = functional.jvp(Cube.apply, x, v, create_graph=True)[1]
    assert autograd.grad(again.sum(), x)[0].tolist() == [18.0, 48.0]
