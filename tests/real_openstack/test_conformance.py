"""The conformance tests of the cloud interface, on a real OpenStack.

Those that need nothing but a scene are run, except for DIFFERENT. A further fixture looks into a cloud of climate.
"""

import inspect
from dataclasses import replace
from types import ModuleType

import pytest

from climate.cloud import ACTIVE, MAINTENANCE, RECYCLING, NotYet
from climate.cloud.openstack.server_actions import MADE_OF, OCCASION
from tests.cloud.exchanges import OCTETS
from tests.conformance import test_host_moves, test_host_pools, test_planned_pools, test_servers, test_shared_capacity
from tests.conformance.conftest import booted
from tests.real_openstack.conftest import MARKS, RealScene
from tests.real_openstack.layout import HOSTS

MODULES = (test_host_pools, test_host_moves, test_planned_pools, test_servers, test_shared_capacity)
DIFFERENT = {
    "test_ordinary_hosts_are_those_in_no_pool_with_their_servers": "hosts of Nova's fake driver have traits",
    "test_a_server_without_another_host_stays": "Nova decides about a live migration after its answer",
    "test_suspending_and_imaging_happen_once": "Nova's fake driver uploads no image",
}
"""Reasons why tests are left out."""
OTHERS = {"fake", "bundled", "openstack", "request", "place", "there"}

pytestmark = MARKS


def _chosen(module: ModuleType) -> dict[str, object]:
    """Return the tests of a module, with its name in theirs, since some are named alike."""
    found = {}
    for name, test in vars(module).items():
        if name.startswith("test_") and name not in DIFFERENT and inspect.isfunction(test):
            wanted = set(inspect.signature(test).parameters)
            if wanted & {"scene", "slotted"} and not wanted & OTHERS:
                found[f"{module.__name__.rpartition('.')[2]}_{name.removeprefix('test_')}"] = test
    return found


for _module in MODULES:
    globals().update(_chosen(_module))


def test_ordinary_hosts_are_those_in_no_pool(scene: RealScene) -> None:
    """Those that are found by name have capabilities, which take a request to Placement per host."""
    cloud, found = scene.cloud, [scene.cloud.find_hosts(name)[0] for name in HOSTS]
    assert all(one.capabilities for one in found)
    assert cloud.ordinary_hosts() == [replace(one, capabilities={}) for one in found]
    cloud.enrol("h1", 1)
    cloud.place("h2", MAINTENANCE, 1)
    assert [one.name for one in cloud.ordinary_hosts()] == ["h3"]


def test_a_server_that_nova_cannot_move_stays(scene: RealScene) -> None:
    server_id = booted(scene)
    host = scene.people.look(server_id).hypervisor_hostname
    for name in HOSTS:
        scene.cloud.place(name, RECYCLING, 11)
    scene.cloud.move_server(server_id, host, 12)
    scene.settle()
    (server,) = scene.cloud.servers_on(host)
    assert (server.id, server.status) == (server_id, ACTIVE)


def test_an_image_of_a_server_is_created_once(scene: RealScene) -> None:
    """The test stores its content, as a hypervisor does: Nova's fake driver uploads none."""
    server_id, glance = booted(scene), scene.people.admin.image
    with pytest.raises(NotYet):
        scene.cloud.snapshot(server_id, "reserved_s", 10, "end")
    scene.settle()
    (image,) = glance.images(name="reserved_s")
    assert (image.status, image.properties[MADE_OF], image.properties[OCCASION]) == ("queued", server_id, "end")
    glance.update_image(image, disk_format="raw", container_format="bare")
    stored = glance.put(f"/images/{image.id}/file", data=b"content", headers=OCTETS)
    assert stored.ok, stored.text
    scene.cloud.snapshot(server_id, "reserved_s", 10, "end")
    assert scene.effects("snapshot") == 1
