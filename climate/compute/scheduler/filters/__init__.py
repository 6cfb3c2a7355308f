"""Filters, in their default order."""

from climate.compute.scheduler.filters.affinity import APART, TOGETHER
from climate.compute.scheduler.filters.capabilities import COMPUTE_CAPABILITIES
from climate.compute.scheduler.filters.capacity import CORE, DISK, RAM
from climate.compute.scheduler.filters.images import IMAGE_PROPERTIES
from climate.compute.scheduler.filters.location import AVAILABILITY_ZONE, COMPUTE, RETRY
from climate.compute.scheduler.filters.reservation import RESERVATION

FILTERS = (
    RESERVATION,
    RETRY,
    AVAILABILITY_ZONE,
    RAM,
    DISK,
    COMPUTE,
    COMPUTE_CAPABILITIES,
    IMAGE_PROPERTIES,
    APART,
    TOGETHER,
)
"""Default filters of the filter scheduler, after ReservationFilter, which protects reserved nodes."""

WITH_CORES = (*FILTERS, CORE)
"""Default filters if CLIMATE_SCHEDULER_CORE_FILTER enables CoreFilter."""
