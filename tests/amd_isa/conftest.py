import pytest

from .tables import TARGETS


@pytest.fixture(params=TARGETS)
def target(request):
    return request.param
