"""Servers in every cloud: waking, suspending, imaging and deleting them, also after their users changed them."""

from contextlib import suppress
from uuid import uuid4

import pytest
from sqlalchemy import text

from climate.cloud import ACTIVE, PAUSED, RESERVED, RESIZED, SHELVED, SUSPENDED, Fenced, NotYet, Refused
from climate.compute.images import image_data
from climate.compute.models.server import PAUSE, RESUME
from climate.compute.servers import actions, resize
from tests.compute.cloud_factory import HALF, Place
from tests.conformance.conftest import SDK_WARNS, BundledScene, FakeScene, OpenStackScene, Scene, booted


def test_a_sleeping_server_is_woken_once(scene: Scene) -> None:
    server_id = booted(scene, status=RESERVED)
    assert [server.id for server in scene.cloud.sleeping()] == [server_id]
    for _ in range(3):
        scene.cloud.wake(server_id, 10)
        scene.settle()
    server = scene.cloud.server(server_id)
    assert server is not None
    assert (server.status, server.busy) == (ACTIVE, False)
    assert scene.effects("wake") == 1
    assert list(scene.cloud.sleeping()) == []
    with pytest.raises(Fenced):
        scene.cloud.wake(server_id, 9)


def test_a_host_is_busy_while_a_server_runs_on_it(scene: Scene) -> None:
    hosts = ["h1", "h2", "h3", "unknown"]
    assert scene.cloud.busy_hosts(hosts) == frozenset()
    booted(scene, status=RESERVED)
    assert scene.cloud.busy_hosts(hosts) == frozenset(), "a sleeping server does not run"
    server = scene.cloud.server(booted(scene))
    assert server is not None
    assert server.host is not None
    assert scene.cloud.busy_hosts(hosts) == {server.host}
    assert scene.cloud.busy_hosts([name for name in hosts if name != server.host]) == frozenset()
    assert scene.cloud.busy_hosts([]) == frozenset()
    scene.cloud.suspend(server.id, 10)
    scene.settle()
    assert scene.cloud.busy_hosts(hosts) == frozenset()


def test_suspending_and_imaging_happen_once(scene: Scene) -> None:
    server_id = booted(scene)
    for _ in range(2):
        with suppress(NotYet):
            scene.cloud.snapshot(server_id, "reserved_s", 10)
        scene.settle()
    scene.cloud.snapshot(server_id, "reserved_s", 10)
    for _ in range(2):
        scene.cloud.suspend(server_id, 10)
        scene.settle()
    server = scene.cloud.server(server_id)
    assert server is not None
    assert server.status == SUSPENDED
    assert (scene.effects("snapshot"), scene.effects("suspend")) == (1, 1)
    for late in (scene.cloud.suspend, scene.cloud.delete_server):
        with pytest.raises(Fenced):
            late(server_id, 9)


def test_what_cannot_be_is_refused(scene: Scene) -> None:
    sleeping = booted(scene, status=RESERVED)
    with pytest.raises(Refused):
        scene.cloud.suspend(sleeping, 10)
    with pytest.raises(Refused):
        scene.cloud.snapshot(sleeping, "image", 10)
    nobody = str(uuid4())
    for verb in (scene.cloud.wake, scene.cloud.suspend):
        with pytest.raises(Refused):
            verb(nobody, 10)
    assert scene.cloud.server(nobody) is None


@pytest.mark.parametrize("status", [ACTIVE, RESERVED])
def test_a_server_is_deleted_once(scene: Scene, status: str) -> None:
    server_id = booted(scene, status=status)
    for _ in range(2):
        scene.cloud.delete_server(server_id, 10)
    scene.settle()
    assert scene.cloud.server(server_id) is None
    scene.cloud.delete_server(server_id, 11)
    assert scene.effects("delete_server") == 1


def changed(here: Place, server_id: str, status: str) -> None:
    if status == PAUSED:
        actions.request_task(here.compute, server_id, PAUSE)
    elif status == SHELVED:
        actions.shelve(here.compute, server_id)
    else:
        resize.resize(here.compute, server_id, HALF)
    here.settle()
    assert here.look(server_id).status == status


def imaged(scene: BundledScene | OpenStackScene, server_id: str) -> None:
    for _ in range(4):
        with suppress(NotYet):
            scene.cloud.snapshot(server_id, "reserved_s", 10)
        scene.settle()
    scene.cloud.snapshot(server_id, "reserved_s", 10)


@pytest.mark.parametrize("status", [PAUSED, RESIZED, SHELVED])
def test_one_image_is_created_from_it_and_outlives_it(bundled: BundledScene, status: str) -> None:
    here, server_id = bundled.here, str(bundled.server())
    changed(here, server_id, status)
    imaged(bundled, server_id)
    assert here.look(server_id).status == status, "the server is as its user left it"
    bundled.cloud.delete_server(server_id, 10)
    here.settle()
    with here.compute.engine.connect() as conn:
        kept = conn.execute(text("SELECT id::text, size FROM compute_images WHERE name = 'reserved_s'")).one()
    assert image_data.content_file(here.compute, kept.id).stat().st_size == kept.size > 0
    assert image_data.is_made(here.compute, kept.id)
    assert here.count("compute_images") == 1, "that it was shelved in is gone with it"


@SDK_WARNS
@pytest.mark.parametrize("status", [PAUSED, RESIZED])
def test_one_image_is_created_from_it_over_http(openstack: OpenStackScene, status: str) -> None:
    here, server_id = openstack.here, str(openstack.server())
    changed(here, server_id, status)
    imaged(openstack, server_id)
    assert here.look(server_id).status == (ACTIVE if status == RESIZED else status)
    assert here.count("compute_images", "name = 'reserved_s' AND status = 'active'") == 1


@SDK_WARNS
@pytest.mark.parametrize("name", ["bundled", "openstack"])
def test_one_that_waits_for_its_resize_to_be_confirmed_is_suspended(request: pytest.FixtureRequest, name: str) -> None:
    scene: BundledScene | OpenStackScene = request.getfixturevalue(name)
    server_id = str(scene.server())
    changed(scene.here, server_id, RESIZED)
    with pytest.raises(NotYet, match="new size"):
        scene.cloud.suspend(server_id, 10)
    scene.settle()
    scene.cloud.suspend(server_id, 10)
    scene.settle()
    server = scene.here.look(server_id)
    assert (server.status, server.flavor) == (SUSPENDED, HALF)


def test_the_fake_cloud_confirms_a_resize_too(fake: FakeScene) -> None:
    server_id = str(fake.server(status=RESIZED))
    with pytest.raises(NotYet, match="new size"):
        fake.cloud.suspend(server_id, 10)
    fake.cloud.suspend(server_id, 10)
    found = fake.cloud.server(server_id)
    assert found is not None
    assert found.status == SUSPENDED


def test_who_is_fenced_confirms_no_resize(bundled: BundledScene) -> None:
    server_id = str(bundled.server())
    bundled.cloud.suspend(server_id, 10)
    bundled.settle()
    actions.request_task(bundled.here.compute, server_id, RESUME)
    bundled.settle()
    changed(bundled.here, server_id, RESIZED)
    with pytest.raises(Fenced):
        bundled.cloud.suspend(server_id, 9)
    assert bundled.here.look(server_id).status == RESIZED
