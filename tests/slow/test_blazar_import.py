"""Large Blazar databases are imported whole, with every allocation the same, in few statements."""

from dataclasses import replace
from datetime import timedelta

import pytest
from sqlalchemy import event

from benchmarks.blazar_import import differing, generate
from climate.context import Climate
from climate.domain.status import LeaseStatus
from climate.service.blazar_import import importer, source
from climate.service.journal import consistency_check
from climate.service.leases import leases
from climate.store.leases.leases import Listing
from tests.conftest import ADMIN, Clock
from tests.databases import Databases

pytestmark = pytest.mark.slow


@pytest.mark.usefixtures("climate")
def test_every_allocation_is_the_same(climate: Climate, make_database: Databases, clock: Clock) -> None:
    url = make_database()
    here = replace(climate, cloud=generate(url, 200, 2_000, clock.time))
    data = source.read(url)
    statements = 0

    def count(*_: object) -> None:
        nonlocal statements
        statements += 1

    event.listen(here.engine, "before_cursor_execute", count)
    try:
        report = importer.run_import(here, data)
    finally:
        event.remove(here.engine, "before_cursor_execute", count)
    assert (report.refusals, report.hosts, report.leases) == ((), 200, 2_000)
    assert statements < 60, "a constant number for each portion of leases"
    assert differing(here, data) == set()
    assert consistency_check.differences(here) == []
    found = leases.listed(here, ADMIN, Listing(ends_after=clock.time, starts_before=clock.time + timedelta(hours=1)))
    active = {str(lease.id) for lease in found if lease.status is LeaseStatus.ACTIVE}
    assert active == {lease.id for lease in data.leases if lease.status == "ACTIVE"} != set()
