"""Every route of networks and images, asked by who has no part in them: nobody sees or touches another project's."""

from collections.abc import Mapping
from typing import Any

from tests.api.compute.api_clients import Person, World, done
from tests.api.network.requests import N, booted, port, taken

IMAGES = "/image/v2/images"
ASKERS = ("nobody", "stranger", "without a role", "reader")

NETWORK, SUBNET, PORT = f"{N}/networks/<network_id>", f"{N}/subnets/<subnet_id>", f"{N}/ports/<port_id>"
FLOATING, QUOTA = f"{N}/floatingips/<floating_id>", f"{N}/quotas/<project_id>"
GROUP, RULE = f"{N}/security-groups/<group_id>", f"{N}/security-group-rules/<rule_id>"
FIGURES, AGENTS = f"{N}/network-ip-availabilities", f"{N}/agents"
IMAGE = f"{IMAGES}/<image_id>"
USAGE = "/image/v2/info/usage"
MEMBERS = f"{IMAGE}/members"
METADEFS = "/image/v2/metadefs"
NAMESPACE = f"{METADEFS}/namespaces/<namespace>"
DEFINITIONS = f"{NAMESPACE}/<any(objects, properties, tags):kind>"
TAG, FILE = f"{IMAGE}/tags/<tag>", f"{IMAGE}/file"

FOR_ALL = (401, 200, 403, 200)
FOR_THE_PROJECT = (401, 404, 403, 200)
CHANGED = (401, 404, 403, 403)
TAKEN = (401, 201, 403, 403)
QUOTAS = (401, 403, 403, 200)
FOR_ADMINS = (401, 403, 403, 403)
OPEN = (401, 200, 200, 200)

MATRIX: Mapping[tuple[str, str], tuple[int, ...]] = {
    ("GET", f"{N}/networks"): FOR_ALL,
    ("POST", f"{N}/networks"): FOR_ADMINS,
    ("GET", NETWORK): FOR_THE_PROJECT,
    ("PUT", NETWORK): CHANGED,
    ("DELETE", NETWORK): CHANGED,
    ("GET", f"{N}/subnets"): FOR_ALL,
    ("POST", f"{N}/subnets"): CHANGED,
    ("GET", SUBNET): FOR_THE_PROJECT,
    ("PUT", SUBNET): CHANGED,
    ("DELETE", SUBNET): CHANGED,
    ("GET", f"{N}/ports"): FOR_ALL,
    ("GET", PORT): FOR_THE_PROJECT,
    ("POST", f"{N}/ports"): CHANGED,
    ("PUT", PORT): CHANGED,
    ("DELETE", PORT): CHANGED,
    ("GET", f"{N}/floatingips"): FOR_ALL,
    ("POST", f"{N}/floatingips"): TAKEN,
    ("GET", FLOATING): FOR_THE_PROJECT,
    ("PUT", FLOATING): CHANGED,
    ("PUT", f"{FLOATING}/tags"): CHANGED,
    ("DELETE", FLOATING): CHANGED,
    ("GET", QUOTA): QUOTAS,
    ("GET", f"{QUOTA}/default"): QUOTAS,
    ("GET", f"{QUOTA}/details"): QUOTAS,
    ("GET", f"{QUOTA}/details.json"): QUOTAS,
    ("PUT", QUOTA): FOR_ADMINS,
    ("DELETE", QUOTA): FOR_ADMINS,
    ("GET", f"{N}/security-groups"): FOR_ALL,
    ("GET", GROUP): FOR_THE_PROJECT,
    ("POST", f"{N}/security-groups"): TAKEN,
    ("PUT", GROUP): CHANGED,
    ("DELETE", GROUP): CHANGED,
    ("GET", f"{N}/security-group-rules"): FOR_ALL,
    ("GET", RULE): FOR_THE_PROJECT,
    ("POST", f"{N}/security-group-rules"): CHANGED,
    ("DELETE", RULE): CHANGED,
    ("GET", FIGURES): FOR_ADMINS,
    ("GET", f"{FIGURES}/<network_id>"): FOR_ADMINS,
    ("GET", AGENTS): FOR_ALL,
    ("GET", f"{AGENTS}/<agent_id>"): FOR_ADMINS,
    ("GET", f"{N}/extensions"): OPEN,
    ("GET", f"{N}/extensions/<alias>"): OPEN,
    ("GET", IMAGES): FOR_ALL,
    ("GET", USAGE): FOR_ALL,
    ("POST", IMAGES): TAKEN,
    ("GET", IMAGE): FOR_THE_PROJECT,
    ("PATCH", IMAGE): CHANGED,
    ("DELETE", IMAGE): CHANGED,
    ("PUT", FILE): CHANGED,
    ("GET", FILE): (401, 404, 403, 204),
    ("PUT", TAG): CHANGED,
    ("DELETE", TAG): CHANGED,
    ("GET", "/image/v2/info/import"): FOR_ALL,
    ("GET", "/image/v2/schemas/<path:name>"): FOR_ALL,
    ("PUT", f"{IMAGE}/stage"): CHANGED,
    ("POST", f"{IMAGE}/import"): CHANGED,
    ("GET", f"{IMAGE}/tasks"): FOR_THE_PROJECT,
    ("POST", f"{IMAGE}/actions/deactivate"): CHANGED,
    ("POST", f"{IMAGE}/actions/reactivate"): CHANGED,
    ("GET", MEMBERS): FOR_THE_PROJECT,
    ("POST", MEMBERS): CHANGED,
    ("GET", f"{MEMBERS}/<member_id>"): FOR_THE_PROJECT,
    ("PUT", f"{MEMBERS}/<member_id>"): CHANGED,
    ("DELETE", f"{MEMBERS}/<member_id>"): CHANGED,
    ("GET", f"{METADEFS}/resource_types"): FOR_ALL,
    ("GET", f"{METADEFS}/namespaces"): FOR_ALL,
    ("POST", f"{METADEFS}/namespaces"): FOR_ADMINS,
    ("GET", NAMESPACE): FOR_THE_PROJECT,
    ("PUT", NAMESPACE): FOR_ADMINS,
    ("DELETE", NAMESPACE): FOR_ADMINS,
    ("GET", f"{NAMESPACE}/resource_types"): FOR_THE_PROJECT,
    ("POST", f"{NAMESPACE}/resource_types"): FOR_ADMINS,
    ("DELETE", f"{NAMESPACE}/resource_types/<name>"): FOR_ADMINS,
    ("GET", DEFINITIONS): FOR_THE_PROJECT,
    ("POST", DEFINITIONS): FOR_ADMINS,
    ("DELETE", DEFINITIONS): FOR_ADMINS,
    ("GET", f"{DEFINITIONS}/<name>"): FOR_THE_PROJECT,
    ("PUT", f"{DEFINITIONS}/<name>"): FOR_ADMINS,
    ("DELETE", f"{DEFINITIONS}/<name>"): FOR_ADMINS,
    ("POST", f"{NAMESPACE}/tags/<name>"): FOR_ADMINS,
}
"""Route -> the answer to each of ASKERS, about things of the project of `reader` and `member`."""

PATCH = {"Content-Type": "application/openstack-images-v2.1-json-patch"}
FILLING = {"Content-Type": "application/octet-stream"}


def test_nobody_sees_or_touches_what_is_another_projects(
    there: World, member: Person, admin: Person, pool: str, served: str
) -> None:
    assert set(MATRIX) == _routes(there)
    names = _furnish(there, member, admin, pool, served)
    before = _seen(member, names)
    hidden = {text for text in names.values() if text not in ("project", "quotas", "hidden-tag", "image", "tags")} - {
        pool
    }
    for place, name in enumerate(ASKERS):
        found = {}
        for route in MATRIX:
            answer = _ask(Person(there.app, name), route, names, pool)
            found[route] = answer.status_code
            told = answer.get_data(as_text=True)
            path = _path(route[1], names)
            assert name == "reader" or not [text for text in (*hidden, "hidden-") if text in told and text not in path]
        assert found == {route: statuses[place] for route, statuses in MATRIX.items()}, name
        assert _seen(member, names) == before


def _routes(there: World) -> set[tuple[str, str]]:
    """Method and path of all that needs a token."""
    app = there.app
    return {
        (method, rule.rule)
        for rule in app.url_map.iter_rules()
        if rule.rule.startswith((N, "/image")) and not getattr(app.view_functions[rule.endpoint], "public", False)
        for method in (rule.methods or set()) - {"HEAD", "OPTIONS"}
    }


def _furnish(there: World, member: Person, admin: Person, pool: str, served: str) -> dict[str, str]:
    """One of everything in the member's project; the names of all of it."""
    wanted = {"name": "hidden-net", "provider:network_type": "vlan", "tenant_id": "project"}
    network = done(admin("POST", f"{N}/networks", {"network": wanted}), 201)["network"]["id"]
    subnet = {"network_id": network, "cidr": "10.77.0.0/28", "ip_version": 4}
    subnet_id = done(admin("POST", f"{N}/subnets", {"subnet": subnet}), 201)["subnet"]["id"]
    connected = port(member, booted(there, member, served), served)
    floating = taken(member, pool, port_id=connected["id"], description="hidden-note")
    done(member("PUT", f"{N}/floatingips/{floating['id']}/tags", {"tags": ["hidden-tag"]}))
    image = {"name": "hidden-image", "disk_format": "raw", "container_format": "bare", "tags": ["hidden-tag"]}
    wanted = {"name": "hidden-group"}
    group = done(member("POST", f"{N}/security-groups", {"security_group": wanted}), 201)["security_group"]
    image_id = done(member("POST", IMAGES, image), 201)["id"]
    done(member("POST", f"{IMAGES}/{image_id}/members", {"member": "hidden-project"}))
    namespace = {"namespace": "hidden-namespace", "owner": "project", "tags": [{"name": "hidden-tag"}]}
    done(admin("POST", f"{METADEFS}/namespaces", namespace), 201)
    return {
        "<network_id>": network,
        "<subnet_id>": subnet_id,
        "<port_id>": connected["id"],
        "<floating_id>": floating["id"],
        "<project_id>": "project",
        "<group_id>": group["id"],
        "<rule_id>": group["security_group_rules"][0]["id"],
        "<agent_id>": network,
        "<alias>": "quotas",
        "<image_id>": image_id,
        "<tag>": "hidden-tag",
        "<path:name>": "image",
        "<namespace>": "hidden-namespace",
        "<any(objects, properties, tags):kind>": "tags",
        "<name>": "hidden-tag",
        "<member_id>": "hidden-project",
    }


def _path(rule: str, names: Mapping[str, str]) -> str:
    for mark, name in names.items():
        rule = rule.replace(mark, name)
    return rule


def _ask(asker: Person, route: tuple[str, str], names: Mapping[str, str], pool: str) -> Any:
    bodies: dict[tuple[str, str], Any] = {
        ("POST", f"{N}/networks"): {"network": {"name": "more"}},
        ("POST", f"{N}/subnets"): {"subnet": {"network_id": names["<network_id>"], "cidr": "10.78.0.0/28"}},
        ("POST", f"{N}/security-groups"): {"security_group": {"name": "more"}},
        ("PUT", GROUP): {"security_group": {"description": "changed"}},
        ("POST", f"{N}/security-group-rules"): {
            "security_group_rule": {"security_group_id": names["<group_id>"], "direction": "ingress"}
        },
        ("POST", f"{N}/ports"): {"port": {"network_id": names["<network_id>"]}},
        ("PUT", SUBNET): {"subnet": {"allocation_pools": []}},
        ("POST", f"{N}/floatingips"): {"floatingip": {"floating_network_id": pool}},
        ("PUT", FLOATING): {"floatingip": {"port_id": None}},
        ("PUT", f"{FLOATING}/tags"): {"tags": []},
        ("PUT", QUOTA): {"quota": {"floatingip": 9}},
        ("POST", IMAGES): {"name": "own"},
        ("POST", MEMBERS): {"member": "third"},
        ("POST", f"{METADEFS}/namespaces"): {"namespace": "own"},
        ("PUT", f"{MEMBERS}/<member_id>"): {"status": "accepted"},
        ("POST", f"{IMAGE}/import"): {"method": {"name": "glance-direct"}},
    }
    sent: dict[tuple[str, str], dict[str, Any]] = {
        ("PATCH", IMAGE): {"data": '[{"op": "replace", "path": "/name", "value": "x"}]', "headers": PATCH},
        ("PUT", FILE): {"data": b"x", "headers": FILLING},
        ("PUT", f"{IMAGE}/stage"): {"data": b"x", "headers": FILLING},
    }
    return asker(route[0], _path(route[1], names), bodies.get(route), **sent.get(route, {}))


def _seen(member: Person, names: Mapping[str, str]) -> list[Any]:
    """What the project has."""
    return [member.get(_path(rule, names)) for rule in (NETWORK, SUBNET, PORT, FLOATING, QUOTA, IMAGE)]
