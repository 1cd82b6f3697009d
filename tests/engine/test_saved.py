"""Saved tensors: torch's names and `_saved_*` attributes, the writes and second backwards they forbid, and that no rule reads anything else.

tests/parity/saved.py has recorded from PyTorch, for each of its calls and each set of arguments that require grad, the name of the node and
what it saved.
"""

import json
import re

import numpy as np
import pytest

import symgrad
import symgrad.nn.functional
from symgrad import tensor
from symgrad.engine.recording import core
from symgrad.engine.saved import read_by, saved_by
from symgrad.engine.tensor import Tensor
from symgrad.graph.domains import COMPLEX
from symgrad.graph.op import REGISTRY
from tests.support.exemptions import exempt
from tests.support.points import arrays, examples
from tests.support.saved_calls import DATA, groups

pytestmark = pytest.mark.filterwarnings("ignore:(reduction|kl_div). 'mean' divides:UserWarning")  # of kl_div, as in torch

RECORDED = json.loads((DATA / "saved.json").read_text())
del RECORDED["a.view(torch.int64)"]  # bits as numbers of another dtype
CALLS = {text: (values, written) for texts, values, written in groups() for text in texts}  # of a text in several, the last counts
INTENDED = dict(re.findall(r"^([^#].*) \| (.*)", (DATA / "saved_intended.txt").read_text(), re.MULTILINE))


def read(value, known):
    """One saved attribute, as it was recorded."""
    if isinstance(value, Tensor):
        for name, t in known.items():
            if isinstance(t, Tensor) and (t.untyped_storage().data_ptr() == value.untyped_storage().data_ptr() or _equal_scalars(t, value)):
                same = t.shape == value.shape and t.stride() == value.stride() and (not t.ndim or t.data_ptr() == value.data_ptr())
                return name if same else f"view of {name}"
        return f"number {value.item()}" if value.dim() == 0 else "new"
    if isinstance(value, (tuple, list)):
        return [read(v, known) for v in value]
    return value if value is None or isinstance(value, (bool, int, float, str)) else str(value)


def _equal_scalars(a, b):
    """A number of no dimensions has no memory to tell it by."""
    return a.ndim == b.ndim == 0 and a.dtype is b.dtype and a.item() == b.item()


def is_tensor(value):
    """Whether a recorded attribute is one or several tensors."""
    if isinstance(value, list):
        return any(map(is_tensor, value))
    return isinstance(value, str) and (value in ("a", "b", "c", "result", "new") or value.startswith(("view of", "number")))


def called(text, chosen):
    """The result of a call, and the tensors by name; None where symgrad has no such function."""
    values, written = CALLS[text]
    names = [name for name, _ in zip("abc", values) if name in text.replace("abs", "").replace("torch", "") or name == "a"]
    leaves = {name: tensor(value, requires_grad=name in chosen) for name, value in zip(names, values)}
    known = {name: (t.clone() if written and name == "a" else t) for name, t in leaves.items()}
    scope = {"torch": symgrad, "F": symgrad.nn.functional, "m": tensor([True, False, False]), "i": tensor([0]), **known}
    try:
        result = eval(text, scope)  # noqa: S307  the texts are those of tests/parity/saved.py
    except AttributeError as error:
        missing = re.search(r"no attribute '(\w+)'", str(error))
        assert missing is not None and missing[1] in text
        return None
    result = known["a"] if "__setitem__" in text else result
    return result, {("result" if written and name == "a" else name): t for name, t in known.items()} | ({} if written else {"result": result})


def differences(text):
    """The attributes that differ from what was recorded, for any set of arguments; None where there is no such function."""
    out = {}
    entries = {key: entry for key, entry in RECORDED[text].items() if "error" not in entry}
    tensors = {name for entry in entries.values() for name, value in entry.items() if is_tensor(value)} - {"grad_fn"}
    for key, entry in entries.items():
        found = called(text, key.split(","))
        if found is None:
            return None
        node, known = found[0].grad_fn, found[1]
        if (None if node is None else node.name()) != entry["grad_fn"]:
            out["name"] = (key, None if node is None else node.name(), entry["grad_fn"])
        for name in tensors & entry.keys() if node is not None else ():
            value = read(getattr(node, name, "missing"), known)
            if value != entry[name]:
                out[name] = (key, value, entry[name])
    return out


@pytest.mark.sampled(64)
@pytest.mark.parametrize("text", [text for text, entry in RECORDED.items() if any("error" not in each for each in entry.values())])
def test_node_names_and_saved_tensors_match_torch(text):
    found = differences(text)
    intended = INTENDED.get(text, "").split()
    assert {name: what for name, what in (found or {}).items() if name not in intended} == {}


@pytest.mark.sweep
def test_most_calls_are_compared():
    found = {text: differences(text) for text in RECORDED if any("error" not in entry for entry in RECORDED[text].values())}
    compared = [text for text, what in found.items() if what is not None]
    assert len(compared) > 300 and sum(not found[text] for text in compared) > 0.8 * len(compared)
    assert [text for text in INTENDED if text in found and found[text] == {}] == []  # none of them is said in vain


# The second use of a graph

LATER = {"torch.tensordot(a,b,1)", "torch.kron(a,b)", "a.inner(b)", "F.l1_loss(a,b)", "torch.einsum('i,i->',a,b)", "F.tanhshrink(a)",
         "a.quantile(0.5)", "F.kl_div(a,b)", "F.cosine_similarity(a,b,0)", "a.cov()",
         "torch.linalg.multi_dot([a,b,a])", "torch.linalg.matrix_norm(a,'nuc')",
         "torch.einsum('ij,jk->ik',a,b)"}  # where torch's error comes from a node further up
LENIENT = {"a.sgn()", "a.sgn_()", "a.div(2,rounding_mode='trunc')", "a.div(b,rounding_mode='floor')", "torch.addcdiv(a,b,c)", "a.addcdiv_(b,b)",
           "torch.lerp(a,b,c)", "a.nextafter(b)"}  # which read nothing, or nothing for these arguments


@pytest.mark.sampled(68)
@pytest.mark.parametrize("text", [text for text in RECORDED if text not in LATER | LENIENT])
def test_a_second_backward_raises_where_torch_raises(text):
    """The second backward raises exactly where torch has saved a tensor."""
    for key, entry in RECORDED[text].items():
        found = None if "error" in entry or entry["grad_fn"] in (None, "torch::autograd::NotImplemented") else called(text, key.split(","))
        if found is None or not found[0].requires_grad:
            continue
        result = found[0]
        result.backward(symgrad.ones_like(result))
        if entry["grad_fn"] == "torch::autograd::CopySlices" or any(is_tensor(value) for name, value in entry.items() if name != "grad_fn"):
            with pytest.raises(RuntimeError, match="Trying to backward through the graph a second time"):
                result.backward(symgrad.ones_like(result))
        else:
            result.backward(symgrad.ones_like(result))


# What a rule reads

SAVING = [pytest.param(op, parameters, id=f"{op.name}{parameters}") for op in REGISTRY.values()
          if op.differentiable and op.kind != "composite" and op.arity is not None and not op.view and COMPLEX not in op.domain
          and op.name not in exempt("alone")
          for parameters in examples(op)]


def gradient(op, parameters, xs, i, spoil=()):
    """The gradient by one argument, with values overwritten by NaN before the backward: arguments by their places, the result by -1."""
    tensors = [tensor(np.array(x), requires_grad=k == i) for k, x in enumerate(xs)]
    given = [t * 1 if k == i else t for k, t in enumerate(tensors)]
    y = core(op)(*given, *parameters)
    seed = tensor(np.array(np.random.default_rng(1).uniform(0.5, 1.5, y.shape)).astype(y.value.dtype))
    for place in spoil:
        (y if place < 0 else given[place]).detach().fill_(np.nan)
    return symgrad.autograd.grad(y, tensors[i], seed)[0].value


@pytest.mark.sampled(8)
@pytest.mark.parametrize("op, parameters", SAVING)
def test_a_rule_reads_only_what_the_node_has_saved(op, parameters):
    """What is not saved may be overwritten before the backward, as in torch; what is saved may not."""
    xs = arrays(op, np.random.default_rng(0))
    saved = saved_by(op)
    names = [*op.argument_names, "result"]
    for i, x in enumerate(xs):
        if np.asarray(x).dtype.kind not in "fc" or (read_by(op) or [()])[0] is None:
            continue
        kept = frozenset(names) if saved is None else saved[i]
        free = [k for k, name in enumerate(names[:-1]) if name not in kept and np.asarray(xs[k]).dtype.kind in "fc"] + [-1] * ("result" not in kept)
        expected = gradient(op, parameters, xs, i)
        # From the result alone an argument comes back with the digits that the result has kept of it.
        np.testing.assert_allclose(gradient(op, parameters, xs, i, free), expected, rtol=0 if op.numerics.inverse is None else 1e-12, atol=0)
        for k, name in enumerate(names):
            place = -1 if name == "result" else k
            value = core(op)(*map(tensor, xs), *parameters).value if place < 0 else np.asarray(xs[place])
            if name in kept and saved is not None and value.dtype.kind in "fc" and value.size:
                with pytest.raises(RuntimeError, match="modified by an inplace operation"):
                    gradient(op, parameters, xs, i, [place])


def test_declared_saved_tensors_match_what_rules_read():
    """An op that says what it saves says no more than its rule can use: arguments, the result, or a parameter."""
    for op in REGISTRY.values():
        known = {*op.argument_names, "result", *(p.name for p in op.parameters)}
        assert set(" ".join(op.numerics.saved or ()).split()) <= known, op
        assert op.numerics.saved is None or op.arity is None or len(op.numerics.saved) == op.arity, op
        assert op.numerics.inverse is None or op.numerics.saved == ("result",), op
