"""Volumes in every cloud that has storage."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from climate.cloud import Fenced, Refused, Volumes
from climate.cloud.bundled import BundledCloud
from climate.cloud.fake import FakeCloud
from climate.cloud.volumes import CloudStorage, CloudVolume, VolumeOrder
from tests.cloud.nova import nova
from tests.compute.cloud_factory import node, place
from tests.conformance.conftest import SDK_WARNS

POOL, OTHER = "6f0f3a1e-7d1c-4b4c-9d0e-0d5b7f6f2f11", "6f0f3a1e-7d1c-4b4c-9d0e-0d5b7f6f2f22"


@pytest.fixture
def fake_storage() -> Volumes:
    return FakeCloud(storage={"local": CloudStorage("local", 100)})


@pytest.fixture
def bundled_storage(scratch: str, tmp_path: Path) -> Iterator[Volumes]:
    with place(scratch, tmp_path, [node("h1")]) as here:
        yield BundledCloud(here.compute)


@pytest.fixture(params=["fake_storage", "bundled_storage"])
def there(request: pytest.FixtureRequest) -> Volumes:
    found: Volumes = request.getfixturevalue(request.param)
    return found


def order(number: int = 1, size_gb: int = 2, pool: str = POOL, backend: str = "local") -> VolumeOrder:
    return VolumeOrder(pool, number, "demo", backend, "ssd", size_gb)


def seen(cloud: Volumes, *pools: str) -> list[tuple[str, int, int, bool]]:
    return sorted((one.pool, one.number, one.size_gb, one.kept) for one in cloud.volumes(pools or (POOL, OTHER)))


def test_what_there_is(there: Volumes) -> None:
    found = there.find_storage("local")
    assert found is not None
    assert (found.backend, found.capacity_gb > 1) == ("local", True)
    for other in ("nowhere", "../local", ""):
        assert there.find_storage(other) is None


def test_create_and_delete(there: Volumes) -> None:
    there.ensure_volume(order(1), 1)
    there.ensure_volume(order(2), 1)
    there.ensure_volume(order(1), 1)
    assert seen(there) == [(POOL, 1, 2, False), (POOL, 2, 2, False)]
    (one, _) = there.volumes([POOL])
    assert one == CloudVolume(one.id, POOL, one.number, "demo", "local", 2)
    for _ in range(2):
        there.drop_volumes(POOL, 2, keep=False)
        assert seen(there) == []
    there.ensure_volume(order(1), 3)
    assert seen(there) == [(POOL, 1, 2, False)], "a later claim may begin anew"


def test_a_volume_grows_and_never_shrinks(there: Volumes) -> None:
    there.ensure_volume(order(1, 2), 1)
    (before,) = there.volumes([POOL])
    there.ensure_volume(order(1, 5), 2)
    there.ensure_volume(order(1, 3), 2)
    (after,) = there.volumes([POOL])
    assert (after.id, after.size_gb) == (before.id, 5)


def test_what_is_kept_is_left_to_its_project(there: Volumes) -> None:
    there.ensure_volume(order(1), 1)
    there.ensure_volume(order(1, pool=OTHER), 1)
    for _ in range(2):
        there.drop_volumes(POOL, 2, keep=True)
        assert seen(there) == [(POOL, 1, 2, True), (OTHER, 1, 2, False)]
    there.drop_volumes(POOL, 3, keep=False)
    assert seen(there, POOL) == [(POOL, 1, 2, True)], "it is not the reservation's any more"


def test_nothing_is_created_late(there: Volumes) -> None:
    there.drop_volumes(POOL, 7, keep=False)
    with pytest.raises(Fenced):
        there.ensure_volume(order(1), 6)
    with pytest.raises(Fenced):
        there.drop_volumes(POOL, 6, keep=True)
    assert seen(there) == []
    there.ensure_volume(order(1, pool=OTHER), 6)
    there.drop_volumes(POOL, 8, keep=False)
    assert seen(there) == [(OTHER, 1, 2, False)], "another reservation is none of its business"


def test_there_is_no_such_backend(there: Volumes) -> None:
    with pytest.raises(Refused, match="nowhere"):
        there.ensure_volume(order(backend="nowhere"), 1)
    assert seen(there) == []


@SDK_WARNS
def test_openstack_says_that_it_makes_none(tmp_path: Path) -> None:
    with nova(tmp_path) as (_, cloud):
        assert cloud.find_storage("local") is None
        with pytest.raises(Refused, match="Cinder is not supported"):
            cloud.ensure_volume(order(), 1)
        cloud.drop_volumes(POOL, 1, keep=False)
        assert list(cloud.volumes([POOL])) == []
