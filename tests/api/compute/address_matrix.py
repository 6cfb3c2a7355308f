"""Who gets what of networks and addresses; marks in bodies stand for what there is."""

from collections.abc import Mapping
from typing import Any

from climate.compute.network.network_options import NetworkOptions
from tests.api.compute.api_clients import Person, World, done
from tests.compute import network_factory

C = "/compute/v2.1"
SERVER = "/servers/<server_id>"
NETWORKS, ONE_NETWORK = "/os-networks", "/os-networks/<network_id>"
FLOATING, ONE_FLOATING = "/os-floating-ips", "/os-floating-ips/<floating_id>"
BULK = "/os-floating-ips-bulk"
INTERFACES = f"{SERVER}/os-interface"
VOLUMES = f"{SERVER}/os-volume_attachments"
PIPES, PIPE = "/os-cloudpipe", "/os-cloudpipe/<project_id>"
CERTIFICATES = f"{PIPE}/certificates"
GROUPS, ONE_GROUP = "/os-security-groups", "/os-security-groups/<security_group>"
GROUP_RULES = "/os-security-group-rules"
NO_VOLUME = "00000000-0000-4000-8000-000000000000"

FOR_ADMINS = (401, 403, 403, 403, 403)
FOR_ALL = (401, 200, 403, 200, 200, 200)
FOR_THE_PROJECT = (401, 404, 403, 200, 200, 200)
CHANGED = (401, 404, 403, 403, 200, 200)

MATRIX: Mapping[tuple[str, str], tuple[int, ...]] = {
    ("GET", NETWORKS): FOR_ALL,
    ("GET", "/os-tenant-networks"): FOR_ALL,
    ("GET", "/os-tenant-networks/<network_id>"): FOR_ALL,
    ("POST", NETWORKS): (*FOR_ADMINS, 200),
    ("POST", f"{NETWORKS}/add"): (*FOR_ADMINS, 409),
    ("GET", ONE_NETWORK): FOR_ALL,
    ("POST", f"{ONE_NETWORK}/action"): (*FOR_ADMINS, 409),
    ("DELETE", ONE_NETWORK): (*FOR_ADMINS, 409),
    ("GET", "/os-floating-ip-pools"): FOR_ALL,
    ("GET", FLOATING): FOR_ALL,
    ("POST", FLOATING): (401, 200, 403, 403, 200, 200),
    ("GET", ONE_FLOATING): FOR_THE_PROJECT,
    ("DELETE", ONE_FLOATING): (401, 404, 403, 403, 202, 202),
    ("POST", f"{ONE_FLOATING}/associate"): CHANGED,
    ("POST", f"{ONE_FLOATING}/disassociate"): CHANGED,
    ("GET", BULK): (*FOR_ADMINS, 200),
    ("GET", f"{BULK}/<host>"): (*FOR_ADMINS, 200),
    ("POST", BULK): (*FOR_ADMINS, 200),
    ("PUT", f"{BULK}/delete"): (*FOR_ADMINS, 200),
    ("GET", PIPES): (*FOR_ADMINS, 200),
    # There are no cloudpipes without an image and a VLAN; test_cloudpipes.py has them.
    ("POST", PIPES): (*FOR_ADMINS, 400),
    ("PUT", f"{PIPES}/configure-project"): (*FOR_ADMINS, 409),
    ("DELETE", PIPE): (*FOR_ADMINS, 404),
    ("GET", CERTIFICATES): (401, 404, 403, 404, 404, 404),
    ("POST", CERTIFICATES): (401, 404, 403, 403, 404, 404),
    ("DELETE", f"{CERTIFICATES}/<serial>"): (401, 404, 403, 403, 404, 404),
    ("GET", GROUPS): FOR_ALL,
    ("POST", GROUPS): (401, 200, 403, 403, 200, 200),
    ("GET", ONE_GROUP): FOR_THE_PROJECT,
    ("PUT", ONE_GROUP): CHANGED,
    ("POST", GROUP_RULES): CHANGED,
    ("DELETE", f"{GROUP_RULES}/<security_group_rule>"): (401, 404, 403, 403, 202, 202),
    ("DELETE", ONE_GROUP): (401, 404, 403, 403, 202, 202),
    ("GET", f"{SERVER}/os-security-groups"): FOR_THE_PROJECT,
    ("GET", f"{SERVER}/ips"): FOR_THE_PROJECT,
    ("GET", f"{SERVER}/ips/<label>"): FOR_THE_PROJECT,
    ("GET", INTERFACES): FOR_THE_PROJECT,
    ("POST", INTERFACES): CHANGED,
    ("GET", f"{INTERFACES}/<port_id>"): FOR_THE_PROJECT,
    ("GET", VOLUMES): FOR_THE_PROJECT,
    # There are no volumes without a reservation of storage.
    ("POST", VOLUMES): (401, 404, 403, 403, 404, 404),
    ("GET", f"{VOLUMES}/<volume_id>"): (401, 404, 403, 404, 404, 404),
    ("DELETE", f"{VOLUMES}/<volume_id>"): (401, 404, 403, 403, 404, 404),
    # The one that was added a moment ago is being connected.
    ("DELETE", f"{INTERFACES}/<port_id>"): (401, 404, 403, 403, 409, 409),
}

BODIES: Mapping[tuple[str, str], dict[str, Any]] = {
    ("POST", GROUPS): {"security_group": {"name": "more", "description": ""}},
    ("PUT", ONE_GROUP): {"security_group": {"name": "changed", "description": ""}},
    ("POST", GROUP_RULES): {
        "security_group_rule": {
            "parent_group_id": "<security_group>",
            "ip_protocol": "udp",
            "from_port": 1,
            "to_port": 2,
        }
    },
    ("POST", NETWORKS): {"network": {"label": "more", "cidr": "10.22.0.0/28"}},
    ("POST", f"{NETWORKS}/add"): {"id": None, "project_id": "project"},
    ("POST", f"{ONE_NETWORK}/action"): {"disassociate": None},
    ("POST", f"{ONE_FLOATING}/associate"): {"associate_address": {"fixed_ip": "<fixed_ip>"}},
    ("POST", BULK): {"floating_ips_bulk_create": {"ip_range": "203.0.113.50", "pool": "public"}},
    ("PUT", f"{BULK}/delete"): {"ip_range": "203.0.113.60-203.0.113.61"},
    ("POST", PIPES): {"cloudpipe": {"project_id": "project"}},
    ("PUT", f"{PIPES}/configure-project"): {"configure_project": {"vpn_ip": "203.0.113.1", "vpn_port": 1000}},
    ("POST", CERTIFICATES): {"certificate": {"name": "ada"}},
    ("POST", VOLUMES): {"volumeAttachment": {"volumeId": NO_VOLUME}},
    ("POST", INTERFACES): {"interfaceAttachment": {"net_id": "<dhcp>"}},
}

DETAILS: Mapping[str, Any] = {
    "addFixedIp": {"networkId": "00000000-0000-4000-8000-000000000000"},
    "removeFixedIp": {"address": "10.20.0.2"},
    "addFloatingIp": {"address": "203.0.113.10"},
    "removeFloatingIp": {"address": "203.0.113.10"},
    "addSecurityGroup": {"name": "default"},
    "removeSecurityGroup": {"name": "default"},
}


def furnish(there: World, admin: Person) -> str:
    """A network with floating addresses, and a pool; the id of the network."""
    bulk = {"ip_range": "203.0.113.10-203.0.113.19", "pool": "public", "cidr": "203.0.113.0/24"}
    done(admin("POST", f"{C}{BULK}", {"floating_ips_bulk_create": bulk}))
    with there.here.compute.engine.begin() as conn:
        return network_factory.network(conn, "dhcp", "10.20.0.0/28", "flat_dhcp", NetworkOptions(flat_bridge="br200"))


def connect(member: Person, server_id: str, dhcp: str) -> dict[str, str]:
    """Let a floating address stand for a server in that network; the names of all of it."""
    ports = member.get(f"{C}/servers/{server_id}/os-interface")["interfaceAttachments"]
    port = next(port for port in ports if port["net_id"] == dhcp)
    fixed = port["fixed_ips"][0]["ip_address"]
    floating = done(member("POST", f"{C}{FLOATING}"))["floating_ip"]["id"]
    body = {"associate_address": {"fixed_ip": fixed}}
    done(member("POST", f"{C}{FLOATING}/{floating}/associate", body))
    wanted = {"security_group": {"name": "hidden-security", "description": ""}}
    group_id = done(member("POST", f"{C}{GROUPS}", wanted))["security_group"]["id"]
    rule = {"parent_group_id": group_id, "ip_protocol": "tcp", "from_port": 22, "to_port": 22}
    rule_id = done(member("POST", f"{C}{GROUP_RULES}", {"security_group_rule": rule}))["security_group_rule"]["id"]
    return {
        "<dhcp>": dhcp,
        "<fixed_ip>": fixed,
        "<floating_id>": floating,
        "<port_id>": port["port_id"],
        "<volume_id>": NO_VOLUME,
        "<label>": "private",
        "<serial>": "1",
        "<security_group>": group_id,
        "<security_group_rule>": rule_id,
        "<host>": network_factory.HOST,
    }
