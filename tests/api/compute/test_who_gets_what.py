"""Every route of compute, asked by everybody: nobody sees or touches what is another project's."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pytest

from api.compute.openapi.routes import OPERATIONS
from api.compute.servers.actions.actions import ACTIONS
from climate.compute.nodes.services import IMAGE_ID
from tests.api.compute import address_matrix
from tests.api.compute.api_clients import Person, World, done, server
from tests.api.reservation.api_clients import PEOPLE

C = "/compute/v2.1"
ASKERS = ("nobody", "stranger", "without a role", "reader", "member", "admin")
OUTSIDERS = ("nobody", "stranger", "without a role")

SERVER = "/servers/<server_id>"
META = f"{SERVER}/metadata"
TAGS = f"{SERVER}/tags"
IMAGE = "/images/<image_id>"
IMAGE_META = f"{IMAGE}/metadata"
NOTES = f"{SERVER}/os-instance-actions"
FLAVOR = "/flavors/<flavor_id>"
SPECS = f"{FLAVOR}/os-extra_specs"
AGGREGATE = "/os-aggregates/<aggregate_id>"
NODE = "/os-hypervisors/<node_id>"
SERVICE = "/os-services/<service_id>"
QUOTA = "/os-quota-sets/<project_id>"
CLASS = "/os-quota-class-sets/<name>"
GROUP = "/os-server-groups/<group_id>"
ZONE = "/zones/<zone_id>"
CELL = "/os-cells/<name>"
NEIGHBOUR = {
    "type": "child",
    "transport_url": "redis://:hidden-word@hidden-broker:6379/0",
    "secret": "hidden-secret of this link",
}
CHILD = {"api_url": "http://hidden-zone", "username": "u", "password": "p"}

FOR_ADMINS = (401, 403, 403, 403, 403)
FOR_ALL = (401, 200, 403, 200, 200, 200)
FOR_THE_PROJECT = (401, 404, 403, 200, 200, 200)
CHANGED = (401, 404, 403, 403, 200, 200)
HIDDEN = (401, 404, 403, 404, 404, 200)

MATRIX: Mapping[tuple[str, str], tuple[int, ...]] = {
    ("GET", "/servers"): FOR_ALL,
    ("GET", "/servers/detail"): FOR_ALL,
    ("POST", "/servers"): (401, 202, 403, 403, 202, 202),
    ("GET", SERVER): FOR_THE_PROJECT,
    ("PUT", SERVER): CHANGED,
    ("DELETE", SERVER): (401, 404, 403, 403, 204, 204),
    ("GET", META): FOR_THE_PROJECT,
    ("POST", META): CHANGED,
    ("PUT", META): CHANGED,
    ("GET", f"{META}/<key>"): FOR_THE_PROJECT,
    ("PUT", f"{META}/<key>"): CHANGED,
    ("DELETE", f"{META}/<key>"): (401, 404, 403, 403, 204, 204),
    ("GET", TAGS): FOR_THE_PROJECT,
    ("PUT", TAGS): CHANGED,
    ("DELETE", TAGS): (401, 404, 403, 403, 204, 204),
    ("GET", f"{TAGS}/<tag>"): (401, 404, 403, 204, 204, 204),
    ("PUT", f"{TAGS}/<tag>"): (401, 404, 403, 403, 204, 204),
    ("DELETE", f"{TAGS}/<tag>"): (401, 404, 403, 403, 204, 204),
    ("GET", NOTES): FOR_THE_PROJECT,
    ("GET", f"{NOTES}/<request_id>"): FOR_THE_PROJECT,
    ("GET", f"{SERVER}/scheduling"): (*FOR_ADMINS, 200),
    ("GET", "/os-hosts/<name>/moves"): (*FOR_ADMINS, 200),
    ("GET", "/os-migrations"): (*FOR_ADMINS, 200),
    ("GET", f"{SERVER}/migrations"): (*FOR_ADMINS, 200),
    ("GET", f"{SERVER}/migrations/<migration_id>"): (*FOR_ADMINS, 404),
    ("DELETE", f"{SERVER}/migrations/<migration_id>"): (*FOR_ADMINS, 404),
    ("POST", f"{SERVER}/migrations/<migration_id>/action"): (*FOR_ADMINS, 404),
    ("GET", f"{SERVER}/os-server-password"): FOR_THE_PROJECT,
    ("DELETE", f"{SERVER}/os-server-password"): (401, 404, 403, 403, 204, 204),
    ("POST", "/os-server-external-events"): (*FOR_ADMINS, 200),
    ("GET", f"{SERVER}/diagnostics"): (*FOR_ADMINS, 200),
    ("POST", f"{SERVER}/action"): (401, 404, 403, 403, 202, 202),
    ("POST", f"{SERVER}/remote-consoles"): (401, 404, 403, 501, 501, 501),
    ("GET", "/flavors"): FOR_ALL,
    ("GET", "/flavors/detail"): FOR_ALL,
    ("POST", "/flavors"): (*FOR_ADMINS, 200),
    ("GET", FLAVOR): FOR_THE_PROJECT,
    ("PUT", FLAVOR): (*FOR_ADMINS, 200),
    ("DELETE", FLAVOR): (*FOR_ADMINS, 202),
    ("GET", SPECS): FOR_THE_PROJECT,
    ("POST", SPECS): (*FOR_ADMINS, 200),
    ("GET", f"{SPECS}/<key>"): FOR_THE_PROJECT,
    ("PUT", f"{SPECS}/<key>"): (*FOR_ADMINS, 200),
    ("DELETE", f"{SPECS}/<key>"): (*FOR_ADMINS, 200),
    ("GET", f"{FLAVOR}/os-flavor-access"): (*FOR_ADMINS, 200),
    ("POST", f"{FLAVOR}/action"): (*FOR_ADMINS, 200),
    ("GET", "/images"): FOR_ALL,
    ("GET", "/images/detail"): FOR_ALL,
    ("GET", IMAGE): FOR_THE_PROJECT,
    ("DELETE", IMAGE): (401, 404, 403, 403, 204, 204),
    ("GET", IMAGE_META): FOR_THE_PROJECT,
    ("POST", IMAGE_META): CHANGED,
    ("PUT", IMAGE_META): CHANGED,
    ("GET", f"{IMAGE_META}/<key>"): FOR_THE_PROJECT,
    ("PUT", f"{IMAGE_META}/<key>"): CHANGED,
    ("DELETE", f"{IMAGE_META}/<key>"): (401, 404, 403, 403, 204, 204),
    ("GET", "/limits"): FOR_ALL,
    ("GET", "/extensions"): FOR_ALL,
    ("GET", "/extensions/<alias>"): FOR_ALL,
    ("GET", QUOTA): (401, 403, 403, 200, 200, 200),
    ("GET", f"{QUOTA}/defaults"): FOR_ALL,
    ("GET", f"{QUOTA}/detail"): (401, 403, 403, 200, 200, 200),
    ("GET", "/os-simple-tenant-usage"): (*FOR_ADMINS, 200),
    ("GET", "/os-simple-tenant-usage/<project_id>"): (401, 403, 403, 200, 200, 200),
    ("PUT", QUOTA): (*FOR_ADMINS, 200),
    ("DELETE", QUOTA): (*FOR_ADMINS, 202),
    ("GET", CLASS): (*FOR_ADMINS, 200),
    ("PUT", CLASS): (*FOR_ADMINS, 200),
    ("GET", "/os-keypairs"): FOR_ALL,
    ("POST", "/os-keypairs"): (401, 200, 403, 403, 200, 200),
    ("GET", "/os-keypairs/<name>"): (401, 404, 403, 404, 200, 404),
    ("DELETE", "/os-keypairs/<name>"): (401, 404, 403, 403, 202, 404),
    ("GET", "/os-hypervisors"): (*FOR_ADMINS, 200),
    ("GET", "/os-hypervisors/detail"): (*FOR_ADMINS, 200),
    ("GET", "/os-hypervisors/statistics"): (*FOR_ADMINS, 200),
    ("GET", NODE): (*FOR_ADMINS, 200),
    ("GET", f"{NODE}/uptime"): (*FOR_ADMINS, 200),
    ("GET", "/os-hypervisors/<pattern>/search"): (*FOR_ADMINS, 200),
    ("GET", "/os-hypervisors/<pattern>/servers"): (*FOR_ADMINS, 200),
    ("GET", "/os-hosts"): (*FOR_ADMINS, 200),
    ("GET", "/os-hosts/<name>"): (*FOR_ADMINS, 200),
    ("PUT", "/os-hosts/<name>"): (*FOR_ADMINS, 200),
    **{("GET", f"/os-hosts/<name>/{verb}"): (*FOR_ADMINS, 501) for verb in ("reboot", "shutdown", "startup")},
    ("GET", "/os-services"): (*FOR_ADMINS, 200),
    ("GET", "/os-instance_usage_audit_log"): (*FOR_ADMINS, 200),
    ("GET", "/os-instance_usage_audit_log/<before>"): (*FOR_ADMINS, 200),
    ("PUT", SERVICE): (*FOR_ADMINS, 200),
    ("DELETE", SERVICE): (*FOR_ADMINS, 409),
    ("GET", "/os-aggregates"): (*FOR_ADMINS, 200),
    ("POST", "/os-aggregates"): (*FOR_ADMINS, 200),
    ("GET", AGGREGATE): (*FOR_ADMINS, 200),
    ("PUT", AGGREGATE): (*FOR_ADMINS, 200),
    ("DELETE", AGGREGATE): (*FOR_ADMINS, 200),
    ("POST", f"{AGGREGATE}/action"): (*FOR_ADMINS, 200),
    ("GET", "/os-server-groups"): FOR_ALL,
    ("POST", "/os-server-groups"): (401, 200, 403, 403, 200, 200),
    ("GET", GROUP): FOR_THE_PROJECT,
    ("DELETE", GROUP): (401, 404, 403, 403, 204, 204),
    ("GET", "/os-availability-zone"): FOR_ALL,
    ("GET", "/os-availability-zone/detail"): (*FOR_ADMINS, 200),
    ("GET", "/zones"): (*FOR_ADMINS, 200),
    ("GET", "/zones/detail"): (*FOR_ADMINS, 200),
    ("GET", "/zones/info"): (*FOR_ADMINS, 200),
    ("POST", "/zones"): (*FOR_ADMINS, 200),
    ("GET", ZONE): (*FOR_ADMINS, 200),
    ("PUT", ZONE): (*FOR_ADMINS, 200),
    ("DELETE", ZONE): (*FOR_ADMINS, 200),
    ("POST", "/zones/select"): (*FOR_ADMINS, 409),
    ("POST", "/zones/boot"): (*FOR_ADMINS, 200),
    ("GET", "/zones/builds/<build_id>"): (*FOR_ADMINS, 200),
    ("GET", "/os-zone-builds"): FOR_ALL,
    ("GET", "/os-zone-builds/<reservation_id>"): (401, 404, 403, 404, 404, 404),
    ("GET", "/os-cells"): (*FOR_ADMINS, 200),
    ("GET", "/os-cells/detail"): (*FOR_ADMINS, 200),
    ("GET", "/os-cells/info"): (*FOR_ADMINS, 200),
    ("GET", "/os-cells/capacities"): (*FOR_ADMINS, 200),
    ("POST", "/os-cells"): (*FOR_ADMINS, 200),
    ("POST", "/os-cells/sync_instances"): (*FOR_ADMINS, 204),
    ("GET", CELL): (*FOR_ADMINS, 200),
    ("GET", f"{CELL}/capacities"): (*FOR_ADMINS, 200),
    ("PUT", CELL): (*FOR_ADMINS, 200),
    ("DELETE", CELL): (*FOR_ADMINS, 204),
    **address_matrix.MATRIX,
}
"""Route -> the answer to each of ASKERS, about things of the project of `reader` and `member`, or behind the cloud."""

VERSIONS = {
    ("PUT", FLAVOR): "2.55",
    ("PUT", SERVICE): "2.53",
    ("DELETE", SERVICE): "2.53",
    **{(method, f"{TAGS}{one}"): "2.26" for method in ("GET", "PUT", "DELETE") for one in ("", "/<tag>")},
    ("GET", f"{SERVER}/migrations"): "2.23",
    ("GET", f"{SERVER}/migrations/<migration_id>"): "2.23",
    ("DELETE", f"{SERVER}/migrations/<migration_id>"): "2.24",
    ("POST", f"{SERVER}/migrations/<migration_id>/action"): "2.22",
}
"""Routes that there are since a later microversion."""

BODIES: Mapping[tuple[str, str], dict[str, Any]] = {
    ("POST", "/servers"): {"server": server(name="own")},
    ("PUT", SERVER): {"server": {"name": "changed"}},
    ("POST", META): {"metadata": {"there": "changed"}},
    ("PUT", META): {"metadata": {"there": "changed"}},
    ("PUT", f"{META}/<key>"): {"meta": {"there": "changed"}},
    ("PUT", TAGS): {"tags": ["hidden-tag"]},
    ("POST", IMAGE_META): {"metadata": {"there": "changed"}},
    ("PUT", IMAGE_META): {"metadata": {"there": "changed"}},
    ("PUT", f"{IMAGE_META}/<key>"): {"meta": {"there": "changed"}},
    ("POST", f"{SERVER}/action"): {"unlock": None},
    ("POST", f"{SERVER}/migrations/<migration_id>/action"): {"force_complete": None},
    ("POST", f"{SERVER}/remote-consoles"): {"remote_console": {"protocol": "vnc", "type": "novnc"}},
    ("POST", "/flavors"): {"flavor": {"name": "more", "vcpus": 1, "ram": 64, "disk": 1}},
    ("PUT", FLAVOR): {"flavor": {"description": "changed"}},
    ("POST", SPECS): {"extra_specs": {"there": "changed"}},
    ("PUT", f"{SPECS}/<key>"): {"there": "changed"},
    ("POST", f"{FLAVOR}/action"): {"addTenantAccess": {"tenant": "third-project"}},
    ("PUT", QUOTA): {"quota_set": {"instances": 9}},
    ("PUT", CLASS): {"quota_class_set": {"instances": 60}},
    ("POST", "/os-server-external-events"): {"events": [{"name": "network-changed", "server_uuid": "<server_id>"}]},
    ("POST", "/os-keypairs"): {"keypair": {"name": "more"}},
    ("PUT", "/os-hosts/<name>"): {"maintenance_mode": "enable"},
    ("PUT", SERVICE): {"status": "disabled"},
    ("POST", "/os-aggregates"): {"aggregate": {"name": "more"}},
    ("PUT", AGGREGATE): {"aggregate": {"name": "changed"}},
    ("POST", f"{AGGREGATE}/action"): {"set_metadata": {"metadata": {"a": "b"}}},
    ("POST", "/os-server-groups"): {"server_group": {"name": "more", "policies": ["affinity"]}},
    ("POST", "/zones"): {"zone": CHILD | {"api_url": "http://another"}},
    ("PUT", ZONE): {"zone": {"weight_scale": 2.0}},
    ("POST", "/zones/boot"): {"server": server(name="own")},
    ("POST", "/zones/select"): {},
    ("POST", "/os-cells"): {"cell": NEIGHBOUR | {"name": "another"}},
    ("POST", "/os-cells/sync_instances"): {},
    ("PUT", CELL): {"cell": {"weight_scale": 2.0}},
    **address_matrix.BODIES,
}


@dataclass(frozen=True)
class Kept:
    """What a project has: where it is found, and what nobody else may be told."""

    names: Mapping[str, str]
    secrets: tuple[str, ...]

    def path(self, route: str) -> str:
        return C + self._named(route)

    def body(self, route: tuple[str, str]) -> Any:
        return json.loads(self._named(json.dumps(BODIES.get(route))))

    def _named(self, text: str) -> str:
        for mark, name in self.names.items():
            text = text.replace(mark, name)
        return text


@pytest.fixture
def kept(there: World, member: Person, admin: Person) -> Kept:
    """One of everything, in the member's project or behind the cloud."""
    flavor = {"id": "hidden-flavor", "name": "hidden-size", "vcpus": 1, "ram": 64, "disk": 1}
    done(admin("POST", f"{C}/flavors", {"flavor": {**flavor, "os-flavor-access:is_public": False}}))
    for path, body in (
        ("os-extra_specs", {"extra_specs": {"there": "hidden-spec"}}),
        ("action", {"addTenantAccess": {"tenant": "project"}}),
    ):
        done(admin("POST", f"{C}/flavors/hidden-flavor/{path}", body))
    done(member("POST", f"{C}/os-keypairs", {"keypair": {"name": "hidden-key"}}))
    group = {"name": "hidden-group", "policies": ["affinity"]}
    group_id = done(member("POST", f"{C}/os-server-groups", {"server_group": group}))["server_group"]["id"]
    aggregate = done(admin("POST", f"{C}/os-aggregates", {"aggregate": {"name": "hidden-pool"}}))["aggregate"]["id"]
    zone = done(admin("POST", f"{C}/zones", {"zone": CHILD}))["zone"]["id"]
    done(admin("POST", f"{C}/os-cells", {"cell": NEIGHBOUR | {"name": "hidden-cell"}}))
    dhcp = address_matrix.furnish(there, admin)
    server_id = member.booted({"group": group_id}, name="hidden-server", metadata={"there": "hidden-value"})
    there.settle()
    done(
        member(
            "PUT",
            f"{C}/servers/{server_id}/tags",
            {"tags": ["hidden-tag"]},
            headers={"OpenStack-API-Version": "compute 2.26"},
        )
    )
    (note,) = member.get(f"{C}/servers/{server_id}/os-instance-actions")["instanceActions"]
    image = {"name": "hidden-image", "visibility": "private", "there": "hidden-property"}
    image_id = done(member("POST", "/image/v2/images", image), 201)["id"]
    names = {
        "<server_id>": server_id,
        "<image_id>": image_id,
        "<request_id>": note["request_id"],
        "<key>": "there",
        "<tag>": "hidden-tag",
        "<alias>": "os-hosts",
        "<flavor_id>": "hidden-flavor",
        "<project_id>": "project",
        "/os-keypairs/<name>": "/os-keypairs/hidden-key",
        "/os-hosts/<name>": "/os-hosts/gpu-2",
        "<node_id>": str(admin.get(f"{C}/os-hypervisors")["hypervisors"][0]["id"]),
        "<pattern>": "std",
        "<before>": "2026-11-23 21:00:00",
        "<service_id>": admin.get(f"{C}/os-services", "2.53")["services"][0]["id"],
        "<aggregate_id>": str(aggregate),
        "<group_id>": group_id,
        "<zone_id>": str(zone),
        "/os-cells/<name>": "/os-cells/hidden-cell",
        "<build_id>": "none",
        "<migration_id>": "1",
        "<reservation_id>": "r-nobodys",
        "<network_id>": member.get(f"{C}/os-networks")["networks"][0]["id"],
        **address_matrix.connect(member, server_id, dhcp),
    }
    return Kept(names, ("hidden-", server_id, image_id, group_id, note["request_id"], "std-1", "gpu-2", "compute-1"))


def test_every_route_is_in_the_matrix() -> None:
    assert set(MATRIX) == set(OPERATIONS)
    assert set(ASKERS) - {"nobody"} == set(PEOPLE)


@pytest.mark.parametrize("place", range(len(ASKERS)), ids=ASKERS)
def test_who_gets_what(there: World, kept: Kept, member: Person, place: int) -> None:
    asker, found = Person(there.app, ASKERS[place]), {}
    before = _seen(member, kept)
    for route in sorted(MATRIX, key=lambda route: (route[0] == "DELETE", -len(route[1]))):
        method, rule = route
        path = kept.path(rule)
        headers = {"OpenStack-API-Version": f"compute {VERSIONS.get(route, '2.1')}"}
        answer = asker(method, path, kept.body(route), headers=headers)
        found[route] = answer.status_code
        if asker.name in OUTSIDERS:
            told = answer.get_data(as_text=True)
            assert not [secret for secret in kept.secrets if secret in told and secret not in path], (route, told)
    assert found == {route: statuses[place] for route, statuses in MATRIX.items()}
    if asker.name not in ("member", "admin"):
        assert _seen(member, kept) == before


def _seen(member: Person, kept: Kept) -> list[Any]:
    """What the project has."""
    paths = (SERVER, GROUP, QUOTA, "/os-keypairs/<name>", SPECS)
    return [member.get(kept.path(path)) for path in paths]


DETAILS: Mapping[str, Any] = {
    "reboot": {"type": "SOFT"},
    "createImage": {"name": "copy"},
    "createBackup": {"name": "copy", "backup_type": "daily", "rotation": 1},
    "resize": {"flavorRef": "42"},
    "rebuild": {"imageRef": IMAGE_ID},
    "rescue": {"rescue_image_ref": IMAGE_ID},
    "os-resetState": {"state": "error"},
    "evacuate": {},
    "os-migrateLive": {"host": None, "block_migration": False, "disk_over_commit": False},
    "os-getConsoleOutput": {},
    "os-getVNCConsole": {"type": "novnc"},
    "os-getSPICEConsole": {"type": "spice-html5"},
    "os-getSerialConsole": {"type": "serial"},
    **address_matrix.DETAILS,
}

OF_ADMINS = (
    "os-resetState",
    "shelveOffload",
    "migrate",
    "evacuate",
    "os-migrateLive",
    "injectNetworkInfo",
    "resetNetwork",
)
LOOKING = {"os-getConsoleOutput": 200, "os-getVNCConsole": 501, "os-getSPICEConsole": 501, "os-getSerialConsole": 501}
"""Actions that change nothing -> what readers get."""


def test_nobody_acts_on_a_server_of_others_and_readers_on_none(there: World, kept: Kept, member: Person) -> None:
    before = _seen(member, kept)
    for action in ACTIONS:
        answers = [
            Person(there.app, name)("POST", kept.path(f"{SERVER}/action"), {action: DETAILS.get(action)})
            for name in ASKERS[:4]
        ]
        stranger = 403 if action in OF_ADMINS else 404
        assert [answer.status_code for answer in answers] == [401, stranger, 403, LOOKING.get(action, 403)], action
        assert not [answer for answer in answers[:3] if "hidden-" in answer.get_data(as_text=True)], action
    there.settle()
    assert _seen(member, kept) == before
