"""Body of a new flavor."""

from collections.abc import Callable, Mapping
from typing import Any

from api.compute import validation
from api.compute.microversion import since
from api.compute.openapi.body import Body, Key
from api.compute.openapi.shapes import flag, name, number, or_null
from api.compute.projects import flavor_body
from climate.compute.models.flavor import Flavor
from climate.domain.errors import InvalidInput

DESCRIPTION = or_null({"type": "string", "maxLength": 65535, "pattern": r"^[^\x00-\x08\x0b\x0c\x0e-\x1f\x7f]*$"})
ID = or_null({"type": "string", "maxLength": 255, "pattern": "^[A-Za-z0-9._-]([A-Za-z0-9. _-]*[A-Za-z0-9._-])?$"})

MOST_VCPUS, MOST_MB, MOST_GB = 1 << 16, 1 << 26, 1 << 20


def _count(lowest: int, highest: int) -> Callable[[Any, str], int]:
    return lambda value, field: validation.count(value, field, lowest, highest)


def _factor(value: Any, field: str) -> float:
    if value not in (1, 1.0, "1.0", "1"):
        raise InvalidInput(f"{field} must be 1.0, because network bandwidth is not limited")
    return 1.0


def _swap(value: Any, field: str) -> int:
    return validation.count(value or 0, field, 0, MOST_MB)


class NewFlavor(Body):
    """A new flavor; memory and swap in MB, disk in GB."""

    rxtx_factor = Key(_factor, {"enum": [1.0]}, default=1.0)
    id = Key(flavor_body.flavor_id, ID)
    name = Key(validation.name, name(), required=True)
    vcpus = Key(_count(1, MOST_VCPUS), number(1, MOST_VCPUS), required=True)
    ram_mb = Key(_count(1, MOST_MB), number(1, MOST_MB), key="ram", required=True)
    disk_gb = Key(_count(0, MOST_GB), number(0, MOST_GB), key="disk", required=True)
    ephemeral_gb = Key(
        _count(0, MOST_GB), number(0, MOST_GB), key="OS-FLV-EXT-DATA:ephemeral", named="ephemeral", default=0
    )
    swap_mb = Key(_swap, or_null(number(0, MOST_MB)), key="swap")
    is_public = Key(validation.flag, flag(), key="os-flavor-access:is_public", named="is_public", default=True)
    description = Key(flavor_body.description, DESCRIPTION)


NEW = NewFlavor()
WITHOUT_DESCRIPTION = NewFlavor(exclude=("description",))
"""The body below 2.55, which has no description."""


def flavor(body: Mapping[str, Any]) -> Flavor:
    """Return a new flavor; InvalidInput."""
    found = (NEW if since(55) else WITHOUT_DESCRIPTION).read(body)
    return Flavor(**{name: value for name, value in found.items() if name != "rxtx_factor"})
