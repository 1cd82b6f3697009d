"""Functions, modules and ops of a module, which processes find by their names."""

import os
import time

import symgrad
from symgrad import nn
from symgrad.methods import extending

gentle = symgrad.elementwise("gentle", lambda xp, x: xp.cosh(x) - 1, lambda xp, y, x: xp.sinh(x))
extending._unregister("gentle")  # the tests of all ops, which are collected later, do not meet it


@symgrad.compile
def compiled(x):
    return (x**3).sum()


def energy(x):
    return (x**4).sum() * x[0]


def hessian_at(x):
    return symgrad.func.hessian(energy)(x)


def checked(x):
    return symgrad.check(lambda x: x.sin(), x, order=1)


def process(x):
    time.sleep(0.01)
    return x, os.getpid()


def ill(x):
    if x in (5, 7):
        raise LookupError(f"no {x}")
    time.sleep(0.05)
    return x


def module():
    symgrad.manual_seed(1)
    return nn.Sequential(nn.Linear(2, 3), nn.Tanh(), nn.Linear(3, 1))


@symgrad.func.grad
def slope(x):
    """The slope of x⁴."""
    return x**4


@symgrad.func.hessian
def curvature(x):
    return (x**4).sum()


@symgrad.func.custom_vjp
def clipped(x):
    return x**2


def forward_clipped(x):
    return clipped.fun(x), x


def backward_clipped(x, g):
    return ((2 * x * g).clamp(-1, 1),)


clipped.defvjp(forward_clipped, backward_clipped)


def turned(x):
    return x.flip(0) * x


def residual(x, a):
    return x * x - a


def halfway(x, a):
    return (x + a / x) / 2


def misfit(x, a):
    return ((x - a) ** 2).sum()


def root(a):
    return a.detach().sqrt()


def same(a):
    return a.detach()
