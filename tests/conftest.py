"""Settings of every test: a kernel cache of the session's own, hypothesis without deadlines, the devices that
are there."""

import os
import tempfile

import pytest
from hypothesis import HealthCheck, settings

# Before pyarray is imported. Tests never touch the user's cache; one that is named lives on between sessions.
if "PYARRAY_CACHE_DIR" not in os.environ:
    _own_cache = tempfile.TemporaryDirectory(prefix="pyarray-tests-")
    os.environ["PYARRAY_CACHE_DIR"] = _own_cache.name

# The first example of a test compiles kernels, so times say nothing.
settings.register_profile("pyarray", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("pyarray")

DEVICES = ["cpu"]


@pytest.fixture(params=DEVICES)
def device(request):
    """Each device that this machine has, by name."""
    return request.param
