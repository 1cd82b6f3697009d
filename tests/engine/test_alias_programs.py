"""The random programs that tests/parity runs beside torch, without it: derivatives, values and versions beside differences and a run without a graph.

A program writes, views, indexes, sorts and scatters tensors that share memory. The sweep draws more of them.
"""

import gc
import math
import random
import weakref
from collections import Counter

import numpy as np
import pytest

import symgrad
from tests.parity.draw import Drawer
from tests.parity.steps import Step, World, say

PASSES = frozenset(("backward", "edge", "grad", "grads", "grad_batched", "second"))
HOOKS = frozenset(("hook", "node_hook", "hook_of_several", "remove"))
CUTS = frozenset(("data", "set_data", "detach_", "detach", "requires_grad_", "modes"))  # what the graph does not see
NO_DERIVATIVES = frozenset(("Same", "Viewed", "NoGradient", "Nothing", "Once", "WrongCount", "WrongShape", "WrongObject", "Fails", "NoTensor"))
GRAPHLESS = PASSES | HOOKS | {"grad_of", "clear", "retain_grad", "requires_grad_", "detach_", "custom", "modes"}
H = 1e-5


class Moved(World):
    """A world whose leaves are moved along a direction, or require no gradient."""

    def __init__(self, moves=None, graph=True):
        super().__init__(symgrad)
        self.moves, self.graph = moves or {}, graph

    def do(self, step):
        t = self.tensors.get(step.args[0].name) if step.writes() else None
        t = None if t is None or t.is_inference() else t
        before = 0 if t is None else t._version
        raised = super().do(step)
        assert raised or t is None or t._version > before, f"{say(step)} counts no version"
        return raised

    def _apply(self, step):
        if step.form != "leaf":
            return super()._apply(step)
        leaf = super()._apply(Step("leaf", step.word, step.args, step.out, (("requires_grad", False),)))
        if step.out[0] in self.moves:
            leaf = symgrad.tensor(leaf.numpy() + self.moves[step.out[0]])
        return leaf.requires_grad_(self.graph and dict(step.options)["requires_grad"])


def drawn(seed, without, length=30):
    """A program that runs, its world, and how many steps were refused on the way."""
    source = random.Random(seed)
    world, program, refused = World(symgrad), [], 0
    drawer = Drawer(source, world, without)
    while len(program) < length:
        step = drawer.step()
        if world.do(step) is None:
            program.append(step)
        else:
            refused += 1
    return program, world, refused


def run(program, world):
    for step in program:
        raised = world.do(step)
        assert raised is None, f"{say(step)} raises {raised} in a second run of\n{written(program)}"
    return world


def written(program):
    return "\n".join(map(say, program))


def finite(world):
    return all(np.isfinite(t.detach().numpy()).all() and np.abs(t.detach().numpy()).max(initial=0) < 100 for t in world.tensors.values())


# Values and versions, with a graph and without


def check_values_and_versions(seed, counts):
    """Every write counts a version, in the same steps, whether a graph is recorded or not; the values are the same to the last bit."""
    program, world, refused = drawn(seed, GRAPHLESS)
    plain = run(program, Moved(graph=False))
    assert list(world.tensors) == list(plain.tensors)
    for name, t in world.tensors.items():
        other = plain.tensors[name]
        assert t.dtype is other.dtype and t._version == other._version, f"{name} has version {t._version} and {other._version}:\n{written(program)}"
        assert np.array_equal(t.detach().numpy(), other.numpy(), equal_nan=True), f"{name}:\n{written(program)}"
    versions = sum(t._version for t in plain.tensors.values())
    counts.update(programs=1, steps=len(program), refused=refused, tensors=len(plain.tensors), versions=versions)
    counts.update(step.form for step in program)


# Derivatives beside differences


def loss(world, names, seed):
    source = random.Random(seed)
    return sum((world.tensors[name] * symgrad.tensor([source.uniform(-1, 1) for _ in range(world.tensors[name].numel())]).reshape(
        world.tensors[name].shape)).sum() for name in names)


def gradient(program, moves, leaves, names, seed, create_graph=False):
    world = run(program, Moved(moves))
    xs = [world.tensors[name] for name in leaves]
    return xs, symgrad.autograd.grad(loss(world, names, seed), xs, materialize_grads=True, create_graph=create_graph)


def check_derivatives(seed, counts):
    """The gradient along a direction is a difference of values, and the Hessian times the direction is a difference of gradients."""
    program, world, refused = drawn(seed, PASSES | HOOKS | CUTS | NO_DERIVATIVES | {"types"}, 24)
    counts.update(programs=1, steps=len(program), refused=refused)
    leaves = [step.out[0] for step in program if step.form == "leaf" and dict(step.options)["requires_grad"]]
    leaves = [name for name in leaves if name in world.tensors]
    names = [name for name, t in world.tensors.items() if t.requires_grad and name not in leaves and usable(t)]
    if not leaves or not names or not finite(world):
        counts["without a derivative"] += 1
        return
    source = np.random.default_rng(seed)
    u = {name: source.standard_normal(tuple(world.tensors[name].shape)) for name in leaves}
    try:
        xs, gs = gradient(program, {}, leaves, names, seed, True)
        along = sum((g * symgrad.tensor(u[name])).sum() for name, g in zip(leaves, gs))
        seconds = symgrad.autograd.grad(along, xs, materialize_grads=True)
    except RuntimeError as error:
        assert "modified by an inplace operation" in str(error) or "a view" in str(error), f"{error}\n{written(program)}"
        counts["refused passes"] += 1
        return

    if not all(np.isfinite(g.detach().numpy()).all() for g in gs):  # of a value that is not finite and was written later
        counts["not finite"] += 1
        return

    def moved(h):
        return {name: h * direction for name, direction in u.items()}

    values = {k: loss(run(program, Moved(moved(k * H))), names, seed).item() for k in (-2, -1, 1, 2)}
    slopes = {k: gradient(program, moved(k * H), leaves, names, seed)[1] for k in (-2, -1, 1, 2)}
    first = [(values[k] - values[-k]) / (2 * k * H) for k in (1, 2)]
    second = [np.concatenate([np.ravel((a - b).numpy()) for a, b in zip(slopes[k], slopes[-k])]) / (2 * k * H) for k in (1, 2)]
    found = np.concatenate([np.ravel(s.detach().numpy()) for s in seconds])
    for what, mine, (near, far) in (("gradient", along.item(), first), ("Hessian", found, second)):
        size = max(1.0, np.max(np.abs(mine), initial=0), np.max(np.abs(near), initial=0))
        if np.max(np.abs(near - far), initial=0) > 1e-4 * size:  # a kink lies between the points, or the function is too steep
            counts[f"{what} at a kink"] += 1
            continue
        assert np.max(np.abs(mine - near), initial=0) < 1e-3 * size, f"{what}: {mine}, by differences {near}\n{written(program)}"
        counts[what] += 1


def check_hooks(seed, counts):
    """Retained gradients, also of what was written later, are those that `grad` gives; a hook on a leaf doubles the leaf's gradient and no other."""
    reshaped = {"turned_"}  # after which a retained gradient is that of the former node
    program, world, refused = drawn(seed, PASSES | HOOKS | CUTS | NO_DERIVATIVES | reshaped | {"types"}, 24)
    counts.update(programs=1, steps=len(program), refused=refused)
    found = {id(t): name for name, t in world.tensors.items() if t.is_floating_point() and not t._is_view() and t.is_leaf and t.requires_grad}
    leaves = list(found.values())
    names = [name for name, t in world.tensors.items() if t.requires_grad and id(t) not in found and usable(t)]
    if not leaves or not names or not finite(world):
        return
    other = run(program, Moved())
    retained = [name for name in names if world.tensors[name].retains_grad]
    for k, name in enumerate(leaves):
        world.tensors[name].register_hook(lambda g, k=k: 2 * g if k == 0 else None)
    try:
        found = symgrad.autograd.grad(loss(other, names, seed), [other.tensors[name] for name in (*leaves, *retained)], allow_unused=True)
        loss(world, names, seed).backward()
    except RuntimeError as error:
        assert "modified by an inplace operation" in str(error) or "a view" in str(error), f"{error}\n{written(program)}"
        counts["refused passes"] += 1
        return
    for name, g in zip((*leaves, *retained), found):
        mine = world.tensors[name].grad
        assert (mine is None) == (g is None), f"{name}: {mine} and {g}\n{written(program)}"
        if g is not None:
            expected = g.numpy() * (1 + (name == leaves[0]))
            assert np.allclose(mine.numpy(), expected, rtol=1e-12, atol=1e-12, equal_nan=True), f"{name}\n{written(program)}"
    counts.update(leaves=len(leaves), retained=len(retained))


def usable(t):
    """Whether the graph of a tensor can be used: a view of several is refused after a write to its base."""
    try:
        return bool(t.is_floating_point() and t.grad_fn)
    except RuntimeError:
        return False


# Memory


def check_memory(seed, counts):
    """When its tensors go, a program leaves nothing behind, without the garbage collector."""
    program, _, refused = drawn(seed, HOOKS | {"modes"})  # a hook that packs a tensor as itself makes a cycle
    world = run(program, Moved())
    held = [weakref.ref(x) for t in world.tensors.values() for x in (t, t._node_slot) if x is not None and x is not symgrad.graph.node.INFERENCE]
    gc.disable()
    try:
        del world
        left = [x() for x in held if x() is not None]
    finally:
        gc.enable()
    assert not left, f"{left[:3]} of {len(held)} are left by\n{written(program)}"
    counts.update(programs=1, steps=len(program), refused=refused, objects=len(held))


CHECKS = {  # with what each must have met, lest it pass by programs that it leaves out
    check_values_and_versions: ("versions",), check_derivatives: ("gradient", "Hessian"), check_hooks: ("leaves", "retained"),
    check_memory: ("objects",)}


def check_all(check, seeds):
    counts = Counter()
    for seed in seeds:
        check(seed, counts)
    print(f"{check.__name__}: " + ", ".join(f"{what} {n}" for what, n in counts.items()))
    return counts


@pytest.mark.sampled(1)
@pytest.mark.parametrize("check", CHECKS)
def test_random_programs(check):
    counts = check_all(check, range(40))
    assert all(counts[what] >= 3 for what in CHECKS[check]), counts


@pytest.mark.sweep
@pytest.mark.parametrize("check", CHECKS)
def test_many_random_programs(check):
    check_all(check, range(1000, 1250))


def test_a_moved_leaf():
    """A move of an element moves the loss by its weight times the move."""
    leaf = Step("leaf", "", ((1.0, 2.0),), ("x",), (("requires_grad", True),))
    assert math.isclose(loss(run([leaf], Moved({"x": np.array([0.5, 0.0])})), ["x"], 0).item(), loss(run([leaf], Moved()), ["x"], 0).item()
                        + 0.5 * random.Random(0).uniform(-1, 1))
