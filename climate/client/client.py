"""Requests of the Python client, each a method with typed values."""

import logging
from base64 import b64encode
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Self, TypedDict, TypeVar, Unpack
from urllib.parse import urlencode
from uuid import uuid4

from climate.cli import lookup
from climate.cli.connection import client as connection
from climate.cli.connection import clouds
from climate.cli.dates import wire
from climate.cli.errors import NOT_FOUND, Failure
from climate.cli.wait import PATIENCE, Goal, existing, poll
from climate.client.errors import InvalidRequest, translated
from climate.client.models import Availability, Hold, Lease, Offer, Series, Server
from climate.client.reservations import Repeat, Reservation
from climate.settings import environment

if TYPE_CHECKING:
    from climate.cli.connection.http_protocols import Sent
    from climate.cli.response_types import leases as lease_answers
    from climate.cli.response_types import servers as server_answers

log = logging.getLogger("climate.client")

T = TypeVar("T")

Progress = Callable[[str], None]
"""Called with the state of a resource that is waited for, each time that it is read."""

MINUTE = timedelta(minutes=1)
WEEK = timedelta(weeks=1)
HALF_HOUR = timedelta(minutes=30)

AFTER = ("ERROR", "TERMINATED")
"""Statuses from which a lease does not come back."""


class SearchOptions(TypedDict, total=False):
    """Further conditions of a search."""

    mode: Literal["first", "most", "longest", "at", "cheapest"]
    between: Sequence[Mapping[str, object]]
    """Windows like `{"days": ["mon"], "begin": "08:00", "end": "18:00", "zone": "Europe/Berlin"}`."""
    step: timedelta
    """Starts are multiples of it since 1970 in UTC; a minute by default."""
    offers: int
    """Maximum number of offers; 5 by default."""


class BootOptions(TypedDict, total=False):
    """Further properties of a server."""

    networks: Sequence[str]
    """Names or ids; by default the cloud chooses."""
    key_name: str
    user_data: bytes
    metadata: Mapping[str, str]
    availability_zone: str


def _quiet(state: str) -> None:
    """Ignore the state."""


def connect(
    cloud: str | None = None, *, environ: Mapping[str, str] | None = None, timeout: timedelta = MINUTE
) -> "Client":
    """Return the client of an entry of clouds.yaml; by default that of OS_CLOUD or of the OS_* variables.

    `timeout` is that of one request. The first request signs in. The logger `climate.client` gets warnings of answers,
    such as that a list leaves a lease out. Raise InvalidRequest if there is no such entry.
    """
    known = environment() if environ is None else environ
    with translated():
        entry = clouds.find(cloud, known, Path(known.get("CLIMATE_HOME", "var")))
    return Client(connection.Client(entry, timeout.total_seconds(), warn=log.warning))


@dataclass(frozen=True, slots=True)
class Client(AbstractContextManager["Client"]):
    """Client of one cloud, for one thread. As a context manager it closes its connections.

    Each method raises a ClientError for a refusal. Requests that create something carry an idempotency key, so that a
    repetition after a lost answer creates nothing twice.
    """

    http: connection.Client

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections; the next request opens new ones."""
        self.http.close()

    def find(
        self,
        *reservations: Reservation,
        duration: timedelta,
        earliest: datetime | None = None,
        within: timedelta = WEEK,
        **options: Unpack[SearchOptions],
    ) -> Availability:
        """Return times at which a lease with these reservations fits, best first, from `earliest` (now) on."""
        mode, step = options.get("mode", "first"), options.get("step", MINUTE)
        begin = _utc(earliest, "earliest") if earliest else self._now()
        body = {
            "reservations": list(reservations),
            "duration": int(duration.total_seconds()),
            "earliest": wire(begin) if earliest else "now",
            "latest": None if mode == "at" else wire(begin + within),
            "between": list(options.get("between", ())),
            "step": int(step.total_seconds()),
            "mode": mode,
            "offers": options.get("offers", 5),
        }
        return Availability.of(self._send("POST", "/availability", body))

    def hold(self, offer: Offer, name: str) -> Hold:
        """Hold the resources of an offer until the expiry of the hold."""
        return Hold.of(self._send("POST", "/holds", {"offer": offer.id, "name": name})["hold"])

    def renew(self, hold: Hold) -> Hold:
        """Prolong a hold; that is possible once."""
        return Hold.of(self._send("POST", f"/holds/{hold.id}/renew")["hold"])

    def release(self, hold: Hold) -> None:
        """Release what a hold has."""
        self._send("DELETE", f"/holds/{hold.id}")

    def create_lease(
        self,
        name: str,
        *reservations: Reservation,
        hold: Hold | None = None,
        start: datetime | None = None,
        end: datetime | None = None,
        duration: timedelta | None = None,
        key: str | None = None,
        **more: object,
    ) -> Lease:
        """Create a lease of a hold, or of reservations from `start` (now) to `end`, or for `duration`.

        `key` is the idempotency key: with the same key and arguments no second lease is created. `more` has further
        keys of the request.
        """
        if hold is not None:
            body: dict[str, object] = {"name": name, "hold": hold.id, **more}
        else:
            body = self._order(name, reservations, self._period(start, end, duration), more)
        return Lease.of(self._send("POST", "/leases", body, key or str(uuid4()))["lease"])

    def create_or_wait(
        self,
        name: str,
        *reservations: Reservation,
        start: datetime | None = None,
        end: datetime | None = None,
        duration: timedelta | None = None,
        until: datetime | None = None,
        key: str | None = None,
        **more: object,
    ) -> Lease:
        """Create a lease, which joins the waiting list if it does not fit: up to its start, or up to `until`."""
        wait = {"until": wire(_utc(until, "until"))} if until else {}
        body = self._order(name, reservations, self._period(start, end, duration), {**more, "wait": wait})
        return Lease.of(self._send("POST", "/leases", body, key or str(uuid4()))["lease"])

    def create_series(
        self,
        name: str,
        *reservations: Reservation,
        repeat: Repeat,
        start: datetime | None = None,
        end: datetime | None = None,
        duration: timedelta | None = None,
        key: str | None = None,
        **more: object,
    ) -> Series:
        """Create a lease for each date of a rule; the period is that of the first one.

        `key` and `more` are as for a lease.
        """
        body = self._order(name, reservations, self._period(start, end, duration), more)
        return self._series_of("/series", {**body, "repeat": repeat.body()}, key)

    def plan_series(
        self,
        name: str,
        *reservations: Reservation,
        repeat: Repeat,
        start: datetime | None = None,
        end: datetime | None = None,
        duration: timedelta | None = None,
        **more: object,
    ) -> Series:
        """Return the series that `create_series` would create, with the dates that do not fit; create nothing."""
        body = self._order(name, reservations, self._period(start, end, duration), more)
        return self._series_of("/series?dry_run=true", {**body, "repeat": repeat.body()}, None)

    def _series_of(self, path: str, body: object, key: str | None) -> Series:
        return Series.of(self._send("POST", path, body, key or str(uuid4()))["series"])

    def all_series(self, *, name: str | None = None) -> Iterable[Series]:
        """Return the series of the project without their occurrences, page after page."""
        with translated():
            for body in self.http.pages("reservation", "/series", "series", {"name": name} if name else {}):
                yield Series.of(body)

    def series(self, series: Series | str) -> Series:
        """Return a series with its occurrences as it is now, by its id or its name."""
        return Series.of(self._send("GET", self._series_path(series))["series"])

    def change_series(
        self,
        series: Series | str,
        *,
        name: str | None = None,
        later: timedelta | None = None,
        extend_by: timedelta | None = None,
        since: Lease | str | None = None,
        dry_run: bool = False,
    ) -> Series:
        """Rename, move or extend the occurrences that have not begun: all from the lease `since` on, or none of them.

        Negative lengths move them to an earlier time, or shorten them. `update_lease` changes a single occurrence.
        """
        body: dict[str, object] = {} if name is None else {"name": name}
        for field, length in (("move_by", later), ("extend_by", extend_by)):
            if length is not None:
                body[field] = int(length.total_seconds())
        if since is not None:
            body["from"] = self._lease_id(since)
        return Series.of(self._send("PUT", self._series_path(series) + _query(dry_run=dry_run), body)["series"])

    def delete_series(self, series: Series | str, *, since: Lease | str | None = None) -> None:
        """Delete a series, or its occurrences from the lease `since` on. Occurrences that have begun go on."""
        begin = None if since is None else self._lease_id(since)
        self._send("DELETE", self._series_path(series) + _query(**{"from": begin}))

    def leases(self, *, status: str | None = None, name: str | None = None) -> Iterable[Lease]:
        """Return the leases of the project, page after page."""
        query = {key: value for key, value in (("status", status), ("name", name)) if value}
        with translated():
            for body in self.http.pages("reservation", "/leases", "leases", query):
                yield Lease.of(body)

    def lease(self, wanted: Lease | str) -> Lease:
        """Return a lease as it is now, by its id or its name."""
        with translated():
            return Lease.of(lookup.lease(self.http, wanted.id if isinstance(wanted, Lease) else wanted))

    def extend(self, lease: Lease | str, by: timedelta) -> Lease:
        """Move the end of a lease by a length; a negative one shortens it."""
        present = self.lease(lease)
        return self.update_lease(present, end_date=wire(present.end + by))

    def update_lease(self, lease: Lease | str, **changes: object) -> Lease:
        """Change a lease: `name`, `start_date`, `end_date`, `reservations` and so on, as the API has them."""
        lease_id = self._lease_id(lease)
        return Lease.of(self._send("PUT", f"/leases/{lease_id}", changes)["lease"])

    def share_lease(
        self,
        lease: Lease | str,
        *,
        projects: Sequence[str] = (),
        viewers: Sequence[str] = (),
        extenders: Sequence[str] = (),
    ) -> Lease:
        """Share a lease with these projects and users, by their ids, instead of former ones.

        Members of the projects may see it and boot on it, viewers may see it, and extenders may also extend it.
        """
        named = {"projects": list(projects), "viewers": list(viewers), "extenders": list(extenders)}
        return self.update_lease(lease, sharing=named)

    def sublet(
        self,
        lease: Lease | str,
        name: str,
        *,
        project: str,
        hosts: int | Sequence[str],
        duration: timedelta,
        start: datetime | None = None,
        **more: object,
    ) -> Lease:
        """Give hosts of a lease to another project, from `start` (now) on; the result is a lease of that project.

        `hosts` is their number, or their names. `more` has further keys of the request, such as `user_id`, `on_end` and
        `grace_period`.
        """
        begin = _utc(start, "start") if start else self._now()
        period = {"start_date": wire(begin) if start else "now", "end_date": wire(begin + duration)}
        chosen = {"hosts": hosts} if isinstance(hosts, int) else {"host_names": list(hosts)}
        body: dict[str, object] = {"name": name, "project_id": project, **period, **chosen, **more}
        path = f"/leases/{self._lease_id(lease)}/subleases"
        return Lease.of(self._send("POST", path, body, str(uuid4()))["lease"])

    def subleases(self, lease: Lease | str) -> list[Lease]:
        """Return the sub-leases of a lease, oldest first."""
        answer = self._send("GET", f"/leases/{self._lease_id(lease)}/subleases")
        return [Lease.of(body) for body in answer["subleases"]]

    def delete_lease(self, lease: Lease | str) -> None:
        """End a lease, or withdraw it before its start."""
        self._send("DELETE", f"/leases/{self._lease_id(lease)}")

    def wait_for_lease(
        self, lease: Lease | str, status: str = "ACTIVE", *, timeout: timedelta = HALF_HOUR, progress: Progress = _quiet
    ) -> Lease:
        """Return the lease once it has the status. Raise ClientError once it cannot get it, or TimedOut.

        A restart of the server does not end the wait.
        """
        lease_id = self._lease_id(lease)
        refused = tuple(one for one in AFTER if one != status)
        goal = Goal(
            f"lease {lease_id}",
            lambda: _there(lambda: lookup.lease_by_id(self.http, lease_id)),
            lambda seen: seen is not None and seen["status"] == status,
            lambda seen: _end_of_lease(f"lease {lease_id}", seen, refused),
            f"`climate lease history {lease_id}` shows why",
        )
        with translated():
            found = existing(goal, poll(goal, timeout.total_seconds(), PATIENCE, progress))
        return Lease.of(found)

    def boot(
        self,
        name: str,
        *,
        flavor: str,
        image: str,
        lease: Lease | str | None = None,
        reservation: str | None = None,
        **options: Unpack[BootOptions],
    ) -> Server:
        """Boot a server, on a host of a lease or of one of its reservations. Flavor and image are names or ids."""
        hint = reservation or (self._reservation_of(lease) if lease else None)
        with translated():
            networks = [{"uuid": lookup.network_id(self.http, one)} for one in options.get("networks", ())]
            wanted: dict[str, object] = {
                "name": name,
                "flavorRef": lookup.flavor_id(self.http, flavor),
                "imageRef": lookup.image_id(self.http, image),
                **options,
                "networks": networks or "auto",
            }
            if "user_data" in options:
                wanted["user_data"] = b64encode(options["user_data"]).decode()
            hints = {"OS-SCH-HNT:scheduler_hints": {"reservation": hint}} if hint else {}
            created = self.http.json("compute", "POST", "/servers", json={"server": wanted, **hints})["server"]
        return self.server(created["id"])

    def server(self, wanted: Server | str) -> Server:
        """Return a server as it is now, by its id or its name."""
        with translated():
            return Server.of(lookup.server(self.http, wanted.id if isinstance(wanted, Server) else wanted))

    def delete_server(self, server: Server | str) -> None:
        """Delete a server."""
        server_id = self.server(server).id
        with translated():
            self.http.call("compute", "DELETE", f"/servers/{lookup.part(server_id)}")

    def wait_for_server(
        self,
        server: Server | str,
        status: str = "ACTIVE",
        *,
        timeout: timedelta = HALF_HOUR,
        progress: Progress = _quiet,
    ) -> Server:
        """Return the server once it has the status. Raise ClientError if it becomes ERROR or is gone, or TimedOut."""
        server_id = self.server(server).id
        goal = Goal(
            f"server {server_id}",
            lambda: _there(lambda: lookup.server_by_id(self.http, server_id)),
            lambda seen: seen is not None and seen["status"] == status,
            lambda seen: _end_of_server(f"server {server_id}", seen),
            f"`climate server actions {server_id}` shows what was done",
        )
        with translated():
            found = existing(goal, poll(goal, timeout.total_seconds(), PATIENCE, progress))
        return Server.of(found)

    def _now(self) -> datetime:
        with translated():
            return self.http.now().replace(microsecond=0)

    def _send(self, method: str, path: str, body: object = None, key: str | None = None) -> connection.Json:
        sent: Sent = {} if body is None else {"json": body}
        if key is not None:
            sent["headers"] = {"Idempotency-Key": key}
        with translated():
            return self.http.json("reservation", method, path, **sent)

    def _period(
        self, start: datetime | None, end: datetime | None, duration: timedelta | None
    ) -> tuple[datetime, datetime]:
        """Return the period from `start` (now) to `end`, or for `duration`."""
        begin = _utc(start, "start") if start else self._now()
        until = begin + duration if duration else end
        if until is None or (duration and end):
            raise InvalidRequest("one of end and duration is needed, or the hold that a lease is created of")
        return begin, _utc(until, "end")

    @staticmethod
    def _order(
        name: str, reservations: Sequence[Reservation], period: tuple[datetime, datetime], more: Mapping[str, object]
    ) -> dict[str, object]:
        """Return the request for a lease."""
        begin, end = period
        dates = {"start_date": wire(begin), "end_date": wire(end)}
        return {"name": name, **dates, "events": [], "reservations": list(reservations), **more}

    def _series_path(self, series: Series | str) -> str:
        with translated():
            wanted = series.id if isinstance(series, Series) else lookup.series_id(self.http, series)
        return f"/series/{lookup.part(wanted)}"

    def _lease_id(self, lease: Lease | str) -> str:
        if isinstance(lease, Lease):
            return lease.id
        with translated():
            return lookup.lease_id(self.http, lease)

    def _reservation_of(self, lease: Lease | str) -> str:
        """Return the id of the only reservation of a lease on which servers can be booted."""
        known = lease if isinstance(lease, Lease) else self.lease(lease)
        fitting = [reservation.id for reservation in known.reservations if reservation.resource_type == "physical:host"]
        if len(fitting) != 1:
            raise InvalidRequest(
                f"lease {known.id} has {len(fitting)} reservations of hosts", "give the id of one as reservation"
            )
        return fitting[0]


def _query(**values: object) -> str:
    """Return the query of a request with the values that are given."""
    given = {name: "true" if value is True else value for name, value in values.items() if value}
    return f"?{urlencode(given)}" if given else ""


def _utc(time: datetime, name: str) -> datetime:
    """Return an aware time. Raise InvalidRequest for a naive one, which could mean any zone."""
    if time.tzinfo is None:
        raise InvalidRequest(f"{name} has no time zone: {time.isoformat()}", "use datetime.now(UTC) or a ZoneInfo")
    return time


def _there(look: Callable[[], T]) -> T | None:
    try:
        return look()
    except Failure as failure:
        if failure.code == NOT_FOUND:
            return None
        raise


def _end_of_lease(what: str, seen: "lease_answers.Lease | None", refused: Sequence[str]) -> str | None:
    """Return why a lease cannot get its status any more, or None."""
    if seen is None:
        return f"{what} is gone"
    return _ended(what, seen["status"], seen.get("status_reason")) if seen["status"] in refused else None


def _end_of_server(what: str, seen: "server_answers.Server | None") -> str | None:
    """Return why a server cannot get its status any more, or None."""
    if seen is None:
        return f"{what} is gone"
    fault = seen.get("fault")
    return _ended(what, seen["status"], fault.get("message") if fault else None) if seen["status"] == "ERROR" else None


def _ended(what: str, status: str, reason: str | None) -> str:
    return f"{what} is {status}" + (f": {reason}" if reason else "")
