"""Networks outside and floating addresses as Neutron keeps them, with what it refuses."""

from collections.abc import Callable
from dataclasses import dataclass, field
from ipaddress import ip_address, ip_network
from typing import Any, NoReturn
from uuid import uuid4

from flask import Flask, Response, abort, jsonify, request

OUTSIDE = "0a0a0a0a-0000-4000-8000-000000000001"
SUBNET = "0a0a0a0a-0000-4000-8000-000000000002"
NETWORKS = (
    {"id": OUTSIDE, "name": "public", "router:external": True},
    {"id": "0a0a0a0a-0000-4000-8000-000000000003", "name": "private", "router:external": False},
)
SUBNETS = (
    {
        "id": SUBNET,
        "network_id": OUTSIDE,
        "ip_version": 4,
        "cidr": "203.0.113.0/24",
        "gateway_ip": "203.0.113.1",
        "allocation_pools": [{"start": "203.0.113.100", "end": "203.0.113.199"}],
    },
    {"id": "v6", "network_id": OUTSIDE, "ip_version": 6, "cidr": "2001:db8::/64", "gateway_ip": "2001:db8::1"},
)
COMPARED = ("id", "name", "network_id", "floating_network_id", "floating_ip_address", "description")


@dataclass
class Neutron:
    """Its floating addresses by id, open to tests."""

    floating: dict[str, dict[str, Any]] = field(default_factory=dict)
    log: list[str] = field(default_factory=list)
    """What was changed, in order."""
    before: Callable[[str], None] = lambda verb: None
    """Called with each change before it is made."""

    def put(self, address: str, project_id: str = "somebody", **more: Any) -> dict[str, Any]:
        """A floating address that is there already."""
        made = {
            "id": str(uuid4()),
            "floating_network_id": OUTSIDE,
            "floating_ip_address": address,
            "project_id": project_id,
            "description": "",
            "tags": [],
            "port_id": None,
            **more,
        }
        self.floating[made["id"]] = made
        return made

    def at(self, address: str) -> dict[str, Any]:
        return next(each for each in self.floating.values() if each["floating_ip_address"] == address)

    # Its answers.

    def make(self) -> Response:
        wanted = request.get_json()["floatingip"]
        self.before("make")
        network, address = wanted["floating_network_id"], wanted["floating_ip_address"]
        if network != OUTSIDE:
            refuse(404, "NetworkNotFound", f"Network {network} could not be found.")
        if ip_address(address) not in ip_network("203.0.113.0/24"):
            words = f"IP address {address} is not a valid IP for any of the subnets on the specified network."
            refuse(400, "InvalidIpForNetwork", words)
        if any(each["floating_ip_address"] == address for each in self.floating.values()):
            refuse(409, "IpAddressAlreadyAllocated", f"IP address {address} already allocated in subnet {SUBNET}")
        self.log.append(f"make {wanted['floating_ip_address']}")
        made = self.put(wanted["floating_ip_address"], wanted["project_id"], description=wanted["description"])
        return _answer(201, {"floatingip": made})

    def _known(self, number: str) -> dict[str, Any]:
        if number not in self.floating:
            refuse(404, "FloatingIPNotFound", f"Floating IP {number} could not be found")
        return self.floating[number]

    def tag(self, number: str) -> Response:
        self.before("tag")
        if number not in self.floating:  # a real Neutron does not refuse it with 404
            words = "Request Failed: internal server error while processing your request."
            refuse(500, "HTTPInternalServerError", words)
        found = self.floating[number]
        found["tags"] = request.get_json()["tags"]
        self.log.append(f"tag {found['floating_ip_address']}")
        return _answer(200, {"tags": found["tags"]})

    def change(self, number: str) -> Response:
        found = self._known(number)
        found.update(request.get_json()["floatingip"])
        self.log.append(f"change {found['floating_ip_address']}")
        return _answer(200, {"floatingip": found})

    def drop(self, number: str) -> Response:
        self.before("drop")
        found = self._known(number)
        del self.floating[number]
        self.log.append(f"drop {found['floating_ip_address']}")
        return Response(status=204)

    def serve(self, app: Flask, root: str) -> None:
        """Add its routes to an app."""
        routes: tuple[tuple[str, str, Callable[..., Response]], ...] = (
            ("GET", "/networks", lambda: jsonify({"networks": _matching(NETWORKS)})),
            ("GET", "/subnets", lambda: jsonify({"subnets": _matching(SUBNETS)})),
            ("GET", "/floatingips", lambda: jsonify({"floatingips": _matching(self.floating.values())})),
            ("POST", "/floatingips", self.make),
            ("PUT", "/floatingips/<number>/tags", self.tag),
            ("PUT", "/floatingips/<number>", self.change),
            ("DELETE", "/floatingips/<number>", self.drop),
        )
        app.add_url_rule(root, root, _versions)
        for method, path, view in routes:
            app.add_url_rule(f"{root}/v2.0{path}", f"{method} {root}{path}", view, methods=[method])


def refuse(status: int, kind: str, message: str) -> NoReturn:
    abort(_answer(status, {"NeutronError": {"type": kind, "message": message, "detail": ""}}))


def _versions() -> Response:
    links = [{"rel": "self", "href": f"{request.base_url}/v2.0/"}]
    return jsonify({"versions": [{"id": "v2.0", "status": "CURRENT", "links": links}]})


def _matching(things: Any) -> list[dict[str, Any]]:
    """Those that the query of the request means: every condition holds, and all tags are there."""
    asked = request.args
    found = [each for each in things if all(each[key] == asked[key] for key in COMPARED if key in asked)]
    if "router:external" in asked:
        found = [each for each in found if each["router:external"] == (asked["router:external"] == "true")]
    if "ip_version" in asked:
        found = [each for each in found if str(each["ip_version"]) == asked["ip_version"]]
    if "tags" in asked:
        found = [each for each in found if set(asked["tags"].split(",")) <= set(each["tags"])]
    return found


def _answer(status: int, body: dict[str, Any]) -> Response:
    answer = jsonify(body)
    answer.status_code = status
    return answer
