"""Settings of every test: a kernel cache of the session's own, hypothesis without deadlines, the devices that are there."""

import os
import tempfile

import pytest
from hypothesis import HealthCheck, settings

# Before pyarray is imported. Tests never touch the user's cache; one that is named lives on between sessions.
_own_cache = None if "PYARRAY_CACHE_DIR" in os.environ else tempfile.TemporaryDirectory(prefix="pyarray-tests-")
if _own_cache is not None:
    os.environ["PYARRAY_CACHE_DIR"] = _own_cache.name

# The first example of a test compiles kernels, so times say nothing.
settings.register_profile("pyarray", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("pyarray")

DEVICES = ["cpu"]


@pytest.fixture(params=DEVICES)
def device(request):
    """Each device that this machine has, by name."""
    return request.param
