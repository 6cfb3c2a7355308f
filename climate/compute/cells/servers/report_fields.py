"""Reports of servers: the fields that a cell sends to the top cell."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields
from datetime import datetime
from hashlib import sha224
from typing import Any

from climate.compute.cells.value_checks import Check, is_size, is_uuid, or_none
from climate.compute.models.flavor import Flavor
from climate.compute.models.server import STATUSES, Address, Server, is_id
from climate.compute.servers.fault_redaction import readable

Report = Mapping[str, Any]
"""Server as JSON; its keys are those of CHECKS, and nothing else leaves a cell."""

LONGEST_TEXT = 4096
FAULT_KEYS = ("code", "created", "message")
"""Reported keys of a fault. Its details name hosts and stay in the cell."""

_FLAVOR = tuple(field.name for field in fields(Flavor))
_ADDRESS = tuple(field.name for field in fields(Address))


def written(server: Server, default_zone: str, version: Mapping[str, Any]) -> Report:
    """Return the report of a server; `version`: its version, command, refusal and changed_at."""
    placed = server.node is not None
    return {
        "id": server.id,
        "version": version["version"],
        "command": version["command"],
        "refusal": version["refusal"],
        "name": server.name,
        "project_id": server.project_id,
        "user_id": server.user_id,
        "status": server.status,
        "task": server.task,
        "flavor": {**asdict(server.flavor), "projects": [], "is_public": True},
        "vcpus": server.held.vcpus,
        "ram_mb": server.held.ram_mb,
        "image_id": server.image_id,
        "metadata": dict(server.metadata),
        "zone": (server.node_zone or default_zone) if placed else (server.zone or "").partition(":")[0],
        "build_id": server.build_id,
        "launch_index": server.launch_index,
        "key_name": server.key_name,
        "description": server.description,
        "access_ipv4": server.access[0],
        "access_ipv6": server.access[1],
        "locked_by": server.locked_by,
        "locked_reason": server.locked_reason,
        "before": server.before,
        "place": place_of(server.service_host, server.node) if placed else None,
        "addresses": [asdict(address) for address in server.addresses],
        "fault": _fault(server),
        "created_at": server.created_at.isoformat(),
        "updated_at": server.updated_at.isoformat(),
        "launched_at": server.launched_at.isoformat() if server.launched_at else None,
        "changed_at": version["changed_at"].isoformat(),
    }


def place_of(service_host: str | None, node: str | None) -> str:
    """Return the digest of a node, which shows that servers share a node without naming it."""
    return sha224(f"{service_host}/{node}".encode()).hexdigest()[:16]


def _fault(server: Server) -> dict[str, object] | None:
    if server.fault is None:
        return None
    kept = {key: server.fault[key] for key in FAULT_KEYS if key in server.fault}
    return kept | {"message": readable(server, str(kept.get("message", "")))[:LONGEST_TEXT]}


def _is_text(value: object) -> bool:
    return isinstance(value, str) and len(value) <= LONGEST_TEXT and "\0" not in value


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**62


def _is_time(value: object) -> bool:
    try:
        return isinstance(value, str) and datetime.fromisoformat(value).tzinfo is not None
    except ValueError:
        return False


def _are_texts(value: object) -> bool:
    return isinstance(value, dict) and len(value) <= 1024 and all(map(_is_text, (*value, *value.values())))


def _is_flavor(value: object) -> bool:
    if not isinstance(value, dict) or set(value) != set(_FLAVOR) or not _are_texts(value["extra_specs"]):
        return False
    sizes = ("vcpus", "ram_mb", "disk_gb", "ephemeral_gb", "swap_mb")
    return value["projects"] == [] and _is_text(value["id"]) and all(is_size(value[size]) for size in sizes)


def _is_address(value: object) -> bool:
    return isinstance(value, dict) and set(value) == set(_ADDRESS) and all(map(or_none(_is_text), value.values()))


def _are_addresses(value: object) -> bool:
    return isinstance(value, list) and len(value) <= 1024 and all(map(_is_address, value))


def _is_fault(value: object) -> bool:
    return isinstance(value, dict) and not set(value) - set(FAULT_KEYS) and _is_text(value.get("message"))


CHECKS: Mapping[str, Check] = {
    "id": is_uuid,
    "version": _is_count,
    "command": _is_count,
    "refusal": or_none(_is_text),
    "name": _is_text,
    "project_id": _is_text,
    "user_id": _is_text,
    "status": lambda value: value in STATUSES,
    "task": or_none(_is_text),
    "flavor": _is_flavor,
    "vcpus": is_size,
    "ram_mb": is_size,
    "image_id": or_none(is_uuid),
    "metadata": _are_texts,
    "zone": or_none(_is_text),
    "build_id": _is_text,
    "launch_index": is_size,
    "key_name": or_none(_is_text),
    "description": or_none(_is_text),
    "access_ipv4": or_none(_is_text),
    "access_ipv6": or_none(_is_text),
    "locked_by": lambda value: value in (None, "owner", "admin"),
    "locked_reason": or_none(_is_text),
    "before": or_none(lambda value: value in STATUSES),
    "place": or_none(_is_text),
    "addresses": _are_addresses,
    "fault": or_none(_is_fault),
    "created_at": _is_time,
    "updated_at": _is_time,
    "launched_at": or_none(_is_time),
    "changed_at": _is_time,
}
"""Key of a report -> function that returns whether a value is valid."""


def read(given: object) -> tuple[list[Report], list[str]]:
    """Return the valid reports in a message, without unknown keys, and a text for each invalid one."""
    usable: list[Report] = []
    refused: list[str] = []
    for one in given if isinstance(given, list) else [given]:
        fields: Mapping[str, object] = one if isinstance(one, dict) else {}
        wrong = next((key for key, fits in CHECKS.items() if not fits(fields.get(key))), None)
        if wrong is None:
            usable.append({key: fields.get(key) for key in CHECKS})
        else:
            refused.append(f"the report of server {str(fields.get('id'))[:36]!r} has an unusable {wrong}")
    return usable, refused


def read_ids(given: object) -> list[str]:
    """Return the ids of servers in a message, without invalid ones."""
    listed: Sequence[object] = given if isinstance(given, list) else [given]
    return sorted({one for one in listed if isinstance(one, str) and is_id(one)})
