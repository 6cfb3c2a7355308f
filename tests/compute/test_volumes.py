"""Volumes and their files: what is deleted, or could not be created, leaves nothing on its backend."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from uuid import uuid4

import pytest

from climate.compute import Compute, volumes
from climate.compute.errors import Conflict, NotFound
from climate.compute.store.projects import volumes as rows
from climate.compute.store.projects.volumes import AVAILABLE, Volume
from climate.compute.volume_directory import UNRESERVED, Directory
from climate.compute.volumes import NewVolume, ReservedVolume
from tests.compute.cloud_factory import Place, node, place

NEW = NewVolume("demo", "dora", 1, "v", None, {})


@dataclass(frozen=True)
class Overtaken(Directory):
    """A driver that is slow: the volume is deleted, as far as its files are there, before they are made."""

    compute: Compute | None = None

    def ensure(self, backend: str, volume_id: str, size_gb: int) -> None:
        assert self.compute is not None
        volumes.delete(self.compute, volume_id, "demo")
        super().ensure(backend, volume_id, size_gb)


@pytest.fixture
def here(scratch: str, tmp_path: Path) -> Iterator[Place]:
    with place(scratch, tmp_path, [node("n1")]) as found:
        found.compute = replace(found.compute, volume_gb=-1)
        yield found


def files(here: Place, backend: str) -> list[str]:
    folder = here.compute.home / "volumes" / backend
    return [path.name for path in folder.iterdir()] if folder.is_dir() else []


def begun(here: Place) -> Volume:
    """A volume whose files are not made yet."""
    values = {"project_id": "demo", "user_id": "dora", "size_gb": 1, "name": "v", "description": None, "metadata": {}}
    with here.compute.engine.begin() as conn:
        return rows.add(conn, {**values, "backend": UNRESERVED, "storage_class": UNRESERVED})


def test_a_volume_is_created_with_its_files(here: Place) -> None:
    made = volumes.create(here.compute, NEW)
    assert volumes.get(here.compute, made.id, "demo").status == AVAILABLE
    assert files(here, UNRESERVED) == [made.id]
    volumes.delete(here.compute, made.id, "demo")
    assert files(here, UNRESERVED) == []


def test_a_volume_that_is_deleted_while_it_is_created_leaves_no_files(here: Place) -> None:
    volume = begun(here)
    driver = Overtaken(volumes.directory(here.compute).folder, here.compute)
    assert not volumes.build(here.compute, driver, volume)
    assert files(here, UNRESERVED) == []
    with pytest.raises(NotFound):
        volumes.get(here.compute, volume.id, "demo")


def test_a_volume_whose_deletion_is_under_way_is_not_available(here: Place) -> None:
    volume = begun(here)
    with here.compute.engine.begin() as conn:
        rows.deleting(conn, volume.id)
    assert not volumes.build(here.compute, volumes.directory(here.compute), volume)
    assert files(here, UNRESERVED) == []


def test_a_volume_of_a_reservation_grows_and_stays(here: Place) -> None:
    order = ReservedVolume(str(uuid4()), 1, "demo", "local", "ssd", 1)
    volumes.ensure(here.compute, order, 1)
    volumes.ensure(here.compute, replace(order, size_gb=2), 2)
    (made,) = volumes.of_pools(here.compute, [order.pool])
    assert (made.status, made.size_gb, files(here, "local")) == (AVAILABLE, 2, [made.id])
    with pytest.raises(Conflict, match="which is not over"):
        volumes.delete(here.compute, made.id, "demo")
