"""The counter-based bit generator Philox 4x32-10: key, stream, and a counter of used blocks."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from ..fusion.trace_restrictions import refuse_while_tracing
from ..kernels.random import rng
from ..locks import new_lock
from ..memory.host_access import not_repeatable

_WORD = 1 << 32


class Philox4x3210:
    """The state of a generator: a key of 64 bits, a stream of 32, and a counter of the blocks that are used
    up.

    `seed` is None (from the operating system), an int of 0 or more, a sequence of them, or a
    `numpy.random.SeedSequence`, which mixes it. Threads may share it: each draw gets a run of its own.

    >>> Philox4x3210(1).state["counter"]
    0
    """

    def __init__(self, seed: Any = None):
        sequence = seed if isinstance(seed, np.random.SeedSequence) else np.random.SeedSequence(seed)
        low, high, stream = (int(word) for word in sequence.generate_state(3, np.uint32))
        self.seed_seq = self._seed_seq = sequence  # NumPy has both names, and dask reads the second
        self._state = rng.PhiloxState(high * _WORD + low, 0, stream)
        self._lock = new_lock()

    def reserve(self, blocks: int) -> rng.PhiloxState:
        """Reserves so many blocks for a draw, and returns the state of their first. Raises `CompileError` while `fuse`
        traces a function, which would give the same numbers in each call."""
        refuse_while_tracing(
            "random numbers would be drawn once, while the function is traced, and be the same in each call",
            "draw them outside and pass the array as an argument",
        )
        not_repeatable()  # the same launches again would draw the same numbers
        with self._lock:
            state = self._state
            self._state = rng.PhiloxState(state.key, (state.start + blocks) % (1 << 64), state.stream)
        return state

    @property
    def state(self) -> dict[str, Any]:
        """All that decides what comes next; a copy of it can be assigned.

        >>> a, b = Philox4x3210(1), Philox4x3210(2)
        >>> b.state = a.state
        >>> b.reserve(1) == a.reserve(1)
        True
        """
        key, counter, stream = self._state
        return {"bit_generator": "Philox4x32-10", "key": key, "counter": counter, "stream": stream}

    @state.setter
    def state(self, value: Any) -> None:
        if not isinstance(value, dict) or value.get("bit_generator") != "Philox4x32-10":
            raise ValueError(f"the state of a Philox4x3210 is what .state of another one gives, got {value!r}")
        with self._lock:
            self._state = rng.PhiloxState(*(operator.index(value[name]) for name in ("key", "counter", "stream")))

    def jumped(self, jumps: int = 1) -> Philox4x3210:
        """A new generator of the same key, `jumps` streams on: as if 2**96 blocks had been drawn each
        time."""
        result = Philox4x3210(self.seed_seq)
        key, start, stream = self._state
        result._state = rng.PhiloxState(key, start, (stream + operator.index(jumps)) % _WORD)
        return result

    def spawn(self, count: int) -> list[Philox4x3210]:
        """`count` new generators, independent of this one and of each other."""
        return [Philox4x3210(child) for child in self.seed_seq.spawn(count)]

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored, (self.seed_seq, self._state)


def _restored(sequence: Any, state: rng.PhiloxState) -> Philox4x3210:
    generator = Philox4x3210(sequence)
    generator._state = state
    return generator
