"""A pytest plugin: of a test with several parameters, `make test` runs every other combination, and the rest the next
day. The numbers of a combination's values add up to an even number one day, to an odd one the other: so each value of
each parameter (each function, type and device) is there every day, if another parameter has two values.

It is so for tests that compile kernels, and where the whole suite runs: tests that are named run whole, unless
PYARRAY_TEST_BY_TURN is set, and so does all in a long run. PYARRAY_TEST_TURN names another turn than the day's.
"""

import os
import time

FOLDERS = ("tests/api/", "tests/device/", "tests/interop/", "tests/lang/")

# Workers find what the first process set, also when the day ends meanwhile.
TURN = int(os.environ.setdefault("PYARRAY_TEST_TURN", str(int(time.time() // 86400))))


def is_due(indices, counts, turn):
    """Whether a combination is run in that turn: `indices` are the numbers of its values, `counts` how many there
    are."""
    varying = [k for k, n in zip(indices, counts, strict=True) if n > 1]
    return len(varying) < 2 or (sum(varying) + turn) % 2 == 0


def pytest_collection_modifyitems(config, items):
    from strategies import TIMES

    named = config.args_source is not config.ArgsSource.TESTPATHS or config.option.keyword
    if TIMES > 1 or (named and "PYARRAY_TEST_BY_TURN" not in os.environ):
        return
    values = {}  # of each parameter of each function, the numbers that there are
    for item in items:
        for name, k in _indices(item).items():
            values.setdefault((_function(item), name), set()).add(k)
    due, left_out = [], []
    for item in items:
        indices = _indices(item) if item.nodeid.startswith(FOLDERS) else {}
        counts = [len(values[_function(item), name]) for name in indices]
        (due if is_due(indices.values(), counts, TURN) else left_out).append(item)
    items[:] = due
    config.hook.pytest_deselected(items=left_out)


def _function(item):
    return item.nodeid.partition("[")[0]


def _indices(item):
    return item.callspec.indices if hasattr(item, "callspec") else {}
