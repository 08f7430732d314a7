"""A pytest plugin: of the variants of a parametrised test, `make test` runs a part, and the others on the next days.

The numbers of a variant's values, the day's and the test's own are added, and a multiple of `TURNS` is due, or of the
number of values where there are fewer. So each test is run every day, each of its variants within `TURNS` days, and on
a day half of the tests that take a device alone run on each. What is marked `slow`, mostly for processes that it
starts or for many kernels, is run on one of `TURNS` days.

It is so for tests that compile kernels, and where the whole suite runs: tests that are named run whole, unless
PYARRAY_TEST_BY_TURN is set, and so does all in a long run, and what is marked `all_variants`, where one variant finds
what the others don't. PYARRAY_TEST_TURN names another turn than the day's.
"""

import os
import time
import zlib

PLACES = (
    "tests/api/", "tests/device/", "tests/interop/", "tests/lang/", "tests/unit/test_gemm", "tests/unit/test_sort",
)  # fmt: skip
TURNS = 16  # days within which every variant is run, and every slow test

# Workers find what the first process set, also when the day ends meanwhile.
TURN = int(os.environ.setdefault("PYARRAY_TEST_TURN", str(int(time.time() // 86400))))
# Which half is due of what is halved. In the next round it is the other one, for tests that run on one day of a round.
HALF = (TURN + TURN // TURNS) % 2


def dimensions(variants):
    """Names of the parameters that have several values and vary by themselves, of a function's variants: which value
    each parameter has, by number. Names of one `parametrize` vary together."""
    columns = {tuple(v[name] for v in variants): name for name in variants[0]}
    return [name for column, name in columns.items() if len(set(column)) > 1]


def due_variants(function, variants, turn, slow=False):
    """Which variants of a test are run in that turn, as a list of bools: at least one, but of a slow test."""
    names = dimensions(variants)
    sums = [sum(variant[name] for name in names) for variant in variants]
    parts = TURNS if slow else min(TURNS, len(set(sums)))
    offset = turn + zlib.crc32(function.encode())
    due = [(number + offset) % parts == 0 for number in sums]
    return due if slow or any(due) else [k == offset % len(sums) for k in range(len(sums))]


def due_items(items, turn):
    """(item, whether it is run in that turn) of the tests that take turns."""
    tests = {}
    for item in items:
        slow = bool(item.get_closest_marker("slow"))
        varies = item.nodeid.startswith(PLACES) and hasattr(item, "callspec")
        if slow or (varies and not item.get_closest_marker("all_variants")):
            tests.setdefault((item.nodeid.partition("[")[0], slow), []).append(item)
    for (function, slow), variants in tests.items():
        indices = [item.callspec.indices if hasattr(item, "callspec") else {} for item in variants]
        yield from zip(variants, due_variants(function, indices, turn, slow), strict=True)


def pytest_collection_modifyitems(config, items):
    from strategies import TIMES

    named = config.args_source is not config.ArgsSource.TESTPATHS or config.option.keyword
    if TIMES > 1 or (named and "PYARRAY_TEST_BY_TURN" not in os.environ):
        return
    left_out = {item for item, is_due in due_items(items, TURN) if not is_due}
    config.hook.pytest_deselected(items=[item for item in items if item in left_out])
    items[:] = [item for item in items if item not in left_out]
