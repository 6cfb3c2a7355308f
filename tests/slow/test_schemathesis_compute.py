"""What a machine asks of compute that has read its OpenAPI document: never a 5xx, a status or shape not in it."""

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest
import schemathesis
from schemathesis import Case

from api.compute.openapi.routes import OPERATIONS
from climate.compute.nodes import services
from climate.compute.nodes.services import IMAGE_ID
from tests.api.compute.api_clients import NODES, SERVICE, Person, World, done, hours_away, world
from tests.api.volume.conftest import R, leased
from tests.campaign import FULL, length
from tests.slow.addresses import Networks, aim
from tests.slow.machines import MODES, cloud_database, statuses

pytestmark = pytest.mark.slow

C = "/compute/v2.1"
LATEST = "2.79"
EXAMPLES = length(5, 20)
"""Requests per operation, person and mode."""

ORDER = ("GET", "PUT", "POST", "DELETE")
ALL_ROUTES = sorted(OPERATIONS, key=lambda route: (ORDER.index(route[0]), route[1]))
ROUTES = length(ALL_ROUTES[::4], ALL_ROUTES)

CERTIFICATES = "/os-cloudpipe/<project_id>/certificates"
NEVER_SERVED = {
    ("POST", "/servers/<server_id>/remote-consoles"),
    ("DELETE", "/os-services/<service_id>"),
    ("GET", "/servers/<server_id>/migrations/<migration_id>"),
    ("POST", "/os-cloudpipe"),
    ("PUT", "/os-cloudpipe/configure-project"),
    ("DELETE", "/os-cloudpipe/<project_id>"),
    ("GET", CERTIFICATES),
    ("POST", CERTIFICATES),
    ("DELETE", f"{CERTIFICATES}/<serial>"),
}
"""There are no consoles, the one service is up, no live migration is under way, and cloudpipes have no image."""

STATES: Mapping[str, tuple[tuple[str, Any], ...]] = {
    "ACTIVE": (),
    "SHUTOFF": (("os-stop", None),),
    "PAUSED": (("pause", None),),
    "VERIFY_RESIZE": (("resize", {"flavorRef": "plain"}),),
    "SHELVED_OFFLOADED": (("shelve", None),),
}
"""Statuses of servers -> how a running one gets there."""

THERE = {"there": "yes"}
PLAIN = {"id": "plain", "name": "plain", "vcpus": 1, "ram": 600, "disk": 2}
CLOSED = {"id": "closed", "name": "closed", "vcpus": 1, "ram": 64, "disk": 1, "os-flavor-access:is_public": False}


ZONE = {"api_url": "http://127.0.0.1:9/compute/v2.1", "username": "u", "password": "p"}
POOL = {"name": "fast", "storage_class": "ssd", "backend": "local", "capacity_gb": 4}
VOLUMES = "/volume/v3/volumes"
IMAGES = "/image/v2/images"
SPARE = {"name": "spare", "disk_format": "raw", "container_format": "bare", **THERE}
CELL = {"name": "other", "type": "child", "transport_url": "redis://127.0.0.1:9/0", "secret": "a secret of this link"}


class Furnished:
    """A world with something of everything in it, for requests to be about."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.member, self.admin = Person(world.app, "member"), Person(world.app, "admin")
        self.known: dict[str, list[str]] = {}
        self.servers: dict[str, str] = {}
        self.touched = True
        self.networks = Networks(world, self.admin, self.member)

    def furnish(self) -> None:
        """Undo what the last machine did to the cloud, and make what it took away."""
        self._reopen()
        for flavor in (PLAIN, CLOSED):
            self.admin("POST", f"{C}/flavors", {"flavor": flavor})
            self.admin("POST", f"{C}/flavors/{flavor['id']}/os-extra_specs", {"extra_specs": THERE})
        for who in (self.member, self.admin):
            who("POST", f"{C}/os-keypairs", {"keypair": {"name": "k"}})
        aggregates = self._some("os-aggregates", "aggregate", {"name": "some"}, self.admin)
        groups = self._some("os-server-groups", "server_group", {"name": "g", "policies": ["affinity"]}, self.member)
        self.networks.make()
        servers = self._servers()
        for node in NODES:
            self.admin("POST", f"{C}/os-aggregates/{aggregates[0]}/action", {"remove_host": {"host": node}})
        security = [str(one["id"]) for one in self.member.get(f"{C}/os-security-groups")["security_groups"]]
        self.known = {
            "servers": servers,
            "metadata": ["there"],
            "tags": ["there"],
            "os-security-groups": security,
            "os-security-group-rules": [IMAGE_ID],
            "os-extra_specs": ["there"],
            "os-instance-actions": [self._note(server_id) for server_id in servers],
            "flavors": ["plain", "closed"],
            "images": self._images(),
            "os-keypairs": ["k"],
            "os-quota-sets": ["project"],
            "os-simple-tenant-usage": ["project"],
            "os-server-groups": groups,
            "os-aggregates": aggregates,
            "os-services": self._ids("services", LATEST),
            "os-hypervisors": [*self._ids("hypervisors", "2.1"), *self._ids("hypervisors", LATEST)],
            "pattern": ["std"],
            "os-hosts": [SERVICE, "std-1"],
            "os-instance_usage_audit_log": ["2026-11-23 21:00:00"],
            "zones": self._zones(),
            "os-cells": self._cells(),
            "builds": ["none"],
            "migrations": ["1"],
            "os-zone-builds": ["r-nobodys"],
            "os-cloudpipe": ["project"],
            "certificates": ["1"],
            "extensions": ["os-hosts"],
            "os-tenant-networks": [self.admin.get(f"{C}/os-networks")["networks"][0]["id"]],
            "os-networks": [self.admin.get(f"{C}/os-networks")["networks"][0]["id"]],
        }
        self.known |= self.networks.furnish(self.servers["ACTIVE"]) | {"os-volume_attachments": self._volumes()}

    def _zones(self) -> list[str]:
        self.admin("POST", f"{C}/zones", {"zone": ZONE})
        return [str(zone["id"]) for zone in self.admin.get(f"{C}/zones")["zones"]]

    def _cells(self) -> list[str]:
        self.admin("POST", f"{C}/os-cells", {"cell": CELL})
        return [CELL["name"]]

    def _images(self) -> list[str]:
        """An image without servers, whose metadata have one key."""
        there = [image for image in self.member.get(IMAGES)["images"] if image["name"] == SPARE["name"]]
        if not there:
            there = [done(self.member("POST", IMAGES, SPARE), 201)]
        return [str(there[0]["id"])]

    def _volumes(self) -> list[str]:
        """Two volumes of a lease, of which the first is attached to a server."""
        if not self.member.get(VOLUMES)["volumes"]:
            self.admin("POST", f"{R}/storage-pools", POOL)
            leased(self.world, self.member)
        ids = [str(volume["id"]) for volume in self.member.get(VOLUMES)["volumes"]]
        path = f"{C}/servers/{self.servers['ACTIVE']}/os-volume_attachments"
        self.member("POST", path, {"volumeAttachment": {"volumeId": ids[0]}})
        self.world.settle()
        return ids

    def aim(self, case: Case[Any], number: int) -> None:
        """Put what there is into the path and the body of a request."""
        if number % 2 == 0:
            case.headers["OpenStack-API-Version"] = f"compute {LATEST}"
        nouns = re.findall(r"/([^/{]+)/{(\w+)}", case.operation.path)
        for noun, parameter in nouns:
            there = self.known.get(parameter, self.known[noun])
            case.path_parameters[parameter] = there[number % len(there)]
        if nouns and nouns[-1][1] == "key" and isinstance(case.body, dict):
            if "meta" in case.body:
                case.body["meta"] = {"there": "v"}
            elif nouns[-1][0] == "os-extra_specs":
                case.body = {"there": "v"}
        if isinstance(case.body, dict) and isinstance(case.body.get("server"), dict):
            for key in ("host", "hypervisor_hostname"):
                case.body["server"].pop(key, None)
            if "flavorRef" in case.body["server"]:
                case.body["server"] |= {"imageRef": IMAGE_ID, "networks": "auto"}
        _aim_at_one(case)
        aim(case, self.known)
        self._fill(case.body, number)

    def _fill(self, body: Any, number: int) -> None:
        there: dict[str, Any] = {
            "imageRef": IMAGE_ID,
            "flavorRef": ("1", "plain")[number % 2],
            "key_name": "k",
            "min_count": 1,
            "max_count": 2,
            "os:scheduler_hints": {"group": self.known["os-server-groups"][0]},
            "OS-SCH-HNT:scheduler_hints": {},
            "scheduler_hints": {},
            "networks": "auto",
            "block_device_mapping_v2": [],
            "availability_zone": "nova",
            "host": ("std-1", SERVICE)[number % 2],
        }
        if not isinstance(body, dict):
            return
        for key, value in body.items():
            if key in there and value is not None:
                body[key] = there[key]
            self._fill(value, number)

    def _reopen(self) -> None:
        self.admin("DELETE", f"{C}/os-quota-sets/project")
        self.admin("PUT", f"{C}/os-hosts/std-1", {"maintenance_mode": "disable"})
        for form, more in (("enable", {}), ("force-down", {"forced_down": False})):
            body = {"host": SERVICE, "binary": "nova-compute", **more}
            headers = {"OpenStack-API-Version": "compute 2.11"}
            self.admin("PUT", f"{C}/os-services/{form}", body, headers=headers)
        services.refresh(self.world.here.compute)
        self.world.settle()

    def _ids(self, noun: str, version: str) -> list[str]:
        return [str(one["id"]) for one in self.admin.get(f"{C}/os-{noun}", version)[noun]]

    def _note(self, server_id: str) -> str:
        """The id of the request that was the first of a server's."""
        notes = self.member.get(f"{C}/servers/{server_id}/os-instance-actions")["instanceActions"]
        return str(notes[-1]["request_id"])

    def _some(self, path: str, noun: str, body: dict[str, Any], who: Person) -> list[str]:
        """The ids of what bears the name, which is made if nothing does."""
        there = [found for found in who.get(f"{C}/{path}")[f"{noun}s"] if found["name"] == body["name"]]
        found = there or [done(who("POST", f"{C}/{path}", {noun: body}))[noun]]
        return [str(one["id"]) for one in found]

    def _servers(self) -> list[str]:
        """A server of each status, as `_server` made it, and no others."""
        shown = self.admin.get(f"{C}/servers/detail?all_tenants=1", LATEST)["servers"]
        whole = {one["id"]: one["status"] for one in shown if one["metadata"] == THERE and not one["locked"]}
        self.servers = {status: name for status, name in self.servers.items() if whole.get(name) == status}
        for one in shown:
            if one["id"] not in self.servers.values():
                self.admin.act(one["id"], "unlock")
                self.admin("DELETE", f"{C}/servers/{one['id']}")
        self.world.settle()
        for status, steps in STATES.items():
            if status not in self.servers:
                self.servers[status] = self._server(steps)
        if "RESERVED" not in self.servers:
            params = f'{{"end": "{hours_away(500)}"}}'
            self.servers["RESERVED"] = self.member.booted({"reserved": True, "lease_params": params}, metadata=THERE)
        self.servers["BUILD"] = self.member.booted(metadata=THERE)
        return list(self.servers.values())

    def _server(self, steps: tuple[tuple[str, Any], ...]) -> str:
        server_id = self.member.booted(metadata=THERE)
        self.world.settle()
        for action, details in steps:
            self.member.act(server_id, action, details)
            self.world.settle()
        return server_id


def _aim_at_one(case: Case[Any]) -> None:
    """Where only one of what there is will do."""
    if case.operation.path.endswith("/flavors/{flavor_id}/action"):
        case.path_parameters["flavor_id"] = "closed"  # all projects have the other one
    if "/os-hosts/" in case.operation.path:
        case.headers["OpenStack-API-Version"] = "compute 2.1"  # there are none in later ones
        of_service = isinstance(case.body, dict) and "status" in case.body
        case.path_parameters["name"] = SERVICE if of_service else "std-1"


@pytest.fixture(scope="module")
def furnished(
    make_database: Callable[..., str], engine_template: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Furnished]:
    with world(cloud_database(make_database, engine_template), tmp_path_factory.mktemp("home")) as there:
        yield Furnished(there)


@pytest.fixture(scope="module")
def described(furnished: Furnished) -> Any:
    return schemathesis.openapi.from_wsgi("/compute/openapi.json", furnished.world.app)


@pytest.mark.timeout(300)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", ["admin", "member"])
@pytest.mark.parametrize(("method", "path"), ROUTES, ids=[" ".join(route) for route in ROUTES])
def test_a_route(furnished: Furnished, described: Any, method: str, path: str, name: str, mode: str) -> None:
    if furnished.touched:
        furnished.furnish()
    furnished.touched = method != "GET"
    operation = described[C + path.replace("<", "{").replace(">", "}")][method]
    seen = statuses(operation, mode, name, furnished.aim, EXAMPLES)
    if FULL and mode == "as told" and name == "admin":  # a few requests need not reach every success
        assert min(seen) < 400 or (method, path) in NEVER_SERVED
