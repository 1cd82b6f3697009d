"""Drawn steps about values: reductions, sorting, indexing, scattering, copies of views, dtypes, and results into `out`."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

from .asked import dtype_name, fills, fits_in, flat, least, memory, nested, places, size, tame, unordered
from .choices import Choices, plain
from .steps import Array, Ref, Step, Type

REDUCED = ["std", "var", "norm", "logsumexp", "amax", "amin", "nansum", "count_nonzero", "all", "any", "argmax", "argmin", "sum", "mean", "prod"]
APART = {"amax", "amin", "argmax", "argmin", "max", "min", "median", "sort", "argsort", "topk", "kthvalue", "cummax", "cummin", "aminmax"}
NONZERO = {"norm", "std"}
TRUTH = {"count_nonzero", "all", "any"}  # of which rounding must not decide
COPIES = ["t_copy", "transpose_copy", "permute_copy", "expand_copy", "unsqueeze_copy", "squeeze_copy", "select_copy", "slice_copy", "diagonal_copy",
          "alias_copy", "view_copy", "unbind_copy", "split_copy"]


def apart(t: Any) -> bool:
    """Whether no two elements are equal, nor so close that rounding decides."""
    values = flat(t)
    if not values or isinstance(values[0], (complex, bool)):
        return False
    return all(b - a > 1e-3 for a, b in itertools.pairwise(sorted(values)))


class Values(Choices):
    """Steps whose results are new values."""

    def along(self, t: Any) -> int:
        return self.random.randrange(-t.dim(), t.dim())

    def reduced(self) -> Step | None:
        word = self.random.choice(REDUCED)
        a, t = self.any(lambda t: t.numel() and size(t) < 4 and (word not in APART | NONZERO or apart(t)) and (word not in NONZERO or least(t) > 0.1)
                        and (word not in TRUTH or all(not x or abs(x) > 1e-3 for x in flat(t))))
        if a is None:
            return None
        args: tuple = (a,)
        options: tuple = ()
        if word == "logsumexp" or t.dim() and self.chance(0.6):
            args += ((),) if not t.dim() else (self.along(t),)
            if word != "count_nonzero" and self.chance(0.4):
                options += (("keepdim", True),)
        if word in ("std", "var") and self.chance(0.4):
            options += (("correction", self.random.choice([0, 1])),)
        if word == "norm":
            args, options = (a, self.random.choice([2, 3.0]), *args[1:]), options if len(args) > 1 else ()
        if word in ("sum", "mean", "prod") and self.mixed and self.chance(0.4):
            options += (("dtype", Type(self.random.choice(["float64", "float32", "complex128"]))),)
        return Step("call", word, args, self.fresh(), options, self.mode())

    def scanned(self) -> Step | None:
        word = self.random.choice(["cumsum", "cumprod", "logcumsumexp", "cummax", "cummin", "cumsum_", "cumprod_"])
        test = lambda t: t.dim() and t.numel() and size(t) < 3 and (word not in APART or apart(t))  # noqa: E731
        a, t = (self.written if word.endswith("_") else self.any)(test)
        if a is None:
            return None
        return Step("call", word, (a, self.along(t)), self.fresh(2 if word in APART else 1) if not word.endswith("_") else (), mode=self.mode())

    def sorted(self) -> Step | None:
        word = self.random.choice(["sort", "argsort", "topk", "kthvalue", "median", "max", "min", "unique", "aminmax"])
        a, t = self.any(lambda t: t.dim() and t.numel() and apart(t) and not (word == "unique" and t.requires_grad))
        if a is None:
            return None
        dim, options = self.along(t), ()
        n = t.shape[dim]
        if word == "unique":
            return Step("call", word, (a,), self.fresh(), mode=self.mode())
        args: tuple = (a, dim)
        if word in ("topk", "kthvalue"):
            args = (a, 1 + self.random.randrange(n), dim)
        elif word == "aminmax":
            args, options = (a,), (("dim", dim),)
        elif word in ("sort", "argsort") and self.chance(0.5):
            options = (("descending", True),)
        elif word in ("max", "min", "median") and self.chance(0.3):
            args = (a,)
        single = word in ("argsort", "aminmax") or len(args) == 1  # of aminmax the second result is one of another node
        return Step("call", word, args, self.fresh(1 if single else 2), options, self.mode())

    # Indices

    def indices(self, n: int, shape: tuple[int, ...], distinct: bool = False) -> Array:
        count = math.prod(shape)
        values = [self.random.randrange(n) for _ in range(count)]
        if distinct:
            pool = list(range(n))
            values = [pool.pop(self.random.randrange(len(pool))) for _ in range(count)]
        return Array(nested(values, shape) if count else (), "int64")

    def mask(self, shape: tuple[int, ...]) -> Array:
        return Array(nested([self.chance(0.5) for _ in range(math.prod(shape))], shape), "bool")

    def indexed(self) -> Step | None:
        word = self.random.choice(["item", "item", "index_select", "gather", "take_along_dim", "take", "masked_select", "where", "mask", "diff",
                                   "flip", "roll", "tril", "repeat"])
        view = word == "repeat"  # torch's result, of an inference tensor
        a, t = self.any(lambda t: t.dim() and 0 < t.numel() <= 12 and not (view and t.is_inference()))
        if a is None:
            return None
        dim, out, mode = self.along(t), self.fresh(), self.mode()
        n = t.shape[dim]
        if word == "item":
            index: tuple = tuple(self.indices(m, (2,)) for m in t.shape[:1 + self.random.randrange(t.dim())])
            if t.dim() > 1 and self.chance(0.3):
                index = (slice(None), self.indices(t.shape[1], (2,)))
            return Step("item", "", (a, index[0] if len(index) == 1 else index), out, mode=mode)
        if word == "mask":
            return Step("item", "", (a, self.mask(tuple(t.shape))), out, mode=mode)
        if word == "where":
            return Step("function", "where", (self.mask(tuple(t.shape)), a, self.other(t, "add", within=True)), out, mode=mode)
        args: Any = {"index_select": (a, dim, self.indices(n, (2,))), "take": (a, self.indices(t.numel(), (3,))),
                     "masked_select": (a, self.mask(tuple(t.shape))), "diff": (a,), "flip": (a, (dim,)), "roll": (a, 1, dim), "tril": (a,),
                     "repeat": (a, 2, *t.shape[1:])}.get(word)
        if word in ("gather", "take_along_dim"):
            args = (a, dim, self.indices(n, tuple(t.shape))) if word == "gather" else (a, self.indices(n, tuple(t.shape)), dim)
        return Step("call", word, args, out, mode=mode)

    def scattering(self, a: Ref, t: Any) -> tuple[str, tuple] | None:
        """A word without its underscore, and arguments, of an op that puts elements into places."""
        word = self.random.choice(["scatter", "scatter_add", "index_add", "index_copy", "index_fill", "masked_fill", "index_put", "masked_scatter"])
        dim, shape, dtype = self.along(t), tuple(t.shape), dtype_name(t)
        n = shape[dim]

        def source(test: Callable[[Any], bool]) -> Ref | None:
            """A tensor of other memory: torch refuses to read memory that it writes here, where the result is computed before it is written."""
            return self.any(lambda s: test(s) and memory(s) != memory(t))[0]

        if word == "masked_fill":
            b = source(lambda s: not s.dim() and fills(t, s))
            return word, (a, self.mask(shape), b if b is not None and self.chance(0.5) else self.number())
        if word == "masked_scatter":
            b = source(lambda s: s.numel() >= t.numel() and s.dtype == t.dtype)
            return None if b is None else (word, (a, self.mask(shape), b))
        if word == "index_fill":
            return word, (a, dim, self.indices(n, (1,)), self.number())
        if word == "index_put":
            b = source(lambda s: fits_in(s.shape, (1, *shape[1:])) and s.dtype == t.dtype)
            options = (True,) if self.chance(0.3) else ()
            return word, (a, [self.indices(shape[0], (1,))], self.constant((1,), dtype) if b is None else b, *options)
        index = self.indices(1, shape) if word == "scatter_add" else None
        b = source(lambda s: s.shape == t.shape and s.dtype == t.dtype)
        if word in ("index_add", "index_copy"):
            index = self.indices(n, (n,), distinct=True)
        elif word == "scatter":  # distinct along the dimension
            index = _shifted(shape, dim % t.dim(), self.random.randrange(n))
        return word, (a, dim, index, self.constant(shape, dtype) if b is None else b)

    def scattered(self) -> Step | None:
        a, t = self.any(lambda t: t.dim() and 0 < t.numel() <= 12)
        found = None if a is None else self.scattering(a, t)
        return None if found is None else Step("call", found[0], found[1], self.fresh(), mode=self.mode())

    def scattered_(self) -> Step | None:
        a, t = self.written(lambda t: t.dim() and 0 < t.numel() <= 12)
        found = None if a is None else self.scattering(a, t)
        return None if found is None else Step("call", f"{found[0]}_", found[1], mode=self.mode())

    # Copies of views, and views written into copies

    def copied(self) -> Step | None:
        word = self.random.choice(COPIES)
        a, t = self.any(lambda t: t.dim() == 2 and 0 < t.numel() <= 12 and (word != "view_copy" or t.is_contiguous()))
        if a is None:
            return None
        m, n = t.shape
        args: Any = {"transpose_copy": (0, 1), "permute_copy": ((1, 0),), "expand_copy": ((2, m, n),), "unsqueeze_copy": (1,),
                     "select_copy": (0, m - 1), "slice_copy": (1, 0, 1), "view_copy": ((m * n,),), "unbind_copy": (0,),
                     "split_copy": (1, 0)}.get(word, ())
        return Step("function", word, (a, *args), self.fresh(m if word in ("unbind_copy", "split_copy") else 1), mode=self.mode())

    def view_scattered(self) -> Step | None:
        a, t = self.any(lambda t: t.dim() == 2 and 0 < t.numel() <= 12 and not t.is_inference())  # of which torch's result is a view
        if a is None:
            return None
        m, n = t.shape
        word = self.random.choice(["select_scatter", "slice_scatter", "diagonal_scatter"])
        shape, further = {"select_scatter": ((n,), (0, m - 1)), "slice_scatter": ((m, 1), (1, 0, 1)), "diagonal_scatter": ((min(m, n),), ())}[word]
        b, _ = self.any(lambda s: s.shape == shape and s.dtype == t.dtype)
        part = self.constant(shape, dtype_name(t)) if b is None else b
        return Step("function", word, (a, part, *further), self.fresh(), mode=self.mode())

    def into_out(self) -> Step | None:
        """A result that is written to a tensor of the program, which is fit for it but now and then."""
        a, t = self.any(lambda t: size(t) < 10 and (not t.requires_grad or self.chance(0.1)))
        if a is None:
            return None
        word = self.random.choice(["add", "mul", "sub", "exp", "sin", "sum", "cat", "neg", "cumsum", "stack"])
        if not tame(word, t) or word == "sum" and not t.dim():
            return None
        dim = self.along(t) if t.dim() else 0
        args: Any = {"sum": (a, dim) if t.dim() else (a,), "cat": ([a], dim), "stack": ([a, a], dim), "cumsum": (a, dim)}.get(
            word, (a, self.number()) if word in ("add", "mul", "sub") else (a,))
        shape = tuple(t.shape)
        if word == "sum":
            shape = shape[:dim % t.dim()] + shape[dim % t.dim() + 1:] if t.dim() else ()
        elif word == "stack":
            at = dim % (t.dim() + 1)
            shape = (*shape[:at], 2, *shape[at:])
        alike = word in ("cat", "stack", "sum", "cumsum")  # which torch refuses where the dtypes differ, or the memory overlaps

        def fit(s: Any) -> bool:
            apart = memory(s) != memory(t)
            if tuple(s.shape) != shape or len(set(places(s))) < s.numel() or s.requires_grad and self.chance(0.9) or unordered(t, s):
                return False
            return (apart and s.dtype == t.dtype and plain(s)) if alike else (apart or s.dtype == t.dtype and places(s) == places(t))

        o, _ = self.written(fit)
        return None if o is None else Step("function", word, args, (), (("out", o),), self.mode())

    def turned_(self) -> Step | None:
        word = self.random.choice(["t_", "transpose_", "unsqueeze_", "squeeze_", "swapaxes_", "unsqueeze_"])
        bases = [t._base for t in self.world.tensors.values()]
        a, t = self.written(lambda t: t.dim() == 2 and not t.is_complex() and all(t is not base for base in bases))
        if a is None:
            return None
        args: tuple = {"transpose_": (0, 1), "unsqueeze_": (0,), "swapaxes_": (0, 1)}.get(word, ())
        return Step("call", word, (a, *args), mode="" if t.requires_grad or "inference" in (mode := self.mode()) else mode)

    # Dtypes

    def typed(self) -> Step | None:
        if not self.mixed:
            return None
        word = self.random.choice(["to", "double", "float", "view", "view_as_real", "view_as_complex", "real", "imag", "type_as", "complex", "angle",
                                   "resolve_conj", "long", "bool"])
        mode, out = self.mode(), self.fresh()
        if word in ("view_as_real", "imag", "resolve_conj", "angle"):
            a, _ = self.any(lambda t: t.is_complex())
        elif word == "view_as_complex":
            a, _ = self.any(lambda t: plain(t) and t.dim() and t.shape[-1] == 2)
        elif word in ("long", "bool"):
            a, _ = self.any(lambda t: not t.is_complex() and t.numel() and least(t) > 0.1 and not plain(t))
        else:
            a, _ = self.any(lambda t: word != "view" or not t.is_inference())  # of which torch's result is an ordinary tensor
        if a is None:
            return None
        if word == "to":
            return Step("call", "to", (a, Type(self.random.choice(["float64", "float32", "complex128"]))), out, mode=mode)
        if word == "view":
            mode = "" if "inference" in mode else mode
            return Step("call", "view", (a, Type(self.random.choice(["float64", "int64", "complex128"]))), out, mode=mode)
        if word in ("view_as_real", "view_as_complex", "real", "imag", "angle"):
            return Step("function", word, (a,), out, mode=mode)
        if word == "complex":
            a, t = self.any(plain)
            b, _ = self.any(lambda s: t is not None and s.shape == t.shape and s.dtype == t.dtype)
            return None if b is None else Step("function", "complex", (a, b), out, mode=mode)
        if word == "type_as":
            b, _ = self.any(lambda t: t.dtype.is_floating_point or t.is_complex())
            return None if b is None else Step("call", word, (a, b), out, mode=mode)
        return Step("call", word, (a,), out, mode=mode)

    def compared(self) -> Step | None:
        a, t = self.any(lambda t: t.numel() and not t.is_complex() and apart(t))
        if a is None:
            return None
        return Step("call", self.random.choice(["gt", "le", "eq", "ne"]), (a, 0.123), self.fresh(), mode=self.mode())


def _shifted(shape: tuple[int, ...], dim: int, shift: int) -> Array:
    """Indices along a dimension that turn it by `shift` places."""
    def fill(level: int, at: int) -> Any:
        if level == len(shape):
            return (at + shift) % shape[dim]
        return tuple(fill(level + 1, i if level == dim else at) for i in range(shape[level]))

    return Array(fill(0, 0), "int64")
