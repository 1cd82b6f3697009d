"""`gradcheck` and `gradgradcheck`: first and second derivatives compared with finite differences, with torch's signatures and errors."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from symgrad.autograd.engine import grad
from symgrad.engine.tensor import Tensor, wrap
from symgrad.testing.gradcheck.comparison import DerivativeCheck
from symgrad.testing.gradcheck.jacobians import GradcheckError as GradcheckError
from symgrad.testing.gradcheck.search import attack_gradients


class GradcheckResult(int):
    """The result of a `gradcheck` that passes: it equals True, and has the `report` of all comparisons, which `print` shows.

    >>> import symgrad
    >>> result = symgrad.autograd.gradcheck(symgrad.tanh, symgrad.tensor([0.5, 1.0], requires_grad=True))
    >>> result == True, bool(result), result.report.left_out
    (True, True, Counter())
    """

    report: Any

    def __new__(cls, report: Any) -> GradcheckResult:
        self = super().__new__(cls, True)
        self.report = report
        return self

    def __getnewargs__(self) -> tuple[Any]:
        return (self.report,)

    def __repr__(self) -> str:
        return "True"

    def __str__(self) -> str:
        return str(self.report)


def _as_tuple(given: Any) -> tuple[Any, ...]:
    return tuple(given) if isinstance(given, (tuple, list)) else (given,)


def _demand(holds: bool, what: str) -> None:
    if not holds:
        raise AssertionError(f"gradcheck: set {what} to True")


def _check_inputs(inputs: tuple[Any, ...], stacklevel: int) -> None:
    differentiated = [(i, x) for i, x in enumerate(inputs) if isinstance(x, Tensor) and x.requires_grad]
    if not differentiated:
        raise ValueError("gradcheck: no input requires grad. Give tensors with requires_grad=True")
    for i, x in differentiated:
        if x.dtype.name not in ("float64", "complex128"):
            warnings.warn(f"gradcheck: input {i} is {x.dtype}, and differences need double precision. Convert it with .double()", UserWarning,
                          stacklevel=stacklevel + 1)
        if x.numel() and any(step == 0 and size > 1 for step, size in zip(x._array().strides, x.shape)):
            raise RuntimeError(f"gradcheck: elements of input {i} share memory (it has a stride 0). Give a contiguous tensor")


def _agrees(func: Callable[..., Any], inputs: tuple[Any, ...], tolerances: tuple[float, float, float, float], dtypes: bool, fast: bool,
            backward: bool, forward: bool, undefined: bool, batched: bool, batched_forward: bool, raise_exception: bool, attack: bool, seed: int,
            order: int) -> bool:
    try:
        DerivativeCheck(func, inputs, *tolerances, dtypes, fast, differentiates=order > 1).run(backward, forward, undefined, batched, batched_forward)
        if not attack:
            return True
        report = attack_gradients(func, inputs, order=order, eps=tolerances[0], atol=tolerances[1], rtol=tolerances[2], backward=backward,
                                            forward=forward, seed=seed)
        if report.failure is not None:
            raise GradcheckError(str(report.failure))
    except GradcheckError:
        if raise_exception:
            raise
        return False
    return GradcheckResult(report)  # type: ignore[return-value]


def gradcheck(func: Callable[..., Any], inputs: Any, *, eps: float = 1e-6, atol: float = 1e-5, rtol: float = 1e-3, raise_exception: bool = True,
              nondet_tol: float = 0.0, check_undefined_grad: bool = True, check_grad_dtypes: bool = False, check_batched_grad: bool = False,
              check_batched_forward_grad: bool = False, check_forward_ad: bool = False, check_backward_ad: bool = True, fast_mode: bool = False,
              masked: bool | None = None, attack: bool = True, seed: int = 0) -> bool:
    """Whether the gradients of a function agree with central differences: |analytical - numerical| <= atol + rtol * |numerical|.

    The derivatives by every input that requires grad are compared, entry by entry, those of complex outputs for the imaginary
    and the real part. `check_forward_ad` compares tangents, too. `fast_mode` compares one random projection of each Jacobian. A
    backward must be deterministic (within `nondet_tol`), map zero to zero, and accept an undefined gradient
    (`check_undefined_grad`). `check_batched_grad` and `check_batched_forward_grad` compare a batch of cotangents, or tangents, with a
    loop. `masked` is for sparse tensors and has no effect. For a proof instead of a comparison there is
    `symgrad.check`.

    A function that passes is attacked: its derivatives at the given inputs, at special ones and at random ones of the same shapes, drawn with
    `seed`, are compared with SymPy's derivatives of the recorded computation to fifty digits, or with finite differences and a bound of their
    error if there is no formula. Points where the function raises, is not finite, or has a
    kink are left out, and functions that are random or keep a state are not attacked. An atol or rtol larger than the default is allowed
    there, too. The result is a `GradcheckResult`, a True that prints its report; with `attack=False` there is torch's comparison only, and the
    result is True.

    Raises GradcheckError, whose last line names the entry with the largest disagreement, unless `raise_exception` is False:
    then the result is False. A derivative that only the attack found wrong is reported with simplified inputs. Raises ValueError if
    no input requires grad, RuntimeError for an input whose elements share memory.

    >>> import symgrad
    >>> result = symgrad.autograd.gradcheck(symgrad.tanh, symgrad.tensor([0.5, 1.0], requires_grad=True))
    >>> result, result.report.failure is None, result.report.attacked > 2
    (True, True, True)
    """
    _demand(check_forward_ad or check_backward_ad, "one of check_forward_ad and check_backward_ad")
    _demand(check_backward_ad or not check_batched_grad, "check_backward_ad with check_batched_grad")
    _demand(check_forward_ad or not check_batched_forward_grad, "check_forward_ad with check_batched_forward_grad")
    given = _as_tuple(inputs)
    _check_inputs(given, 2)
    return _agrees(func, given, (eps, atol, rtol, nondet_tol), check_grad_dtypes, fast_mode, check_backward_ad, check_forward_ad,
                   check_undefined_grad, check_batched_grad, check_batched_forward_grad, raise_exception, attack, seed, 1)


def gradgradcheck(func: Callable[..., Any], inputs: Any, grad_outputs: Any = None, *, eps: float = 1e-6, atol: float = 1e-5, rtol: float = 1e-3,
                  gen_non_contig_grad_outputs: bool = False, raise_exception: bool = True, nondet_tol: float = 0.0,
                  check_undefined_grad: bool = True, check_grad_dtypes: bool = False, check_batched_grad: bool = False,
                  check_fwd_over_rev: bool = False, check_rev_over_rev: bool = True, fast_mode: bool = False, masked: bool = False,
                  attack: bool = True, seed: int = 0) -> bool:
    """Whether the second derivatives of a function agree with central differences: `gradcheck` of its gradient.

    The gradient is a function of the inputs and of `grad_outputs`, which are drawn from [-1, 1) if none are given (with
    `gen_non_contig_grad_outputs` not contiguous in memory). `check_rev_over_rev` compares pullbacks of pullbacks, and
    `check_fwd_over_rev` pushforwards of pullbacks. Other arguments are those of `gradcheck`, and a gradient that passes is attacked likewise.

    Raises GradcheckError unless `raise_exception` is False, and what `gradcheck` raises.

    >>> import symgrad
    >>> symgrad.autograd.gradgradcheck(symgrad.tanh, symgrad.tensor([0.5, 1.0], requires_grad=True))
    True
    """
    _demand(check_fwd_over_rev or check_rev_over_rev, "one of check_fwd_over_rev and check_rev_over_rev")
    _demand(check_rev_over_rev or not check_undefined_grad, "check_rev_over_rev with check_undefined_grad")
    _demand(check_rev_over_rev or not check_batched_grad, "check_rev_over_rev with check_batched_grad")
    given = _as_tuple(inputs)
    differentiated = [i for i, x in enumerate(given) if isinstance(x, Tensor) and x.requires_grad]
    if grad_outputs is None:
        generator = np.random.default_rng(0)
        cotangents = tuple(_random_cotangent(y, generator, gen_non_contig_grad_outputs) for y in _as_tuple(func(*given)) if y.requires_grad)
    else:
        cotangents = _as_tuple(grad_outputs)

    def gradient(*args: Any) -> tuple[Tensor, ...]:
        xs, gs = args[:len(given)], args[len(given):]
        outputs = [y for y in _as_tuple(func(*xs)) if y.requires_grad]
        found = grad(outputs, [xs[i] for i in differentiated], gs, create_graph=True, allow_unused=True)
        return tuple(g for g in found if g is not None)

    both = given + cotangents
    _check_inputs(both, 2)
    return _agrees(gradient, both, (eps, atol, rtol, nondet_tol), check_grad_dtypes, fast_mode, check_rev_over_rev, check_fwd_over_rev,
                   check_undefined_grad, check_batched_grad, False, raise_exception, attack, seed, 2)


def _random_cotangent(y: Tensor, generator: np.random.Generator, scattered: bool) -> Tensor:
    shape = (*y.shape[:-1], y.shape[-1] * 2) if scattered and y.ndim else y.shape
    value = generator.uniform(-1, 1, shape)
    if y.is_complex():
        value = value + 1j * generator.uniform(-1, 1, shape)
    value = np.asarray(value).astype(y._value.dtype)
    return wrap(value[..., ::2] if scattered and y.ndim else value).requires_grad_()
