"""Settings of the cloud and the identity service in place of the bundled ones."""

from dataclasses import dataclass

from climate.settings.setting_fields import setting


@dataclass(frozen=True)
class OpenStackSettings:
    """The cloud whose hosts are reserved, and the identity service."""

    cloud: str = setting(
        "bundled", "Cloud whose hosts are reserved: bundled or openstack.", words=("bundled", "openstack")
    )
    openstack_cloud: str = setting("", "Entry of clouds.yaml for CLIMATE_CLOUD=openstack.")
    openstack_config: str = setting("", "Path of the clouds.yaml for CLIMATE_OPENSTACK_CLOUD.")
    identity: str = setting("bundled", "Identity service: bundled or keystone.", words=("bundled", "keystone"))
    keystone_cloud: str = setting(
        "", "Entry of clouds.yaml for CLIMATE_IDENTITY=keystone; when empty, that of CLIMATE_OPENSTACK_CLOUD."
    )
    keystone_config: str = setting("", "Path of the clouds.yaml for CLIMATE_KEYSTONE_CLOUD.")
    keystone_url: str = setting("", "Keystone's URL for clients; when empty, the auth_url of CLIMATE_KEYSTONE_CLOUD.")
    keystone_cache_seconds: float = setting(
        60.0, "Seconds for which a token that Keystone validated is cached, also after its revocation.", 0, 3600
    )
    keystone_seconds: float = setting(10.0, "Timeout of a request to Keystone, in seconds.", 0.1, 60)
    keystone_service_role: str = setting("service", "Role of users whose X-Service-Token is accepted.")
    openstack_blazar_filter: bool = setting(
        False,
        "The OpenStack cloud has blazar-nova's BlazarFilter: pools of leases get the zone and the keys that it reads.",
    )
