"""openstacksdk, in this process."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import openstack
import pytest

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::PendingDeprecationWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]


@pytest.fixture
def sdk(home: Path) -> Iterator[Any]:
    """A member of the project demo."""
    config = openstack.config.OpenStackConfig(config_files=[str(home / "clouds.yaml")])
    connection = openstack.connection.Connection(config=config.get_one("climate-demo"))
    yield connection
    connection.close()


def test_the_cloud_layer_creates_and_waits(sdk: Any) -> None:
    made = sdk.create_server("by-sdk", image="demo", flavor="m1.tiny", network="private", wait=True, timeout=60)
    assert made.status == "ACTIVE"
    assert made.private_v4
    assert sdk.get_server("by-sdk").id == made.id
    assert sdk.delete_server("by-sdk", wait=True, timeout=60)
    assert sdk.get_server("by-sdk") is None


def test_the_proxies_create_wait_and_list(sdk: Any) -> None:
    image, flavor = sdk.image.find_image("demo"), sdk.compute.find_flavor("m1.tiny")
    made = sdk.compute.create_server(name="by-proxy", image_id=image.id, flavor_id=flavor.id, networks="auto")
    server = sdk.compute.wait_for_server(made, interval=0.1, wait=30)
    assert server.status == "ACTIVE"
    assert [each.id for each in sdk.compute.servers(name="by-proxy")] == [server.id]
    sdk.compute.delete_server(server)
    sdk.compute.wait_for_delete(server, interval=0.1, wait=30)


def test_everything_is_listed(sdk: Any) -> None:
    assert "m1.tiny" in {each.name for each in sdk.list_flavors()}
    assert "demo" in {each.name for each in sdk.list_images()}
    assert "private" in {each.name for each in sdk.list_networks()}
    assert "nova" in sdk.list_availability_zone_names()
    assert sdk.list_subnets()
    for listed in (sdk.list_servers, sdk.list_keypairs, sdk.list_server_groups, sdk.list_ports):
        assert listed() == []
    assert [each.name for each in sdk.list_security_groups()] == ["default"]


def test_pages_are_followed(sdk: Any) -> None:
    image, flavor = sdk.image.find_image("demo"), sdk.compute.find_flavor("m1.tiny")
    made = sdk.compute.create_server(
        name="p", image_id=image.id, flavor_id=flavor.id, networks="auto", min_count=3, max_count=3
    )
    try:
        assert len(list(sdk.compute.servers(limit=1))) == 3
    finally:
        for each in list(sdk.compute.servers()):
            sdk.compute.delete_server(each)
            sdk.compute.wait_for_delete(each, interval=0.1, wait=30)
    assert made.id
