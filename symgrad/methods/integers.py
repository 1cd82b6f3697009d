"""Functions of integers: their bits, and common divisors and multiples."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from symgrad.arguments import check_kind
from symgrad.carriers.duck import DuckArray
from symgrad.dtypes.promotion import converted
from symgrad.engine.data import as_value
from symgrad.engine.method_table import MethodTable
from symgrad.engine.refusals import taking_tensors
from symgrad.engine.storage.writes import taking_out
from symgrad.engine.tensor import Tensor, wrap
from symgrad.layouts.indices import broadcast
from symgrad.methods.inplace import augmented, in_place

METHODS = MethodTable()


def _integer_function(name: str, ufunc: Any, what: str, booleans: bool = True) -> Callable[..., Tensor]:
    def function(input: Any, other: Any) -> Tensor:
        for x in (input, other):
            check_kind(name, as_value(x), "iub", "an operand")
        values = [x._value if isinstance(x, Tensor) else x for x in (input, other)]
        a, b = converted(values)
        if not booleans:
            check_kind(name, a, "iu", "an operand")
        if not isinstance(a, DuckArray) and not isinstance(b, DuckArray):
            broadcast(np.shape(a), np.shape(b))
        return wrap(ufunc(a, b))

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"{what}, elementwise, of integers{' or booleans' if booleans else ''}."
    return function


bitwise_and = _integer_function("bitwise_and", np.bitwise_and, "The bits that both have")
bitwise_or = _integer_function("bitwise_or", np.bitwise_or, "The bits that one of two has")
bitwise_xor = _integer_function("bitwise_xor", np.bitwise_xor, "The bits that just one of two has")
bitwise_left_shift = _integer_function("bitwise_left_shift", np.left_shift, "The bits shifted to the left", False)
bitwise_right_shift = _integer_function("bitwise_right_shift", np.right_shift, "The bits shifted to the right", False)
gcd = _integer_function("gcd", np.gcd, "The greatest common divisor", False)
lcm = _integer_function("lcm", np.lcm, "The least common multiple", False)


def bitwise_not(input: Tensor) -> Tensor:
    """The bitwise not of integers, the logical not of booleans, elementwise."""
    check_kind("bitwise_not", input, "iub")
    return wrap(np.invert(input._value))


bitwise_and, bitwise_or, bitwise_xor, bitwise_left_shift, bitwise_right_shift, bitwise_not, gcd, lcm = (taking_out(taking_tensors(f)) for f in (
    bitwise_and, bitwise_or, bitwise_xor, bitwise_left_shift, bitwise_right_shift, bitwise_not, gcd, lcm))
for _function in (bitwise_and, bitwise_or, bitwise_xor, bitwise_left_shift, bitwise_right_shift, bitwise_not, gcd, lcm):
    METHODS.define(_function)
    METHODS[f"{_function.__name__}_"] = in_place(f"{_function.__name__}_", _function)


def _shift(function: Callable[..., Tensor], reflected: bool) -> Callable[..., Tensor]:
    def operate(self: Tensor, other: Any) -> Tensor:
        return function(other, self) if reflected else function(self, other)

    return operate


for _name, _function in {"lshift": bitwise_left_shift, "rshift": bitwise_right_shift}.items():
    METHODS[f"__{_name}__"], METHODS[f"__r{_name}__"] = _shift(_function, False), _shift(_function, True)
for _name, _operator in {"bitwise_and_": "__iand__", "bitwise_or_": "__ior__", "bitwise_xor_": "__ixor__", "bitwise_left_shift_": "__ilshift__",
                         "bitwise_right_shift_": "__irshift__"}.items():
    METHODS[_operator] = augmented(METHODS[_name])
