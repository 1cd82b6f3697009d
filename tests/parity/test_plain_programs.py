"""Random programs as a careless programmer writes them, beside torch, and what differs there on purpose: the page of differences has the reasons."""

import pytest
import torch

import symgrad

from .agreement import AFTER_TYPES, BEFORE_TYPES
from .aliases import main

pytestmark = [pytest.mark.usefixtures("double_precision"), pytest.mark.filterwarnings("ignore")]


def test_random_programs_agree(capsys):
    assert main(["--drawing", "plain", "--length", "30", "--programs", "100", "--seed", "500000", "--statistics"]) == 0
    told = capsys.readouterr().out
    assert told.startswith("100 programs, ") and int(told.split(" programs, ")[1].split(" steps")[0]) > 1500


@pytest.mark.sweep
@pytest.mark.parametrize("block", range(8))
def test_eight_hundred_random_programs_agree(block):
    assert main(["--drawing", "plain", "--length", "30", "--programs", "100", "--seed", f"{100 * block}", "--statistics"]) == 0


def data_after_saving(t):
    x = t.tensor([1.0, 2.0], requires_grad=True)
    y = (x * x).sum()
    x.data = t.tensor([5.0, 6.0])
    y.backward()
    return x.grad.tolist()


def shape_after_saving(t):
    x = t.tensor([1.0, 2.0], requires_grad=True)
    y = x.mean()
    x.data = t.tensor(5.0)
    y.backward()


def flag_of_data(t):
    with t.inference_mode():
        y = t.ones(2)
    x = t.zeros(2)
    x.data = y
    return x.is_inference(), y.data.is_inference()


def detach_in_inference_mode(t):
    y = t.tensor([1.0], requires_grad=True) * 2
    with t.inference_mode():
        y.detach_()
    return y.requires_grad


def write_of_a_detached_inference_tensor(t):
    with t.inference_mode():
        y = t.ones(2)
    return y.detach().add_(1).tolist()


def second_of_a_variance_of_nothing(t):
    x = t.tensor([2.0], requires_grad=True)
    g, = t.autograd.grad(x.var(), x, create_graph=True)
    return repr(t.autograd.grad(g.sum(), x, materialize_grads=True)[0].tolist()) if g.requires_grad else "constant"


def scatter_of_the_written_tensor(t):
    x = t.tensor([1.0, 2.0, 3.0])
    return x.scatter_(0, t.tensor([1, 2, 0]), x).tolist()


def derivative_of_a_scatter_that_adds(t):
    x = t.tensor([1.0, 2.0], requires_grad=True)
    t.zeros(2).scatter(0, t.tensor([1, 1]), x, reduce="add").sum().backward()
    return x.grad.tolist()


def view_with_other_data(t):
    view = (t.ones(2, requires_grad=True) * 2).view(2)
    view.data = t.zeros(2)
    view.neg_()


REFUSED = "RuntimeError"
PURPOSE = {data_after_saving: ([10.0, 12.0], [2.0, 4.0]), shape_after_saving: (None, REFUSED), flag_of_data: ((True, True), (False, False)),
           detach_in_inference_mode: (True, False), write_of_a_detached_inference_tensor: ([2.0, 2.0], REFUSED),
           second_of_a_variance_of_nothing: ("constant", "[nan]"), scatter_of_the_written_tensor: (REFUSED, [3.0, 1.0, 2.0]),
           derivative_of_a_scatter_that_adds: (REFUSED, [1.0, 1.0]), view_with_other_data: (None, REFUSED)}


@pytest.mark.parametrize("program", PURPOSE, ids=lambda program: program.__name__)
def test_what_differs_on_purpose(program):
    found = []
    for t in torch, symgrad:
        try:
            found.append(program(t))
        except RuntimeError:
            found.append(REFUSED)
    assert tuple(found) == PURPOSE[program]


def test_every_rule_has_a_reason():
    assert all(" " in reason for reason in (*BEFORE_TYPES, *AFTER_TYPES))
