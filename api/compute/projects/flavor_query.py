"""Query string of a list of flavors."""

from collections.abc import Callable, Mapping

from flask import request

from api.compute import validation
from climate.compute.models.flavor import Flavor
from climate.domain.errors import InvalidInput

SORTS: Mapping[str, Callable[[Flavor], object]] = {
    "flavorid": lambda flavor: flavor.id,
    "id": lambda flavor: flavor.id,
    "name": lambda flavor: flavor.name,
    "memory_mb": lambda flavor: flavor.ram_mb,
    "root_gb": lambda flavor: flavor.disk_gb,
    "ephemeral_gb": lambda flavor: flavor.ephemeral_gb,
    "swap": lambda flavor: flavor.swap_mb,
    "vcpus": lambda flavor: flavor.vcpus,
    "is_public": lambda flavor: flavor.is_public,
}


def sorted_and_large(flavors: list[Flavor]) -> list[Flavor]:
    """Return the flavors that match the query string, sorted as it says."""
    least_ram, least_disk = (validation.count(request.args.get(key, "0"), key) for key in ("minRam", "minDisk"))
    key, direction = request.args.get("sort_key", "flavorid"), request.args.get("sort_dir", "asc")
    if key not in SORTS or direction not in ("asc", "desc"):
        raise InvalidInput(f"sort_key must be one of {', '.join(SORTS)}, and sort_dir asc or desc")
    large = [flavor for flavor in flavors if flavor.ram_mb >= least_ram and flavor.disk_gb >= least_disk]
    return sorted(large, key=lambda one: (SORTS[key](one), one.id), reverse=direction == "desc")
