"""Machines that write programs over aliased tensors, for torch and symgrad at once, and look for the step at which they part."""

import random
import types

import pytest
import torch
from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

import symgrad
from tests.parity.aliases import AFTER_TYPES, BEFORE_TYPES

from .aliases import WILD, Difference, Pair, Wild, main, shrink
from .draw import Drawer
from .steps import Array, Ref, Step, say

pytestmark = pytest.mark.usefixtures("double_precision")
A, B, C = Ref("a"), Ref("b"), Ref("c")
LEAF = Step("leaf", "", ((1.0, 2.0, 3.0),), ("a",), (("requires_grad", True),))


class Aliases(RuleBasedStateMachine):
    """Every rule is a step that both libraries take; the first difference fails, with the program."""

    @initialize(closely=st.booleans())
    def begin(self, closely):
        self.pair = Pair(symgrad, torch, closely)

    @rule(seed=st.integers(0, 2**32 - 1))  # one draw for a step, whose choices depend on the tensors of torch, down to roundings
    def step(self, seed):
        if self.pair.over:
            return
        drawer = Drawer(random.Random(seed), self.pair.worlds[0], start=len(self.pair.program) * 10)
        try:
            self.pair.run(drawer.step())
        except Wild:
            self.pair.over = WILD
        except Difference as e:
            program, told = shrink(self.pair.program, symgrad, torch, self.pair.closely)
            raise AssertionError(f"{told}, after\n" + "\n".join(say(step) for step in program)) from e

    def teardown(self):
        if hasattr(self, "pair") and not self.pair.over:
            self.pair.compare(True)


TestAliases = Aliases.TestCase
PHASES = [Phase.explicit, Phase.reuse, Phase.generate]  # a program shrinks itself
TestAliases.settings = settings(stateful_step_count=30, derandomize=True, phases=PHASES)


@pytest.mark.parametrize("block", range(3))
def test_random_programs_agree(block):
    assert main(["--programs", "100", "--seed", f"{1_000_000 + 100 * block}"]) == 0


@pytest.mark.sweep
@pytest.mark.parametrize("block", range(100))
def test_twenty_thousand_random_programs_agree(block):
    assert main(["--programs", "200", "--seed", f"{200 * block}", "--statistics"]) == 0


def test_torch_agrees_with_itself():
    assert main(["--programs", "15", "--seed", "7", "--ours", "torch"]) == 0


def test_the_machine_sees_what_is_wrong_and_shrinks_the_program():
    wrong = types.SimpleNamespace(tensor=torch.tensor, float64=torch.float64, cat=lambda tensors, dim: torch.cat(tensors[::-1], dim))
    program = [LEAF, Step("call", "add", (A, 1.0), ("b",)), Step("call", "sin", (A,), ("c",)), Step("function", "cat", ([A, B], 0), ("d",)),
               Step("call", "exp", (C,), ("e",))]
    shorter, told = shrink(program, wrong, torch, False)
    assert told == "d.values: torch [1.0, 2.0, 3.0, 2.0, 3.0, 4.0]; symgrad [2.0, 3.0, 4.0, 1.0, 2.0, 3.0]"
    assert [say(step) for step in shorter] == [say(LEAF), "b = a.add(1.0)", "d = torch.cat([a, b], 0)"]


@pytest.mark.parametrize("step, text", [
    (Step("assign", "", (A, (0, slice(None, 2)), B)), "a[0, :2] = b"),
    (Step("assign", "", (A, Array((True, False)), 2.0), mode="no_grad"), "with torch.no_grad(): a[torch.tensor([True, False])] = 2.0"),
    (Step("call", "unbind", (A, 0), ("b", "c")), "b, c, *_ = a.unbind(0)"),
    (Step("augment", "imul", (A, B)), "a *= b"),
    (Step("backward", "sum", (A,), (), (("retain_graph", True),)), "a.sum().backward(retain_graph=True)"),
    (Step("function", "cat", ([A, B], 0), ("c",)), "c = torch.cat([a, b], 0)"),
])
def test_a_step_reads_as_torch(step, text):
    assert say(step) == text


@pytest.mark.filterwarnings("ignore")
def test_plain_programs_agree(capsys):
    assert main(["--drawing", "plain", "--length", "30", "--programs", "100", "--seed", "500000", "--statistics"]) == 0
    told = capsys.readouterr().out
    assert told.startswith("100 programs, ") and int(told.split(" programs, ")[1].split(" steps")[0]) > 1500


@pytest.mark.sweep
@pytest.mark.filterwarnings("ignore")
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


@pytest.mark.filterwarnings("ignore")
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
