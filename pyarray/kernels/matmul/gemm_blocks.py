"""Block sizes of matrix products on CPUs, which the tuner chooses."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from ...array import ndarray
from ...tune.config import Config
from ...tune.library import LibraryTuner
from ...tune.tuning_key import digest_of

# depth of a panel, rows and columns of a tile; 0: pa_gemm.h's default for the type and the vectors
DEFAULT = Config(kc=0, mc=0, nc=0)
CANDIDATES = (
    DEFAULT,
    *(Config(kc=kc, mc=mc, nc=nc) for kc, mc in ((256, 144), (256, 240), (384, 96), (384, 168), (512, 72),
                                                 (512, 120)) for nc in (256, 512)),
)  # fmt: skip


# By the function, which gives one text for good.
@functools.cache
def tuner(text: Callable[[], str]) -> LibraryTuner:
    """The tuner of all types; `text()` is the text of one."""
    return LibraryTuner("matmul", CANDIDATES, lambda: digest_of(text()))


def tuning_key(a: ndarray, c: ndarray, epilogue: bool) -> dict[str, Any]:
    """The dtype, sizes rounded up to powers of two, whether there is a batch, and an epilogue."""
    m, n, k = c._shape[-2], c._shape[-1], a._shape[-1]
    sizes = {name: (size - 1).bit_length() for name, size in (("m", m), ("n", n), ("k", k))}
    return {"dtype": a._dtype.name, **sizes, "one": c._size == m * n, "last": epilogue}
