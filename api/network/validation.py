"""Bodies of the Network API, taken apart; InvalidInput names what is wrong and what would be right."""

from collections.abc import Collection
from typing import Any

from api.body import read_object
from api.compute import validation
from api.request_context import caller
from climate.domain.errors import Forbidden, InvalidInput

Body = dict[str, Any]


def thing(key: str, known: Collection[str], ignored: Collection[str] = ()) -> Body:
    """The object below `key`, which has only known keys; those that change nothing here may stand there."""
    body = validation.part(read_object(), key)
    unknown = sorted(set(body) - set(known) - set(ignored))
    if unknown:
        raise InvalidInput(f"{key}: {unknown[0][:60]!r} cannot be set; there are {', '.join(sorted(known))}")
    return {name: value for name, value in body.items() if name not in ignored}


def project(body: Body) -> str | None:
    """The project that a body names, which others than administrators name only if it is their own."""
    values = [validation.name(body[key], key) for key in ("project_id", "tenant_id") if body.get(key) not in (None, "")]
    if len(set(values)) > 1:
        raise InvalidInput("project_id and tenant_id are two names of the same: give one")
    if values and values[0] != caller().project_id and not caller().is_admin:
        raise Forbidden("Only administrators act for other projects.")
    return values[0] if values else None


def description(value: Any) -> str:
    """A description; none is an empty one."""
    return validation.description(value) or ""


def listing(value: Any, field: str) -> list[Any]:
    """A list of at most 100 entries."""
    if not isinstance(value, list) or len(value) > 100:
        raise InvalidInput(f"{field} must be a list of at most 100 entries")
    return value
