"""Captured containers, arrays and tensors, and functions behind others, with the ways in which they change."""

from __future__ import annotations

import array
import collections
import contextvars
import functools
import operator
import tempfile
import types
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse

import symgrad
from symgrad import nn
from symgrad.func import custom_jvp, custom_vjp
from tests.support.functions import saving

from .captured import Captured, weigh
from .captured_objects import keys_of, with_dict

# Containers


def container_of(make: Callable[[Any], Any], key: Any) -> Callable[[Any], Captured]:
    def captured(n):
        x = make(n)

        def values(x):
            return list(x.values()) if hasattr(x, "values") else list(x)

        def same(m):
            x[key] = type(x[key])(x[key]) if type(x[key]) in (float, int) else x[key]

        return Captured(lambda y: sum((k + 1) * weigh(v) for k, v in enumerate(values(x))), {"item": lambda m: operator.setitem(x, key, m),
                                                                                              "swap of equals": same, **keys_of(x)})

    return captured


def nested(n):
    x = {"a": [(n, {"b": [n]})]}
    return Captured(lambda y: weigh(x["a"][0][0]) + 2 * weigh(x["a"][0][1]["b"][0]), {
        "leaf": lambda m: operator.setitem(x["a"][0][1]["b"], 0, m), "branch": lambda m: operator.setitem(x["a"], 0, (m, {"b": [m]})),
        "equal branch": lambda m: operator.setitem(x, "a", [(x["a"][0][0], dict(x["a"][0][1]))])})


def names_of_keys(n):
    x = {1: n}
    return Captured(lambda y: sum(weigh(key) + weigh(v) for key, v in x.items()), {
        "value": lambda m: operator.setitem(x, next(iter(x)), m), "key": lambda m: x.__setitem__(m, x.pop(next(iter(x)))),
        "true": lambda m: x.__setitem__(True, x.pop(next(iter(x)))), "one": lambda m: x.__setitem__(1.0, x.pop(next(iter(x))))})


def numbers_in_a_set(n):
    x = {n, 2.5}
    return Captured(lambda y: sum(weigh(v) for v in x), {"add": x.add, "discard": lambda m: x.discard(2.5), "clear": lambda m: x.clear()})


def simple_namespace(n):
    x = types.SimpleNamespace(rate=n)
    return Captured(lambda y: sum(weigh(v) for v in vars(x).values()), {"set": lambda m: setattr(x, "rate", m), "new": lambda m: setattr(x, "b", m)})


def user_dict(n):
    x = collections.UserDict(a=n)
    return Captured(lambda y: sum(weigh(v) for v in x.values()), {"item": lambda m: operator.setitem(x, "a", m), "new": lambda m: x.update(b=m)})


def proxy(n):
    d = {"a": n}
    x, view = types.MappingProxyType(d), d.values()
    return Captured(lambda y: weigh(x["a"]) + sum(weigh(v) for v in view), {"item": lambda m: d.update(a=m), "new": lambda m: d.update(b=m)})


def order_of_keys(n):
    x = collections.OrderedDict(a=n, b=2.5, c=0.3)
    return Captured(lambda y: sum((k + 1) * weigh(v) for k, v in enumerate(x.values())), {
        "move": lambda m: x.move_to_end("a"), "front": lambda m: x.move_to_end("c", last=False), "item": lambda m: operator.setitem(x, "b", m)})


def dictionary_of_keys(n):
    x = scipy.sparse.dok_array((2, 2))
    x[0, 1] = number_of(n) or 1.0
    return Captured(lambda y: weigh(x.toarray()) + float(x.sum()), {"item": lambda m: operator.setitem(x, (0, 1), number_of(m) or 2.0),
                                                                    "new": lambda m: operator.setitem(x, (1, 1), number_of(m) or 3.0)})


def matrix_of(make: Callable[[Any], Any]) -> Callable[[Any], Captured]:
    def captured(n):
        x = make([[number_of(n), 2], [3, 4]])
        return Captured(lambda y: sum((k + 1) * float(v) for k, v in enumerate(x)), {"item": lambda m: operator.setitem(x, (0, 0), number_of(m))})

    return captured


# Memory


def number_of(m: Any) -> float:
    """A number that every array can hold."""
    return float(m) if isinstance(m, (int, float)) and abs(float(m)) < 100 else 3.0


def array_of(make: Callable[[float], Any]) -> Callable[[Any], Captured]:
    def captured(n):
        box = [make(number_of(n))]

        def write(m):
            box[0][...] = np.asarray(number_of(m)).astype(box[0].dtype) if box[0].dtype.kind != "V" else (number_of(m), 1)

        def dtype(m):
            box[0] = np.asarray(box[0]).astype(np.float32 if box[0].dtype == np.float64 else np.float64)

        def shape(m):
            box[0] = np.stack([box[0], box[0]])

        changes = {"write": write, "shape": shape, "copy": lambda m: operator.setitem(box, 0, box[0].copy()),
                   "zero": lambda m: box[0].__setitem__((..., ), -0.0) if box[0].dtype.kind == "f" else None}
        return Captured(lambda y: weigh(np.asarray(box[0])) if box[0].dtype.kind not in "V" else weigh(box[0]["a"]),
                        changes | ({"dtype": dtype} if box[0].dtype.kind != "V" else {}))

    return captured


class OwnArray(np.ndarray):
    """A subclass of arrays."""


def mapped(n):
    with tempfile.TemporaryFile() as file:
        out = np.memmap(file, float, "w+", shape=(2,))
    out[:] = n, 2.0
    return out


def large(n):
    return np.full(20_000, n / 100)


def raw_memory(make: Callable[[Any], Any]) -> Callable[[Any], Captured]:
    """A kind of an object with the buffer protocol."""
    def captured(n):
        x = make(number_of(n))
        return Captured(lambda y: sum(weigh(v) for v in x), {"item": lambda m: operator.setitem(x, 0, type(x[0])(abs(number_of(m))))})

    return captured


def view_of_memory(n):
    a = array.array("d", [number_of(n), 2.0])
    x = memoryview(a)
    return Captured(lambda y: weigh(x[0]) + weigh(a[1]), {"item": lambda m: operator.setitem(a, 0, number_of(m)),
                                                          "other": lambda m: operator.setitem(x, 1, number_of(m))})


def sparse(n):
    x = scipy.sparse.csr_array(np.diag([number_of(n) or 1.0, 2.0, 3.0]))
    return Captured(lambda y: weigh(x.toarray()) + weigh(x.data), {"data": lambda m: operator.setitem(x.data, 0, number_of(m)),
                                                                   "index": lambda m: operator.setitem(x.indices, 0, 2)})


# Tensors


def tensor_of(read: Callable[[Any, Any], Any]) -> Callable[[Any], Captured]:
    def captured(n):
        w = symgrad.tensor([number_of(n), 2.0, -1.0])

        def rebind(m):
            nonlocal w
            w = symgrad.tensor([1.0, number_of(m), 2.0])

        def shape(m):
            nonlocal w
            w = symgrad.cat([w, w[:1]])

        def dtype(m):
            nonlocal w
            w = w.float() if w.dtype is symgrad.float64 else w.double()

        def delete(m):
            nonlocal w
            del w

        def layout(m):
            nonlocal w
            w = symgrad.stack([w, w], 1)[:, 0]

        def parameter(m):
            nonlocal w
            w = nn.Parameter(w, requires_grad=False)

        return Captured(lambda x: read(w, x), {
            "delete": delete, "layout": layout, "parameter": parameter,
            "write": lambda m: w[:1].fill_(number_of(m)), "rebind": rebind, "shape": shape, "dtype": dtype,
            "data": lambda m: setattr(w, "data", w.detach() + number_of(m))})

    return captured


def two_names(n):
    a = b = symgrad.tensor([number_of(n), 1.0])

    def part(m):
        nonlocal b
        b = symgrad.tensor([number_of(m), 2.0])

    return Captured(lambda x: (a * a).sum() + 3 * b.sum(), {"part": part, "write": lambda m: a.mul_(1.5)})


def index(n):
    i = symgrad.tensor([0, 1, 1])
    return Captured(lambda x: (x[i] * symgrad.tensor([1.0, 2.0, 0.5])).prod(), {
        "write": lambda m: i.__setitem__(0, int(abs(number_of(m))) % 3), "flip": lambda m: i.copy_(i.flip(0))})


def module(n):
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner, self.scale = nn.Linear(3, 2).double(), n
            self.register_buffer("offset", symgrad.tensor([0.5, -0.25]).double())

        def forward(self, x):
            return (self.inner(x) + self.offset).tanh().sum() * (2.0 if self.training else 3.0) + weigh(self.scale)

    net = Net()
    with symgrad.no_grad():
        net.inner.weight.copy_(symgrad.arange(6).reshape(2, 3) / 7)
        net.inner.bias.copy_(symgrad.tensor([0.1, -0.2]))
    handles: list[Any] = []

    def reset(m):
        net.inner.weight = nn.Parameter(net.inner.weight.detach() * 1.5)

    return Captured(lambda x: net(x), {
        "attribute": lambda m: setattr(net, "scale", m), "mode": lambda m: net.train(not net.training), "parameter": reset,
        "write": lambda m: net.inner.bias.data.fill_(number_of(m) / 10), "buffer": lambda m: setattr(net, "offset", net.offset * 1.25),
        "hook": lambda m: handles.append(net.inner.register_forward_hook(lambda module, x, y: y * 1.5)),
        "unhook": lambda m: handles and handles.pop().remove(), "inner": lambda m: setattr(net, "inner", nn.Identity())})


# Functions that wrap others


def cached(n):
    rate = n

    @functools.lru_cache
    def read(k):
        return rate

    def write(m):
        nonlocal rate
        rate = m

    return Captured(lambda x: read(0), {"rate": write, "clear": lambda m: read.cache_clear(), "both": lambda m: (write(m), read.cache_clear())})


def cached_array(n):
    @functools.cache
    def table(k):
        return np.array([number_of(n), k])

    return Captured(lambda x: weigh(table(2)), {"write": lambda m: table(2).__setitem__(0, number_of(m)), "clear": lambda m: table.cache_clear()})


def wrapped(n):
    rate = n

    def decorate(f):
        @functools.wraps(f)
        def g(*args):
            return weigh(f(*args)) + weigh(rate)

        return g

    @decorate
    def read(x):
        return table[0]

    def write(m):
        nonlocal rate
        rate = m

    table = [n]
    return Captured(read, {"outer": write, "inner": lambda m: operator.setitem(table, 0, m)})


def partial(n):
    table, words = [n], {"b": n}
    read = functools.partial(lambda a, x, b: weigh(a[0]) + weigh(b), table, **words)
    return Captured(lambda x: read(x), {"argument": lambda m: operator.setitem(table, 0, m), "keyword": lambda m: read.keywords.update(b=m)})


def vectorized(n):
    rate = number_of(n)

    def write(m):
        nonlocal rate
        rate = number_of(m)

    read = np.vectorize(lambda v: v * rate, otypes=[float])
    return Captured(lambda x: weigh(read(np.array([1.0, 2.0]))), {"rate": write})


def object_function(n):
    rates = [number_of(n)]
    read = np.frompyfunc(lambda v: v * rates[0], 1, 1)
    return Captured(lambda x: float(read(2.5)), {"rate": lambda m: operator.setitem(rates, 0, number_of(m))})


def getters(n):
    x = types.SimpleNamespace(rate=n, table=[n])
    get, item = operator.attrgetter("rate"), x.table.__getitem__
    return Captured(lambda y: weigh(get(x)) + 2 * weigh(item(0)), {"set": lambda m: setattr(x, "rate", m),
                                                                          "item": lambda m: x.table.__setitem__(0, m)})


def references(n):
    x, variable = with_dict(n), contextvars.ContextVar("rate", default=n)
    reference = weakref.ref(x)
    return Captured(lambda y: weigh(reference().rate) + 2 * weigh(variable.get()) + 0 * len(vars(x)), {
        "set": lambda m: setattr(x, "rate", m), "variable": variable.set})


# Rules of derivatives


def function_rule(n):
    rate = number_of(n)

    def write(m):
        nonlocal rate
        rate = number_of(m)

    Own = saving(lambda x: x * 1.0, lambda g, x: g * rate, "Own")

    return Captured(lambda x: Own.apply(x).sum(), {"rate": write})


def rules_of_a_function(n):
    rate = number_of(n)

    Own = saving(lambda x: x * rate, lambda g, x: g * rate, "Own")

    return Captured(lambda x: Own.apply(x).sum(), {
        "forward": lambda m: setattr(Own, "forward", staticmethod(lambda ctx, x: x * number_of(m))),
        "backward": lambda m: setattr(Own, "backward", staticmethod(lambda ctx, g: g * number_of(m)))})


def custom_of(make):
    def captured(n):
        rate = number_of(n)

        def write(m):
            nonlocal rate
            rate = number_of(m)

        f = make(lambda: rate)
        return Captured(lambda x: f(x).sum(), {"rate": write})

    return captured


def pullback_rule(rate):
    f = custom_vjp(lambda x: x * 1.0)
    f.defvjp(lambda x: (x * 1.0, ()), lambda residuals, g: (g * rate(),))
    return f


def pushforward_rule(rate):
    f = custom_jvp(lambda x: x * 1.0)
    f.defjvp(lambda primals, tangents: (primals[0] * 1.0, tangents[0] * rate()))
    return f
