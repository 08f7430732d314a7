"""`DumpedArgument`: an argument of a recorded launch, with its elements before and after."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from ..dtypes import BY_NAME, DType
from ..lang.ir import ScalarType
from .record import scalar_value, storage_dtype

Elements = np.ndarray[Any, Any]


class DumpedArgument:
    """An argument of one launch. `facts` is its whole record; the usual ones are attributes: `name`, `index`,
    `direction`, `kind` ("array", "scalar", "constant", "address"), `dtype`, and of arrays `shape`, `strides`
    (bytes), `start_offset` (elements from the base), `contiguous`."""

    def __init__(self, row: dict[str, Any], data: Path):
        self.facts, self._data = row, data
        self.stages: dict[str, dict[str, Any]] = {}
        self.name, self.index, self.kind = row["parameter"], row["index"], row["kind"]
        self.direction = row["direction"]
        self._dtype: DType | None = BY_NAME.get(row.get("dtype", ""))  # None: a constant
        self.dtype: np.dtype[Any] | None = self._dtype.numpy if self._dtype is not None else None
        self.shape, self.strides = tuple(row.get("shape", ())), tuple(row.get("strides", ()))
        self.start_offset: int | None = row.get("start_offset")
        self.contiguous: bool | None = row.get("contiguous")

    def __repr__(self) -> str:
        kind = f"{self.dtype}{list(self.shape)}" if self.kind == "array" else f"{self.kind} {self.facts.get('value')}"
        return f"<{self.direction} {self.name}: {kind}, {' and '.join(self.stages)}>"

    @property
    def element(self) -> DType:
        """What the library knows about the `dtype` of an array or number."""
        assert self._dtype is not None, f"{self.name} is a {self.kind}"
        return self._dtype

    @property
    def before(self) -> Any:
        """What went in: an array, or the number of a scalar."""
        if self.kind == "scalar":
            return scalar_value(ScalarType(self.element), self.facts["bits"])
        return self._broadcast("before")

    @property
    def after(self) -> Elements | None:
        """What had come out."""
        return self._broadcast("after")

    @property
    def summary(self) -> dict[str, dict[str, Any]]:
        """Stage → `nan`, `inf` (how many), `min`, `max` (of the finite ones; None without one)."""
        return {stage: row["summary"] for stage, row in self.stages.items() if "summary" in row}

    def kept(self, stage: str) -> Elements:
        """The recorded elements of a stage, 1-D in C order: fewer than all if the dump's budget ended."""
        row = self.stages[stage]
        words = storage_dtype(self.element)
        count = row["size"] // words.itemsize
        elements = np.fromfile(self._data, words, count, offset=row["byte_offset"])
        if elements.size < count:
            raise ValueError(f"{self._data} ends inside argument {self.name!r} of launch {row['launch']}")
        return elements.astype(words.newbyteorder("="), copy=False).view(self.element.numpy)

    def stored(self, stage: str) -> Elements | None:
        """The elements of a stage with axes of stride 0 once; None unless all are there."""
        row = self.stages.get(stage)
        if row is None or self.kind != "array" or row.get("lost"):
            return None
        return self.kept(stage).reshape(row["stored_shape"])

    def _broadcast(self, stage: str) -> Elements | None:
        elements = self.stored(stage)
        return elements if elements is None or elements.shape == self.shape else np.broadcast_to(elements, self.shape)
