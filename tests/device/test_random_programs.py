"""Random programs of all that the language has, against plain Python: `make random-programs` runs more."""

import os

import pytest
from random_programs.run import check

PROGRAMS = int(os.environ.get("PYARRAY_TEST_PROGRAMS", "8"))


@pytest.mark.parametrize("number", range(PROGRAMS))
def test_as_python(device, number):
    report = check([number], seed=0, device=device)
    assert not report.differences, report.differences[0]
