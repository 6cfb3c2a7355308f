"""Bodies of child zones."""

from api.compute import common_body_keys as keys
from api.request_context import deployment
from api.schema.body import ABSENT, Below, Body, Key, Shape
from climate.compute.zones.http import urls
from climate.domain.errors import InvalidInput

LARGEST_WEIGHT = 1e9
LONGEST_PASSWORD = 1024
WEIGHT: Shape = {"type": "number", "minimum": -LARGEST_WEIGHT, "maximum": LARGEST_WEIGHT}
URL: Shape = {"type": "string", "minLength": 1, "maxLength": 255, "format": "uri"}
PASSWORD: Shape = {"type": "string", "minLength": 1, "maxLength": LONGEST_PASSWORD}


def _url(value: object, field: str) -> str:
    url = urls.check(value)
    if urls.is_same(url, deployment().settings.base_url):
        raise InvalidInput(f"{field} {url} is the URL of this zone; register that of another deployment")
    return url


def _password(value: object, field: str) -> str:
    if not isinstance(value, str) or not 0 < len(value) <= LONGEST_PASSWORD or "\0" in value:
        raise InvalidInput(f"{field} must be a text of 1 to {LONGEST_PASSWORD} characters")
    return value


def _weight(value: object, field: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) <= LARGEST_WEIGHT:
        raise InvalidInput(f"{field} must be a number between -{LARGEST_WEIGHT:.0f} and {LARGEST_WEIGHT:.0f}")
    return float(value)


class ChangedZone(Body):
    """New values of a child zone: only the keys that change."""

    UNKNOWN = "zone: only {known} can be given, not {unknown!r}"

    api_url = Key(_url, URL, default=ABSENT)
    username = keys.name(default=ABSENT)
    password = Key(_password, PASSWORD, default=ABSENT)
    weight_offset = Key(_weight, WEIGHT, default=ABSENT)
    weight_scale = Key(_weight, WEIGHT, default=ABSENT)


class NewZone(ChangedZone):
    """A child zone."""

    MISSING = "zone: {missing} must be given"

    api_url = Key(_url, URL, default=ABSENT, required=True)
    username = keys.name(default=ABSENT, required=True)
    password = Key(_password, PASSWORD, default=ABSENT, required=True)


ZONE, CHANGED = Below("zone", NewZone()), Below("zone", ChangedZone())
