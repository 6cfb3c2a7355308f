"""Main steps of the demo: a lease from its creation to its end, each verified through the API."""

import json
from collections.abc import Iterable
from datetime import timedelta
from typing import TYPE_CHECKING
from uuid import uuid4

from climate.cli import lookup
from climate.cli.dates import read, wire
from climate.cli.demo.actors import MARK, Play, Unseen, after, fault, present, require, status
from climate.cli.errors import CONFLICT, USAGE, Failure

if TYPE_CHECKING:
    from climate.cli.response_types.hosts import Host
    from climate.cli.response_types.leases import Lease, LeaseEntry
    from climate.cli.response_types.servers import Server

REQUIREMENTS = '["and", [">=", "$vcpus", "4"], [">", "$gpu_count", "1"]]'
AHEAD, LENGTH = timedelta(seconds=10), timedelta(seconds=150)
"""Time until the first lease starts, and its length unless it is ended."""
SLEEP, WAKE = timedelta(seconds=8), timedelta(seconds=8)
"""Time until the second server starts, and its run time."""
IMAGE = f"reserved_{MARK}sleeper"
"""Image of the second server, created by the default end action."""
EARLY, LATE = 3.0, 10.0
"""Seconds by which an action may be early, and late: a busy machine is slow, and nothing is wrong."""


def lease_is_promised(play: Play) -> str:
    """Two matching hosts are promised to a lease that starts in 10 s"""
    start = play.member.now().replace(microsecond=0) + AHEAD
    hosts = {"min": 2, "max": 2, "hypervisor_properties": "", "resource_properties": REQUIREMENTS}
    body = {
        "name": f"{MARK}hosts",
        "start_date": wire(start),
        "end_date": wire(start + LENGTH),
        "before_end_date": None,
        "events": [],
        "reservations": [{"resource_type": "physical:host", **hosts}],
    }
    headers = {"Idempotency-Key": str(uuid4())}
    play.lease = play.member.json("reservation", "POST", "/leases", json=body, headers=headers)["lease"]
    again = play.lease_now(play.lease["id"])
    require(again["status"] == "PENDING", f"the lease is {again['status']}")
    require(read(again["start_date"]) == start, f"it starts at {again['start_date']}")
    numbers = {str(one["resource_id"]) for one in play.hosts_of(play.lease["id"])}
    play.lent = frozenset(name for name, host in play.hosts.items() if str(host["id"]) in numbers)
    require(len(play.lent) == 2, f"hosts {sorted(numbers)} are held")
    for name in play.lent:
        host = play.hosts[name]
        require(int(host["vcpus"]) >= 4 and int(host["gpu_count"]) > 1, f"{name} does not match")
    return f"PENDING, {_names(play)} held from {wire(start)} to {wire(start + LENGTH)}"


def lease_starts(play: Play) -> str:
    """The lease goes PENDING, STARTING, ACTIVE on time"""
    lease_id, seen = play.lease["id"], ["PENDING"]

    def look() -> "Lease":
        lease = play.lease_now(lease_id)
        if seen[-1] != lease["status"]:
            seen.append(lease["status"])
        early = after(lease["start_date"], play.member.now())
        require(lease["status"] == "PENDING" or early > -EARLY, f"{lease['status']} {-early:.1f} s before its start")
        return lease

    wait = AHEAD.total_seconds() + 30
    lease = play.until("the start of the lease", look, lambda now: now["status"] in ("ACTIVE", "ERROR"), wait)
    late = finished_late(play, lease, "start_lease")
    if "STARTING" not in seen and _was_starting(play, lease):
        seen.insert(-1, "STARTING")
    require(seen == ["PENDING", "STARTING", "ACTIVE"], f"seen was {', '.join(seen)}")
    require(late <= LATE, f"it was {late:.2f} s late")
    pool = play.aggregates().get(play.reservation, frozenset())
    require(pool == play.lent, f"its pool holds {sorted(pool)}")
    return f"{', '.join(seen)}, {late:.2f} s after its start; its pool holds {_names(play)}"


def _history(play: Play, lease_id: str) -> "list[LeaseEntry]":
    entries: list[LeaseEntry] = play.member.json("reservation", "GET", f"/leases/{lease_id}/history")["history"]
    return entries


def _was_starting(play: Play, lease: "Lease") -> bool:
    """Return whether the journal has a time at which the lease was STARTING, which may be too short to see."""
    for entry in _history(play, lease["id"]):
        if entry["kind"] == "EventClaimed":
            query = {"at": wire(read(entry["at"]))}
            then: Lease = play.member.json("reservation", "GET", f"/leases/{lease['id']}", params=query)["lease"]
            return str(then["status"]) == "STARTING"
    return False


def finished_late(play: Play, lease: "Lease", kind: str) -> float:
    """Return the seconds from the due time of a lease's event to its end."""
    event = next(one for one in lease["events"] if one["event_type"] == kind)
    for entry in _history(play, lease["id"]):
        if entry["kind"] == "EventFinished" and entry["body"]["event_id"] == event["id"]:
            return (read(entry["at"]) - read(event["time"])).total_seconds()
    raise Unseen(f"{kind} of lease {lease['id']} is not finished: the lease is {lease['status']}")


def server_boots(play: Play) -> str:
    """A server boots on a host of the lease"""
    play.server = play.boot(play.member, "one", play.flavor, {"reservation": play.reservation})
    server = play.active(play.server)
    host = _host(play, play.server)
    require(host in play.lent, f"it is on {host}")
    return f"ACTIVE on {host}, one of {_names(play)}, with address {_address(server)}"


def _host(play: Play, server_id: str) -> str:
    return node_of(play.server_now(server_id, play.admin))


def node_of(server: "Server | None") -> str:
    """Return the node of a server, as administrators see it."""
    return str(server.get("OS-EXT-SRV-ATTR:hypervisor_hostname") if server else None)


def _address(server: "Server") -> str:
    addresses = [entry["addr"] for entries in server["addresses"].values() for entry in entries]
    require(bool(addresses), "the server has no address")
    return str(addresses[0])


def others_are_refused(play: Play) -> str:
    """Another project's boot with the same hint is refused"""
    if play.visitor is None:
        raise Unseen("there is no other project")
    return play.refusal(play.visitor, "intruder", {"reservation": play.reservation})


def no_hint_is_refused(play: Play) -> str:
    """The same boot without a hint is refused"""
    return play.refusal(play.member, "stray", {})


def sleeper_is_reserved(play: Play) -> str:
    """A second server is RESERVED, with an address, until its own lease starts"""
    start = play.member.now().replace(microsecond=0) + SLEEP
    params = {"name": f"{MARK}sleeper", "start": wire(start), "end": wire(start + WAKE)}
    hints = {"reserved": "True", "lease_params": json.dumps(params)}
    play.sleeper = play.boot(play.member, "sleeper", play.small, hints)
    settled = ("RESERVED", "ACTIVE", "ERROR")
    seen = play.until("the second server", lambda: play.server_now(play.sleeper), lambda now: status(now) in settled)
    server = present(seen)
    require(server["status"] == "RESERVED", f"it is {server['status']}: {fault(server)}")
    leases: Iterable[Lease] = play.member.pages("reservation", "/leases", "leases", {"name": params["name"]})
    play.sleeper_lease = lookup.only("lease", params["name"], leases)
    held = play.sleeper_lease["reservations"][0]
    require(held["resource_type"] == "virtual:instance", f"its lease holds a {held['resource_type']}")
    require(held["resource_id"] == play.sleeper, "its lease holds another server")
    return f"RESERVED with address {_address(server)}, its lease starts at {params['start']}"


def sleeper_wakes(play: Play) -> str:
    """It is woken at the start of its lease"""
    start = play.sleeper_lease["start_date"]

    def look() -> "Server | None":
        server = play.server_now(play.sleeper)
        early = -after(start, play.member.now())
        require(status(server) == "RESERVED" or early < EARLY, f"it is {status(server)} {early:.1f} s too early")
        return server

    wait = SLEEP.total_seconds() + 30
    server = play.until("the second server to wake", look, lambda now: status(now) not in ("RESERVED", "BUILD"), wait)
    require(status(server) == "ACTIVE", f"it is {status(server)}")
    lease = settled_lease(play, play.sleeper_lease["id"], "ACTIVE")
    late = finished_late(play, lease, "start_lease")
    require(late <= LATE, f"it was {late:.2f} s late")
    return f"ACTIVE {late:.2f} s after the start, and so is its lease"


def settled_lease(play: Play, lease_id: str, wanted: str) -> "Lease":
    """Return a lease once it has the expected status; Unseen if it is in ERROR."""
    lease = play.until("its lease", lambda: play.lease_now(lease_id), lambda now: now["status"] in (wanted, "ERROR"))
    require(lease["status"] == wanted, f"the lease is {lease['status']}: {lease.get('status_reason')}")
    return lease


def sleeper_goes(play: Play) -> str:
    """It is imaged and gone at the end of its lease"""
    lease_id, end = play.sleeper_lease["id"], play.sleeper_lease["end_date"]

    def look() -> "Server | None":
        server = play.server_now(play.sleeper)
        early = -after(end, play.member.now())
        require(server is not None or early < EARLY, f"it is gone {early:.1f} s too early")
        return server

    play.until("the second server to go", look, lambda now: now is None, WAKE.total_seconds() + 30)
    lease = settled_lease(play, lease_id, "TERMINATED")
    late = finished_late(play, lease, "end_lease")
    require(late <= LATE, f"it was {late:.2f} s late")
    images = [one for one in play.member.pages("image", "/v2/images", "images") if one["name"] == IMAGE]
    require(len(images) == 1 and images[0]["status"] == "active", f"its images are {[i['status'] for i in images]}")
    return f"404, {IMAGE} was made of it, its lease is TERMINATED {late:.2f} s after the end"


def lease_ends(play: Play) -> str:
    """The first lease is ended by its owner"""
    lease_id = play.lease["id"]
    try:
        play.member.call("reservation", "PUT", f"/leases/{lease_id}", json={"end_date": "now"})
    except Failure as failure:
        # On a very slow machine the lease may have ended by its end date.
        if failure.code not in (CONFLICT, USAGE):
            raise
    lease = settled_lease(play, lease_id, "TERMINATED")
    return f"TERMINATED, {finished_late(play, lease, 'end_lease'):.2f} s after its end"


def all_is_given_back(play: Play) -> str:
    """Its server is gone, its hosts are back"""
    play.until("the first server to go", lambda: play.server_now(play.server), lambda now: now is None)
    pools = play.until(
        "the hosts to be back", play.aggregates, lambda now: now.get("freepool", frozenset()) >= play.hosts.keys()
    )
    require(play.reservation not in pools, "its pool is still there")
    known: Iterable[Host] = play.admin.pages("reservation", "/os-hosts", "hosts")
    hosts = {host["hypervisor_hostname"] for host in known}
    require(hosts >= set(play.hosts), f"only {sorted(hosts)} are listed")
    return f"404; freepool holds {', '.join(sorted(pools['freepool']))}, pool {play.reservation[:8]}… is no more"


def _names(play: Play) -> str:
    return " and ".join(sorted(play.lent))
