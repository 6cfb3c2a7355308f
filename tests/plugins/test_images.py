"""A server is imaged before anything else is done to it, however long that takes."""

from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from uuid import uuid4

import pytest

from climate.cloud import ERROR, RESERVED, NotYet
from climate.cloud.fake import FakeCloud, host
from climate.domain.lease import Reservation
from climate.domain.period import Period
from climate.plugin import ReservationContext
from plugins.physical_host import PhysicalHost
from plugins.virtual_instance import VirtualInstance

START = datetime(2030, 1, 1, tzinfo=UTC)


@dataclass
class SlowImages(FakeCloud):
    """A cloud in which an image has to be asked for several times until it is there."""

    asks_until_imaged: int = 3

    def snapshot(self, server_id: str, image: str, token: int, occasion: str = "") -> None:
        super().snapshot(server_id, image, token, occasion)
        if self.asks_until_imaged:
            self.asks_until_imaged -= 1
            raise NotYet(f"server {server_id} is still being imaged")


def lent(spec: dict[str, str], resource_type: str, resource_id: str | None = None) -> ReservationContext:
    reservation = Reservation(uuid4(), resource_type, spec, resource_id)
    return ReservationContext(uuid4(), "project", Period(START, START + timedelta(hours=1)), reservation, ("h1",), 7)


def test_a_server_is_deleted_only_when_its_image_is_created() -> None:
    cloud = SlowImages({"h1": host("h1")})
    server = cloud.boot("project", "h1")
    work = lent({"on_end": "create_image, delete"}, "virtual:instance", server)
    for _ in range(3):
        with pytest.raises(NotYet, match="imaged"):
            VirtualInstance().on_end(cloud, work)
        assert ("delete_server", server) not in cloud.calls
    VirtualInstance().on_end(cloud, work)
    assert cloud.server(server) is None
    assert cloud.images == [(server, "reserved_server")]


def test_the_snapshots_before_the_end_are_waited_for() -> None:
    cloud = SlowImages({"h1": host("h1")}, asks_until_imaged=2)
    work = lent({"before_end": "snapshot"}, "physical:host")
    cloud.enrol("h1", 1)
    cloud.lend(str(work.reservation.id), "project", ["h1"], 1)
    servers = [cloud.boot("project", "h1") for _ in range(2)]
    cloud.boot("project", "h1", status=ERROR)
    with pytest.raises(NotYet, match="images"):
        PhysicalHost().before_end(cloud, work)
    PhysicalHost().before_end(cloud, work)
    assert cloud.images == [(server, "reserved_server") for server in servers], "of each that has run"


@pytest.mark.parametrize(("on_end", "images", "left"), [("create_image, delete", 1, False), ("suspend", 0, True)])
def test_a_server_that_its_user_shelved_is_not_taken_for_one_that_never_woke(
    on_end: str, images: int, left: bool
) -> None:
    """On other clouds a shelved server and one that sleeps look the same."""
    cloud = FakeCloud({"h1": host("h1")})
    server = cloud.boot("project", "h1", status=RESERVED)
    work = replace(lent({"on_end": on_end}, "virtual:instance", server), started=True)
    if images:
        with pytest.raises(NotYet, match="woken"):
            VirtualInstance().on_end(cloud, work)
    VirtualInstance().on_end(cloud, work)
    assert len(cloud.images) == images
    assert (cloud.server(server) is not None) is left


def test_a_server_that_never_woke_is_deleted_without_an_image() -> None:
    cloud = FakeCloud({"h1": host("h1")})
    server = cloud.boot("project", "h1", status=RESERVED)
    VirtualInstance().on_end(cloud, lent({"on_end": "create_image, suspend"}, "virtual:instance", server))
    assert (cloud.server(server), cloud.images) == (None, [])
