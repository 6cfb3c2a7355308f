"""What holds under every scheduler: nobody lands on a node that is kept, lent to others, or not there."""

from climate.compute.scheduler.filters.location import COMPUTE, RETRY
from climate.compute.scheduler.filters.reservation import RESERVATION

STANDING = (RESERVATION, RETRY, COMPUTE)
"""The first filters of the schedulers beside the filter scheduler; a forced host skips all but that of reservations."""
