"""Query string of a list of servers."""

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime

from flask import request

from api.compute import validation
from api.compute.microversion import since
from api.compute.servers.view import POWER_STATES, STATUS_OF_TASK
from api.paging import Page
from api.request_context import caller
from climate.compute.models.server import STATUSES, VM_STATES
from climate.compute.store.servers.lists import ORDERS, Listing
from climate.domain.errors import Forbidden, InvalidInput

NEVER = frozenset({"DELETED", "SOFT_DELETED", "SHELVED", "PASSWORD", "RESCUE", "SUSPENDING", "UNKNOWN"})
"""Statuses of other clouds that no server has here."""

KNOWN = frozenset(STATUSES) | frozenset(STATUS_OF_TASK.values()) | NEVER

LONGEST = 255
"""Longest condition in characters."""

EQUAL = {"image": "image", "flavor": "flavor", "key_name": "key_name", "uuid": "uuid", "reservation_id": "build_id"}
PATTERNS = {"name": "name", "ip": "ip", "description": "description"}
BY_ADMINISTRATORS = {"host": "host", "node": "node", "user_id": "user_id", "task_state": "task_state"}
"""Keys of the query -> conditions.  Conditions for administrators are ignored for others."""

TAGS = {"tags": "tags", "tags-any": "tags_any", "not-tags": "not_tags", "not-tags-any": "not_tags_any"}
"""Keys of the query with tags, separated by commas -> conditions, since 2.26."""


def listing(page: Page) -> Listing:
    """Return the query for the store; InvalidInput names the wrong key, Forbidden the required role."""
    result: dict[str, object] = _project()
    keys = EQUAL | PATTERNS | (BY_ADMINISTRATORS if caller().is_admin else {})
    for key, condition in keys.items():
        text = request.args.get(key)
        if text:
            result[condition] = _short(key, text)
    for key, read in _READ.items():
        if request.args.get(key):
            result |= read(key)
    if since(26):
        result |= {TAGS[key]: _short(key, text).split(",") for key in TAGS if (text := request.args.get(key))}
    if validation.query_flag("deleted"):
        result["none"] = True
    return Listing(result, _order(), page.marker, page.limit + 1)


def _project() -> dict[str, object]:
    everybody = validation.query_flag("all_tenants")
    if everybody and not caller().is_admin:
        raise Forbidden("Policy doesn't allow os_compute_api:servers:index:get_all_tenants to be performed.")
    theirs = request.args.get("project_id") or request.args.get("tenant_id")
    project = (theirs and _short("project_id", theirs)) if everybody else caller().project_id
    return {"project_id": project} if project else {}


def _statuses(key: str) -> dict[str, object]:
    asked_for = {text.upper() for text in request.args.getlist(key)}
    unknown = sorted(asked_for - KNOWN)
    if unknown and not since(38):
        return {"none": True}
    if unknown:
        raise InvalidInput(f"status must be one of {', '.join(sorted(KNOWN - NEVER))}, not {unknown[0][:40]!r}")
    tasks = [task for task, status in STATUS_OF_TASK.items() if status in asked_for]
    return {"shown_as": sorted(asked_for), "tasks": tasks, "hiding": list(STATUS_OF_TASK)}


def _vm_states(key: str) -> dict[str, object]:
    names = set(request.args.getlist(key))
    return {"vm_states": [status for status, name in VM_STATES.items() if name in names]}


def _power_state(key: str) -> dict[str, object]:
    number = validation.count(request.args[key], key, 0, 7)
    return {"vm_states": [status for status in STATUSES if POWER_STATES.get(status, 0) == number]}


def _zone(key: str) -> dict[str, object]:
    return {"zone": _short(key, request.args[key])}


def _locked(key: str) -> dict[str, object]:
    return {"locked": validation.flag(request.args[key], key)} if since(73) else {}


def moment(key: str) -> datetime:
    """Return the time below this key of the query string."""
    text = request.args[key]
    try:
        result = datetime.fromisoformat(text.replace(" ", "+") if "+" not in text and text.count(" ") else text)
    except ValueError:
        raise InvalidInput(f"{key} must be a time like 2030-01-31T17:00:00Z, not {text[:40]!r}") from None
    return result if result.tzinfo else result.replace(tzinfo=UTC)


def _moment(key: str) -> dict[str, object]:
    return {key.replace("-", "_"): moment(key)}


def _before(key: str) -> dict[str, object]:
    return _moment(key) if since(66) else {}


_READ: Mapping[str, Callable[[str], dict[str, object]]] = {
    "status": _statuses,
    "vm_state": _vm_states,
    "power_state": _power_state,
    "availability_zone": _zone,
    "locked": _locked,
    "changes-since": _moment,
    "changes-before": _before,
}
"""Keys of the query -> the function that reads the value."""


def _order() -> list[tuple[str, bool]]:
    keys, directions = request.args.getlist("sort_key"), request.args.getlist("sort_dir")
    _check_order(keys, directions)
    if directions and not keys:
        keys = ["created_at"]
    return [(key, (directions[index : index + 1] or ["desc"])[0] == "desc") for index, key in enumerate(keys)]


def _check_order(keys: Sequence[str], directions: Sequence[str]) -> None:
    if unknown := [key for key in keys if key not in ORDERS]:
        raise InvalidInput(f"sort_key must be one of {', '.join(sorted(ORDERS))}, not {unknown[0][:40]!r}")
    if wrong := [word for word in directions if word not in ("asc", "desc")]:
        raise InvalidInput(f"sort_dir must be asc or desc, not {wrong[0][:40]!r}")
    if len(keys) > len(ORDERS) or len(directions) > max(len(keys), 1):
        raise InvalidInput("sort_dir has more values than sort_key, or sort_key has too many")


def _short(key: str, text: str) -> str:
    if len(text) > LONGEST or "\0" in text:
        raise InvalidInput(f"{key} must be a text of at most {LONGEST} characters")
    return text
