"""Search for cycles of garbage in a process that answers requests."""

import gc

COLLECTIONS = (10_000, 20, 50)
"""Thresholds of `gc.set_threshold`. With Python's own, the collector takes half of the time of a list of 10,000 leases,
whose objects are all alive.
"""


def tune_gc() -> None:
    """Search rarely, and never among the objects that are there now.

    An application has some 300,000 of them. A search of all would delay a request by up to half a second.
    """
    gc.set_threshold(*COLLECTIONS)
    gc.collect()
    gc.freeze()
