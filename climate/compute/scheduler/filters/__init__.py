"""The filters, in the order in which they run: each a function over the columns that answers who stays."""

from collections.abc import Callable

from climate.compute.request import Placement
from climate.compute.scheduler.filters.capacity import enough_disk, enough_ram, enough_vcpus
from climate.compute.scheduler.filters.place import in_zone, not_tried_yet, service_up
from climate.compute.scheduler.filters.reservation import in_reservation
from climate.compute.scheduler.snapshot import Hosts, Mask

Filter = Callable[[Hosts, Placement], Mask]

RESERVATION: tuple[str, Filter] = ("reservation", in_reservation)
"""Never skipped: not even an administrator's forced host makes a way into another's reservation."""

FILTERS: tuple[tuple[str, Filter], ...] = (
    RESERVATION,
    ("retry", not_tried_yet),
    ("availability zone", in_zone),
    ("compute", service_up),
    ("ram", enough_ram),
    ("vcpus", enough_vcpus),
    ("disk", enough_disk),
)
