"""Answers of child zones rewritten for users of this zone: without the child's private data, and with the local owner.

A child only knows its parent's account as owner. This zone knows the project and the user.
"""

from collections.abc import Mapping
from typing import Any

from climate.compute.store.zones.servers import PlacedServer

FORBIDDEN = {
    "forbidden": {"code": 403, "message": "The server's zone does not permit this for the account of this zone"}
}
"""Message that replaces a child's refusal, which would reveal the permissions and the quota of the account."""

Entry = Mapping[str, object]


def cooked(body: object, owner: PlacedServer | None = None) -> object:
    """Return the body of an answer about a server; `owner` None: unknown here, so the child's stays."""
    if not isinstance(body, Mapping):
        return body
    return {key: _COOKED[key](value, owner) if key in _COOKED else value for key, value in body.items()}


def server(entry: object, owner: PlacedServer | None = None) -> Any:
    """Return a server as the child describes it, with its owner here."""
    if not isinstance(entry, Mapping):
        return entry
    shown = {key: value for key, value in entry.items() if not key.startswith("_") and key != "manager"}
    return shown | _owner(shown, {"tenant_id": owner.project_id, "user_id": owner.user_id} if owner else {})


def _action(entry: object, owner: PlacedServer | None) -> object:
    """Return an action without the child's user, who is unknown here."""
    if not isinstance(entry, Mapping) or owner is None:
        return entry
    return {**entry} | _owner(entry, {"project_id": owner.project_id, "user_id": None})


def _actions(entries: object, owner: PlacedServer | None) -> object:
    return [_action(entry, owner) for entry in entries] if isinstance(entries, list) else entries


def _security_groups(entries: object, owner: PlacedServer | None) -> object:
    """Return security groups of a server as groups of its project here, in their rules too."""
    if not isinstance(entries, list) or owner is None:
        return entries
    return [_of_project(entry, owner.project_id) for entry in entries]


def _of_project(value: object, project_id: str) -> object:
    if isinstance(value, list):
        return [_of_project(one, project_id) for one in value]
    if not isinstance(value, Mapping):
        return value
    return {key: project_id if key == "tenant_id" else _of_project(one, project_id) for key, one in value.items()}


def _owner(shown: Entry, values: Entry) -> dict[str, object]:
    return {key: value for key, value in values.items() if key in shown}


_COOKED = {
    "server": server,
    "instanceAction": _action,
    "instanceActions": _actions,
    "security_groups": _security_groups,
}
