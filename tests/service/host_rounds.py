"""The rounds over hosts, as tests make them: some time passes, and each round is made until nothing is left to do."""

from sqlalchemy import text

from climate.cloud.fake import FakeCloud
from climate.context import Climate
from climate.domain.hosts.pools import HostPlace
from climate.service.host_operations import failures, maintenance
from climate.service.leases import healing
from climate.store.hosts import pool_membership
from tests.conftest import Clock
from tests.service.lease_actions import run_due


def rounds(climate: Climate) -> None:
    """Each of the rounds once, and then what they made due."""
    maintenance.run_round(climate)
    failures.check(climate)
    healing.heal_all(climate)
    run_due(climate)


def pass_time(climate: Climate, clock: Clock, **step: float) -> None:
    """Time passes, between two rounds."""
    rounds(climate)
    clock.forward(**step)
    rounds(climate)
    rounds(climate)


def place(climate: Climate, number: int) -> HostPlace:
    with climate.engine.connect() as conn:
        return pool_membership.of(conn, [number])[number]


def fall_ill(climate: Climate, clock: Clock, *numbers: int) -> None:
    """The cloud says for long enough that these hosts are down."""
    cloud(climate).unwell.update({f"h{number}": "its service is down" for number in numbers})
    pass_time(climate, clock, seconds=climate.settings.failed_after)


def recover(climate: Climate, clock: Clock, *numbers: int) -> None:
    """The cloud has said for long enough that these hosts are well."""
    for number in numbers:
        cloud(climate).unwell.pop(f"h{number}", None)
    pass_time(climate, clock, seconds=climate.settings.failed_after)


def cloud(climate: Climate) -> FakeCloud:
    assert isinstance(climate.cloud, FakeCloud)
    return climate.cloud


def pool_of(climate: Climate, number: int) -> set[str]:
    """The pools of the cloud that the host is in."""
    return {pool for pool, names in climate.cloud.pools().items() if f"h{number}" in names}


def told(climate: Climate, kind: str) -> list[str]:
    """Notices of that kind."""
    with climate.engine.connect() as conn:
        query = text("SELECT message FROM notices WHERE kind = :kind ORDER BY id")
        return [row.message for row in conn.execute(query, {"kind": kind})]
