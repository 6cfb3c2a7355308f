"""Reports of services: only those that have changed, or are old, are written."""

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

from sqlalchemy import text

from climate.compute.context import Compute
from climate.compute.nodes import services
from climate.compute.zones import service_reports
from climate.store.engine import database_time
from tests.compute.cloud_factory import Place, node, place

NAMES = ["n1", "n2", "n3"]


def _touched(here: Place, compute: Compute) -> list[str]:
    """The nodes whose reports are written, or locked only, by one report."""
    query = text("SELECT host, xmin::text, xmax::text FROM compute_service_capabilities WHERE service = 'compute'")
    with here.compute.engine.connect() as conn:
        before = conn.execute(query).all()
    service_reports.report_compute(compute)
    with here.compute.engine.connect() as conn:
        after = conn.execute(query).all()
    return sorted(row.host.rpartition("/")[2] for row in after if row not in before)


def test_a_report_is_written_when_it_changes_and_once_in_a_period(scratch: str, tmp_path: Path) -> None:
    with place(scratch, tmp_path, [node(name) for name in NAMES]) as here:
        services.refresh(here.compute)
        assert _touched(here, here.compute) == NAMES
        assert _touched(here, here.compute) == []
        with here.compute.engine.begin() as conn:
            conn.execute(text("UPDATE compute_nodes SET used_vcpus = 3 WHERE name = 'n2'"))
        assert _touched(here, here.compute) == ["n2"]
        with here.compute.engine.begin() as conn:
            conn.execute(text("UPDATE compute_services SET enabled = false"))
        assert _touched(here, here.compute) == NAMES
        period = timedelta(seconds=here.compute.zones.report_seconds)
        later = replace(here.compute, now=lambda conn: database_time(conn) + period)
        assert _touched(here, later) == NAMES
