"""Generators of random numbers, with their seeds and states."""

from __future__ import annotations

import contextlib
import math
import os
from collections.abc import Iterator
from typing import Any

import numpy as np

from symgrad.carriers.batched import Batched
from symgrad.carriers.duck import Unrecordable
from symgrad.engine.tensor import Tensor, wrap
from symgrad.graph.modes import thread
from symgrad.layouts.devices import CPU, check_cpu, device
from symgrad.system.locks import reentrant_lock
from symgrad.system.restoring import restored

DEFAULT_SEED = 67280421310721  # the seed of a new torch generator
INTEGER_BYTES = 16  # the size of each integer of a state
_making = reentrant_lock()  # two threads that draw the first number do so from one generator


class Generator:
    """A source of random numbers with a separate state.

    Raises AssertionError for a device other than the CPU.

    >>> import symgrad
    >>> g = symgrad.Generator().manual_seed(3)
    >>> h = symgrad.Generator().manual_seed(3)
    >>> bool((symgrad.rand(4, generator=g) == symgrad.rand(4, generator=h)).all())
    True
    """

    __slots__ = ("_source",)
    _source: tuple[int, np.random.Generator | None]  # the seed, and NumPy's generator from the first number on: its import takes long

    def __init__(self, device: Any = None):
        check_cpu(device)
        self.manual_seed(DEFAULT_SEED)

    @property
    def device(self) -> device:
        """The device of the generator, the CPU."""
        return CPU

    def manual_seed(self, seed: int) -> Generator:
        """Set the seed; returns the generator.

        Raises ValueError unless the seed is an integer of 64 bits.
        """
        seed = int(seed)
        if not -(2**63) <= seed < 2**64:
            raise ValueError(f"manual_seed: the seed must have at most 64 bits, not {seed.bit_length()}")
        self._source = seed % 2**64, None
        return self

    @property
    def numpy(self) -> np.random.Generator:
        """The generator of NumPy that draws the numbers."""
        made = self._source[1]
        if made is None:
            with _making:
                first, made = self._source
                if made is None:
                    self._source = first, made = first, np.random.Generator(np.random.PCG64(first))
        return made

    @property
    def _bits(self) -> Any:
        return self.numpy.bit_generator

    def seed(self) -> int:
        """Set a nondeterministic seed, and return it."""
        self.manual_seed(int.from_bytes(os.urandom(8)) >> 1)
        return self.initial_seed()

    def initial_seed(self) -> int:
        """The seed of the generator."""
        return self._source[0]

    def get_state(self) -> Tensor:
        """The state as bytes, for `set_state`."""
        _refuse_in_program("the state of random numbers")
        state: Any = self._bits.state
        numbers = (self.initial_seed(), state["state"]["state"], state["state"]["inc"], state["has_uint32"], state["uinteger"])
        return wrap(np.frombuffer(b"".join(int(n).to_bytes(INTEGER_BYTES, "little") for n in numbers), np.uint8).copy())

    def set_state(self, new_state: Tensor) -> None:
        """Set a state returned by `get_state`.

        Raises TypeError unless it is a tensor of bytes, RuntimeError for a wrong length.
        """
        _refuse_in_program("the state of random numbers")
        value = getattr(new_state, "_value", None)
        if value is None or value.dtype != np.uint8:
            raise TypeError(f"set_state: the state must be a tensor of uint8, as get_state gives, not {type(new_state).__name__}")
        if value.shape != (5 * INTEGER_BYTES,):
            raise RuntimeError(f"set_state: the state must have {5 * INTEGER_BYTES} bytes, as get_state gives, not {value.size}")
        raw = value.tobytes()
        first, state, inc, has, number = (int.from_bytes(raw[i:i + INTEGER_BYTES], "little") for i in range(0, len(raw), INTEGER_BYTES))
        bits = np.random.PCG64(0)
        bits.state = {"bit_generator": "PCG64", "state": {"state": state, "inc": inc}, "has_uint32": has, "uinteger": number}
        self._source = first, np.random.Generator(bits)

    def clone_state(self) -> Generator:
        """Another generator in the same state."""
        return _restored(self.get_state().tolist())

    def __reduce__(self) -> Any:
        return _restored, (self.get_state().tolist(),)


def _restored(state: list[int]) -> Generator:
    out = Generator()
    out.set_state(wrap(np.array(state, np.uint8)))
    return out


default_generator = Generator()
default_generator.seed()


class BatchedGenerator:
    """A generator of different numbers for every member of the batches of this thread, given as pairs (level, size)."""

    def __init__(self, source: np.random.Generator, batches: list[tuple[int, int]]):
        self.source, self._batches = source, batches

    def __getattr__(self, name: str) -> Any:
        def draw(*args: Any) -> Any:
            counts = tuple(count for _, count in self._batches)
            method = getattr(self.source, name)
            if name == "permutation":
                out: Any = np.array([method(*args) for _ in range(math.prod(counts))], np.int64).reshape((*counts, *args))
            else:
                out = method(*((*counts, *a) if isinstance(a, tuple) else a for a in args))
            for level, _ in self._batches:
                out = Batched(out, level)
            return out

        return draw


def _refuse_in_program(what: str) -> None:
    if thread.modes.program is not None:
        raise Unrecordable(f"{what}, which would be the same in every run")


REFUSED = "refused"  # random numbers in a batch that a derivative makes by itself, so that its user has no flag to allow them


def numpy_generator(generator: Any = None) -> Any:
    """The NumPy generator of a `Generator`, of NumPy itself, or, for None, of the default generator."""
    _refuse_in_program("random numbers")
    if thread.modes.batches:
        kinds = {kind for _, _, kind in thread.modes.batches}
        if "error" in kinds:
            raise RuntimeError("vmap: random numbers are drawn inside; give randomness='same' or 'different', or draw them outside")
        if REFUSED in kinds:
            raise RuntimeError("vmap: random numbers are drawn inside; draw them outside")
        if "different" in kinds:
            different = [(level, count) for level, count, kind in thread.modes.batches if kind == "different"]
            return BatchedGenerator(_unbatched_generator(generator), different)
    return _unbatched_generator(generator)


def _unbatched_generator(generator: Any) -> np.random.Generator:
    if generator is None:
        return default_generator.numpy
    if isinstance(generator, Generator):
        return generator.numpy
    if isinstance(generator, np.random.Generator):
        return generator
    raise TypeError(f"generator must be a Generator, not {type(generator).__name__}")


def manual_seed(seed: int) -> Generator:
    """Set the seed of the default generator, and return the generator.

    Raises ValueError unless the seed is an integer of 64 bits.
    """
    return default_generator.manual_seed(seed)


def seed() -> int:
    """Set a nondeterministic seed of the default generator, and return the seed."""
    return default_generator.seed()


def initial_seed() -> int:
    """The seed of the default generator."""
    return default_generator.initial_seed()


def get_rng_state() -> Tensor:
    """The state of the default generator as bytes."""
    return default_generator.get_state()


def set_rng_state(new_state: Tensor) -> None:
    """Set the state of the default generator, as returned by `get_rng_state`.

    Raises TypeError unless it is a tensor of bytes.
    """
    default_generator.set_state(new_state)


@contextlib.contextmanager
def fork_rng(devices: Any = None, enabled: bool = True, device_type: str = "cuda") -> Iterator[None]:
    """Restore the state of the default generator at the end of the block.

    >>> import symgrad
    >>> before = symgrad.get_rng_state()
    >>> with symgrad.random.fork_rng():
    ...     _ = symgrad.rand(3)
    >>> bool((symgrad.get_rng_state() == before).all())
    True
    """
    g = default_generator
    bits = g._bits
    before, state = g._source, bits.state  # the block may draw, and set another seed

    def restore() -> None:
        g._source = before
        bits.state = state

    with restored(restore) if enabled else contextlib.nullcontext():
        yield


def generator_state() -> tuple[int, dict[str, Any]]:
    """The state of the random generator, for `restored_generator`."""
    return default_generator.initial_seed(), default_generator._bits.state


@contextlib.contextmanager
def restored_generator(state: tuple[int, dict[str, Any]] | None) -> Iterator[None]:
    """Draw the same random numbers as from a saved state, and restore the generator at the end."""
    if state is None:
        yield
        return
    with fork_rng():
        default_generator._source = state[0], default_generator.numpy
        default_generator._bits.state = state[1]
        yield
