"""Every call that a function, a class or a public method of torch accepts by its signature is accepted here, its arguments with the same meaning."""

import inspect
import itertools
import re

import numpy as np
import pytest
import torch

import symgrad

from .test_names import public, walk

PLACES = ["torch.nn", "torch.optim", "torch.utils", "torch.func", "torch.distributed"]
POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
STARRED = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
# What is not here or differs, with the reason, by the name in torch
DIFFERENT = {
    "helpers of torch's own classes": """
        Optimizer.profile_hook_step Optimizer.OptimizerPreHook Optimizer.OptimizerPostHook RNNBase.check_forward_args LSTM.check_forward_args
        RNNBase.check_hidden_size RNNBase.check_input RNNBase.get_expected_hidden_size LSTM.get_expected_cell_size RNNBase.permute_hidden
        LSTM.permute_hidden MultiheadAttention.merge_masks DataLoader.check_worker_number_rationality ConcatDataset.cumsum WeightNorm.apply
        SpectralNorm.apply DataParallel.gather DataParallel.scatter DataParallel.replicate DataParallel.parallel_apply
        DistributedDataParallel.gather DistributedDataParallel.scatter DistributedDataParallel.to_kwargs
        DistributedDataParallel.will_sync_module_buffers jacrev _ConvNd UninitializedTensorMixin.share_memory_""",
    "None is the default generator": "random_split",
    "absent": """
        Module.compile Module.ipu Module.mtia Module.share_memory Module.xpu SummaryWriter.add_image_with_boxes
        SummaryWriter.add_mesh SummaryWriter.add_onnx_graph SummaryWriter.add_video""",
    "the processes are those of MPI, which has requests without futures, streams or names": """
        DistributedDataParallel DistributedDataParallel.join DistributedDataParallel.join_hook DistributedDataParallel.register_comm_hook
        group init_process_group""",
}
REASONED = {name for names in DIFFERENT.values() for name in names.split()}


def signature(function):
    try:
        return inspect.signature(function)
    except (TypeError, ValueError):
        return None


def bound(sign, parameters, by_name):
    """What the parameters of a signature get when some others are given as arguments; None if that is refused."""
    args = [p.name for p in parameters if p.kind is POSITIONAL[0] or p.kind in POSITIONAL and not by_name]
    try:
        given = sign.bind(*args, **{p.name: p.name for p in parameters if p.name not in args}).arguments
    except TypeError:
        return None
    return {name: value for name, value in given.items() if sign.parameters[name].kind not in STARRED}


def meaning(default):
    """A default in words that libraries share."""
    return re.sub(" at 0x.*", "", repr(default)).replace("symgrad", "torch").replace("RedOpType", "ReduceOp")


def differences(theirs, ours):
    """How a signature differs for those who call the function."""
    if any(p.kind is STARRED[0] for p in theirs.parameters.values()):
        return None  # which calls are accepted is not said
    plain = [p for p in theirs.parameters.values() if p.kind not in STARRED ]
    required = [p for p in plain if p.default is p.empty]
    for parameters, by_name in itertools.product((plain, required), (False, True)):
        given = bound(ours, parameters, by_name)
        if given is None:
            return f"refuses {[p.name for p in parameters]}, by name: {by_name}"
        if any(name != value for name, value in given.items() if value != "self"):
            return f"takes {given}"
    defaults = {p.name: (p.default, ours.parameters[p.name].default) for p in plain if p.name in ours.parameters and p.default is not p.empty}
    return {name: pair for name, pair in defaults.items() if meaning(pair[0]) != meaning(pair[1]) and pair[0] != pair[1]} or None


def pairs(theirs, ours, name):
    """A function, or a class and its public methods, by the names where they are defined: (name, of torch, ours or None)."""
    yield name, theirs, ours
    if isinstance(theirs, type):
        for member in dir(theirs):
            owner = next((c for c in theirs.__mro__ if member in vars(c)), object)
            if (not member.startswith("_") or member == "__call__") and owner.__module__.startswith("torch.") and callable(getattr(theirs, member)):
                yield f"{owner.__name__}.{member}", getattr(theirs, member), getattr(ours, member, None)


@pytest.mark.filterwarnings("ignore")
def test_calls_of_torch_are_accepted_with_the_same_meaning():
    found, seen, wrong = walk(PLACES), set(), {}
    for theirs, ours in found:
        for name in sorted(public(theirs)):
            a, b = getattr(theirs, name, None), getattr(ours, name, None)
            if b is None or not callable(a) or isinstance(a, type) and issubclass(a, (torch.Tensor, Exception)):
                continue
            for where, x, y in pairs(a, b, name):
                if where in REASONED or where in seen or (sign := signature(x)) is None:
                    continue
                seen.add(where)
                if y is None or (mine := signature(y)) is None or (difference := differences(sign, mine)):
                    wrong[f"{theirs.__name__}: {where}"] = "is not here" if y is None else "has no signature" if mine is None else difference
    assert len(seen) > 900
    assert wrong == {}


@pytest.mark.filterwarnings("ignore")
def test_classes_derive_from_each_other_as_in_torch():
    both = {name: (getattr(theirs, name, None), getattr(ours, name, None))
            for theirs, ours in walk(["torch.nn", "torch.optim", "torch.utils.data"]) for name in public(theirs)}
    classes = {name: (a, b) for name, (a, b) in both.items() if isinstance(a, type) and isinstance(b, type) and a.__module__.startswith("torch.")}
    assert len(classes) > 200
    assert [(name, of) for name, (a, b) in classes.items() for of, (c, d) in classes.items() if issubclass(a, c) and not issubclass(b, d)] == []


@pytest.mark.parametrize("name", """GELU LeakyReLU Hardswish SmoothL1Loss HuberLoss PoissonNLLLoss GaussianNLLLoss SoftMarginLoss CosineSimilarity
    PairwiseDistance TripletMarginLoss""".split())
def test_inputs_of_modules_are_given_by_name(name):
    names = [p for p in inspect.signature(getattr(torch.nn, name).forward).parameters if p != "self"]
    numbers = {p: torch.rand(4, 3, generator=torch.Generator().manual_seed(i)) for i, p in enumerate(names)}
    expected = getattr(torch.nn, name)()(**numbers)
    got = getattr(symgrad.nn, name)()(**{p: symgrad.from_numpy(n.numpy()) for p, n in numbers.items()})
    assert np.allclose(got.numpy(), expected.numpy(), rtol=1e-5)
    with pytest.raises(TypeError):
        getattr(symgrad.nn, name)()(nothing=1)
