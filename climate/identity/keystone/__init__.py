"""Keystone as the identity: its tokens, its ids of users and projects, its roles mapped by the policy.

Only CLIMATE_IDENTITY=keystone needs openstacksdk; it is not imported otherwise.
"""

from typing import TYPE_CHECKING

from climate.domain.policy import Policy
from climate.settings import SettingError, Settings

if TYPE_CHECKING:
    from climate.identity.keystone.service import KeystoneIdentity

INSTALL = "CLIMATE_IDENTITY=keystone needs the package openstacksdk: pip install 'climate-reservation[keystone]'"


def of(settings: Settings, policy: Policy) -> "KeystoneIdentity":
    """Return the identity of the Keystone that the settings name; open no connection yet.

    Raise SettingError if the package, the file or the entry of clouds.yaml is missing.
    """
    try:
        from climate.identity.keystone.connection import connect, versioned
        from climate.identity.keystone.service import KeystoneIdentity
        from climate.identity.keystone.token_cache import TokenCache
    except ModuleNotFoundError as error:
        raise SettingError(f"{INSTALL} ({error.name} was not found)") from None
    keystone = connect(settings)
    return KeystoneIdentity(
        keystone,
        policy,
        TokenCache(settings.keystone_cache_seconds),
        settings.keystone_service_role,
        versioned(settings.keystone_url) if settings.keystone_url else keystone.url,
    )
