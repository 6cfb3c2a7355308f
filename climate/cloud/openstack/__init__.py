"""Cloud interface over OpenStack: aggregates are the pools, hypervisors the hosts, shelved servers the sleeping ones.

Tokens are stored in the metadata of aggregates and compared before each request. See `fencing` for the guarantees and
their limits. Nova's filter AggregateMultiTenancyIsolation, which must be enabled there, keeps other projects off lent
hosts. The bundled cloud reads `blazar:owner` instead.

Only CLIMATE_CLOUD=openstack needs openstacksdk; it is not imported otherwise.
"""

from climate.cloud import Cloud
from climate.settings import SettingError

INSTALL = "CLIMATE_CLOUD=openstack needs the package openstacksdk: pip install 'climate-reservation[openstack]'"


def of(entry: str, config: str = "", *, blazar_filter: bool = False) -> Cloud:
    """Return the cloud of an entry of the clouds.yaml at the path `config`, or at the SDK's default path.

    With `blazar_filter`, lease pools carry the metadata that blazar-nova's BlazarFilter reads. Open no connection yet.
    Raise SettingError if the package, the file or the entry is missing.
    """
    try:
        from climate.cloud.openstack.cloud import OpenStackCloud
        from climate.cloud.openstack.connection import connect
        from climate.cloud.openstack.http import Remote
    except ModuleNotFoundError as error:
        raise SettingError(f"{INSTALL} ({error.name} was not found)") from None
    return OpenStackCloud(Remote(connect(entry, config), blazar_filter))
