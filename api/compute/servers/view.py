"""JSON views of servers by microversion."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from hashlib import sha224
from secrets import token_urlsafe
from types import MappingProxyType
from typing import NamedTuple

from api.compute.microversion import since
from api.compute.projects.flavor_view import embedded
from api.compute.zones import zone_chain
from api.request_context import caller, deployment
from climate.compute.models.security_group import DEFAULT
from climate.compute.models.server import (
    ACTIVE,
    BUILD,
    EVACUATE,
    LIVE_MIGRATE,
    MIGRATE,
    PAUSED,
    REBOOT,
    REBOOT_HARD,
    REBUILD,
    RESCUED,
    RESIZE,
    REVERT,
    SHELVED_OFFLOADED,
    SHUTOFF,
    SUSPENDED,
    VERIFY_RESIZE,
    VM_STATES,
    Server,
)

Body = dict[str, object]

POWER_STATES = {ACTIVE: 1, PAUSED: 3, SHUTOFF: 4, SUSPENDED: 4, SHELVED_OFFLOADED: 4, VERIFY_RESIZE: 1, RESCUED: 1}
"""Power state: 1 running, 3 paused, 4 shut down; 0 for every other status."""

STATUS_OF_TASK = {
    REBOOT: "REBOOT",
    REBOOT_HARD: "HARD_REBOOT",
    REBUILD: "REBUILD",
    RESIZE: "RESIZE",
    MIGRATE: "RESIZE",
    EVACUATE: "REBUILD",
    REVERT: "REVERT_RESIZE",
    LIVE_MIGRATE: "MIGRATING",
}
"""Tasks that are shown as a status while they are under way."""


class ServerDetails(NamedTuple):
    """Data outside the server's row: `hosts` and `user_data` for administrators, empty for others."""

    hosts: Mapping[str, str] = MappingProxyType({})
    """States of the compute services."""
    user_data: Mapping[str, str] = MappingProxyType({})
    """Id of a server -> its user data in Base64, if it has any."""
    volumes: Mapping[str, Sequence[str]] = MappingProxyType({})
    """Id of a server -> the ids of its volumes, if it has any."""
    security_groups: Mapping[str, Sequence[str]] = MappingProxyType({})
    """Id of a server -> the names of its security groups, if these are not `default` alone."""


NOTHING = ServerDetails()


def links(path: str) -> list[dict[str, str]]:
    """Return the `links` of a Compute resource."""
    base = deployment().settings.base_url
    return [
        {"rel": "self", "href": f"{base}/compute/v2.1/{path}"},
        {"rel": "bookmark", "href": f"{base}/compute/{path}"},
    ]


def brief(server: Server) -> Body:
    """Return a server for a list without details."""
    return {"id": server.id, "name": server.name, "links": links(f"servers/{server.id}")}


def full(server: Server, details: ServerDetails = NOTHING) -> Body:
    """Return a server with all details that the caller may see."""
    body = brief(server) | {
        "status": STATUS_OF_TASK.get(server.task or "", server.status),
        "tenant_id": server.project_id,
        "user_id": server.user_id,
        "metadata": dict(server.metadata),
        "hostId": host_id(server),
        "image": _image(server),
        "flavor": embedded(server.flavor) if since(47) else _flavor_link(server),
        "created": f"{server.created_at:%Y-%m-%dT%H:%M:%SZ}",
        "updated": f"{server.updated_at:%Y-%m-%dT%H:%M:%SZ}",
        "addresses": addresses(server),
        "accessIPv4": server.access[0] or "",
        "accessIPv6": server.access[1] or "",
        "OS-DCF:diskConfig": server.disk_config,
        "OS-EXT-AZ:availability_zone": _zone(server),
        "config_drive": "True" if server.config_drive else "",
        "key_name": server.key_name,
        "OS-SRV-USG:launched_at": _usage(server.launched_at),
        "OS-SRV-USG:terminated_at": None,
        "OS-EXT-STS:task_state": server.task,
        "OS-EXT-STS:vm_state": VM_STATES[server.status],
        "OS-EXT-STS:power_state": POWER_STATES.get(server.status, 0),
        "os-extended-volumes:volumes_attached": [
            {"id": volume} | ({"delete_on_termination": False} if since(3) else {})
            for volume in details.volumes.get(server.id, ())
        ],
    }
    body |= _of_some_servers(server, details) | _later(server)
    return body | _for_administrators(server, details) if caller().is_admin else body


EXTENDED = (
    "OS-EXT-AZ:",
    "OS-EXT-SRV-ATTR:",
    "OS-EXT-STS:",
    "OS-SRV-USG:",
    "config_drive",
    "host_status",
    "key_name",
    "os-extended-volumes:",
    "security_groups",
)
"""Beginnings of the keys that answers to PUT and rebuild have since 2.75 only."""


def changed(server: Server, details: ServerDetails = NOTHING) -> Body:
    """Return a server as the answer to its update or rebuild, which has fewer keys before 2.75."""
    body = full(server, details)
    if since(75):
        return body
    body["addresses"] = {
        label: [{key: entry[key] for key in ("version", "addr")} for entry in entries]
        for label, entries in addresses(server).items()
    }
    return {key: value for key, value in body.items() if not key.startswith(EXTENDED)}


def rebuilt(server: Server, details: ServerDetails, user_data: str | None) -> Body:
    """Return a server as the answer to its rebuild: its key pair since 2.54, and its user data since 2.57."""
    body = changed(server, details)
    if since(54):
        body["key_name"] = server.key_name
    if since(57):
        body["user_data"] = user_data
    if since(75):
        body.pop("OS-EXT-SRV-ATTR:user_data", None)
    return body


def _of_some_servers(server: Server, details: ServerDetails) -> Body:
    """Return the keys that only some servers have."""
    body: Body = {}
    # As in Nova, a server without groups has no such key.
    if groups := details.security_groups.get(server.id, (DEFAULT,)):
        body["security_groups"] = [{"name": name} for name in groups]
    if server.status in (ACTIVE, BUILD):
        body["progress"] = 100 if server.status == ACTIVE else 0
    if server.fault is not None:
        body["fault"] = dict(server.fault)
    return body


def _later(server: Server) -> Body:
    """Return the keys that later microversions added."""
    added: tuple[tuple[int, Body], ...] = (
        (9, {"locked": server.locked_by is not None}),
        (19, {"description": server.description}),
        (26, {"tags": list(server.tags)}),
        (63, {"trusted_image_certificates": None}),
        (71, {"server_groups": [server.group_id] if server.group_id else []}),
        (73, {"locked_reason": server.locked_reason}),
    )
    return {key: value for minor, keys in added if since(minor) for key, value in keys.items()}


def _for_administrators(server: Server, details: ServerDetails) -> Body:
    seen: Body = {}
    if zone_chain.sees_hosts():
        seen = {"OS-EXT-SRV-ATTR:host": server.service_host, "OS-EXT-SRV-ATTR:hypervisor_hostname": server.node}
    seen["OS-EXT-SRV-ATTR:instance_name"] = f"instance-{server.id[:8]}"
    if since(3):
        seen |= {
            "OS-EXT-SRV-ATTR:reservation_id": server.build_id,
            "OS-EXT-SRV-ATTR:launch_index": server.launch_index,
            "OS-EXT-SRV-ATTR:hostname": server.name,
            "OS-EXT-SRV-ATTR:kernel_id": "",
            "OS-EXT-SRV-ATTR:ramdisk_id": "",
            "OS-EXT-SRV-ATTR:root_device_name": "/dev/vda",
            "OS-EXT-SRV-ATTR:user_data": details.user_data.get(server.id),
        }
    tells_status = since(16) and zone_chain.sees_hosts()
    return seen | ({"host_status": details.hosts.get(server.service_host or "", "")} if tells_status else {})


def password(given: str) -> str:
    """Return the password that an answer contains: the given one, or a random one; guests get none."""
    return given or token_urlsafe(9)


def host_id(server: Server) -> str:
    """Return a hash that is the same for two servers of a project on one node, and hides the node's name."""
    return sha224(f"{server.project_id}{server.node}".encode()).hexdigest() if server.node else ""


def _image(server: Server) -> Body | str:
    if server.image_id is None:
        return ""
    return {"id": server.image_id, "links": [links(f"images/{server.image_id}")[1]]}


def _flavor_link(server: Server) -> Body:
    return {"id": server.flavor.id, "links": [links(f"flavors/{server.flavor.id}")[1]]}


def addresses(server: Server) -> dict[str, list[Body]]:
    """Return a server's fixed and floating addresses by network."""
    result: dict[str, list[Body]] = {}
    for address in server.addresses:
        entry = {
            "version": 4,
            "addr": address.address,
            "OS-EXT-IPS:type": "fixed",
            "OS-EXT-IPS-MAC:mac_addr": address.mac,
        }
        result.setdefault(address.label, []).append(entry)
        if address.floating is not None:
            result[address.label].append({**entry, "addr": address.floating, "OS-EXT-IPS:type": "floating"})
    return result


def _zone(server: Server) -> str:
    if server.node is not None:
        return server.node_zone or deployment().settings.default_availability_zone
    return (server.zone or "").partition(":")[0]


def _usage(moment: datetime | None) -> str | None:
    return f"{moment:%Y-%m-%dT%H:%M:%S.%f}" if moment else None
