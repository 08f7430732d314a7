"""Files of arrays: NumPy's formats, read and written by NumPy; elements go through the host.

NumPy has no bfloat16 and float8: the file of a bfloat16 array says two bytes without a meaning (`<V2`), that of
float8_e4m3fn one (`<V1`), as the files of `ml_dtypes` do, and `load` takes those for these types. Files have no name
for float8_e5m2.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from ...array import ndarray
from ...array_convert import asarray, asnumpy
from ...driver.base import get_device
from ...dtypes import asdtype, bfloat16, float8_e4m3fn, float8_e5m2
from ...typing import ArrayLike, DeviceLike, DTypeLike, FileLike

__all__ = [
    "Archive", "fromfile", "fromstring", "genfromtxt", "load", "loadtxt", "save", "savetxt", "savez",
    "savez_compressed",
]  # fmt: skip

_BYTES: dict[Any, Any] = {bfloat16.numpy: np.dtype("V2"), float8_e4m3fn.numpy: np.dtype("V1")}
_MEANINGS = {plain: dtype for dtype, plain in _BYTES.items()}


def save(file: FileLike, arr: ArrayLike) -> None:
    """Writes one array as `.npy`, which is appended to a name that lacks it. `file` is a name, a path or an
    open binary file.

    >>> import io, pyarray as pa
    >>> pa.save(file := io.BytesIO(), pa.arange(3)); _ = file.seek(0)
    >>> pa.load(file).tolist()
    [0, 1, 2]
    """
    np.save(file, _host(arr), allow_pickle=False)


def savez(file: FileLike, /, *args: Any, **arrays: Any) -> None:
    """Writes arrays as one `.npz`: by their keywords, others as arr_0, arr_1 ...

    >>> import io, pyarray as pa
    >>> pa.savez(file := io.BytesIO(), pa.arange(3), y=pa.ones(2)); _ = file.seek(0)
    >>> with pa.load(file) as archive: archive.files, archive["y"].tolist()
    (['y', 'arr_0'], [1.0, 1.0])
    """
    _write(np.savez, file, args, arrays)


def savez_compressed(file: FileLike, /, *args: Any, **arrays: Any) -> None:
    """`savez`, compressed.

    >>> import io, pyarray as pa
    >>> pa.savez_compressed(file := io.BytesIO(), x=pa.arange(3)); _ = file.seek(0)
    >>> pa.load(file)["x"].tolist()
    [0, 1, 2]
    """
    _write(np.savez_compressed, file, args, arrays)


def _write(writer: Any, file: FileLike, args: tuple[Any, ...], arrays: dict[str, Any]) -> None:
    writer(file, *map(_host, args), **{name: _host(a) for name, a in arrays.items()}, allow_pickle=False)


def _host(a: Any) -> np.ndarray[Any, Any]:
    values = asnumpy(a)
    if values.dtype == float8_e5m2.numpy:
        raise ValueError(
            "NumPy's files have no name for float8_e5m2; save a.view('uint8'), and view what is loaded as 'float8_e5m2'"
        )
    plain = _BYTES.get(values.dtype)
    return values if plain is None else values.view(plain)


def load(file: FileLike, mmap_mode: Any = None, *, device: DeviceLike = None) -> Any:
    """The array of an `.npy` file on `device`, or an `Archive` of an `.npz`, whose arrays are read when they
    are asked for.

    With `mmap_mode` ("r", "r+", "c", "w+") a CPU array is the file's own memory, not read at once. Raises
    `FileNotFoundError`, and `ValueError` for what is no such file, holds Python objects, or can't be mapped.

    >>> pa.load("nowhere.npy")
    Traceback (most recent call last):
    FileNotFoundError: ...
    """
    target = get_device(device)
    if mmap_mode is not None and target.code != 0:
        raise ValueError(f"load(): a file is mapped into the memory of the CPU, not of {target}; leave mmap_mode out")
    loaded = np.load(file, mmap_mode=mmap_mode, allow_pickle=False)
    return Archive(loaded, target) if isinstance(loaded, np.lib.npyio.NpzFile) else _array(loaded, target)


def _array(values: Any, device: Any) -> ndarray:
    plain = np.asarray(values)
    meant = _MEANINGS.get(plain.dtype)
    return asarray(plain if meant is None else plain.view(meant), device=device)


class Archive(Mapping[str, ndarray]):
    """The arrays of an `.npz` file by name. It keeps the file open until `close`, or the end of a `with`."""

    def __init__(self, archive: Any, device: Any):
        self._archive, self._device = archive, device

    @property
    def files(self) -> list[str]:
        """The names."""
        return list(self._archive.files)

    def __getitem__(self, name: str) -> ndarray:
        return _array(self._archive[name], self._device)

    def __iter__(self) -> Iterator[str]:
        return iter(self._archive.files)

    def __len__(self) -> int:
        return len(self._archive.files)

    def close(self) -> None:
        """Closes the file."""
        self._archive.close()

    def __enter__(self) -> Archive:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def loadtxt(file: FileLike, dtype: DTypeLike = "float64", *, device: DeviceLike = None, **options: Any) -> ndarray:
    """Numbers of a text file, a row per line: `numpy.loadtxt`, with its options.

    >>> import io, pyarray as pa
    >>> pa.loadtxt(io.StringIO("1 2\\n3 4")).tolist()
    [[1.0, 2.0], [3.0, 4.0]]
    """
    return asarray(np.loadtxt(file, dtype=asdtype(dtype).numpy, **options), device=device)


def savetxt(file: FileLike, x: ArrayLike, **options: Any) -> None:
    """Writes a 1-D or 2-D array as text: `numpy.savetxt`, with its options.

    >>> import io, pyarray as pa
    >>> pa.savetxt(file := io.StringIO(), pa.eye(2), fmt="%d"); file.getvalue()
    '1 0\\n0 1\\n'
    """
    np.savetxt(file, asnumpy(x), **options)


def genfromtxt(file: FileLike, dtype: DTypeLike = "float64", *, device: DeviceLike = None, **options: Any) -> ndarray:
    """Numbers of a text file with missing ones, which are NaN: `numpy.genfromtxt`, with its options.

    >>> import io, pyarray as pa
    >>> pa.genfromtxt(io.StringIO("1,2\\n3,"), delimiter=",").tolist()
    [[1.0, 2.0], [3.0, nan]]
    """
    return asarray(np.genfromtxt(file, dtype=asdtype(dtype).numpy, **options), device=device)


def fromfile(
    file: FileLike,
    dtype: DTypeLike = "float64",
    count: int = -1,
    sep: str = "",
    offset: int = 0,
    *,
    device: DeviceLike = None,
) -> ndarray:
    """`count` elements (-1: all) of a file without a header, from byte `offset` on; with `sep` numbers of
    text. What `a.tofile` writes. Raises what `numpy.fromfile` raises.

    >>> import tempfile, pyarray as pa
    >>> with tempfile.TemporaryFile() as file:
    ...     pa.arange(3).tofile(file); _ = file.seek(0)
    ...     pa.fromfile(file, dtype="int64").tolist()
    [0, 1, 2]
    """
    kind = asdtype(dtype).numpy
    return asarray(np.fromfile(file, dtype=kind, count=count, sep=sep, offset=offset), device=device)


def fromstring(
    string: str, dtype: DTypeLike = "float64", count: int = -1, *, sep: str, device: DeviceLike = None
) -> ndarray:
    """Numbers of a text with `sep` between them. Raises `ValueError` for other text.

    >>> pa.fromstring("1 2", sep=" ").tolist()
    [1.0, 2.0]
    """
    return asarray(np.fromstring(string, dtype=asdtype(dtype).numpy, count=count, sep=sep), device=device)
