"""Validation of flavors in requests."""

import re
from collections.abc import Callable, Mapping
from typing import Any
from uuid import uuid4

from flask import request

from api.compute import validation
from climate.compute.models.flavor import Flavor
from climate.domain.errors import InvalidInput

LONGEST_DESCRIPTION = 65535

_ID = re.compile(r"[A-Za-z0-9._-](?:[A-Za-z0-9. _-]{0,253}[A-Za-z0-9._-])?")
_SPEC = re.compile(r"[A-Za-z0-9_:. -]{1,255}")
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")

SORTS: Mapping[str, Callable[[Flavor], Any]] = {
    "flavorid": lambda flavor: flavor.id,
    "id": lambda flavor: flavor.id,
    "name": lambda flavor: flavor.name,
    "memory_mb": lambda flavor: flavor.ram_mb,
    "root_gb": lambda flavor: flavor.disk_gb,
    "ephemeral_gb": lambda flavor: flavor.ephemeral_gb,
    "swap": lambda flavor: flavor.swap_mb,
    "vcpus": lambda flavor: flavor.vcpus,
    "is_public": lambda flavor: flavor.is_public,
}


def description(text: Any, field: str = "description") -> str | None:
    """Return a text of several lines, or nothing."""
    if text is None:
        return None
    if not isinstance(text, str) or len(text) > LONGEST_DESCRIPTION or _CONTROL.search(text):
        raise InvalidInput(f"{field} must be null or a text of at most {LONGEST_DESCRIPTION} characters")
    return text


def extra_specs(value: Any) -> dict[str, str]:
    """Return extra specs: keys of letters, digits and `_ : . -`, with texts; numbers are converted to texts."""
    if not isinstance(value, dict) or not value:
        raise InvalidInput("extra_specs must be an object with at least one key")
    specs = validation.metadata({key: _text(one) for key, one in value.items()}, "extra_specs")
    odd = next((key for key in specs if not _SPEC.fullmatch(key)), None)
    if odd is not None:
        raise InvalidInput(f"extra_specs: the key {odd[:40]!r} may hold letters, digits, blanks and _ : . - only")
    return specs


def sorted_and_large(found: list[Flavor]) -> list[Flavor]:
    """Return the flavors that match the query string, sorted as it says."""
    least_ram, least_disk = (validation.count(request.args.get(key, "0"), key) for key in ("minRam", "minDisk"))
    key, direction = request.args.get("sort_key", "flavorid"), request.args.get("sort_dir", "asc")
    if key not in SORTS or direction not in ("asc", "desc"):
        raise InvalidInput(f"sort_key must be one of {', '.join(SORTS)}, and sort_dir asc or desc")
    large = [one for one in found if one.ram_mb >= least_ram and one.disk_gb >= least_disk]
    return sorted(large, key=lambda one: (SORTS[key](one), one.id), reverse=direction == "desc")


def flavor_id(value: Any, field: str) -> str:
    """Return the id of a new flavor; None, an empty text and `auto` create one.  InvalidInput."""
    if value in (None, "auto", ""):
        return str(uuid4())
    text = str(value) if isinstance(value, (str, int)) and not isinstance(value, bool) else ""
    if not _ID.fullmatch(text):
        raise InvalidInput(
            f"{field} must be null, or a text of letters, digits, blanks and . _ - that ends with no blank"
        )
    return text


def _text(value: Any) -> Any:
    return str(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else value
