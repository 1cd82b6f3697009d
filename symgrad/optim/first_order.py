"""Optimizers of the first order: each is an update rule of one parameter by its gradient, with its options and its state."""

from __future__ import annotations

from typing import Any

from symgrad.engine.tensor import Tensor
from symgrad.optim.declared import Declared, lerp, number, scalar
from symgrad.optim.optimizer import Group


class SGD(Declared):
    """p ← p - lr b, with b ← momentum b + (1 - dampening) g and g the gradient plus weight_decay p.

    With `nesterov` the step is along g + momentum b. The state of a parameter is its `momentum_buffer`, which the first step sets to g.
    """

    _options = {"lr": 1e-3, "momentum": 0, "dampening": 0, "weight_decay": 0, "nesterov": False}
    _example = "lr=0.25", "1.5000"
    _switches = "* maximize foreach differentiable fused"
    _numbers = {}

    def _prepare(self, options: Group) -> None:
        super()._prepare(options)
        right = not options["nesterov"] or options["momentum"] > 0 and options["dampening"] == 0
        self._require("nesterov", options["nesterov"], right, "False unless momentum is positive and dampening is 0")

    def _rule(self, xp: Any, p: Any, g: Any, state: dict[str, Any], group: Group, n: float) -> None:
        momentum = group["momentum"]
        if momentum != 0:
            b = state.get("momentum_buffer")
            if b is None:
                b = state["momentum_buffer"] = xp.zeros_like(p)
                b += g
            else:
                b *= momentum
                b += (1 - group["dampening"]) * g
            g = g + momentum * b if group["nesterov"] else b
        p += -group["lr"] * g


def _moments(g: Any, state: dict[str, Any], group: Group) -> tuple[Any, Any, float, float]:
    """The running means of the gradient and of its square after one more step, and their weights β₁ and β₂."""
    beta1, beta2 = map(float, group["betas"])
    m, v = state["exp_avg"], state["exp_avg_sq"]
    lerp(m, g, 1 - beta1)
    v *= beta2
    v += (1 - beta2) * g * g
    return m, v, beta1, beta2


class Adam(Declared):
    """p ← p - lr m̂ / (√v̂ + eps), with running means m of the gradient and v of its square; m̂ and v̂ are bias-corrected.

    m ← m + (1 - β₁)(g - m), v ← β₂ v + (1 - β₂) g², m̂ = m / (1 - β₁ⁿ), v̂ = v / (1 - β₂ⁿ) in step n. With `amsgrad` the largest v so far is
    used. The state of a parameter is `step`, `exp_avg` (m), `exp_avg_sq` (v) and, with `amsgrad`, `max_exp_avg_sq`.

    Source: Kingma and Ba, Adam: A Method for Stochastic Optimization, 2014; Reddi et al., On the Convergence of Adam and Beyond, 2018.
    """

    _options = {"lr": 1e-3, "betas": (0.9, 0.999), "eps": 1e-8, "weight_decay": 0, "amsgrad": False}
    _example = "lr=0.5", "2.5000"
    _switches = "* foreach maximize capturable differentiable fused decoupled_weight_decay"
    _arrays = {"exp_avg": None, "exp_avg_sq": None, "max_exp_avg_sq": None}
    _used_by = {"max_exp_avg_sq": "amsgrad"}

    def _prepare(self, options: Group) -> None:
        super()._prepare(options)
        tensors = [isinstance(x, Tensor) for x in options["betas"]]
        if any(tensors) and not all(tensors):
            raise ValueError(f"{type(self).__name__}: betas are {options['betas']}; give two numbers or two Tensors")
        if (any(tensors) or isinstance(options["lr"], Tensor)) and options["foreach"] and not options["capturable"]:
            raise ValueError(f"{type(self).__name__}: foreach=True excludes Tensors as lr and betas. Leave foreach out: it has no effect")

    def _rule(self, xp: Any, p: Any, g: Any, state: dict[str, Any], group: Group, n: float) -> None:
        m, v, beta1, beta2 = _moments(g, state, group)
        if group["amsgrad"]:
            v = state["max_exp_avg_sq"] = xp.maximum(state["max_exp_avg_sq"], v)
        p += -(group["lr"] / (1 - beta1**n)) * m / (xp.sqrt(v) / (1 - beta2**n) ** 0.5 + group["eps"])


class AdamW(Adam):
    """`Adam` with decoupled weight decay: p shrinks by the factor 1 - lr weight_decay in each step.

    Source: Loshchilov and Hutter, Decoupled Weight Decay Regularization, 2017.
    """

    _options = {**Adam._options, "weight_decay": 1e-2}
    _switches = "* maximize foreach capturable differentiable fused"

    def _prepare(self, options: Group) -> None:
        super()._prepare(options)
        options["decoupled_weight_decay"] = True


class Adamax(Declared):
    """p ← p - lr / (1 - β₁ⁿ) m / u in step n, with the running mean m of the gradient and the decaying maximum u of its size.

    m ← m + (1 - β₁)(g - m) and u ← max(β₂ u, abs(g) + eps). The state of a parameter is `step`, `exp_avg` (m) and
    `exp_inf` (u).

    Source: Kingma and Ba, Adam: A Method for Stochastic Optimization, 2014, section 7.1.
    """

    _options = {"lr": 2e-3, "betas": (0.9, 0.999), "eps": 1e-8, "weight_decay": 0}
    _example = "lr=0.5", "2.5000"
    _switches = "foreach * maximize differentiable capturable"
    _arrays = {"exp_avg": None, "exp_inf": None}

    def _rule(self, xp: Any, p: Any, g: Any, state: dict[str, Any], group: Group, n: float) -> None:
        beta1, beta2 = map(float, group["betas"])
        m = state["exp_avg"]
        lerp(m, g, 1 - beta1)
        u = state["exp_inf"] = xp.maximum(beta2 * state["exp_inf"], xp.abs(g) + group["eps"])
        p += -(group["lr"] / (1 - beta1**n)) * m / u


class NAdam(Declared):
    """p ← p - lr ((1 - μₙ) / (1 - Πₙ) g + μₙ₊₁ / (1 - Πₙ₊₁) m) / (√v̂ + eps) in step n, where Πₙ is the product of all μ up to μₙ.

    μₙ = β₁ (1 - ½ 0.96^(n momentum_decay)); m, v and v̂ = v / (1 - β₂ⁿ) are those of `Adam`. The state of a parameter is `step`, `mu_product`
    (Π), `exp_avg` (m) and `exp_avg_sq` (v).

    Source: Dozat, Incorporating Nesterov Momentum into Adam, 2016.
    """

    _options = {"lr": 2e-3, "betas": (0.9, 0.999), "eps": 1e-8, "weight_decay": 0, "momentum_decay": 4e-3, "decoupled_weight_decay": False}
    _example = "lr=0.5", "2.4718"
    _switches = "* foreach maximize capturable differentiable"
    _numbers = {"step": 0, "mu_product": 1}
    _arrays = {"exp_avg": None, "exp_avg_sq": None}

    def _rule(self, xp: Any, p: Any, g: Any, state: dict[str, Any], group: Group, n: float) -> None:
        m, v, beta1, beta2 = _moments(g, state, group)
        lr, decay = group["lr"], group["momentum_decay"]
        mu, mu_next = (beta1 * (1.0 - 0.5 * 0.96 ** (i * decay)) for i in (n, n + 1))
        state["mu_product"] = state["mu_product"] * mu
        product = number(state["mu_product"])
        size = xp.sqrt(v / (1 - beta2**n)) + group["eps"]
        p += -lr * (1.0 - mu) / (1.0 - product) * g / size
        p += -lr * mu_next / (1.0 - product * mu_next) * m / size


class RAdam(Declared):
    """p ← p - lr m̂ r √(1 - β₂ⁿ) / (√v + eps) in step n where ρ > 5, and p ← p - lr m̂ before; m̂ and v are those of `Adam`.

    ρ = ρ∞ - 2 n β₂ⁿ / (1 - β₂ⁿ) with ρ∞ = 2 / (1 - β₂) - 1, and r² = (ρ - 4)(ρ - 2) ρ∞ / ((ρ∞ - 4)(ρ∞ - 2) ρ). The state of a
    parameter is `step`, `exp_avg` (m) and `exp_avg_sq` (v).

    Source: Liu et al., On the Variance of the Adaptive Learning Rate and Beyond, 2019.
    """

    _options = {"lr": 1e-3, "betas": (0.9, 0.999), "eps": 1e-8, "weight_decay": 0, "decoupled_weight_decay": False}
    _example = "lr=0.5", "0."
    _switches = "* foreach maximize capturable differentiable"
    _arrays = {"exp_avg": None, "exp_avg_sq": None}

    def _rule(self, xp: Any, p: Any, g: Any, state: dict[str, Any], group: Group, n: float) -> None:
        m, v, beta1, beta2 = _moments(g, state, group)
        unbiased = 1 - beta2**n
        limit = 2 / (1 - beta2) - 1
        length = limit - 2 * n * beta2**n / unbiased  # of the running mean, in steps
        step = group["lr"] / (1 - beta1**n) * m
        if length > 5.0:
            rectified = ((length - 4) * (length - 2) * limit / ((limit - 4) * (limit - 2) * length)) ** 0.5
            step = step * (rectified * unbiased**0.5) / (xp.sqrt(v) + group["eps"])
        p -= step


class RMSprop(Declared):
    """p ← p - lr g / (√v + eps), with the running mean v of the square of the gradient: v ← alpha v + (1 - alpha) g².

    With `centered` the variance v - a² is in the place of v, where a is the running mean of the gradient. With `momentum` the step is
    lr b, with b ← momentum b + g / (√v + eps). The state of a parameter is `step`, `square_avg` (v) and, where they are used,
    `momentum_buffer` (b) and `grad_avg` (a).

    Source: Hinton, Neural Networks for Machine Learning, lecture 6, 2012; Graves, Generating Sequences With Recurrent Neural Networks, 2013.
    """

    _options = {"lr": 1e-2, "alpha": 0.99, "eps": 1e-8, "weight_decay": 0, "momentum": 0, "centered": False}
    _example = "lr=0.5, alpha=0.0", "2.5000"
    _switches = "capturable foreach maximize differentiable"
    _arrays = {"square_avg": None, "momentum_buffer": None, "grad_avg": None}
    _used_by = {"momentum_buffer": "momentum", "grad_avg": "centered"}

    def _prepare(self, options: Group) -> None:
        super()._prepare(options)
        self._require("alpha", options["alpha"], options["alpha"] >= 0, "not negative")

    def _rule(self, xp: Any, p: Any, g: Any, state: dict[str, Any], group: Group, n: float) -> None:
        alpha, momentum = group["alpha"], group["momentum"]
        v = state["square_avg"]
        v *= alpha
        v += (1 - alpha) * g * g
        if group["centered"]:
            a = state["grad_avg"]
            lerp(a, g, 1 - alpha)
            v = v - a * a
        direction = g / (xp.sqrt(v) + group["eps"])
        if momentum > 0:
            b = state["momentum_buffer"]
            b *= momentum
            b += direction
            direction = b
        p += -group["lr"] * direction


class Adagrad(Declared):
    """p ← p - lr / (1 + (n - 1) lr_decay) g / (√s + eps) in step n, with the sum s of the squares of the gradients.

    The sum begins at `initial_accumulator_value`. The state of a parameter is `step` and `sum` (s).

    Source: Duchi, Hazan and Singer, Adaptive Subgradient Methods for Online Learning and Stochastic Optimization, 2011.
    """

    _options = {"lr": 1e-2, "lr_decay": 0, "weight_decay": 0, "initial_accumulator_value": 0, "eps": 1e-10}
    _example = "lr=0.5", "2.5000"
    _switches = "foreach * maximize differentiable fused"
    _arrays = {"sum": "initial_accumulator_value"}

    def share_memory(self) -> None:
        """Nothing: processes do not share tensors."""

    def _rule(self, xp: Any, p: Any, g: Any, state: dict[str, Any], group: Group, n: float) -> None:
        total = state["sum"]
        total += g * g
        p += -(group["lr"] / (1 + (n - 1) * group["lr_decay"])) * g / (xp.sqrt(total) + group["eps"])


class Adadelta(Declared):
    """p ← p - lr d, with d = √(u + eps) / √(v + eps) g and the running means v of g² and u of d².

    v ← rho v + (1 - rho) g² before the step and u ← rho u + (1 - rho) d² after it. The state of a parameter is `step`, `square_avg`
    (v) and `acc_delta` (u).

    Source: Zeiler, ADADELTA: An Adaptive Learning Rate Method, 2012.
    """

    _options = {"lr": 1.0, "rho": 0.9, "eps": 1e-6, "weight_decay": 0}
    _example = "rho=0.0, eps=1.0", "2.0136"
    _switches = "foreach * capturable maximize differentiable"
    _arrays = {"square_avg": None, "acc_delta": None}

    def _rule(self, xp: Any, p: Any, g: Any, state: dict[str, Any], group: Group, n: float) -> None:
        rho, eps = group["rho"], group["eps"]
        v, u = state["square_avg"], state["acc_delta"]
        v *= rho
        v += (1 - rho) * g * g
        d = xp.sqrt(u + eps) / xp.sqrt(v + eps) * g
        u *= rho
        u += (1 - rho) * d * d
        p += -group["lr"] * d


class ASGD(Declared):
    """p ← (1 - lambd η) p - η g, and the mean a of the parameters from step t0 on: a ← a + μ (p - a).

    After step n, η = lr / (1 + lambd lr n)^alpha and μ = 1 / max(1, n - t0). The state of a parameter is `step`,
    `eta` (η), `mu` (μ) and `ax` (a).

    Source: Polyak and Juditsky, Acceleration of Stochastic Approximation by Averaging, 1992.
    """

    _options = {"lr": 1e-2, "lambd": 1e-4, "alpha": 0.75, "t0": 1e6, "weight_decay": 0}
    _example = "lr=0.25, lambd=0.0", "1.5000"
    _switches = "foreach maximize differentiable capturable"
    _numbers = {"step": 0, "eta": "lr", "mu": 1}
    _arrays = {"ax": None}

    def _rule(self, xp: Any, p: Any, g: Any, state: dict[str, Any], group: Group, n: float) -> None:
        lr, lambd = group["lr"], group["lambd"]
        eta, mean = number(state["eta"]), state["ax"]
        p *= 1 - lambd * eta
        p -= eta * g
        mu = float(state["mu"])
        mean[...] = p if mu == 1 else mean + mu * (p - mean)
        state["eta"] = scalar(xp, lr / (1 + lambd * lr * n) ** group["alpha"])
        state["mu"] = scalar(xp, 1 / max(1, n - group["t0"]))


class Rprop(Declared):
    """p ← p - sign(g) s, with a step size s for each element: it grows where the gradient keeps its sign, and shrinks where that changes.

    s is multiplied by etas[1] or etas[0], and kept between the two `step_sizes`; where the sign has changed, g is 0 for this step. s begins at lr.
    The state of a parameter is `step`, `prev` (the gradient of the last step) and `step_size` (s).

    Source: Riedmiller and Braun, A Direct Adaptive Method for Faster Backpropagation Learning, 1993.
    """

    _options = {"lr": 1e-2, "etas": (0.5, 1.2), "step_sizes": (1e-6, 50)}
    _example = "lr=0.5", "2.5000"
    _switches = "* capturable foreach maximize differentiable"
    _arrays = {"prev": None, "step_size": "lr"}

    def _prepare(self, options: Group) -> None:
        super()._prepare(options)
        shrink, grow = options["etas"]
        self._require("etas", options["etas"], 0 < shrink < 1 < grow, "a number in (0, 1) and one larger than 1")

    def _rule(self, xp: Any, p: Any, g: Any, state: dict[str, Any], group: Group, n: float) -> None:
        (shrink, grow), (smallest, largest) = group["etas"], group["step_sizes"]
        agreement = g * state["prev"]
        g = xp.where(agreement < 0, 0.0, g)
        size = state["step_size"]
        size = xp.where(agreement > 0, size * grow, xp.where(agreement < 0, size * shrink, size))
        size = state["step_size"] = xp.minimum(xp.maximum(size, smallest), largest)
        state["prev"] = g
        p -= xp.sign(g) * size
