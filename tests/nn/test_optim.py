"""Optimizers: steps that are differentiated, their state, and what they find."""

import pytest

import symgrad
from symgrad import autograd, nn, optim


def test_a_step_can_be_differentiated():
    """A step of length lr along -f'(x), twice with momentum: the result, by the start and by lr."""
    start, lr = symgrad.tensor([1.0, 2.0], requires_grad=True), symgrad.tensor(0.1, requires_grad=True)
    x = start.clone()
    x.retain_grad()
    optimizer = optim.SGD([x], lr=lr, momentum=0.5, differentiable=True)
    x.grad = start * start
    optimizer.step()
    x.grad = start.exp()
    optimizer.step()
    by_start, by_lr = autograd.grad(x.sum(), [start, lr])
    s = start.detach()
    assert x.tolist() == pytest.approx((s - 0.15 * s * s - 0.1 * s.exp()).tolist(), rel=1e-14)
    assert by_start.tolist() == pytest.approx((1 - 0.3 * s - 0.1 * s.exp()).tolist(), rel=1e-14)
    assert by_lr.item() == pytest.approx(-(1.5 * s * s + s.exp()).sum().item(), rel=1e-14)


def test_a_step_of_adam_can_be_differentiated():
    start = symgrad.tensor([1.0, -2.0], requires_grad=True)

    def stepped(s):
        x = s.clone()
        x.retain_grad()
        optimizer = optim.Adam([x], lr=0.1, eps=0.5, amsgrad=True, differentiable=True)
        x.grad = s * s * s
        optimizer.step()
        return x

    (found,) = autograd.grad(stepped(start).sum(), start)
    s = start.detach()
    g, by_s = s**3, 3 * s**2
    expected = 1 - 0.1 * by_s * 0.5 / (g.abs() + 0.5) ** 2  # the first step is lr g / (|g| + eps)
    assert found.tolist() == pytest.approx(expected.tolist(), rel=1e-12)


STEPS = [
    (optim.SGD, {"momentum": 0.9, "nesterov": True, "weight_decay": 0.1}), (optim.Adam, {"amsgrad": True, "eps": 0.1}), (optim.AdamW, {"eps": 0.1}),
    (optim.RMSprop, {"centered": True, "momentum": 0.5, "eps": 0.1}), (optim.Adagrad, {"lr_decay": 0.3, "initial_accumulator_value": 0.1}),
    (optim.Adadelta, {"eps": 0.1, "maximize": True}), (optim.Adamax, {"betas": (0.5, 0.6)}), (optim.NAdam, {"momentum_decay": 0.5}),
    (optim.NAdam, {"decoupled_weight_decay": True, "weight_decay": 0.5}), (optim.RAdam, {"betas": (0.9, 0.99), "eps": 0.1}),
    (optim.RAdam, {"betas": (0.9, 0.6), "weight_decay": 0.1, "decoupled_weight_decay": True}),
    (optim.ASGD, {"lambd": 0.5, "t0": 1}), (optim.Rprop, {}),
]


@pytest.mark.parametrize("attack", [False, pytest.param(True, marks=pytest.mark.sweep)])  # the latter at special and random points
@pytest.mark.parametrize("kind, options", STEPS)
def test_the_loss_after_some_steps_has_its_derivatives_by_the_start_and_the_learning_rate(kind, options, attack):
    def after(start, more, rate, complex_start):
        """The loss after steps whose gradients are derivatives of it, in turn."""
        made = [p.clone() for p in (start, more, complex_start)]
        optimizer = kind([{"params": made[:1]}, {"params": made[1:], "lr": rate / 2}], lr=rate, differentiable=True, **options)
        for i in range(3):
            x, y, z = (p.clone() for p in made)  # the step will write into the parameters
            loss = (x * x * y).sum() + (x.sin() * y).sum() + y.exp() + (z - x[0]).abs() ** 2 + (z * z).imag
            if i == 2:
                return loss
            for p, g in zip(made, autograd.grad(loss, made, create_graph=True)):
                p.grad = g
            optimizer.step()

    inputs = (symgrad.tensor([0.7, -0.4], requires_grad=True), symgrad.tensor(0.37, requires_grad=True), symgrad.tensor(0.05, requires_grad=True),
              symgrad.tensor(0.2 + 0.3j, requires_grad=True))
    assert autograd.gradcheck(after, inputs, atol=1e-6, attack=attack)
    loss = after(*inputs)
    assert loss.requires_grad and all(g.abs().max() > 0 for g in autograd.grad(loss, inputs))


def test_an_empty_buffer_of_a_saved_state_is_filled_when_it_is_needed():
    x = symgrad.ones(2, requires_grad=True)
    optimizer = optim.SGD([x], lr=1.0)
    optimizer.load_state_dict({"state": {0: {"momentum_buffer": None}}, "param_groups": optimizer.state_dict()["param_groups"]})
    for momentum in (0.0, 0.5, 0.5):
        x.grad, optimizer.param_groups[0]["momentum"] = symgrad.ones(2), momentum
        optimizer.step()
    assert x.tolist() == [-2.5, -2.5] and optimizer.state[x]["momentum_buffer"].tolist() == [1.5, 1.5]


NAMES = ["ASGD", "Adadelta", "Adafactor", "Adagrad", "Adam", "Adamax", "NAdam", "RAdam", "RMSprop", "Rprop", "SGD"]


@pytest.mark.parametrize("name, dtype", [(name, dtype) for name in NAMES for dtype in (symgrad.float32, symgrad.bfloat16, symgrad.complex64)
                                         if not (name == "Adafactor" and dtype.is_complex)])  # it refuses complex parameters
def test_the_state_of_a_parameter_has_its_dtype_and_a_complex_one_steps_as_two_real_ones(name, dtype):
    """The numbers of the state have a dtype of their own, before and after loading."""
    options = {"momentum": 0.5} if name in ("SGD", "RMSprop") else {}
    x = symgrad.tensor([1.0, -2.0, 3.0], dtype=dtype, requires_grad=True)
    pairs = (symgrad.view_as_real(x.detach()) if dtype.is_complex else x.detach()).clone().requires_grad_()
    made = [getattr(optim, name)([p], lr=0.1, **options) for p in (x, pairs)]
    made.append(getattr(optim, name)([x], **options))
    for i in range(4):
        g = symgrad.tensor([1.0, -2.0 + i, 0.5 - i], dtype=dtype)
        x.grad, pairs.grad = g, symgrad.view_as_real(g) if dtype.is_complex else g
        for optimizer in made[:2]:
            optimizer.step()
    assert symgrad.equal(symgrad.view_as_real(x) if dtype.is_complex else x, pairs)
    saved = made[0].state_dict()
    made[2].load_state_dict(saved)
    for state in (saved["state"][0], made[2].state[x]):
        assert {key: t.dtype for key, t in state.items()} == {
            key: symgrad.float64 if key in ("step", "eta", "mu", "mu_product") else dtype for key in state}


def test_a_loaded_state_brings_its_names_and_options_that_it_lacks_are_off():
    x = symgrad.ones(2, requires_grad=True)
    named, plain = optim.SGD([("w", x)], lr=1.0), optim.SGD([x], lr=1.0, maximize=True, momentum=0.5)
    saved = named.state_dict()
    plain.load_state_dict(saved)
    assert plain.param_groups[0]["param_names"] == ["w"]
    plain = optim.SGD([x], lr=1.0)
    named.load_state_dict(plain.state_dict())
    assert named.param_groups[0]["param_names"] == ["w"]
    named = optim.SGD([("v", x)], lr=1.0, maximize=True, momentum=0.5)
    named.load_state_dict({"state": {}, "param_groups": [{name: saved["param_groups"][0][name] for name in ("lr", "params", "param_names")}]})
    assert (group := named.param_groups[0])["param_names"] == ["w"] and not group["maximize"] and group["momentum"] == 0
    x.grad = symgrad.ones(2)
    named.step()
    assert x.tolist() == [0.0, 0.0]


def test_a_written_parameter_names_the_step_that_wrote_it():
    layer = nn.Linear(2, 1)
    optimizer = optim.SGD(layer.parameters(), lr=0.1)
    loss = layer(symgrad.ones(1, 2, requires_grad=True)).square().sum()
    loss.backward(retain_graph=True)
    optimizer.step()
    with pytest.raises(RuntimeError, match="(?s)modified by an inplace operation.*changed by SGD.step at .*test_optim.py:[0-9]+: optimizer.step"):
        loss.backward()
