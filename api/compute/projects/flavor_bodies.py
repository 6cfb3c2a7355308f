"""Bodies of flavors: creation, description, extra specs, and the projects that may use one."""

import re
from collections.abc import Callable
from uuid import uuid4

from api.compute import common_body_keys as keys
from api.compute import validation
from api.compute.microversion import since
from api.schema.body import Below, Body, Choice, Key, Values
from api.schema.shapes import Schema, number, or_null, texts
from climate.compute.models.flavor import Flavor
from climate.domain.errors import InvalidInput

LONGEST_DESCRIPTION = 65535
MOST_VCPUS, MOST_MB, MOST_GB = 1 << 16, 1 << 26, 1 << 20

DESCRIPTION = or_null(
    {"type": "string", "maxLength": LONGEST_DESCRIPTION, "pattern": r"^[^\x00-\x08\x0b\x0c\x0e-\x1f\x7f]*$"}
)
ID = or_null({"type": "string", "maxLength": 255, "pattern": "^[A-Za-z0-9._-]([A-Za-z0-9. _-]*[A-Za-z0-9._-])?$"})
SPECS: Schema = texts() | {
    "propertyNames": {"minLength": 1, "maxLength": 255, "pattern": "^[A-Za-z0-9_:. -]+$"},
    "minProperties": 1,
}

_ID = re.compile(r"[A-Za-z0-9._-](?:[A-Za-z0-9. _-]{0,253}[A-Za-z0-9._-])?")
_SPEC = re.compile(r"[A-Za-z0-9_:. -]{1,255}")
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")


def _count(lowest: int, highest: int) -> Callable[[object, str], int]:
    return lambda value, field: validation.count(value, field, lowest, highest)


def _factor(value: object, field: str) -> float:
    if value not in (1, 1.0, "1.0", "1"):
        raise InvalidInput(f"{field} must be 1.0, because network bandwidth is not limited")
    return 1.0


def _swap(value: object, field: str) -> int:
    return validation.count(value or 0, field, 0, MOST_MB)


def _description(value: object, field: str) -> str | None:
    """Return a text of several lines, or nothing."""
    if value is None:
        return None
    if not isinstance(value, str) or len(value) > LONGEST_DESCRIPTION or _CONTROL.search(value):
        raise InvalidInput(f"{field} must be null or a text of at most {LONGEST_DESCRIPTION} characters")
    return value


def _flavor_id(value: object, field: str) -> str:
    """Return the id of a new flavor; None, an empty text and `auto` create one."""
    if value in (None, "auto", ""):
        return str(uuid4())
    text = str(value) if isinstance(value, (str, int)) and not isinstance(value, bool) else ""
    if not _ID.fullmatch(text):
        raise InvalidInput(
            f"{field} must be null, or a text of letters, digits, blanks and . _ - that ends with no blank"
        )
    return text


def _text(value: object) -> object:
    return str(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else value


def specs(value: object, field: str = "extra_specs") -> dict[str, str]:
    """Return extra specs: keys of letters, digits and `_ : . -`, with texts; numbers are converted to texts."""
    if not isinstance(value, dict) or not value:
        raise InvalidInput(f"{field} must be an object with at least one key")
    specs = validation.metadata({key: _text(one) for key, one in value.items()}, field)
    odd = next((key for key in specs if not _SPEC.fullmatch(key)), None)
    if odd is not None:
        raise InvalidInput(f"{field}: the key {odd[:40]!r} may hold letters, digits, blanks and _ : . - only")
    return specs


class NewFlavor(Body):
    """A new flavor; memory and swap in MB, disk in GB."""

    rxtx_factor = Key(_factor, {"enum": [1.0]}, default=1.0)
    id = Key(_flavor_id, ID)
    name = keys.name(required=True)
    vcpus = Key(_count(1, MOST_VCPUS), number(1, MOST_VCPUS), required=True)
    ram_mb = Key(_count(1, MOST_MB), number(1, MOST_MB), key="ram", required=True)
    disk_gb = Key(_count(0, MOST_GB), number(0, MOST_GB), key="disk", required=True)
    ephemeral_gb = Key(
        _count(0, MOST_GB), number(0, MOST_GB), key="OS-FLV-EXT-DATA:ephemeral", named="ephemeral", default=0
    )
    swap_mb = Key(_swap, or_null(number(0, MOST_MB)), key="swap")
    is_public = keys.flag(key="os-flavor-access:is_public", named="is_public", default=True)
    description = Key(_description, DESCRIPTION)


class Description(Body):
    """Description of a flavor."""

    UNKNOWN = MISSING = "flavor must hold description, and nothing else"

    description = Key(_description, DESCRIPTION, required=True)


class ExtraSpecs(Body):
    """Extra specs of a flavor."""

    UNKNOWN = "The body must have the key {sorted} alone, not {first!r}"

    extra_specs = Key(specs, SPECS, required=True)


class Access(Body):
    """Project that may use a private flavor, or may not any more."""

    UNKNOWN = "{first!r} cannot be set; known is {sorted}"

    tenant = keys.name(required=True)


NEW = Below("flavor", NewFlavor())
WITHOUT_DESCRIPTION = Below("flavor", NewFlavor(exclude=("description",)))
"""The body below 2.55, which has no description."""

DESCRIBED, EXTRA_SPECS = Below("flavor", Description()), ExtraSpecs()
ACCESS = Choice(
    {"addTenantAccess": Access(), "removeTenantAccess": Access()},
    "The body must hold addTenantAccess or removeTenantAccess",
)


def flavor(body: Values) -> Flavor:
    """Return a new flavor; InvalidInput."""
    values = (NEW if since(55) else WITHOUT_DESCRIPTION).read(body)
    return Flavor(**{name: value for name, value in values.items() if name != "rxtx_factor"})
