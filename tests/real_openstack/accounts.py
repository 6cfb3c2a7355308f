"""Users, projects and the catalog in Keystone; flavors, an image, and an external network."""

from pathlib import Path
from typing import Any

import yaml
from openstack import connection
from openstack.config import OpenStackConfig

from tests.real_openstack.layout import HOSTS, PASSWORD, Layout
from tests.system.stack import await_so

CATALOG = {
    "compute": ("nova", "/v2.1"),
    "image": ("glance", ""),
    "placement": ("placement", ""),
    "network": ("neutron", ""),
}
PROJECTS = ("demo", "other")
"""Ids of two projects, which are their names too: the conformance tests know projects by these ids."""
LESSEES = ("physics", "chemistry")
"""Names of two projects with ids of Keystone."""
SERVICE = "climate"
"""User of climate, who administers the cloud and sends service tokens."""
FLAVOR, IMAGE, OUTSIDE = "tiny", "empty", "outside"


def clouds(layout: Layout) -> Path:
    """Write a clouds.yaml with an entry for each user; `admin` administers the cloud, and so does SERVICE."""
    common = {"user_domain_id": "default", "project_domain_id": "default", "auth_url": layout.url("keystone", "/v3")}
    entries = {
        name: {
            "auth": {**common, "username": name, "password": PASSWORD, "project_name": name},
            "region_name": "RegionOne",
        }
        for name in ("admin", *PROJECTS, *LESSEES)
    }
    own = {**common, "username": SERVICE, "password": PASSWORD, "project_name": "service"}
    entries[SERVICE] = {"auth": own, "region_name": "RegionOne", "send_service_token": True}
    path = layout.home / "clouds.yaml"
    path.write_text(yaml.safe_dump({"clouds": entries}), encoding="utf-8")
    return path


def connect(layout: Layout, name: str) -> Any:
    """Return a connection of openstacksdk for a user, whose project has the same name."""
    config = OpenStackConfig(config_files=[str(clouds(layout))], load_envvars=False)
    return connection.Connection(config=config.get_one(name, api_timeout=100))


def create(layout: Layout) -> None:
    """Create the accounts of the services and of all projects, and the catalog."""
    identity = connect(layout, "admin").identity
    roles = {role.name: role for role in identity.roles()}
    roles.setdefault("service", roles.get("service") or identity.create_role(name="service"))
    service = identity.create_project(name="service", domain_id="default")
    for name in (SERVICE, *(name for name, _ in CATALOG.values())):
        user = identity.create_user(name=name, password=PASSWORD, domain_id="default")
        for role in ("admin", "service"):
            identity.assign_project_role_to_user(service.id, user.id, roles[role].id)
    for kind, (name, path) in CATALOG.items():
        entry = identity.create_service(name=name, type=kind)
        for face in ("public", "internal", "admin"):
            url = layout.url(name, path)
            identity.create_endpoint(service_id=entry.id, interface=face, url=url, region_id="RegionOne")
    lessees = {name: identity.create_project(name=name, domain_id="default").id for name in LESSEES}
    for name, project_id in {**{name: name for name in PROJECTS}, **lessees}.items():
        user = identity.create_user(name=name, password=PASSWORD, domain_id="default")
        identity.assign_project_role_to_user(project_id, user.id, roles["member"].id)


def furnish(layout: Layout, seconds: float) -> None:
    """Create what servers need, and wait until all hosts are up."""
    cloud = connect(layout, "admin")
    cloud.compute.create_flavor(name=FLAVOR, vcpus=1, ram=128, disk=1)
    forms = {"disk_format": "raw", "container_format": "bare", "visibility": "public"}
    cloud.image.create_image(name=IMAGE, data=b"x" * 1024, **forms)
    flat = {"provider_network_type": "flat", "provider_physical_network": "outside"}
    network = cloud.network.create_network(name=OUTSIDE, is_router_external=True, **flat)
    reach = [{"start": "203.0.113.10", "end": "203.0.113.50"}]
    ip = {"ip_version": 4, "cidr": "203.0.113.0/24", "enable_dhcp": False, "allocation_pools": reach}
    cloud.network.create_subnet(network_id=network.id, **ip)

    def are_up() -> bool:
        return {one.name for one in cloud.compute.hypervisors(details=True) if one.state == "up"} >= set(HOSTS)

    await_so(are_up, seconds, "the start of the hosts")
