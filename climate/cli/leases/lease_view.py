"""A lease as its owner asks about it: state, time left, what comes next, hosts, and servers with addresses."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from climate.cli.dates import duration, instant
from climate.cli.errors import Failure
from climate.cli.leases import sharing_options

if TYPE_CHECKING:
    from climate.cli.connection.session import Session
    from climate.cli.response_types.leases import HeldReservation, Lease, LeaseHost, LeaseServer, Waiting
    from climate.cli.response_types.servers import Server

NEXT = {
    "start_lease": "it starts",
    "before_end_lease": "its owner is reminded of the end",
    "end_lease": "it ends, and its resources are released",
}
"""Type of an event -> sentence part; other events have their own type."""

UNITS = {"vcpus": "{} vCPUs", "memory_mb": "{} MB memory", "local_gb": "{} GB disk", "availability_zone": "zone {}"}
"""Property of every host -> text."""


def fields(
    lease: "Lease", hosts: "Sequence[LeaseHost] | None", addresses: Mapping[str, str], now: datetime
) -> dict[str, object]:
    """Return the fields of a lease for a table; `addresses` are those of servers by their ids."""
    return {
        "name": lease.get("name"),
        "id": lease.get("id"),
        "status": lease.get("status"),
        "reason": lease.get("status_reason"),
        "degraded": "yes: it lacks promised hosts" if lease.get("degraded") else None,
        "left": time_left(lease, now),
        "next": following(lease, now),
        "start_date": lease.get("start_date"),
        "end_date": lease.get("end_date"),
        "hold_until": lease.get("hold_until"),
        "waiting": waiting(lease),
        "hosts": [f"{host['name']}  {described(host)}".rstrip() for host in hosts or ()],
        "servers": _servers(hosts or (), addresses),
        "reservations": list(map(_reservation, lease.get("reservations") or ())),
        "shared_with": sharing_options.sharing_lines(lease) or None,
        "parent": _parent(lease),
        "subleases": _subleases(lease) or None,
        "project_id": lease.get("project_id"),
        "user_id": lease.get("user_id"),
        "created_at": lease.get("created_at"),
    }


def _parent(lease: "Lease") -> str | None:
    """Return the lease of which a sub-lease has its hosts."""
    known = lease.get("parent")
    return f"{known['lease_id']}  of project {known['project_id']}" if known else None


def _subleases(lease: "Lease") -> list[str]:
    return [f"{one['id']}  {one['hosts']} x physical:host" for one in lease.get("subleases") or ()]


def waiting(lease: "Lease") -> str | None:
    """Return the place of a lease in the waiting list, and its estimate."""
    known = lease.get("waiting")
    if not known:
        return None
    place = f"place {known['place']}, " if known.get("place") else ""
    return f"{place}until {_time_text(known['until'])}{_estimate(known)}"


def _estimate(known: "Waiting") -> str:
    if estimate := known.get("estimate"):
        return f"; it would fit from {_time_text(estimate)}"
    late = known.get("fits_from")
    return f"; it would fit from {_time_text(late)}, too late" if late else ""


def _time_text(time: str) -> str:
    return f"{time[:19].replace('T', ' ')} UTC"


def list_row(lease: "Lease") -> dict[str, object]:
    """Return a lease for a list, with its place in the waiting list in one cell."""
    waits = lease.get("waiting")
    place = waits.get("place") if waits else None
    return {**lease, "waiting": None if place is None else f"place {place}"}


def time_left(lease: "Lease", now: datetime) -> str | None:
    """Return the time until the end of a lease that runs."""
    end = instant(lease.get("end_date"))
    if lease.get("status") != "ACTIVE" or end is None:
        return None
    return duration(end - now) if end > now else "nothing: it ends now"


def following(lease: "Lease", now: datetime) -> str | None:
    """Return what happens next to a lease, and when."""
    ahead = [
        (when, str(event["event_type"]))
        for event in lease.get("events") or ()
        if event.get("status") == "UNDONE" and (when := instant(event.get("time")))
    ]
    if lease.get("status") == "HELD":
        return "its owner confirms it, or the hold expires: `climate lease confirm`"
    if lease.get("waiting"):
        return "it gets its resources when some are free, or is deleted when the wait is over"
    if not ahead:
        return None
    when, kind = min(ahead, key=lambda event: (event[0], event[1] != "start_lease"))
    distance = f"in {duration(when - now)}" if when > now else "now"
    return f"{distance} {NEXT.get(kind, kind)}"


def described(host: "LeaseHost") -> str:
    """Return the properties of a host in one line."""
    properties = host.get("properties") or {}
    sizes = [text.format(properties[key]) for key, text in UNITS.items() if properties.get(key) is not None]
    return ", ".join([*sizes, *(f"{key}={value}" for key, value in properties.items() if key not in UNITS)])


def host_row(host: "LeaseHost") -> dict[str, object]:
    """Return a host with its properties and servers in one cell each."""
    servers = host.get("servers")
    said = None if servers is None else ", ".join(f"{server['name']} ({server['status']})" for server in servers)
    return {**host, "properties": described(host), "servers": said}


def addresses(session: "Session") -> dict[str, str]:
    """Return the addresses of the caller's servers by the ids of the servers; none without a compute service."""
    try:
        rows: list[Server] = list(session.client.pages("compute", "/servers/detail", "servers"))
    except Failure:
        return {}
    return {
        str(row["id"]): " ".join(entry["addr"] for entries in row["addresses"].values() for entry in entries)
        for row in rows
        if isinstance(row.get("addresses"), dict)
    }


def _servers(hosts: "Sequence[LeaseHost]", addresses: Mapping[str, str]) -> list[str]:
    """Return a line for each server on the hosts."""
    return [
        _server(server, addresses.get(server["id"], ""), host) for host in hosts for server in host.get("servers") or ()
    ]


def _server(server: "LeaseServer", address: str, host: "LeaseHost") -> str:
    return "  ".join(part for part in (server["name"], server["status"], address, f"on {host['name']}") if part)


def _reservation(one: "HeldReservation") -> str:
    count = one.get("max") or one.get("amount") or one.get("size_gb") or ""
    what = f"{count} x {one.get('resource_type')}" if count else str(one.get("resource_type"))
    what += ", preemptible" if one.get("preemptible") else ""
    taken = f"  hosts are taken at {one['preemption_at']}" if one.get("preemption_at") else ""
    return f"{one.get('id')}  {what}  {one.get('status')}{taken}"
