"""All public functions that take arrays against NumPy, by drawn calls: docs/design/differential.md."""

import inspect

from conftest import DEVICES
from differential.rows import ROWS
from differential.rows.excluded import EXCLUDED
from differential.run import check

import pyarray as pa
from pyarray.api.core.ufunc_functions import UFUNC_METHODS

# What is drawn here is a part, as each function needs kernels of its own; `make differential` runs more.
CALLS, EVERY = 700, 20
MODULES = {"": pa, "linalg.": pa.linalg, "fft.": pa.fft, "nn.": pa.nn, "quaternion.": pa.quaternion}


def public():
    """Names of all functions, methods, properties and operators."""
    for prefix, module in MODULES.items():
        names = getattr(module, "__all__", None) or [n for n in dir(module) if not n.startswith("_")]
        for name in names:
            thing = getattr(module, name)
            if callable(thing) and not inspect.isclass(thing):
                yield prefix + name
    yield from (f"ufunc.{method}" for method in UFUNC_METHODS)
    plain = set(dir(object)) - {"__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__"}
    plain |= {"__buffer__", "__release_buffer__"}  # the buffer protocol, which Python shows from 3.12 on
    for name in dir(pa.ndarray):
        if (name not in plain and not name.startswith("_")) or (
            name.startswith("__") and name not in plain and callable(getattr(pa.ndarray, name, None))
        ):
            yield f"ndarray.{name}"


def test_every_function_has_a_row_or_a_reason():
    rows = {row.name for row in ROWS}
    missing = sorted(set(public()) - rows - set(EXCLUDED))
    assert not missing, "add rows to tests/differential/rows, or reasons to excluded.py"


def test_no_reason_without_need():
    rows, names = {row.name for row in ROWS}, set(public())
    assert not sorted(rows & set(EXCLUDED))
    assert not sorted((rows | set(EXCLUDED)) - names)


def test_drawn_calls(device):
    rows = ROWS[DEVICES.index(device) :: EVERY]
    report = check(CALLS, device, seed=3, rows=rows, dtypes=1)
    assert report.calls == CALLS
    assert not report.differences, "\n".join(report.differences)
    assert sum(report.refused.values()) < CALLS / 10
