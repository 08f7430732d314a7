"""A pytest plugin for a planted bug: finds in which turns of the tests' variants (tests/variants_by_turn.py) it is
found, of those in which the same dtypes are drawn as in this process (strategies.half_of), and ends when it is found in
all of them. Writes to the file that PYARRAY_TEST_FOUND names, a JSON object:
`turns`, those in which a test that failed is due; `failed`, the first of these tests; `running`, the turns of the test
that is running, which are found if the process crashes or hangs."""

import json
import os
from pathlib import Path

import pytest

from tests.variants_by_turn import TURN, TURNS, due_items

FOUND = "PYARRAY_TEST_FOUND"


def alike(turn):
    """The turns in which the same dtypes are drawn."""
    return range(turn % 2, TURNS, 2)


class Found:
    """What failed so far."""

    def __init__(self, path):
        self.path, self.due = Path(path), {}
        self.turns, self.failed, self.running = set(), "", []

    def write(self):
        found = {"turns": sorted(self.turns), "failed": self.failed, "running": self.running}
        self.path.write_text(json.dumps(found))

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items):
        for turn in alike(TURN):
            for item, is_due in due_items(items, turn):
                self.due.setdefault(item.nodeid, []).extend([turn] * is_due)

    def pytest_runtest_protocol(self, item):
        self.running = self.due.get(item.nodeid, list(alike(TURN)))
        self.write()

    def pytest_runtest_logreport(self, report):
        if report.failed:
            self.turns.update(self.running)
            self.failed = self.failed or report.nodeid
            self.write()

    def pytest_runtest_logfinish(self):
        if len(self.turns) == len(alike(TURN)):
            pytest.exit("found in every turn", returncode=1)


def pytest_configure(config):
    config.pluginmanager.register(Found(os.environ[FOUND]))
