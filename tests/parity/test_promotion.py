"""Promotion beside torch: every pair of dtypes, as arrays, 0-d tensors and Python numbers, in operations, in-place operations and `out=`."""

import itertools
import operator
import warnings
from pathlib import Path

import pytest
import torch

import symgrad

NAMES = ("bool uint8 int8 int16 int32 int64 uint16 uint32 uint64 float16 bfloat16 float32 float64 complex64 complex128").split()
OPERATIONS = dict(line.split(": ", 1) for line in Path(__file__).with_name("promotion.txt").read_text(encoding="utf-8").splitlines()[1:])

INTENDED = {  # where torch and symgrad differ on purpose
    "complex and half": "torch has complex32, which NumPy does not have: parts of float16 give complex64, so that `out=` and norms differ, too",
    "pow of bool": "torch returns a boolean unchanged for the exponent True; bool ** bool is refused here as for two tensors",
    "complex number in bool": "torch converts a complex number that fills booleans; here it is refused, as for other real dtypes",
    "sum into bool": "torch sums into an `out` of booleans by `any`; here a sum is no truth value",
    "complex into real": "torch writes the real part of a complex mean into a real `out`; here no function with `out=` drops the imaginary part",
    "losses": "torch fails where it writes a loss of promoted operands into the dtype of the first; here the promoted dtype is kept",
    "more": "torch has no kernel for the dtype, or takes no Python number in this place; symgrad computes it with the promoted dtype",
    "unsigned and complex": "a number of 16 to 64 unsigned bits and a complex one are promoted by torch in one order of groups only",
}


def operands(m):
    for name in NAMES:
        yield f"{name}[2]", m.tensor([1, 1], dtype=getattr(m, name))
        yield f"{name}[]", m.tensor(1, dtype=getattr(m, name))
    for number in (True, 1, 1.0, 1j):
        yield type(number).__name__, number


def answer(m, function, *args):
    """The dtype of the result, or the error."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            out = function(m, *[x.clone() if isinstance(x, m.Tensor) else x for x in args])
        return str(getattr(out, "dtype", out)).replace("complex32", "complex64"), None
    except Exception as error:  # every error is an answer
        return None, error


def is_more(error):
    """Whether torch refuses only because it has no kernel, or no signature with a number."""
    message = str(error)
    return isinstance(error, NotImplementedError) and "not implemented for" in message or isinstance(error, TypeError) and any(
        words in message for words in ("must be Tensor", "invalid combination", "expected Tensor as element"))


def reason(op, first, second, ours, theirs, error):
    """The reason of a difference in the table, or None."""
    pair, both = first + second, {first.partition("[")[0], second.partition("[")[0]}
    if ours is not None and theirs is None and is_more(error):
        return "more"
    if both & {"complex", "complex64", "complex128"} and both & {"float16", "bfloat16"}:
        return "complex and half"
    if op in ("pow", "pow_", "operator.pow", "operator.ipow") and both == {"bool"}:
        return "pow of bool"
    if both == {"bool", "complex"} and op in ("masked_fill", "scatter", "copy_"):
        return "complex number in bool"
    if op in ("out=sum along 0", "out=cumsum along 0") and second.startswith("bool"):
        return "sum into bool"
    if op == "out=mean along 0" and first.startswith("complex"):
        return "complex into real"
    if op.endswith("_loss"):
        return "losses"
    return "unsigned and complex" if "uint" in pair and ("complex" in pair or op in ("xlogy", "special.xlog1py", "equal", "ldexp")) else None


@pytest.fixture(autouse=True)
def single():
    """Torch's default dtype."""
    before = symgrad.get_default_dtype()
    symgrad.set_default_dtype(symgrad.float32)
    yield
    symgrad.set_default_dtype(before)


def called(name):
    code = compile(OPERATIONS[name], name, "eval")
    return lambda m, a, b: eval(code, {"torch": m, "operator": operator, "a": a, "b": b})


def test_every_pair_of_dtypes_is_promoted_as_by_torch():
    def asked(m, name, a, b):
        dtype, error = answer(m, lambda m: getattr(m, name)(getattr(m, a), getattr(m, b)))
        return dtype, type(error)

    for name, a, b in itertools.product(("promote_types", "can_cast"), NAMES, NAMES):
        assert asked(symgrad, name, a, b) == asked(torch, name, a, b), (name, a, b)


def test_the_result_type_of_arrays_values_and_numbers_is_torchs():
    def asked(m, a, b):
        dtype, error = answer(m, lambda m, a, b: m.result_type(a, b), a, b)
        return dtype, type(error)

    for (a, x), (b, z) in itertools.product(zip(operands(torch), operands(symgrad)), repeat=2):
        assert asked(symgrad, x[1], z[1]) == asked(torch, a[1], b[1]), (a[0], b[0])


@pytest.mark.sampled(10)
@pytest.mark.parametrize("name", OPERATIONS)
def test_operations_promote_and_refuse_as_torch_does(name):
    function, different = called(name), []
    for (first, x), (second, z) in itertools.product(zip(operands(torch), operands(symgrad)), repeat=2):
        if not isinstance(first[1], torch.Tensor) and not isinstance(second[1], torch.Tensor):
            continue
        (theirs, error), (ours, mine) = answer(torch, function, first[1], second[1]), answer(symgrad, function, x[1], z[1])
        if ours != theirs and reason(name, first[0], second[0], ours, theirs, error) not in INTENDED:
            different.append((first[0], second[0], "torch:", theirs or error, "here:", ours or mine))
    assert not different, different[:4]


ROUNDED = """m.sigmoid(x)
m.tanh(x); m.nn.functional.silu(x); m.nn.functional.gelu(x); m.nn.functional.mish(x); m.nn.functional.softplus(x); m.softmax(x, 0)
m.log_softmax(x, 0); m.logsumexp(x, 0); x.std(); x.var(); x.norm(); x.norm(3); m.linalg.vector_norm(x, 4); x.sum(); x.mean(); x.prod(); x.cumsum(0)
m.nan_to_num(x); m.expm1(x); m.erf(x); x.cumprod(0); m.logaddexp(x, -x); m.special.ndtr(x); m.dist(x, -x, 3); x * 1.7; x.add(x, alpha=0.3)
m.nn.functional.rms_norm(x, (6,)); m.atan2(x, x + 1); x ** 3; m.sinc(x)""".replace("\n", "; ").split("; ")


@pytest.mark.parametrize("call", ROUNDED)
@pytest.mark.parametrize("name, digits", [("float16", 11), ("bfloat16", 8)])
def test_half_precision_is_rounded_once(name, digits, call):
    """The value is the one in float32, rounded: within a unit in the last place of torch's; the gradient has the dtype of the input."""
    values = [3.0, -1.25, 0.5, 30.0, 0.125, -2.5]
    x = symgrad.tensor(values, dtype=getattr(symgrad, name), requires_grad=True)
    out = eval(call, {"m": symgrad, "x": x})
    wide = eval(call, {"m": symgrad, "x": x.detach().to(symgrad.float32)})
    theirs = eval(call, {"m": torch, "x": torch.tensor(values)})
    assert str(out.dtype) == f"torch.{name}"
    for found, exact, other in zip(out.detach().reshape(-1).tolist(), wide.reshape(-1).tolist(), theirs.reshape(-1).tolist()):
        if found == float("inf"):
            assert exact > 65504 and name == "float16"
            continue
        unit = max(abs(exact) * 2.0 ** (1 - digits), 2.0**-24 if name == "float16" else 2.0**-133)
        assert abs(found - exact) <= (0.5001 if call in ("m.sigmoid(x)", "m.softmax(x, 0)", "x.std()", "x.norm()", "x.sum()") else 1.01) * unit
        assert abs(found - other) <= 1.01 * unit + 2e-7
    out.sum().backward()
    assert x.grad.dtype is x.dtype
