"""The port over an OpenStack cloud: its aggregates are the pools, its hypervisors the hosts, shelved servers sleep.

Tokens are remembered in the metadata of aggregates, and compared before
something is asked for: see `fences` for what that can promise and what not.
Others are kept off lent hosts by Nova's filter AggregateMultiTenancyIsolation,
which must be enabled there; climate's own cloud reads `blazar:owner` instead.

openstacksdk is needed by those alone who set CLIMATE_CLOUD=openstack, and is
not imported for anybody else.
"""

from climate.cloud import Cloud
from climate.settings import SettingError

INSTALL = "CLIMATE_CLOUD=openstack needs the package openstacksdk: pip install 'climate[openstack]'"


def of(entry: str, config: str = "", *, blazar_filter: bool = False) -> Cloud:
    """The cloud of an entry of the clouds.yaml at the path `config`, or where the SDK looks for one.

    With `blazar_filter` lent pools are marked as blazar-nova's BlazarFilter reads
    them.  Speaks to nobody yet.  SettingError without the package, the file or the entry.
    """
    try:
        from climate.cloud.openstack.cloud import OpenStackCloud
        from climate.cloud.openstack.connection import connect
        from climate.cloud.openstack.http import Remote
    except ModuleNotFoundError as error:
        raise SettingError(f"{INSTALL} ({error.name} was not found)") from None
    return OpenStackCloud(Remote(connect(entry, config)), blazar_filter)
