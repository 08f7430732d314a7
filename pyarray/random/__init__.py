"""Random numbers that are the same on every device: `default_rng(seed)` as in NumPy, on Philox 4x32-10.

A draw reserves a range of the generator's counter, and an element's value depends on its counter only: the same
seed and calls give the same bits on every device, whatever its threads do. (Numbers are not NumPy's for the
seed.) Floats too are the same bits, because they are made of nothing but + - * / and sqrt; parameters given
as arrays are multiplied and added as operators do.

>>> import pyarray as pa
>>> rng = pa.random.default_rng(7)
>>> rng.integers(1, 7, size=5).tolist()
[3, 1, 2, 5, 6]
"""

import sys as _sys

from ..api.core import missing_names as _absent
from ..docstrings import install as _document
from ..keywords import install as _install
from .bit_generator import Philox4x3210
from .generator import Generator, default_rng
from .legacy import *  # noqa: F403
from .legacy import RandomState as RandomState
from .legacy import __all__ as _older

__all__ = ["Generator", "Philox4x3210", "default_rng", *_older]

_install(globals())
_install(Generator)
_install(RandomState)
_document(globals())
_absent.list_public(_sys.modules[__name__])
