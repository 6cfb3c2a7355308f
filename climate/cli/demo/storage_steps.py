"""Steps of the demo with storage: reserved, attached to a server as a volume, deleted with its lease."""

from datetime import timedelta
from typing import TYPE_CHECKING

from climate.cli.dates import wire
from climate.cli.demo import lease_steps
from climate.cli.demo.actors import MARK, Play, require, status

if TYPE_CHECKING:
    from climate.cli.response_types.storage import StorageAllocation, StoragePool, Volume

POOL, CLASS, BACKEND = f"{MARK}disks", f"{MARK}disk", "local"
CAPACITY_GB, SIZE_GB = 2, 1
AHEAD, LENGTH = timedelta(seconds=2), timedelta(seconds=120)
"""Time until the lease of storage starts, and its length unless it is ended."""
VOLUMES = "/volume/v3/volumes/detail"


def storage_is_promised(play: Play) -> str:
    """1 GB of storage is promised to a lease, and no volume is there before its start"""
    pool = {"name": POOL, "storage_class": CLASS, "backend": BACKEND, "capacity_gb": CAPACITY_GB}
    made: StoragePool = play.admin.json("reservation", "POST", "/storage-pools", json=pool)["storage_pool"]
    start = play.member.now().replace(microsecond=0) + AHEAD
    wanted = {"size_gb": SIZE_GB, "storage_class": CLASS, "volumes": 1, "on_end": "delete"}
    body = {
        "name": f"{MARK}storage",
        "start_date": wire(start),
        "end_date": wire(start + LENGTH),
        "before_end_date": None,
        "events": [],
        "reservations": [{"resource_type": "storage:pool", **wanted}],
    }
    play.storage = play.member.json("reservation", "POST", "/leases", json=body)["lease"]
    require(play.storage["status"] == "PENDING", f"the lease is {play.storage['status']}")
    require(not _volumes(play), "a volume is there already")
    path = f"/storage-pools/{made['id']}/allocation"
    listed: StorageAllocation = play.admin.json("reservation", "GET", path)["allocation"]
    held = [one["size_gb"] for one in listed["reservations"] if one["lease_id"] == play.storage["id"]]
    require(held == [SIZE_GB], f"{held} GB of the pool are held for it")
    return f"PENDING, {SIZE_GB} of {CAPACITY_GB} GB of {POOL} held from {wire(start)} on"


def volume_is_attached(play: Play) -> str:
    """At its start there is a volume, and the first server gets it"""
    lease = lease_steps.settled_lease(play, play.storage["id"], "ACTIVE")
    late = lease_steps.finished_late(play, lease, "start_lease")
    require(late <= lease_steps.LATE, f"it was {late:.2f} s late")
    result = _volumes(play)
    require(len(result) == 1 and result[0]["size"] == SIZE_GB, f"its volumes are {[one['size'] for one in result]}")
    volume_id = str(result[0]["id"])
    body = {"volumeAttachment": {"volumeId": volume_id}}
    play.member.call("compute", "POST", f"/servers/{play.server}/os-volume_attachments", json=body)
    volume = play.until("the volume", lambda: _volumes(play)[0], lambda now: status(now) == "in-use")
    require(volume["attachments"][0]["server_id"] == play.server, "another server has it")
    attached = _attached(play)
    require(attached == [volume_id], f"the server has {attached}")
    return f"{SIZE_GB} GB, {late:.2f} s after the start; in-use by the server, as {volume['attachments'][0]['device']}"


def storage_goes(play: Play) -> str:
    """That lease is ended: the server goes on without the volume, which is gone"""
    lease_id = play.storage["id"]
    play.member.call("reservation", "PUT", f"/leases/{lease_id}", json={"end_date": "now"})
    lease = lease_steps.settled_lease(play, lease_id, "TERMINATED")
    late = lease_steps.finished_late(play, lease, "end_lease")
    require(not _volumes(play), "the volume is there still")
    attached = _attached(play)
    require(not attached, f"the server has {attached} still")
    require(status(play.server_now(play.server)) == "ACTIVE", "the server does not run any more")
    remove(play)
    return f"TERMINATED {late:.2f} s after its end, no volume is left, the server is ACTIVE; nothing of {POOL} is held"


def remove(play: Play) -> None:
    """Delete the demo's storage pool, which has no reservations any more."""
    for pool in play.admin.pages("reservation", "/storage-pools", "storage_pools"):
        if pool["name"] == POOL:
            play.admin.call("reservation", "DELETE", f"/storage-pools/{pool['id']}")


def _volumes(play: Play) -> "list[Volume]":
    """Return the volumes of the lease of storage."""
    client, reservation = play.member, str(play.storage["reservations"][0]["id"])
    listed: list[Volume] = client.body(client.request("GET", f"{client.root}{VOLUMES}"))["volumes"]
    return [one for one in listed if one["metadata"].get("reservation_id") == reservation]


def _attached(play: Play) -> list[str]:
    listed = play.member.json("compute", "GET", f"/servers/{play.server}/os-volume_attachments")
    return [str(one["volumeId"]) for one in listed["volumeAttachments"]]
