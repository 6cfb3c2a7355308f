"""What a machine asks of network that has read its OpenAPI document: never a 5xx, a status or shape not in it."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import schemathesis
from schemathesis import Case

from api.network.openapi import OPERATIONS, PREFIX
from climate.compute.network.network_options import NetworkOptions
from climate.compute.store.networks import network_hosts
from tests.api.compute.api_clients import Person, World, done, world
from tests.campaign import FULL, length
from tests.slow.addresses import Networks
from tests.slow.machines import MODES, cloud_database, statuses

pytestmark = pytest.mark.slow

EXAMPLES = length(5, 20)
ORDER = ("GET", "PUT", "POST", "DELETE")
ROUTES = sorted(OPERATIONS, key=lambda route: (ORDER.index(route[0]), route[1]))
PROJECT_VLANS = NetworkOptions(project_vlans=range(3000, 3100))

KEPT = ("private", "dhcp", "vlan", "public")
"""Names of networks that are there throughout."""


class Furnished:
    """A world with networks and addresses in it."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.member, self.admin = Person(world.app, "member"), Person(world.app, "admin")
        self.networks = Networks(world, self.admin, self.member)
        self.server = ""
        self.known: dict[str, str] = {}

    def furnish(self) -> None:
        """Undo what the last machine did."""
        self.admin("DELETE", "/compute/v2.1/os-quota-sets/project")
        self.world.settle()  # the deletion of a port is a task of its server
        self.networks.make()
        if not self.server:
            self.server = self.member.booted()
            self.world.settle()
        self.known = {key: found[0] for key, found in self.networks.furnish(self.server).items()}
        for row in self.admin.get(f"{PREFIX}/ports?limit=1000")["ports"]:
            if not row["device_owner"].startswith("compute:"):
                done(self.admin("DELETE", f"{PREFIX}/ports/{row['id']}"), 204)
        for row in self.admin.get(f"{PREFIX}/networks?limit=1000")["networks"]:
            if row["name"] not in KEPT:
                done(self.admin("DELETE", f"{PREFIX}/networks/{row['id']}"), 204)
        outline = {"network": {"name": "outline", "router:external": True}}
        made = done(self.admin("POST", f"{PREFIX}/networks", outline), 201)
        compute = self.world.here.compute
        with compute.engine.begin() as conn:
            network_hosts.beat(conn, "net-1", compute.now(conn))
        self._look(made["network"]["id"])

    def _look(self, outline_id: str) -> None:
        see = self.member.get
        group = self._group()
        pool = next(row for row in see(f"{PREFIX}/networks")["networks"] if row["name"] == "public")
        self.known |= {
            "network_id": self.known["dhcp"],
            "outline": outline_id,
            "pool": pool["id"],
            "subnet_id": pool["subnets"][0],
            **self._own(),
            "floating_id": self.known["os-floating-ips"],
            "project_id": "project",
            "group_id": group["id"],
            "rule_id": group["security_group_rules"][0]["id"],
            "agent_id": self.admin.get(f"{PREFIX}/agents")["agents"][0]["id"],
            "alias": "quotas",
        }

    def _own(self) -> dict[str, str]:
        """A port, and networks of the member: one without a subnet, one with a subnet that nothing uses."""
        bare, ranged = (self._made("networks", "network", {"name": name})["id"] for name in ("bare", "ranged"))
        subnet = self._made("subnets", "subnet", {"network_id": ranged, "cidr": "10.77.0.0/28"})
        port = self._made("ports", "port", {"network_id": self.known["dhcp"]})
        return {"bare": bare, "own_subnet": subnet["id"], "port_id": port["id"]}

    def _made(self, path: str, key: str, values: dict[str, Any]) -> dict[str, Any]:
        return dict(done(self.member("POST", f"{PREFIX}/{path}", {key: values}), 201)[key])

    def _group(self) -> dict[str, Any]:
        """A security group of the member with rules: earlier requests may have deleted it, or all its rules."""
        for group in self.member.get(f"{PREFIX}/security-groups?name=target")["security_groups"]:
            done(self.admin("DELETE", f"{PREFIX}/security-groups/{group['id']}"), 204)
        made = done(self.member("POST", f"{PREFIX}/security-groups", {"security_group": {"name": "target"}}), 201)
        return dict(made["security_group"])

    def aim(self, case: Case[Any], number: int) -> None:
        """Put what there is into the path and the body of a request."""
        path, method = case.operation.path, case.operation.method.upper()
        for parameter in case.path_parameters:
            case.path_parameters[parameter] = self.known[parameter]
        if method == "DELETE" and "{network_id}" in path:
            case.path_parameters["network_id"] = self.known["bare"]
        if method == "PUT" and "{network_id}" in path:
            case.path_parameters["network_id"] = self.known["bare"]
        if method == "DELETE" and "{subnet_id}" in path:
            case.path_parameters["subnet_id"] = self.known["own_subnet"]
        bodies: dict[str, Any] = {
            "POST /networks": {"network": {"name": f"n{number}", "admin_state_up": True}},
            "PUT /networks/{network_id}": {"network": {"name": f"n{number}"}},
            "POST /subnets": {"subnet": {"network_id": self.known["bare"], "cidr": "10.78.0.0/28"}},
            "POST /ports": {"port": {"network_id": self.known["network_id"], "name": f"p{number}"}},
            "PUT /ports/{port_id}": {"port": {"name": f"p{number}"}},
            "PUT /subnets/{subnet_id}": {"subnet": {"name": "ignored"}},
            "POST /floatingips": {"floatingip": {"floating_network_id": self.known["pool"]}},
            "PUT /floatingips/{floating_id}": {"floatingip": {"port_id": None}},
            "PUT /quotas/{project_id}": {"quota": {"floatingip": 100}},
        }
        body = bodies.get(f"{method} {path.removeprefix(PREFIX)}")
        if body is not None and isinstance(case.body, dict) and set(case.body) == set(body):
            case.body = body


@pytest.fixture(scope="module")
def furnished(
    make_database: Callable[..., str], engine_template: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Furnished]:
    home = tmp_path_factory.mktemp("home")
    with world(cloud_database(make_database, engine_template), home, PROJECT_VLANS) as there:
        yield Furnished(there)


@pytest.fixture(scope="module")
def described(furnished: Furnished) -> Any:
    return schemathesis.openapi.from_wsgi("/network/openapi.json", furnished.world.app)


@pytest.mark.timeout(300)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", ["admin", "member"])
@pytest.mark.parametrize(("method", "path"), ROUTES, ids=[" ".join(route) for route in ROUTES])
def test_a_route(furnished: Furnished, described: Any, method: str, path: str, name: str, mode: str) -> None:
    furnished.furnish()
    operation = described[PREFIX + path.replace("<", "{").replace(">", "}")][method]
    seen = statuses(operation, mode, name, furnished.aim, EXAMPLES)
    if FULL and mode == "as told" and name == "admin":  # a few requests need not reach every success
        assert min(seen) < 400
