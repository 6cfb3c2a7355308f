"""Answers of child zones as users of this zone see them: without what is private to the child, and with their owner.

A child knows one account of its parent, whose the servers are that it was asked
for.  The owner is a project and a user of this zone, who are known here alone.
"""

from collections.abc import Mapping
from typing import Any

from climate.compute.store.zones.servers import PlacedServer

FORBIDDEN = {
    "forbidden": {"code": 403, "message": "The zone of the server does not allow this to the account of this zone"}
}
"""Takes the place of a child's refusal, which tells of its account: what it may do, and its quota."""

Entry = Mapping[str, Any]


def cooked(body: Any, owner: PlacedServer | None = None) -> Any:
    """The body of an answer about a server; `owner` None: no row of this zone tells whose it is, and it stays so."""
    if not isinstance(body, Mapping):
        return body
    return {key: _COOKED[key](value, owner) if key in _COOKED else value for key, value in body.items()}


def server(entry: Any, owner: PlacedServer | None = None) -> Any:
    """A server as the child describes it, with its owner here."""
    if not isinstance(entry, Mapping):
        return entry
    shown = {key: value for key, value in entry.items() if not key.startswith("_") and key != "manager"}
    return shown | _owner(shown, {"tenant_id": owner.project_id, "user_id": owner.user_id} if owner else {})


def _action(entry: Any, owner: PlacedServer | None) -> Any:
    """An action; which user of this zone has asked for it, the child does not know."""
    if not isinstance(entry, Mapping) or owner is None:
        return entry
    return {**entry} | _owner(entry, {"project_id": owner.project_id, "user_id": None})


def _actions(entries: Any, owner: PlacedServer | None) -> Any:
    return [_action(entry, owner) for entry in entries] if isinstance(entries, list) else entries


def _owner(shown: Entry, values: Entry) -> dict[str, Any]:
    return {key: value for key, value in values.items() if key in shown}


_COOKED = {"server": server, "instanceAction": _action, "instanceActions": _actions}
