"""A server is imaged before anything else is done to it, however long that takes."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from uuid import uuid4

import pytest

from climate.cloud import CloudServer, NotYet
from climate.cloud.fake import FakeCloud, host
from climate.domain.lease import Reservation
from climate.domain.period import Period
from climate.plugin import Lent
from plugins.physical_host import PhysicalHost
from plugins.virtual_instance import VirtualInstance

START = datetime(2030, 1, 1, tzinfo=UTC)


@dataclass
class SlowImages(FakeCloud):
    """A cloud in which a server is busy for some looks after an image of it was asked for."""

    looks_until_imaged: int = 5

    def server(self, server_id: str) -> CloudServer | None:
        return self._imaging(super().server(server_id))

    def servers_in(self, pool: str) -> Sequence[CloudServer]:
        return [seen for server in super().servers_in(pool) if (seen := self._imaging(server))]

    def _imaging(self, server: CloudServer | None) -> CloudServer | None:
        if server is None or not any(server.id == imaged for imaged, _ in self.images) or not self.looks_until_imaged:
            return server
        self.looks_until_imaged -= 1
        return replace(server, busy=True)


def lent(spec: dict[str, str], resource_type: str, resource_id: str | None = None) -> Lent:
    reservation = Reservation(uuid4(), resource_type, spec, resource_id)
    return Lent(uuid4(), "project", Period(START, START + timedelta(hours=1)), reservation, ("h1",), 7)


def test_a_server_is_deleted_only_when_its_image_is_made() -> None:
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
    cloud = SlowImages({"h1": host("h1")}, looks_until_imaged=1)
    work = lent({"before_end": "snapshot"}, "physical:host")
    cloud.enrol("h1")
    cloud.lend(str(work.reservation.id), "project", ["h1"], 1)
    server = cloud.boot("project", "h1")
    with pytest.raises(NotYet, match="images"):
        PhysicalHost().before_end(cloud, work)
    PhysicalHost().before_end(cloud, work)
    assert cloud.images == [(server, "reserved_server")]
