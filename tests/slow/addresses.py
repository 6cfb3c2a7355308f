"""Networks and addresses for machines to ask about, and requests about them that can be served."""

from dataclasses import dataclass
from typing import Any

from schemathesis import Case

from climate.compute.network.network_options import NetworkOptions
from tests.api.compute.api_clients import Person, World, done
from tests.compute import network_factory

C = "/compute/v2.1"
MORE, SPARE = "10.22.0.0/28", "203.0.113.200"
"""A network and a floating address that are made by requests."""


@dataclass
class Networks:
    """A network with floating addresses, one with a VLAN, a pool, two addresses of it: one free, one in use."""

    world: World
    admin: Person
    member: Person

    def make(self) -> None:
        """The networks and the pool, as they are to be."""
        there = self._labels()
        with self.world.here.compute.engine.begin() as conn:
            if "dhcp" not in there:
                network_factory.network(conn, "dhcp", "10.20.0.0/20", "flat_dhcp", NetworkOptions(flat_bridge="br9"))
        for one in self.admin.get(f"{C}/os-networks")["networks"]:
            if one["cidr"] in (MORE, "10.21.0.0/28"):
                self.admin("POST", f"{C}/os-networks/{one['id']}/action", {"disassociate": None})
                self.admin("DELETE", f"{C}/os-networks/{one['id']}")
        body = {"label": "vlan", "cidr": "10.21.0.0/28", "manager": "vlan"}
        done(self.admin("POST", f"{C}/os-networks", {"network": body}))
        bulk = {"ip_range": "203.0.113.0/25", "pool": "public", "cidr": "203.0.113.0/24"}
        self.admin("POST", f"{C}/os-floating-ips-bulk", {"floating_ips_bulk_create": bulk})
        self.admin("PUT", f"{C}/os-floating-ips-bulk/delete", {"ip_range": SPARE})

    def furnish(self, server_id: str) -> dict[str, list[str]]:
        """What there is, for paths: a server has two addresses, of which one has a floating one."""
        there = self._labels()
        path = f"{C}/servers/{server_id}/os-interface"
        while len(self._port(path, there["dhcp"]).get("fixed_ips", ())) < 2:
            done(self.admin("POST", path, {"interfaceAttachment": {"net_id": there["dhcp"]}}))
            self.world.settle()
        port = self._port(path, there["dhcp"])
        first, second = (one["ip_address"] for one in port["fixed_ips"][:2])
        for one in self.member.get(f"{C}/os-floating-ips")["floating_ips"]:
            done(self.member("DELETE", f"{C}/os-floating-ips/{one['id']}"), 202)
        free, used = (done(self.member("POST", f"{C}/os-floating-ips"))["floating_ip"]["id"] for _ in range(2))
        body = {"associate_address": {"fixed_ip": first}}
        done(self.member("POST", f"{C}/os-floating-ips/{used}/associate", body))
        return {
            "server": [server_id],
            "os-interface": [port["port_id"]],
            "ips": ["private"],
            "os-floating-ips": [free],
            "used": [used],
            "os-floating-ips-bulk": [network_factory.HOST],
            "vlan": [there["vlan"]],
            "dhcp": [there["dhcp"]],
            "fixed": [second],
        }

    def _labels(self) -> dict[str, str]:
        return {one["label"]: one["id"] for one in self.admin.get(f"{C}/os-networks")["networks"]}

    def _port(self, path: str, network_id: str) -> dict[str, Any]:
        ports = self.admin.get(path)["interfaceAttachments"]
        return next((dict(port) for port in ports if port["net_id"] == network_id), {})


def aim(case: Case[Any], known: dict[str, list[str]]) -> None:
    """Make a request about networks or addresses one that can be served."""
    path = case.operation.path
    if "/os-networks" in path or "/os-floating-ip" in path:
        case.headers["OpenStack-API-Version"] = "compute 2.35"  # the network service has them in later ones
    if path.endswith("/disassociate"):
        case.path_parameters["floating_id"] = known["used"][0]
    if "{network_id}" in path and case.operation.method.upper() != "GET":
        case.path_parameters["network_id"] = known["vlan"][0]
    if "/os-interface" in path or path.endswith("/ips/{label}"):
        case.path_parameters["server_id"] = known["server"][0]
    if not isinstance(case.body, dict):
        return
    bodies: dict[str, Any] = {
        "/os-networks": {"network": {"label": "more", "cidr": MORE}},
        "/os-networks/add": {"id": known["vlan"][0], "project_id": "project"},
        "/os-floating-ips": {"pool": "public"},
        "/associate": {"associate_address": {"fixed_ip": known["fixed"][0]}},
        "/os-floating-ips-bulk": {"floating_ips_bulk_create": {"ip_range": SPARE, "pool": "public"}},
        "/os-floating-ips-bulk/delete": {"ip_range": "203.0.113.100-203.0.113.101"},
        "/os-interface": {"interfaceAttachment": {"net_id": known["dhcp"][0]}},
    }
    for end, body in bodies.items():
        if path.endswith(end) and set(case.body) == set(body):
            case.body = body
