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


def dimensions(variants):
    """Names of the parameters that have several values and vary by themselves, of a function's variants: which value
    each parameter has, by number. Names of one `parametrize` vary together."""
    columns = {tuple(v[name] for v in variants): name for name in variants[0]}
    return [name for column, name in columns.items() if len(set(column)) > 1]


def is_due(numbers, turn):
    """Whether a combination is run in that turn: `numbers` are those of its values in each dimension."""
    return len(numbers) < 2 or (sum(numbers) + turn) % 2 == 0


def pytest_collection_modifyitems(config, items):
    from strategies import TIMES

    named = config.args_source is not config.ArgsSource.TESTPATHS or config.option.keyword
    if TIMES > 1 or (named and "PYARRAY_TEST_BY_TURN" not in os.environ):
        return
    variants = {}
    for item in items:
        if item.nodeid.startswith(FOLDERS) and hasattr(item, "callspec"):
            variants.setdefault(_function(item), []).append(item.callspec.indices)
    names = {function: dimensions(of_function) for function, of_function in variants.items()}
    due, left_out = [], []
    for item in items:
        numbers = [item.callspec.indices[name] for name in names.get(_function(item), ())]
        (due if is_due(numbers, TURN) else left_out).append(item)
    items[:] = due
    config.hook.pytest_deselected(items=left_out)


def _function(item):
    return item.nodeid.partition("[")[0]
