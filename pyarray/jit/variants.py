"""The variants of one kernel: found by key, bounded in number.

The dispatcher reads `table` and nothing else, so that a hit costs one look-up and keeps no record. When
`table` is full it becomes the older generation, and the older one is dropped. A variant of the older generation
comes back at its next launch, by one miss of the dispatcher.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from .._core import VariantTable
from ..driver.base import Device

if TYPE_CHECKING:
    from ..lang.pipeline import Program
    from .compile import Artifact

MAX_VARIANTS = 256  # of a generation. One costs some 20 kB: text, tree of sites, launcher, the loaded module


class Origin(NamedTuple):
    """What a binary was made for: kind of device, `Driver.target` and `Driver.machine`, and by which compiler."""

    device: str
    target: str
    machine: str
    toolchain: str


@dataclass(frozen=True, eq=False)
class Variant:
    """A kernel compiled for one set of types: the program it was made from, its artifact, its launcher; its
    own compiler flags, and whether it checks bounds. `key` names what it was compiled for, axis by axis; `pytree` and
    `types` are those of its arguments and their leaves. A `TextKernel` has none of the three."""

    program: Program
    artifact: Artifact
    launch: Callable[..., Any]
    device: Device
    flags: tuple[str, ...]
    checked: bool
    key: Any = None  # explain.CacheKey
    pytree: Any = None  # pytree.Pytree
    types: tuple[Any, ...] = ()

    @property
    def leaf_types(self) -> dict[str, Any]:
        """Types of the leaves by name, of those too that get no slots."""
        return dict(self.program.params) if self.pytree is None else self.pytree.named(self.types)

    @property
    def returns_failures(self) -> bool:
        """Whether its launches do: those of debug mode, and those that test assertions without it."""
        return self.checked or self.program.checked

    @property
    def origin(self) -> Origin:
        driver = self.device.driver
        return Origin(self.device.kind, driver.target(), driver.machine(), driver.compiler().fingerprint)


class Variants:
    """Callers hold the kernel's lock, except to read `table`."""

    def __init__(self, most: int = MAX_VARIANTS):
        self.most = most
        self.table = VariantTable()
        # By `TreeDef.key`, as `table`: mode, structure, and types of the leaves with all that is compiled in.
        self._older: dict[Any, Callable[..., Any]] = {}
        self._by_launch: dict[Callable[..., Any], Variant] = {}

    def __len__(self) -> int:
        return len(self._by_launch)

    def __iter__(self) -> Iterator[Variant]:
        """In the order in which they were made."""
        return iter(list(self._by_launch.values()))

    def find(self, key: Any) -> Variant | None:
        """The variant of `key`, which counts as used."""
        launch = self.table.get(key)
        if launch is None:
            launch = self._older.pop(key, None)
            if launch is None:
                return None
            self._put(key, launch)
        return self._by_launch[launch]

    def has(self, key: Any) -> bool:
        """Whether there is one, without using it."""
        return key in self.table or key in self._older

    def add(self, key: Any, variant: Variant) -> None:
        """A new variant. Whoever finds a launcher also finds what it was made from."""
        self._by_launch[variant.launch] = variant
        self._put(key, variant.launch)

    def _put(self, key: Any, launch: Callable[..., Any]) -> None:
        if len(self.table) >= self.most:
            for dropped in self._older.values():
                del self._by_launch[dropped]
            self._older = dict(self.table.items())
            self.table.clear()  # the very table that the dispatcher reads
        self.table.put(key, launch)

    def clear(self) -> None:
        """Drop all."""
        self.table.clear()
        self._older = {}  # of the same keys as `table`
        self._by_launch.clear()
