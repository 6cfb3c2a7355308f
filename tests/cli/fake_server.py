"""A small server that keeps the wire contract, in a thread: what the command is tested against."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

from werkzeug.serving import WSGIRequestHandler, make_server
from werkzeug.wrappers import Request, Response

from tests.cli.series_answers import SERIES

PASSWORD = "kept out of sight"
FLOATING_IP = "6f0f3a1e-7d1c-4b4c-9d0e-0d5b7f6f2f11"
VOLUME = "0d1c9a56-5f0e-4a6f-8f4e-6a2f5a1e7c02"
STORAGE_POOL = "0d1c9a56-5f0e-4a6f-8f4e-6a2f5a1e7c01"
START = datetime(2030, 1, 1, 12, 0, tzinfo=UTC)
"""What the fake server believes the time to be."""

PLAN = {
    "at": "2030-01-01T12:00:00.000000",
    "until": "2030-01-03T12:00:00.000000",
    "managed": True,
    "hosts": 6,
    "draining": 1,
    "promised": 8,
    "promised_at": "2030-01-02T10:00:00.000000",
    "spare": 2,
    "target": 4,
    "wanted": 10,
    "most": 12,
    "lacking": 1,
    "moves": [{"id": "7", "name": "h7", "pool": "multi-tenant", "step": "take", "reason": "10 hosts are wanted"}],
    "kept": [{"id": "8", "name": "h8", "pool": "reservation", "step": "release", "reason": "promised to a lease"}],
    "backlog": [],
}


@dataclass
class Asked:
    """One request as it came."""

    method: str
    path: str
    query: dict[str, str]
    body: Any
    headers: dict[str, str]


@dataclass
class Wire:
    """The state of the fake server; a test changes it and looks at it directly."""

    url: str = ""
    power_state: str = "unknown"
    """What the power supply of every host has said."""
    asked: list[Asked] = field(default_factory=list)
    tokens: set[str] = field(default_factory=set)
    roles: tuple[str, ...] = ("admin",)
    """Roles of the tokens."""
    leases: dict[str, dict[str, Any]] = field(default_factory=dict)
    hosts: dict[str, dict[str, Any]] = field(default_factory=dict)
    migrations: list[dict[str, Any]] = field(default_factory=list)
    moves: list[dict[str, Any]] = field(default_factory=list)
    servers: dict[str, dict[str, Any]] = field(default_factory=dict)
    after: dict[str, str] = field(default_factory=dict)
    """Action -> the status that it leads to at once."""
    services: dict[str, dict[str, Any]] = field(default_factory=dict)
    nodes: list[dict[str, Any]] = field(default_factory=list)
    cells: dict[str, Any] = field(default_factory=dict)
    """Path below /os-cells -> the answer to GET."""
    notices: list[dict[str, Any]] = field(default_factory=list)
    scheduling: dict[str, Any] = field(default_factory=dict)
    zone_builds: list[Any] = field(default_factory=list)
    """Answers about builds over zones, one a request."""
    volume_attached: bool = False
    """Whether a server has the volume."""
    cloudpipe_answers: list[tuple[int, Any]] = field(default_factory=list)
    """What requests about cloudpipes are answered with, in this order."""
    member: bool = False
    """Whether whoever asks is no administrator."""
    """What is told of how any server was placed."""
    becoming: dict[str, list[str]] = field(default_factory=dict)
    """Id -> the statuses it will be seen in, one a look; "gone" ends it."""
    answers: list[tuple[int, Any, dict[str, str]]] = field(default_factory=list)
    """Answered instead of the real thing, one a request."""
    recorded: dict[str, Any] = field(default_factory=lambda: {"/identity/v3/projects": {"projects": []}})
    """Path -> the answer of a real climate to GET, given instead of this server's own."""
    lease_hosts: list[dict[str, Any]] = field(default_factory=list)
    """Hosts of each lease, as its owner may see them."""
    ahead: timedelta = timedelta()
    """Time since START by the clock of the server."""
    refused_leases: int = 0
    """Number of next leases for which there are too few hosts."""
    page: int = 1000

    def sent(self, method: str, path: str) -> Asked:
        """The last request of this kind."""
        return [asked for asked in self.asked if (asked.method, asked.path) == (method, path)][-1]

    def add_lease(self, name: str, **more: Any) -> dict[str, Any]:
        lease_id = str(uuid4())
        reservation = {"id": str(uuid4()), "resource_type": "physical:host", "status": "pending"}
        lease = {
            "id": lease_id, "name": name, "start_date": "2030-01-01T12:00:00.000000",
            "end_date": "2030-01-01T18:00:00.000000", "status": "PENDING", "degraded": False,
            "created_at": "2030-01-01 11:00:00.250000", "reservations": [reservation], "events": [], **more,
        }  # fmt: skip
        self.leases[lease_id] = lease
        return lease

    def step(self, thing: dict[str, Any]) -> dict[str, Any] | None:
        """The thing as it is at this look."""
        ahead = self.becoming.get(thing["id"])
        if ahead:
            thing["status"] = ahead.pop(0)
        return None if thing["status"] == "gone" else thing

    def __call__(self, environ: Any, start_response: Any) -> Any:
        return self.answer(Request(environ))(environ, start_response)

    def answer(self, request: Request) -> Response:
        body = json.loads(request.get_data()) if request.get_data() else None
        self.asked.append(Asked(request.method, request.path, dict(request.args), body, dict(request.headers)))
        if self.answers or request.path in self.recorded:
            return _json(*(self.answers.pop(0) if self.answers else (200, self.recorded[request.path])))
        if request.path == "/identity/v3/auth/tokens":
            return self._login(body)
        if request.headers.get("X-Auth-Token") not in self.tokens:
            return _json(401, {"error": {"code": 401, "title": "Unauthorized", "message": "who are you?"}})
        if self.member and request.path.endswith("/scheduling"):
            return _json(403, {"forbidden": {"code": 403, "message": "Policy doesn't allow it to be performed."}})
        prefix, _, rest = request.path.lstrip("/").partition("/")
        if request.path.startswith("/reservation/v1/floatingips"):
            return self._floatingips(request, rest.split("/")[2:], body)
        if request.path.startswith("/reservation/v1/storage-pools"):
            return self._storage_pools(request, rest.split("/")[2:], body)
        if request.path.startswith("/volume/v3/volumes"):
            return self._volumes(request, request.path.split("/")[4:])
        if "/os-cloudpipe" in request.path:
            return _json(*self.cloudpipe_answers.pop(0))
        if request.path.endswith("/os-volume_attachments") and request.method == "POST":
            return _json(200, {"volumeAttachment": {"id": VOLUME, "device": "/dev/vdb"}})
        part = {"reservation": self._reservation, "compute": self._compute}.get(prefix, self._rest)
        return part(request, rest.split("/")[1:], body)

    def _login(self, body: Any) -> Response:
        user = body["auth"]["identity"].get("password", {}).get("user", {})
        if user.get("password") != PASSWORD:
            return _json(401, {"error": {"code": 401, "title": "Unauthorized", "message": "wrong password"}})
        token = f"token-{len(self.asked)}"
        self.tokens.add(token)
        urls = {"identity": "/identity/v3", "reservation": "/reservation/v1", "compute": "/compute/v2.1"}
        catalog = [
            {"type": kind, "name": f"climate-{kind}", "endpoints": [{"interface": "public", "url": self.url + path}]}
            for kind, path in {**urls, "image": "/image", "network": "/network"}.items()
        ]
        issued, expires = START + self.ahead, START + timedelta(hours=1)
        roles = [{"id": role, "name": role} for role in self.roles]
        answer = {"issued_at": _time(issued) + "Z", "expires_at": _time(expires) + "Z", "catalog": catalog}
        return _json(
            201,
            {"token": {**answer, "project": {"id": "p1"}, "user": {"id": "u1"}, "roles": roles}},
            {"X-Subject-Token": token},
        )

    def _reservation(self, request: Request, path: list[str], body: Any) -> Response:
        if path[0] == "leases":
            return self._leases(request, path[1:], body)
        if path[0] in FIXED:
            return _json(200, {path[0]: FIXED[path[0]]})
        if path[0] == "limits":
            return self._limits(request, path[1:])
        own = {
            "calendar-feeds": self._calendar_feeds,
            "mail-preferences": self._mail_preferences,
            "maintenances": self._maintenances,
            "notices": self._notices,
            "series": self._series,
        }
        if path[0] in own:
            return own[path[0]](request, body)
        if path[0] == "pools":
            return self._pools(path[1:], body)
        if path[2:] == ["reservable"]:
            return _json(200, {"host": {"id": path[1], **body}})
        if path[2:] == ["history"]:
            return _json(200, {"history": [_line(1, "HostEnrolled", {"pool": "reservation", "host": 1})]})
        if path[0] == "power":
            return self._power(request, path[1:], body)
        return self._hosts(request, path[1:], body)

    def _leases(self, request: Request, path: list[str], body: Any) -> Response:
        if request.method == "POST" and self.refused_leases:
            self.refused_leases -= 1
            return _json(409, {"error_code": 409, "error_message": "Not enough hosts available"})
        if request.method == "POST":
            return _json(201, {"lease": self.add_lease(**{**body, "reservations": body["reservations"]})})
        if not path:
            return _json(200, {"leases": self._page(list(self.leases.values()), request)})
        lease = self.leases.get(path[0])
        if lease is None or self.step(lease) is None:
            return _json(404, {"error_code": 404, "error_message": "no such lease", "error_name": 404})
        if path[1:] == ["hosts"]:
            return _json(200, {"hosts": self.lease_hosts})
        if path[1:] == ["history"]:
            made = {"name": lease["name"], "events": [{"id": "e1", "kind": "start_lease"}]}
            done = {"event_id": "e1", "outcome": "OK"}
            return _json(200, {"history": [_line(1, "LeaseCreated", made), _line(2, "EventFinished", done)]})
        if request.method == "DELETE":
            self.becoming.setdefault(path[0], ["DELETING", "gone"])
            return Response(status=204)
        if request.method == "PUT":
            lease.update(body)
        return _json(200, {"lease": lease}, {"ETag": '"7"'})

    def _notices(self, request: Request, body: Any) -> Response:
        if request.method == "POST":
            return _json(200, {"notice": {"id": "7"}})
        return _json(200, {"notices": self._page(self.notices, request)})

    def _mail_preferences(self, request: Request, body: Any) -> Response:
        topics = body["topics"] if body else ["start"]
        return _json(200, {"mail_preferences": {"topics": topics, "address": None, "is_sent": False}})

    def _calendar_feeds(self, request: Request, body: Any) -> Response:
        feed = {"id": "f1", "name": "GPU hosts", "scope": "user", "created_at": "2030-01-01 11:00:00.250000"}
        if request.method == "DELETE":
            return Response(status=204)
        if request.method == "GET":
            return _json(200, {"calendar_feeds": [feed]})
        return _json(201, {"calendar_feed": {**feed, **body, "url": f"{self.url}/reservation/v1/calendar/s3.ics"}})

    def _series(self, request: Request, body: Any) -> Response:
        if request.method == "DELETE":
            return Response(status=204)
        if request.method == "GET" and request.path.endswith("/series"):
            return _json(200, {"series": [{key: SERIES[key] for key in SERIES if key != "occurrences"}]})
        return _json(201 if request.method == "POST" else 200, {"series": SERIES})

    def _maintenances(self, request: Request, body: Any) -> Response:
        window = {"id": "w1", "host": "h1", "state": "planned", "end_date": None, **(body or {})}
        moved = {"id": "l1", "name": "n", "replaced": False, "missing": 1}
        if request.method == "GET" and request.path.endswith("/maintenances"):
            return _json(200, {"maintenances": [window]})
        return _json(200, {"maintenance": window, "leases": [moved] if body and body["force"] else []})

    def _limits(self, request: Request, path: list[str]) -> Response:
        if path[1:] == ["history"]:
            return _decided("limits", {"leases": 4, "host_hours": None})
        limit = {"name": "leases", "value": 3, "used": 1.0, "project_id": "default", "says": "leases"}
        return Response(status=204) if request.method == "DELETE" else _json(200, {"limits": [limit]})

    def _pools(self, path: list[str], body: Any) -> Response:
        if not path:
            return _json(200, {"pools": [{"name": "reservation", "hosts": 8, "terms": None}]})
        if path[1:] == ["history"]:
            return _decided("terms", {"target": 3})
        if path[1:] == ["hosts"]:
            servers = [{"id": "s1", "name": "web", "project_id": "p1", "status": "ACTIVE"}]
            following = {"start": "2030-01-02T12:00:00.000000"}
            row = {"id": "7", "name": "h7", "reason": "why", "servers": servers, "next": following, "drift": ""}
            others = [{"name": "n1", "server_count": 2, "servers": None}] if path[0] == "multi-tenant" else None
            more = {"unregistered": others} if others else {}
            return _json(200, {"hosts": [row, {**row, "id": "8", "name": "h8", "servers": None, "next": None}], **more})
        if path[1:] == ["backlog"]:
            promise = {"kind": "lease", "start": "2030-01-02T12:00:00.000000", "lease_id": "l1"}
            plans = [
                {"id": "7", "name": "h7", "promises": [promise, promise]},
                {"id": "8", "name": "h8", "promises": []},
            ]
            return _json(200, {"backlog": plans})
        if path[1:] == ["plan"]:
            return _json(200, {"plan": PLAN})
        if path[1:] == ["moves"]:
            moves = [
                {"host": {"id": host, "name": f"h{host}", "pool": path[0]}, "from": "lent", "moved": True,
                 "leases": [{"lease_id": "l1"}]} for host in body["hosts"]
            ]  # fmt: skip
            return _json(200, {"moves": moves})
        return _json(200, {"pool": {"name": path[0], "hosts": 8, "terms": body}})

    def _floatingips(self, request: Request, path: list[str], body: Any) -> Response:
        one = {"id": FLOATING_IP, "floating_ip_address": "203.0.113.7", "floating_network_id": "public"}
        held = {"id": "r1", "lease_id": "l1", "start_date": _time(START), "end_date": _time(START)}
        row = {"resource_id": FLOATING_IP, "floating_ip_address": "203.0.113.7", "reservations": [held]}
        if request.method == "DELETE":
            return Response(status=204)
        if path == ["allocations"]:
            return _json(200, {"allocations": [row]})
        if path[1:] == ["allocation"]:
            return _json(200, {"allocation": row})
        if request.method == "POST":
            return _json(201, {"floatingip": {**one, **body}})
        return _json(200, {"floatingip": one} if path else {"floatingips": self._page([one], request)})

    def _storage_pools(self, request: Request, path: list[str], body: Any) -> Response:
        one = {"id": STORAGE_POOL, "name": "fast", "storage_class": "ssd", "capacity_gb": 100, "closed": False}
        held = {"id": "r1", "lease_id": "l1", "start_date": _time(START), "end_date": _time(START), "size_gb": 5}
        row = {"resource_id": STORAGE_POOL, "name": "fast", "reservations": [held]}
        if request.method == "DELETE":
            return Response(status=204)
        if path == ["allocations"]:
            return _json(200, {"allocations": [row]})
        if path[1:] == ["allocation"]:
            return _json(200, {"allocation": row})
        if request.method in ("POST", "PUT"):
            return _json(201, {"storage_pool": {**one, **body}})
        return _json(200, {"storage_pool": one} if path else {"storage_pools": self._page([one], request)})

    def _volumes(self, request: Request, path: list[str]) -> Response:
        held = [{"server_id": "s1"}] if self.volume_attached else []
        one = {"id": VOLUME, "name": "ssd-1", "status": "in-use" if held else "available", "size": 5}
        one |= {"attachments": held, "metadata": {"reservation_id": "r1"}, "volume_type": "ssd"}
        if request.method == "DELETE":
            return Response(status=202)
        return _json(200, {"volumes": [one]} if path == ["detail"] else {"volume": one})

    def _power(self, request: Request, path: list[str], body: Any) -> Response:
        if path == ["report"]:
            hosts = [{"id": "1", "name": "h1", "hours_off": 7.5}, {"id": "2", "name": "h2", "hours_off": 0.5}]
            return _json(200, {"report": {"hours_off": 8.0, "kwh": 1.2, "hosts": hosts}})
        shown = {"id": "1", "name": "h1", "driver": "memory", "on": True, "wanted": None, **(body or {})}
        shown["state"] = self.power_state
        if request.method == "DELETE":
            return Response(status=204)
        return _json(200, {"power": [shown] if not path else {**shown, "settings": {}}})

    def _hosts(self, request: Request, path: list[str], body: Any) -> Response:
        if path[1:2] == ["power"]:
            return self._power(request, path, body)
        if path == ["properties"]:
            return _json(200, {"resource_properties": [{"property": "gpu", "private": False, "values": ["1", "2"]}]})
        if path == ["allocations"]:
            held = {"id": "r1", "lease_id": "l1", "start_date": "2030-01-01T12:00:00.000000", "end_date": None}
            return _json(200, {"allocations": [{"resource_id": "1", "reservations": [held]}]})
        if path[1:] in (["heal"], ["fail"], ["health"]):
            return _json(200, {"place": {"host_id": path[0]}, "health": {"host_id": path[0], "trouble": None}})
        if path[1:] == ["allocation"] and request.method == "PUT":
            return _json(200, {"reallocation": {"from": path[0], "to": body["to"]}})
        if request.method == "POST":
            number = str(len(self.hosts) + 1)
            extras = {key: value for key, value in body.items() if key != "name"}
            self.hosts[number] = {"id": number, "hypervisor_hostname": body["name"], "vcpus": 8, **extras}
            return _json(201, {"host": self.hosts[number]})
        if not path:
            return _json(200, {"hosts": self._page(list(self.hosts.values()), request)})
        host = self.hosts.get(path[0])
        if host is None:
            return _json(404, {"error_code": 404, "error_message": "no such host", "error_name": 404})
        if request.method == "PUT":
            host.update(body)
        return _json(200, {"host": host})

    def _compute(self, request: Request, path: list[str], body: Any) -> Response:
        if path[0] == "flavors":
            return _json(
                200, {"flavors": [{"id": "1", "name": "small", "vcpus": 1, "ram": 512, "disk": 1, "links": []}]}
            )
        if path[0] == "zones" or path[0].startswith("os-"):
            return self._inside(request, path, body)
        if request.method == "POST" and len(path) == 1:
            return self._boot(body)
        if path[1] == "detail":
            build = request.args.get("reservation_id")
            servers = [one for one in self.servers.values() if build in (None, one["build"])]
            return _json(200, {"servers": self._page(servers, request)})
        server = self.servers.get(path[1])
        if server is None or self.step(server) is None:
            return _json(404, {"itemNotFound": {"code": 404, "message": "no such server"}})
        if request.method == "DELETE":
            self.becoming[path[1]] = ["ACTIVE", "gone"]
            return Response(status=204)
        if path[2:] == ["action"]:
            server["status"] = self.after.get(next(iter(body)), server["status"])
            return _json(202, {"image_id": "i1"} if "createImage" in body else None)
        if path[2:] == ["os-instance-actions"]:
            return _json(200, {"instanceActions": [{"action": "stop", "message": "Error", "request_id": "req-1"}]})
        if path[2:] == ["scheduling"]:
            return _json(200, {"scheduling": {"server_id": path[1], **self.scheduling}})
        return _json(200, {"server": server})

    def _boot(self, body: Any) -> Response:
        build = f"r-{len(self.servers)}"
        status = "RESERVED" if "reserved" in body.get("OS-SCH-HNT:scheduler_hints", ()) else "ACTIVE"
        ids = [str(uuid4()) for _ in range(body["server"]["min_count"])]
        for server_id in ids:
            held = {"status": "BUILD", "addresses": {"net": [{"addr": "10.0.0.5"}]}, "build": build}
            self.servers[server_id] = {"id": server_id, **body["server"], **held}
            self.becoming[server_id] = ["BUILD", status]
        if body["server"].get("return_reservation_id"):
            return _json(202, {"reservation_id": build})
        return _json(202, {"server": {"id": ids[0]}})

    def _inside(self, request: Request, path: list[str], body: Any) -> Response:
        if path[0] in ("zones", "os-zone-builds"):
            return _json(200, self.zone_builds.pop(0))
        if path[0] == "os-migrations":
            return _json(200, {"migrations": self.migrations})
        if path[0] == "os-hosts" and path[2:] == ["moves"]:
            return _json(200, {"moves": self.moves})
        if path[0] == "os-hypervisors":
            own = set() if "with_maintenance" in request.args else {"climate:maintenance"}
            nodes = [{key: node[key] for key in node.keys() - own} for node in self.nodes]
            return _json(200, {"hypervisors": self._page(nodes, request)})
        if path[0] == "os-cells":
            return self._cells(request, body)
        if path[0] == "os-hosts":
            return _json(200, {"host": path[1], "maintenance_mode": f"{body['maintenance_mode']}d"})
        if request.method == "GET":
            return _json(200, {"services": list(self.services.values())})
        if request.method == "DELETE":
            del self.services[path[1]]
            return Response(status=204)
        self.services[path[1]].update(body)
        return _json(200, {"service": self.services[path[1]]})

    def _cells(self, request: Request, body: Any) -> Response:
        if request.method == "GET":
            return _json(200, self.cells[request.path])
        if request.method == "DELETE" or request.path.endswith("/sync_instances"):
            return Response(status=204)
        return _json(200, {"cell": {"name": "left", "type": "child"}})

    def _rest(self, request: Request, path: list[str], body: Any) -> Response:
        if request.path == "/image/v2/images":
            return _json(200, {"images": [{"id": "i1", "name": "cirros", "status": "active"}]})
        if request.path == "/network/v2.0/networks":
            return _json(200, {"networks": [{"id": "n1", "name": "net"}, {"id": "n2", "name": "outside"}]})
        return _json(200, {"path": request.path, "method": request.method, "body": body})

    def _page(self, things: list[dict[str, Any]], request: Request) -> list[dict[str, Any]]:
        ids = [thing["id"] for thing in things]
        marker = request.args.get("marker")
        start = ids.index(marker) + 1 if marker else 0
        return things[start : start + min(self.page, int(request.args.get("limit", self.page)))]


AUDIT_ENTRY = {
    "id": "7",
    "at": "2030-01-01T12:00:00.000000",
    "author": "ada",
    "author_project_id": "p",
    "request_id": "req-1",
    "kind": "limits",
    "object_id": "p1",
    "name": "",
    "project_id": "p1",
    "action": "changed",
    "before": {"leases": 3},
    "after": {"leases": 5},
}

FIXED = {"events": [{"id": "e1", "event_type": "start_lease", "status": "ERROR"}], "audit": [AUDIT_ENTRY]}
"""Lists that are always the same."""


def _decided(key: str, told: dict[str, Any]) -> Response:
    """A history with one decision of an administrator."""
    entry = {"version": 1, "at": "2030-01-01T12:00:00.000000", "actor": {"user_id": "admin"}, "request_id": ""}
    return _json(200, {"history": [{**entry, "kind": "LimitsSet", "body": {key: told}}]})


def _json(status: int, body: Any, headers: dict[str, str] | None = None) -> Response:
    more = {"x-openstack-request-id": "req-1", **(headers or {})}
    return Response(json.dumps(body), status, more, content_type="application/json")


def _line(version: int, kind: str, body: dict[str, Any]) -> dict[str, Any]:
    return {"version": version, "at": _time(START), "kind": kind, "body": body}


def _time(when: datetime) -> str:
    return when.replace(tzinfo=None).isoformat(timespec="microseconds")


class Clocked(WSGIRequestHandler):
    """Requests whose answers have the time of the fake server."""

    def date_time_string(self, timestamp: float | None = None) -> str:
        return super().date_time_string((START + self.server.app.ahead).timestamp())  # type: ignore[attr-defined]


@contextmanager
def serving() -> Iterator[Wire]:
    """A fake server on a free port of the loopback."""
    wire = Wire()
    server = make_server("127.0.0.1", 0, wire, threaded=True, request_handler=Clocked)
    wire.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield wire
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
