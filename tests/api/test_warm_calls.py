"""Warm and captured calls of all public functions give what cold ones give: tests/warm_calls."""

import pytest
from conftest import DEVICES
from differential.rows import ROWS
from differential.rows.base import Row, dtypes_of
from strategies import TIMES
from test_differential import public
from warm_calls.rows import FURTHER, OMITTED
from warm_calls.run import ALL, TABLES, check

# The functions of test_differential, whose kernels are compiled for that test already, and some of the others; all in a
# long run.
CALLS, EVERY = 1500, 20


def test_every_function_has_a_row_or_a_reason():
    rows = {row.name for row in ALL}
    missing = sorted(set(public()) - rows - set(OMITTED))
    assert not missing, "add rows to tests/warm_calls/rows.py, or reasons"
    assert not sorted(rows & set(OMITTED))
    assert not sorted(set(OMITTED) - set(public()))


def test_drawn_calls(device):
    turn, calls = DEVICES.index(device), CALLS * TIMES
    rows = ALL if TIMES > 1 else [*ROWS[turn::EVERY], *FURTHER[turn::EVERY]]
    report = check(calls, device, seed=3, rows=rows, dtypes=1)
    assert report.calls >= calls
    assert not report.differences, "\n".join(report.differences)
    assert sum(report.refused.values()) < report.calls / 5
    assert not report.unstable


# What wrong plans do, that are looked up by less than a result depends on, or keep more than they may.


def new_table():
    TABLES.append({})
    return TABLES[-1]


def by(key):
    """A plan keeps facts of the first call with this key."""
    table = new_table()
    return lambda x, y, n: (x + y, *table.setdefault(key(x, y, n), (x is y, x.dtype, x.strides, n)))


def that_keeps_operands():
    table = new_table()
    return lambda x, y, n: table.setdefault(n, x).shape


def that_writes_into_its_last_result():
    table = new_table()

    def call(x, y, n):
        result = table.setdefault((x.shape, y.shape, x.dtype, y.dtype, n), x + y)
        result[...] = x + y
        return result

    return call


WRONG = {
    "numbers": by(lambda x, y, n: (x is y, x.dtype, x.strides)),
    "equal numbers of other types": by(lambda x, y, n: (x is y, x.dtype, x.strides, n)),
    "dtypes": by(lambda x, y, n: (x is y, x.strides, n, type(n))),
    "strides": by(lambda x, y, n: (x is y, x.dtype, n, type(n))),
    "operands that are the same": by(lambda x, y, n: (x.dtype, x.strides, n, type(n))),
    "operands that are kept": that_keeps_operands(),
    "results that are changed": that_writes_into_its_last_result(),
}


def drawn(d):
    shape = d.shape(2, 2)
    return (d.array(shape, values="few", ours=True), d.array(shape, values="few", ours=True), d.integer(0, 2)), {}


def differences(call, families):
    row = Row("a function", drawn, dtypes_of("if"), "exact", call, call)
    return check(families * 25, "cpu", seed=1, rows=[row], dtypes=3).differences


@pytest.mark.parametrize("name", WRONG)
def test_wrong_plans_are_found(name):
    assert differences(WRONG[name], 25)


@pytest.mark.slow
def test_nothing_is_found_where_plans_are_right():
    assert not differences(by(lambda x, y, n: (x is y, x.dtype, x.strides, n, type(n))), 40)
