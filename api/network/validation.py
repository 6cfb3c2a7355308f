"""Validation of Network requests; InvalidInput names what is wrong and what would be right."""

from collections.abc import Collection
from typing import Any

from api.body import read_object
from api.compute import validation
from api.request_context import caller
from climate.domain.errors import Forbidden, InvalidInput

Body = dict[str, Any]


def thing(key: str, known: Collection[str], ignored: Collection[str] = ()) -> Body:
    """Return the object below `key`; it may have keys without effect, but no unknown ones."""
    body = validation.part(read_object(), key)
    unknown = sorted(set(body) - set(known) - set(ignored))
    if unknown:
        raise InvalidInput(f"{key}: {unknown[0][:60]!r} cannot be set; there are {', '.join(sorted(known))}")
    return {name: value for name, value in body.items() if name not in ignored}


def project(body: Body) -> str | None:
    """Return the project in a body; other users than administrators may name only their own."""
    values = [validation.name(body[key], key) for key in ("project_id", "tenant_id") if body.get(key) not in (None, "")]
    if len(set(values)) > 1:
        raise InvalidInput("project_id and tenant_id mean the same; give one of them")
    if values and values[0] != caller().project_id and not caller().is_admin:
        raise Forbidden("Only administrators may act for other projects.")
    return values[0] if values else None


def description(value: Any) -> str:
    """Return a description; the default is empty."""
    return validation.description(value) or ""


def listing(value: Any, field: str) -> list[Any]:
    """Return a list of at most 100 entries."""
    if not isinstance(value, list) or len(value) > 100:
        raise InvalidInput(f"{field} must be a list of at most 100 entries")
    return value
