import os

import pytest
from strategies import TIMES
from targets.kernel_recorder import COMPILE
from variants_by_turn import TURN

from .tables import TARGETS


def pytest_ignore_collect(collection_path, config):
    """test_recorded.py is a step of its own, after what records kernels."""
    return True if collection_path.name == "test_recorded.py" and COMPILE not in os.environ else None


def targets():
    """That of HIP_EMULATOR_ISA; in `make test` one each day, since each has an executor to be compiled."""
    if "HIP_EMULATOR_ISA" in os.environ:
        return [os.environ["HIP_EMULATOR_ISA"]]
    return list(TARGETS) if TIMES > 1 else [list(TARGETS)[TURN % len(TARGETS)]]


@pytest.fixture(params=targets())
def target(request):
    return request.param
