"""Records host access to array memory; such calls cannot be replayed.

Host access is whatever reads or writes array memory without a launch that observers see: the host itself, a
driver's copy, an unobserved launch. A call with any of it is more than its observed launches, so `jit.replay`
can't repeat it. Code that accesses memory so sets `host_access.occurred`.
"""

from __future__ import annotations

import threading
from typing import Any

from .._core import host_access_occurred, set_host_access


class _HostAccess(threading.local):
    """Host access of this thread. `occurred`: there was some. `capture`: the capture that this thread is in, or
    None."""

    capture: Any = None  # jit.replay.Capture

    @property
    def occurred(self) -> bool:
        return host_access_occurred()

    @occurred.setter
    def occurred(self, value: bool) -> None:
        set_host_access(value)


host_access = _HostAccess()
