"""Placement data of a hypervisor: its traits, and its inventories besides CPUs, memory and disk."""

import structlog

from climate.cloud import CloudError, provided
from climate.cloud.openstack.http import Remote

OWN = "CUSTOM_RESERVATION_"
"""Prefix of the resource classes that reservations create."""

log = structlog.get_logger(__name__)


def capabilities(remote: Remote, provider: str) -> dict[str, str]:
    """Return the traits and amounts of a resource provider as capabilities; none if Placement does not answer."""
    path = f"/resource_providers/{provider}"
    try:
        traits = remote.get(f"{path}/traits", "placement")["traits"]
        inventories = remote.get(f"{path}/inventories", "placement")["inventories"]
    except CloudError as error:
        log.warning("host registered without traits: Placement unavailable", provider=provider, error=str(error))
        return {}
    amounts = {name: each["total"] - each.get("reserved", 0) for name, each in inventories.items()}
    return provided(traits, {name: count for name, count in amounts.items() if not name.startswith(OWN)})
