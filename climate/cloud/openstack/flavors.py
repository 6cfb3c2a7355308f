"""Flavors of the cloud as projects may use them, and the private flavors of shared capacity."""

from climate.cloud import Capacity, CloudFlavor
from climate.cloud.openstack.http import Body, Clash, Remote, unless_gone
from climate.cloud.openstack.placement import OWN

PRIVATE = "os-flavor-access:is_public"
RESERVATION = "aggregate_instance_extra_specs:reservation"
"""Extra spec that restricts servers to the hosts of the aggregate with the same value."""

SLOT = f"resources:{OWN}"
"""Prefix of the extra specs for slots, which are inventories of Placement."""


def name_of(pool: str) -> str:
    """Return the name of the flavor of shared capacity."""
    return f"reservation:{pool}"


def create(remote: Remote, capacity: Capacity, slot: str | None) -> None:
    """Create the flavor of shared capacity with that size; replace one of another size.

    `slot` is the resource class of which each server takes a unit, if Placement counts them.
    """
    wanted = {"vcpus": capacity.vcpus, "ram": capacity.memory_mb, "disk": capacity.disk_gb}
    path = f"/flavors/{capacity.pool}"
    known = unless_gone(lambda: remote.get(path)["flavor"])
    if known is not None and any(known[key] != value for key, value in wanted.items()):
        remote.delete(path)
        known = None
    if known is None:
        named = {"id": capacity.pool, "name": name_of(capacity.pool), PRIVATE: False}
        remote.post("/flavors", {"flavor": named | wanted})
    counted = {f"resources:{slot}": "1"} if slot else {}
    for key in _extra_specs(remote, capacity.pool):
        if key.startswith(SLOT) and key not in counted:
            remote.delete(f"{path}/os-extra_specs/{key}")
    specs = {**capacity.extra_specs, RESERVATION: capacity.pool, **counted}
    remote.post(f"{path}/os-extra_specs", {"extra_specs": specs})


def admit(remote: Remote, flavor_id: str, project_id: str) -> None:
    """Let a project use a flavor."""
    try:
        remote.post(f"/flavors/{flavor_id}/action", {"addTenantAccess": {"tenant": project_id}})
    except Clash:  # access may exist already
        return


def expel(remote: Remote, flavor_id: str, project_id: str) -> None:
    """Remove a project's access to a flavor; do nothing if it has none."""
    unless_gone(lambda: remote.post(f"/flavors/{flavor_id}/action", {"removeTenantAccess": {"tenant": project_id}}))


def drop(remote: Remote, flavor_id: str) -> None:
    """Delete a flavor; do nothing if there is none."""
    unless_gone(lambda: remote.delete(f"/flavors/{flavor_id}"))


def find(remote: Remote, named: str, project_id: str) -> CloudFlavor | None:
    """Return the flavor of that id, else of that name, if the project may use it."""
    known = list(remote.each("/flavors/detail", is_public="None"))
    result = next((each for each in known if each["id"] == named), None)
    result = result or next((each for each in known if each["name"] == named), None)
    if result is None or not _usable(remote, result, project_id):
        return None
    return CloudFlavor(
        id=result["id"],
        name=result["name"],
        vcpus=result["vcpus"],
        memory_mb=result["ram"],
        disk_gb=result["disk"] + result.get("OS-FLV-EXT-DATA:ephemeral", 0),
        extra_specs=_extra_specs(remote, result["id"]),
    )


def _usable(remote: Remote, flavor: Body, project_id: str) -> bool:
    if flavor.get(PRIVATE, True):
        return True
    access = unless_gone(lambda: remote.get(f"/flavors/{flavor['id']}/os-flavor-access")["flavor_access"])
    return any(each["tenant_id"] == project_id for each in access or ())


def _extra_specs(remote: Remote, flavor_id: str) -> dict[str, str]:
    return dict(unless_gone(lambda: remote.get(f"/flavors/{flavor_id}/os-extra_specs")["extra_specs"]) or {})
