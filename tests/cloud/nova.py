"""A cloud that keeps its aggregates as Nova does: by service host, and a host in as many of them as one likes."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

import yaml
from flask import Flask, Response, abort, jsonify, request
from werkzeug.exceptions import HTTPException

from climate.cloud import Cloud, openstack
from tests.cloud.glance import Glance
from tests.cloud.neutron import Neutron
from tests.cloud.placement import Placement
from tests.identity.identity_factory import served

HYPERVISORS = {"n1.example.org": "n1", "n2.example.org": "n2", "m1": "metal", "m2": "metal"}
"""Hypervisor -> the host of its service; `metal` stands for two."""


@dataclass
class Nova:
    """Its state, open to tests."""

    aggregates: dict[str, dict[str, Any]] = field(default_factory=dict)
    """By id."""
    servers: dict[str, dict[str, Any]] = field(default_factory=dict)
    log: list[str] = field(default_factory=list)
    """What was asked of aggregates and servers, in order."""
    before: Callable[[str], None] = lambda verb: None
    """Called with each action on an aggregate before it is done."""
    gone: set[str] = field(default_factory=set)
    """Servers whose deletion is complete, although lists still have them."""
    after: Callable[[str], None] = lambda verb: None
    """Called with each action on an aggregate when it is done."""
    numbers: Iterator[int] = field(default_factory=lambda: count(1))
    network: Neutron = field(default_factory=Neutron)
    image: Glance = field(default_factory=Glance)
    placement: Placement = field(default_factory=Placement)
    down: set[str] = field(default_factory=set)
    """Hosts of services that are down, or were forced down."""
    flavors: dict[str, dict[str, Any]] = field(default_factory=dict)
    access: dict[str, set[str]] = field(default_factory=dict)
    """Projects that may use a private flavor."""
    passwords: bool = True
    """Whether an evacuation answers with a new password: `enable_instance_password` of its configuration."""

    def put(self, name: str, hosts: tuple[str, ...] = (), **metadata: str) -> dict[str, Any]:
        """An aggregate that is there already."""
        number = next(self.numbers)
        made = {"id": number, "name": name, "hosts": list(hosts), "metadata": metadata}
        self.aggregates[str(number)] = made
        return made

    def of(self, name: str) -> dict[str, Any]:
        return next(each for each in self.aggregates.values() if each["name"] == name)

    def run(self, server_id: str, node: str, **more: Any) -> None:
        """Put a server on a hypervisor."""
        self.servers[server_id] = {
            "id": server_id,
            "name": server_id,
            "tenant_id": "demo",
            "status": "ACTIVE",
            "created": "2030-01-01T00:00:00Z",
            "flavor": {"original_name": "m1.tiny"},
            "metadata": {},
            "OS-EXT-STS:task_state": None,
            "OS-EXT-SRV-ATTR:hypervisor_hostname": node,
        } | more

    def flavor(self, flavor_id: str, **extra_specs: str) -> None:
        """A private flavor that is there already."""
        self.flavors[flavor_id] = {"id": flavor_id, "vcpus": 2, "ram": 4096, "disk": 20, "specs": extra_specs}
        self.access.setdefault(flavor_id, set())

    # Its answers.

    def flavor_of(self, flavor_id: str) -> Response:
        return jsonify({"flavor": self.flavors.get(flavor_id) or abort(404)})

    def drop_flavor(self, flavor_id: str) -> Response:
        self.log.append(f"drop flavor {(self.flavors.pop(flavor_id, None) or abort(404))['id']}")
        return Response()

    def specs_of(self, flavor_id: str) -> Response:
        known = self.flavors.get(flavor_id) or abort(404)
        if request.method == "POST":
            known["specs"] |= request.get_json()["extra_specs"]
        return jsonify({"extra_specs": known["specs"]})

    def drop_spec(self, flavor_id: str, key: str) -> Response:
        del self.flavors[flavor_id]["specs"][key]
        return Response()

    def change_access(self, flavor_id: str) -> Response:
        ((verb, details),) = request.get_json().items()
        if (details["tenant"] in self.access[flavor_id]) == (verb == "addTenantAccess"):
            abort(409 if verb == "addTenantAccess" else 404)
        (self.access[flavor_id].add if verb == "addTenantAccess" else self.access[flavor_id].remove)(details["tenant"])
        return jsonify({"flavor_access": []})

    def make(self) -> Response:
        name = request.get_json()["aggregate"]["name"]
        if any(each["name"] == name for each in self.aggregates.values()):
            abort(409, f"Aggregate {name} already exists.")
        self.log.append(f"make {name}")
        made = self.put(name)
        return jsonify({"aggregate": {key: made[key] for key in made.keys() - {"hosts", "metadata"}}})

    def act(self, number: str) -> Response:
        ((verb, details),) = request.get_json().items()
        self.before(verb)
        found = self.aggregates[number]
        if verb == "set_metadata":
            merged = {**found["metadata"], **details["metadata"]}
            found["metadata"] = {key: value for key, value in merged.items() if value is not None}
        else:
            self._move(found, verb, details["host"])
        self.after(verb)
        return jsonify({"aggregate": found})

    def _move(self, found: dict[str, Any], verb: str, host: str) -> None:
        if host not in HYPERVISORS.values() and host not in ("m1", "m2"):
            abort(404, f"Compute host {host} could not be found.")
        if (host in found["hosts"]) == (verb == "add_host"):
            twice, absent = f"already has host {host}.", f"Cannot remove host {host} in aggregate {found['id']}"
            abort(*((409, f"Aggregate {found['id']} {twice}") if verb == "add_host" else (404, absent)))
        self._refuse_other_zone(found, verb, host)
        (found["hosts"].append if verb == "add_host" else found["hosts"].remove)(host)
        self.log.append(f"{verb} {found['name']} {host}")

    def _refuse_other_zone(self, found: dict[str, Any], verb: str, host: str) -> None:
        """Refuse, as Nova 34 does, to change the availability zone of a host with servers."""
        own = found["metadata"].get("availability_zone")
        others = [each for each in self.aggregates.values() if host in each["hosts"] and each is not found]
        rest = next((zone for each in others if (zone := each["metadata"].get("availability_zone"))), None)
        node = "OS-EXT-SRV-ATTR:hypervisor_hostname"
        count = sum(HYPERVISORS.get(each[node]) == host for each in self.servers.values())
        if own and own != rest and count:
            words, move = ("added to", (rest, own)) if verb == "add_host" else ("removed from", (own, rest))
            abort(
                409,
                f"The host cannot be {words} the aggregate as the availability zone of the host would change from "
                f"'{move[0]}' to '{move[1]}' but the host already has {count} instance(s).",
            )

    def drop(self, number: str) -> Response:
        if number not in self.aggregates:
            abort(404, f"Aggregate {number} could not be found.")
        if self.aggregates[number]["hosts"]:
            abort(400, f"Cannot remove host from aggregate {number}. Reason: Host aggregate is not empty.")
        self.log.append(f"drop {self.aggregates.pop(number)['name']}")
        return Response()

    def listed(self) -> Response:
        kept = {key: request.args[key] for key in ("status",) if key in request.args}
        found = [each for each in self.servers.values() if all(each[key] == kept[key] for key in kept)]
        return jsonify({"servers": found})

    def show(self, server_id: str) -> Response:
        return jsonify({"server": self.servers.get(server_id) or abort(404)})

    def do(self, server_id: str) -> Response:
        ((verb, details),) = request.get_json().items()
        if verb == "evacuate":
            return self._evacuate(server_id, details)
        self.log.append(f"{verb} {server_id}")
        return Response(status=202)

    def _evacuate(self, server_id: str, details: dict[str, Any]) -> Response:
        """From microversion 2.29 on: a server of a service that is up is refused, as are fields that it has not."""
        server = self.servers.get(server_id) or abort(404)
        service = HYPERVISORS[server["OS-EXT-SRV-ATTR:hypervisor_hostname"]]
        if not set(details) <= {"host", "adminPass", "force"}:
            return _refused(400, "badRequest", "Additional properties are not allowed")
        if service not in self.down:
            return _refused(400, "badRequest", f"Compute service of {service} is still in use.")
        if server["OS-EXT-STS:task_state"] is not None:
            return _refused(409, "conflictingRequest", "Cannot 'evacuate' instance while it is in task_state")
        self.log.append(" ".join(["evacuate", server_id, *filter(None, [details.get("host")])]))
        server["OS-EXT-STS:task_state"] = "rebuilding"
        return jsonify({"adminPass": "seKr3t"}) if self.passwords else Response(status=200)

    def services(self) -> Response:
        found = [
            {"id": f"service-{host}", "binary": "nova-compute", "host": host, "zone": "nova", "status": "enabled"}
            | {"state": "down" if host in self.down else "up", "forced_down": False}
            for host in sorted(set(HYPERVISORS.values()))
        ]
        return jsonify({"services": [each for each in found if request.args.get("host", each["host"]) == each["host"]]})

    def hypervisors(self) -> Response:
        """The state of a hypervisor is that of its service."""
        wanted = request.args.get("hypervisor_hostname_pattern", "")
        found = [
            {"id": name, "hypervisor_hostname": name, "service": {"host": service}, "running_vms": 0, **SIZES}
            | {"state": "down" if service in self.down else "up", "status": "enabled"}
            for name, service in HYPERVISORS.items()
            if wanted in name
        ]
        return jsonify({"hypervisors": found})

    def delete(self, server_id: str) -> Response:
        if server_id in self.gone:
            abort(404, f"Instance {server_id} could not be found.")
        self.log.append(f"delete {server_id}")
        self.servers.pop(server_id)
        return Response(status=204)

    def unmark(self, server_id: str, key: str) -> Response:
        status = self.servers[server_id]["status"]
        if status.startswith("SHELVED"):
            return _refused(
                409, "conflictingRequest", f"Cannot 'delete metadata' instance in vm_state {status.lower()}"
            )
        self.servers[server_id]["metadata"].pop(key)
        return Response(status=204)


SIZES = {"vcpus": 8, "memory_mb": 8192, "local_gb": 100, "hypervisor_type": "QEMU", "hypervisor_version": 1}


ERRORS = {400: "badRequest", 404: "itemNotFound", 409: "conflictingRequest"}


def _refused(code: int, name: str, message: str) -> Response:
    answer = jsonify({name: {"code": code, "message": message}})
    answer.status_code = code
    return answer


def _as_nova(error: HTTPException) -> Response:
    code = error.code or 500
    return _refused(code, ERRORS.get(code, "computeFault"), error.description or "")


def _version() -> Response:
    links = [{"rel": "self", "href": request.base_url}]
    return jsonify(
        {"version": {"id": "v2.1", "status": "CURRENT", "version": "2.90", "min_version": "2.1", "links": links}}
    )


@contextmanager
def nova(folder: Path, *, blazar_filter: bool = False) -> Iterator[tuple[Nova, Cloud]]:
    """The cloud, and the port over it; it asks nobody who he is."""
    there, app = Nova(), Flask("nova")
    routes: tuple[tuple[str, str, Callable[..., Response]], ...] = (
        ("GET", "", _version),
        ("GET", "/os-hypervisors/detail", there.hypervisors),
        ("GET", "/os-services", there.services),
        ("GET", "/os-aggregates", lambda: jsonify({"aggregates": list(there.aggregates.values())})),
        ("POST", "/os-aggregates", there.make),
        ("POST", "/os-aggregates/<number>/action", there.act),
        ("DELETE", "/os-aggregates/<number>", there.drop),
        ("GET", "/servers/detail", there.listed),
        ("GET", "/servers/<server_id>", there.show),
        ("DELETE", "/servers/<server_id>", there.delete),
        ("POST", "/servers/<server_id>/action", there.do),
        ("DELETE", "/servers/<server_id>/metadata/<key>", there.unmark),
        ("GET", "/flavors/<flavor_id>", there.flavor_of),
        ("DELETE", "/flavors/<flavor_id>", there.drop_flavor),
        ("POST", "/flavors/<flavor_id>/action", there.change_access),
        ("GET", "/flavors/<flavor_id>/os-extra_specs", there.specs_of),
        ("POST", "/flavors/<flavor_id>/os-extra_specs", there.specs_of),
        ("DELETE", "/flavors/<flavor_id>/os-extra_specs/<key>", there.drop_spec),
    )
    app.register_error_handler(HTTPException, _as_nova)
    for method, path, view in routes:
        app.add_url_rule(f"/compute{path}", f"{method} {path}", view, methods=[method])
    there.network.serve(app, "/network")
    there.image.serve(app, "/image")
    for hypervisor in HYPERVISORS:
        there.placement.put(hypervisor)
    there.placement.serve(app, "/placement")
    with served(app) as port:
        here = f"http://127.0.0.1:{port}"
        entry = {
            "auth_type": "none",
            "compute_endpoint_override": f"{here}/compute",
            "network_endpoint_override": f"{here}/network",
            "image_endpoint_override": f"{here}/image",
            "placement_endpoint_override": f"{here}/placement",
        }
        (folder / "clouds.yaml").write_text(yaml.safe_dump({"clouds": {"nova": entry}}))
        yield there, openstack.of("nova", str(folder / "clouds.yaml"), blazar_filter=blazar_filter)
