"""Whether many calls give back what they took."""

import gc
import sys


def check_references(calls, held, times=20, blocks=200):
    """Asserts that `calls` leaves each object of `held` as many references as it had, and fewer than `blocks` new
    blocks of memory. It runs once before, since plans are made then and caches are filled."""
    calls()
    gc.collect()
    before, allocated = [sys.getrefcount(x) for x in held], sys.getallocatedblocks()
    for _ in range(times):
        calls()
    gc.collect()
    assert [sys.getrefcount(x) for x in held] == before
    assert sys.getallocatedblocks() - allocated < blocks
