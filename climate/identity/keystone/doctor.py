"""Check of Keystone for `climate doctor`: credentials, validation, and the catalog."""

from collections.abc import Iterator

from climate.domain.errors import NotAuthenticated
from climate.domain.policy import DEFAULTS
from climate.identity import keystone
from climate.settings import Settings


def checked(settings: Settings) -> Iterator[tuple[bool, str]]:
    """Yield a sentence for each check, and whether all is well. Raise ClimateError if tokens cannot be validated."""
    there = keystone.of(settings, DEFAULTS).keystone
    token = there.own_token()
    try:
        body = there.validate(token)
    except NotAuthenticated:
        raise NotAuthenticated(f"{there.url} issued a token and does not recognize it") from None
    roles = ", ".join(sorted(str(one["name"]) for one in body.get("roles", ())))
    yield True, f"{there.url} validates tokens for user {body['user']['name']} with the roles {roles}"
    yield _registered(there.endpoints("reservation"), f"{settings.base_url}/reservation/v1")


def _registered(registered: list[str], wanted: str) -> tuple[bool, str]:
    if not registered:
        return False, "its catalog has no reservation service: `climate openstack register` creates it"
    if wanted not in registered:
        return False, f"its catalog has {', '.join(registered)}, CLIMATE_PUBLIC_URL gives {wanted}"
    return True, f"its catalog has {wanted}"
