"""A connection by openstacksdk, from an entry of a clouds.yaml."""

from pathlib import Path

from keystoneauth1.service_token import ServiceTokenAuthWrapper
from openstack.config import OpenStackConfig
from openstack.config.cloud_region import CloudRegion
from openstack.connection import Connection
from openstack.exceptions import ConfigException

from climate.file_errors import UNREADABLE, reason_of
from climate.settings import SettingError

TIMEOUT_SECONDS = 30
"""Time-out in seconds of a request to any service."""

AS_SERVICE = "send_service_token"
"""Key of an entry of clouds.yaml: whether its token goes along as X-Service-Token too."""


def connect(entry: str, config: str) -> Connection:
    """Return a connection that has sent nothing yet. Raise SettingError if the file or the entry is unusable."""
    if not entry:
        raise SettingError("CLIMATE_CLOUD=openstack needs CLIMATE_OPENSTACK_CLOUD, the name of an entry of clouds.yaml")
    if config and not Path(config).is_file():
        raise SettingError(f"CLIMATE_OPENSTACK_CONFIG={config!r} is not a file")
    where = config or "the clouds.yaml that the SDK finds"
    try:
        known = OpenStackConfig(config_files=[config] if config else None, load_envvars=False)
        region = known.get_one(entry, api_timeout=TIMEOUT_SECONDS)
        if region.config.get(AS_SERVICE) is True:
            _send_service_token(region)
        return Connection(config=region)
    except ConfigException as error:
        raise SettingError(f"CLIMATE_OPENSTACK_CLOUD={entry!r} of {where} cannot be used: {error}") from None
    except (*UNREADABLE, AttributeError, KeyError, TypeError) as error:
        why = f"{reason_of(error)}; a mapping named clouds is expected"
        raise SettingError(f"CLIMATE_OPENSTACK_CLOUD={entry!r}: {where} cannot be read: {why}") from None


def _send_service_token(region: CloudRegion) -> None:
    """Let each request carry the token twice: as that of the caller, and as that of a service."""
    session = region.get_session()
    if session.auth is not None:
        session.auth = ServiceTokenAuthWrapper(user_auth=session.auth, service_auth=session.auth)
