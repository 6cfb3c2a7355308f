"""Images at the end of a lease: made before the server goes, also when making them fails at first."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import uuid4

import pytest
from sqlalchemy import text

from climate.cloud import NotYet
from climate.cloud.bundled import BundledCloud
from climate.compute import asking, images
from climate.compute.errors import VirtError
from climate.compute.store import images as store
from climate.compute.virt import Guest
from climate.compute.virt.memory import MemoryDriver
from climate.domain.lease import Reservation
from climate.domain.period import Period
from climate.plugin import Lent
from plugins.virtual_instance import VirtualInstance
from tests.compute.place import Place, node, place

START = datetime(2030, 1, 1, tzinfo=UTC)


@dataclass
class FullDisk(MemoryDriver):
    """A driver that has no room for images, for a while."""

    full: bool = True

    def snapshot(self, guest: Guest, target: Path) -> None:
        if self.full:
            raise VirtError("no space left")
        super().snapshot(guest, target)


@dataclass(frozen=True)
class Prompt(BundledCloud):
    """A cloud that is done with an image, well or badly, before anybody looks."""

    here: Place

    def snapshot(self, server_id: str, image: str, token: int, occasion: str = "") -> None:
        try:
            super().snapshot(server_id, image, token, occasion)
        finally:
            self.here.settle()


@pytest.fixture
def full(scratch: str, tmp_path: Path) -> Iterator[Place]:
    nodes = [node("n1")]
    with place(scratch, tmp_path, nodes, FullDisk(nodes)) as found:
        yield found


def lent(server_id: str, token: int) -> Lent:
    reservation = Reservation(uuid4(), "virtual:instance", {"on_end": "create_image, delete"}, server_id)
    return Lent(uuid4(), "demo", Period(START, START + timedelta(hours=1)), reservation, (), token)


def end(here: Place, server_id: str, token: int) -> bool:
    """One run of the end; whether it came to its end."""
    try:
        VirtualInstance().on_end(Prompt(here.compute, here), lent(server_id, token))
    except NotYet:
        return False
    finally:
        here.settle()
    return True


def test_an_image_is_asked_for_until_it_is_there(full: Place) -> None:
    server, cloud = full.boot_one(), BundledCloud(full.compute)
    for full.driver.full in (True, True, False):
        with pytest.raises(NotYet, match="imaged"):
            cloud.snapshot(server.id, "image", 1)
        full.settle()
    cloud.snapshot(server.id, "image", 1)
    assert full.count("compute_images", "status = 'active'") == 1


def test_a_server_is_kept_until_there_is_an_image_of_it(full: Place) -> None:
    server = full.boot_one()
    assert [end(full, server.id, token) for token in (1, 2, 3)] == [False] * 3
    assert full.count("compute_servers") == 1
    full.driver.full = False
    for token in range(4, 7):
        end(full, server.id, token)
    assert full.count("compute_servers") == 0
    assert (full.count("compute_servers"), full.count("compute_images", "status = 'active'")) == (0, 1)


@pytest.mark.parametrize("status", ["ERROR", "BUILD"])
def test_a_server_that_never_ran_goes_without_an_image(full: Place, status: str) -> None:
    server = full.boot_one()
    with full.compute.engine.begin() as conn:
        conn.execute(text("UPDATE compute_servers SET status = :status"), {"status": status})
    assert [end(full, server.id, token) for token in (1, 2)] == [False, True]
    assert full.count("compute_servers") == 0


def test_an_upload_that_breaks_off_leaves_nothing_and_two_do_not_mix(full: Place) -> None:
    image_id = str(uuid4())

    def broken() -> Iterator[bytes]:
        yield b"half"
        raise ConnectionError

    def slow() -> Iterator[bytes]:
        yield b"one "
        images.store(full.compute, image_id, [b"another"])
        yield b"whole"

    with pytest.raises(ConnectionError):
        images.store(full.compute, image_id, broken())
    assert list(full.compute.images.iterdir()) == []
    size = images.store(full.compute, image_id, slow()).size
    assert (size, images.place(full.compute, image_id).read_bytes()) == (9, b"one whole")
    assert len(list(full.compute.images.iterdir())) == 1


@dataclass
class Copier(MemoryDriver):
    """A driver whose images begin like this."""

    head: bytes = b""

    def snapshot(self, guest: Guest, target: Path) -> None:
        target.write_bytes(self.head + b"...")


@pytest.mark.parametrize(("head", "wanted"), [(b"QFI\xfb", "qcow2"), (b"\x1f\x8b", "raw"), (b"", "raw")])
def test_a_snapshot_says_how_its_disk_is_written_down(scratch: str, tmp_path: Path, head: bytes, wanted: str) -> None:
    nodes = [node("n1")]
    with place(scratch, tmp_path, nodes, Copier(nodes, head=head)) as here:
        server = here.boot_one()
        image_id = asking.snapshot(here.compute, server.id, "copy")
        here.settle()
        with here.compute.engine.connect() as conn:
            made = store.get(conn, image_id)
    assert made is not None
    assert (made.status, made.disk_format, made.container_format) == ("active", wanted, "bare")
