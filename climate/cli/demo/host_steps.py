"""Steps of the demo with one host: it sleeps until its lease needs it, and is recycled afterwards."""

from collections.abc import Iterable
from datetime import timedelta
from typing import TYPE_CHECKING

from climate.cli.dates import read, wire
from climate.cli.demo import lease_steps
from climate.cli.demo.actors import MARK, Play, Unseen, require, status

if TYPE_CHECKING:
    from climate.cli.response_types.hosts import HostEntry, Power, PowerReport
    from climate.cli.response_types.pools import Resident

HOST = "gpu-1"
"""Host that does not match the demo's first lease."""
REQUIREMENTS = '["==", "$gpu_count", "1"]'
POWER = {"driver": "memory", "settings": {"boot_seconds": 2, "shutdown_seconds": 1}, "watts": 400}
"""Power driver without a real machine."""
AHEAD, LENGTH = timedelta(seconds=24), timedelta(seconds=120)
"""Time ahead of the lease, so that the cloud notices the power off before the power on."""


def idle_host_goes_off(play: Play) -> str:
    """A host that nobody needs is switched off to save power"""
    play.admin.call("reservation", "PUT", _path(play, "power"), json=POWER)
    play.until(f"{HOST} to be switched off", lambda: "on" if _power(play)["on"] else "off", lambda now: now == "off")
    entry = _switched(play, on=False)
    if entry is None:
        raise Unseen("its history does not tell of it")
    return f"{HOST}, on the memory power driver, is off since {entry['at']}: {entry['body']['reason']}"


def sleeping_host_is_promised(play: Play) -> str:
    """It is promised all the same, to a lease that starts in 24 s"""
    start = play.member.now().replace(microsecond=0) + AHEAD
    reservation = {"resource_type": "physical:host", "min": 1, "max": 1, "hypervisor_properties": ""}
    body = {
        "name": f"{MARK}sleeping-host",
        "start_date": wire(start),
        "end_date": wire(start + LENGTH),
        "before_end_date": None,
        "events": [],
        "reservations": [{**reservation, "resource_properties": REQUIREMENTS, "on_end": "recycle"}],
    }
    play.night = play.member.json("reservation", "POST", "/leases", json=body)["lease"]
    numbers = {str(one["resource_id"]) for one in play.hosts_of(play.night["id"])}
    require(numbers == {str(play.hosts[HOST]["id"])}, f"hosts {sorted(numbers)} are held")
    call = next((one for one in play.night["events"] if one["event_type"] == "prepare_lease"), None)
    if call is None:
        raise Unseen("nothing in its plan has the host switched on")
    require(read(call["time"]) < start, f"the host is switched on at {call['time']} only")
    require(not _power(play)["on"], f"{HOST} is on already")
    return f"{HOST} is off, is switched on at {call['time']}, and lent at {wire(start)}"


def host_is_up_in_time(play: Play) -> str:
    """It was switched on ahead of that lease, and was up before the start"""
    lease_id, start = play.night["id"], read(play.night["start_date"])
    wait = AHEAD.total_seconds() + 30
    settled = ("ACTIVE", "ERROR")
    lease = play.until(
        "the start of its lease", lambda: play.lease_now(lease_id), lambda now: now["status"] in settled, wait
    )
    require(lease["status"] == "ACTIVE", f"the lease is {lease['status']}: {lease.get('status_reason')}")
    late = lease_steps.finished_late(play, lease, "start_lease")
    require(late <= lease_steps.LATE, f"the lease started {late:.2f} s late")
    entry = _switched(play, on=True)
    if entry is None:
        raise Unseen("its history does not tell that it came up")
    early = (start - read(entry["at"])).total_seconds()
    require(early >= 0, f"it came up {-early:.1f} s after the start")
    return f"{HOST} was up {early:.1f} s before the start, and was lent {late:.2f} s after it"


def hours_are_told(play: Play) -> str:
    """Report the hours that the host was off"""
    report: PowerReport = play.admin.json("reservation", "GET", "/power/report")["report"]
    hours = {host["name"]: host["hours_off"] for host in report["hosts"]}.get(HOST, 0)
    require(
        hours > 0 and report["kwh"] is not None, f"the report says {report['hours_off']} hours, {report['kwh']} kWh"
    )
    play.admin.call("reservation", "DELETE", _path(play, "power"))
    return f"{HOST} was off for {hours * 3600:.0f} s, and {report['kwh']} kWh are saved by now; it stays on from here"


def server_outlives_lease(play: Play) -> str:
    """The lease ends, and as was agreed its host waits for the server on it"""
    lease_id, reservation = play.night["id"], str(play.night["reservations"][0]["id"])
    play.guest = play.boot(play.member, "guest", play.flavor, {"reservation": reservation})
    play.active(play.guest)
    play.member.call("reservation", "PUT", f"/leases/{lease_id}", json={"end_date": "now"})
    lease_steps.settled_lease(play, lease_id, "TERMINATED")
    waiting = _in_pool(play, "recycling")
    if waiting is None:
        raise Unseen(f"{HOST} is not in the recycling pool")
    servers = waiting["servers"] or []
    seen = [f"{server['name']} ({server['status']})" for server in servers]
    require([server["id"] for server in servers] == [play.guest], f"it waits for {seen}")
    require(status(play.server_now(play.guest)) == "ACTIVE", "the server does not run any more")
    refused = play.refusal(play.member, "latecomer", {"reservation": reservation})
    return f"{HOST} recycles until {seen[0]} is gone; another boot there: {refused}"


def host_comes_home(play: Play) -> str:
    """Its owner deletes the server, and the host comes back"""
    play.member.call("compute", "DELETE", f"/servers/{play.guest}")
    play.until("that server to go", lambda: play.server_now(play.guest), lambda now: now is None)
    play.until(f"{HOST} to come back", lambda: _in_pool(play, "reservation"), lambda now: now is not None)
    require(HOST in play.aggregates().get("freepool", frozenset()), "it is not in freepool")
    story = [str(entry["body"]["pool"]) for entry in _history(play) if "pool" in entry["body"]]
    require(story[-3:] == ["lent", "recycling", "reservation"], f"its history is {', '.join(story)}")
    return f"its history ends with {', '.join(story[-3:])}; freepool holds {HOST}"


def _path(play: Play, what: str) -> str:
    return f"/os-hosts/{play.hosts[HOST]['id']}/{what}"


def _power(play: Play) -> "Power":
    power: Power = play.admin.json("reservation", "GET", _path(play, "power"))["power"]
    return power


def _history(play: Play) -> "list[HostEntry]":
    entries: list[HostEntry] = play.admin.json("reservation", "GET", _path(play, "history"))["history"]
    return entries


def _switched(play: Play, *, on: bool) -> "HostEntry | None":
    """Return when the host was last seen in its present power state."""
    entry = next((one for one in reversed(_history(play)) if one["kind"] == "HostSwitched"), None)
    return entry if entry and entry["body"]["on"] is on else None


def _in_pool(play: Play, pool: str) -> "Resident | None":
    listed: Iterable[Resident] = play.admin.pages("reservation", f"/pools/{pool}/hosts", "hosts")
    return next((one for one in listed if one["name"] == HOST), None)
