"""Mandatory filters of every scheduler: reservations, liveness and maintenance."""

from climate.compute.scheduler.filters.location import COMPUTE, RETRY
from climate.compute.scheduler.filters.reservation import RESERVATION

MANDATORY_FILTERS = (RESERVATION, RETRY, COMPUTE)
"""Filters that run first under the other schedulers; a forced host skips all but the reservation filter."""
