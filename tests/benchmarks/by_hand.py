"""Values and gradients of elementwise ops and reductions by hand: the lines of `by_hand.txt` as functions, and what several of them call."""

import re
from pathlib import Path

import numpy as np
import scipy.special as sp  # noqa: F401  the lines call it

e, pi = np.exp, np.pi
LOG2, LOG10, C = np.log(2.0), np.log(10.0), 2 / np.sqrt(pi)
ROOT_2_PI = np.sqrt(2 * pi)


def normal(x):
    return e(-x * x / 2) / ROOT_2_PI


def tail(x, g, kept, value, slope=0.0):
    """x where it is kept, else another value, with its derivative."""
    return np.where(kept, x, value), np.where(kept, g, g * slope)


def elu(x, g, a, scale, rate):
    low = a * np.expm1(rate * np.minimum(x, 0))
    return scale * np.where(x > 0, x, low), scale * g * np.where(x > 0, 1.0, rate * (low + a))


def chosen(x, y, g, first):
    return np.where(first, x, y), np.where(first, g, 0.0), np.where(first, 0.0, g)


def at(x, g, i):
    out = np.zeros_like(x)
    out[i] = g
    return x[i], out


def smooth(d):
    """Huber's loss of each element, and its derivatives by what is subtracted from what."""
    size = np.abs(d)
    slope = np.clip(d, -1, 1)
    return np.where(size < 1, d * d / 2, size - 0.5), slope, -slope


def functions():
    """The functions of the lines by their calls, of the arguments and the cotangent, which return the value and the gradients."""
    found = {}
    for call, names, text in re.findall(r"^(\S.*?) \| ([cxyz, ]+) \| (.*)$", Path(__file__).with_suffix(".txt").read_text(encoding="utf-8"), re.M):
        *before, result = text.split(" -> ")
        space = {}
        exec("\n    ".join([f"def both({names}, g):", *(before[0].split("; ") if before else []), f"return {result}"]), globals(), space)
        found[call] = space["both"]
    return found


BY_HAND = functions()
