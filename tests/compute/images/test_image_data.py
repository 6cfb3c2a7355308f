"""Images at the end of a lease: made before the server goes, also when making them fails at first."""

import errno
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import uuid4

import pytest
from sqlalchemy import text

from climate.cloud import NotYet
from climate.cloud.bundled import BundledCloud
from climate.compute.errors import BadRequest, Conflict, NoImageRoom, VirtError
from climate.compute.images import image_data
from climate.compute.models.image import Image
from climate.compute.servers import actions
from climate.compute.store.projects import images as store
from climate.compute.virt import Guest
from climate.compute.virt.in_memory import MemoryDriver
from climate.domain.lease import Reservation
from climate.domain.period import Period
from climate.plugin import ReservationContext
from plugins.virtual_instance import VirtualInstance
from tests.compute.cloud_factory import Place, node, place

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


def lent(server_id: str, token: int) -> ReservationContext:
    reservation = Reservation(uuid4(), "virtual:instance", {"on_end": "create_image, delete"}, server_id)
    return ReservationContext(uuid4(), "demo", Period(START, START + timedelta(hours=1)), reservation, (), token)


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
        with pytest.raises(NotYet, match="saved as an image"):
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


def queued(here: Place) -> str:
    """The id of an image that waits for its content."""
    made = Image(str(uuid4()), "i", "demo", "queued", "private", "raw", "bare", None, None)
    with here.compute.engine.begin() as conn:
        store.insert(conn, made)
    return made.id


def status(here: Place, image_id: str) -> str:
    with here.compute.engine.connect() as conn:
        found = store.get(conn, image_id)
    return found.status if found else "gone"


def test_an_upload_that_breaks_off_leaves_nothing_and_can_be_repeated(full: Place) -> None:
    image_id = queued(full)

    def broken() -> Iterator[bytes]:
        yield b"half"
        raise ConnectionError

    with pytest.raises(ConnectionError):
        image_data.upload(full.compute, image_id, broken())
    assert (list(full.compute.images.iterdir()), status(full, image_id)) == ([], "queued")
    image_data.upload(full.compute, image_id, [b"whole"])
    assert (image_data.content_file(full.compute, image_id).read_bytes(), status(full, image_id)) == (
        b"whole",
        "active",
    )


def test_an_upload_of_which_not_all_has_come_is_refused_and_can_be_repeated(full: Place) -> None:
    image_id = queued(full)
    with pytest.raises(BadRequest, match=f"Only 4 of 9 bytes of image {image_id}"):
        image_data.upload(full.compute, image_id, [b"half"], 9)
    assert (list(full.compute.images.iterdir()), status(full, image_id)) == ([], "queued")
    image_data.upload(full.compute, image_id, [b"half", b"other"], 9)
    assert status(full, image_id) == "active"


def test_an_image_has_one_upload_and_its_content_never_changes(full: Place) -> None:
    image_id = queued(full)

    def slow() -> Iterator[bytes]:
        yield b"one "
        with pytest.raises(Conflict, match="from saving to saving"):
            image_data.upload(full.compute, image_id, [b"another"])
        yield b"whole"

    image_data.upload(full.compute, image_id, slow())
    with pytest.raises(Conflict, match="from active to saving"):
        image_data.upload(full.compute, image_id, [b"later"])
    assert [path.read_bytes() for path in full.compute.images.iterdir()] == [b"one whole"]


def test_an_upload_into_an_image_that_is_deleted_meanwhile_leaves_nothing(full: Place) -> None:
    image_id = queued(full)

    def slow() -> Iterator[bytes]:
        yield b"one"
        full.drop_image(image_id)

    with pytest.raises(Conflict, match="deleted"):
        image_data.upload(full.compute, image_id, slow())
    assert (list(full.compute.images.iterdir()), status(full, image_id)) == ([], "gone")


def test_a_disk_that_fills_up_under_an_upload_is_called_full(full: Place) -> None:
    image_id = queued(full)

    def filling() -> Iterator[bytes]:
        yield b"half"
        raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.raises(NoImageRoom, match="disk of images"):
        image_data.upload(full.compute, image_id, filling())
    assert (list(full.compute.images.iterdir()), status(full, image_id)) == ([], "queued")


def test_a_snapshot_under_way_takes_no_upload(full: Place) -> None:
    image_id = actions.snapshot(full.compute, full.boot_one().id, "copy")
    with pytest.raises(Conflict, match="from saving to saving"):
        image_data.upload(full.compute, image_id, [b"forged"])


def test_a_late_worker_does_not_replace_the_content_of_a_snapshot(here: Place) -> None:
    image_id = actions.snapshot(here.compute, here.boot_one().id, "copy")
    snapshot = here.driver.snapshot

    def late(guest: Guest, target: Path) -> None:
        here.driver.snapshot = snapshot
        image_data.save(here.compute, guest, image_id, lambda: None)
        target.write_bytes(b"later")

    here.driver.snapshot = late
    here.settle()
    content = image_data.content_file(here.compute, image_id).read_bytes()
    assert content != b"later"
    assert here.count("compute_images", f"status = 'active' AND size = {len(content)}") == 1


def test_the_id_of_an_image_is_never_given_to_another(here: Place) -> None:
    image_id = here.image(b"first")
    here.drop_image(image_id)
    again = Image(image_id, "i", "other", "queued", "private", "raw", "bare", None, None)
    with here.compute.engine.begin() as conn:
        assert store.insert(conn, again) is None
    assert status(here, image_id) == "gone"


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
        image_id = actions.snapshot(here.compute, server.id, "copy")
        here.settle()
        with here.compute.engine.connect() as conn:
            made = store.get(conn, image_id)
    assert made is not None
    assert (made.status, made.disk_format, made.container_format) == ("active", wanted, "bare")
