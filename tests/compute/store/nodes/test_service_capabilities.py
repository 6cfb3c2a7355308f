"""Reports of services: only those that have changed, or are old, are written."""

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

from sqlalchemy import text

from climate.compute.context import Compute
from climate.compute.nodes import services
from climate.compute.zones import service_reports
from climate.compute.zones.service_reports import LastReport
from climate.store.engine import database_time
from tests.compute.cloud_factory import Place, node, place
from tests.scenarios.test_statement_counts import counted

NAMES = ["n1", "n2", "n3"]


def _touched(here: Place, compute: Compute, last: LastReport | None = None) -> list[str]:
    """The nodes whose reports are written, or locked only, by one report."""
    query = text("SELECT host, xmin::text, xmax::text FROM compute_service_capabilities WHERE service = 'compute'")
    with here.compute.engine.connect() as conn:
        before = conn.execute(query).all()
    service_reports.report_compute(compute, last)
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


def test_nodes_that_have_not_changed_since_the_last_report_are_not_compared(scratch: str, tmp_path: Path) -> None:
    with place(scratch, tmp_path, [node(name) for name in NAMES]) as here:
        services.refresh(here.compute)
        last = LastReport()
        assert _touched(here, here.compute, last) == NAMES
        with counted(here.compute.engine) as seen:
            service_reports.report_compute(here.compute, last)
        assert len(seen) == 1, seen
        changes = {
            "UPDATE compute_nodes SET used_vcpus = 3 WHERE name = 'n2'": ["n2"],
            "UPDATE compute_nodes SET maintenance = 'disks' WHERE name = 'n3'": ["n3"],
            "UPDATE compute_services SET enabled = false": ["n1", "n2"],
            "UPDATE compute_services SET enabled = true": ["n1", "n2"],
            "UPDATE compute_services SET forced_down = true": ["n1", "n2"],
        }
        for change, expected in changes.items():
            with here.compute.engine.begin() as conn:
                conn.execute(text(change))
            assert _touched(here, here.compute, last) == expected, change
            services.refresh(here.compute)  # a heartbeat changes no node
            with counted(here.compute.engine) as seen:
                service_reports.report_compute(here.compute, last)
            assert len(seen) == 1, change


def test_a_change_that_is_committed_after_the_report_began_is_reported_next(scratch: str, tmp_path: Path) -> None:
    """Its transaction is older than the report, which could not see it."""
    with place(scratch, tmp_path, [node(name) for name in NAMES]) as here:
        services.refresh(here.compute)
        last = LastReport()
        with here.compute.engine.begin() as conn:
            conn.execute(text("UPDATE compute_nodes SET used_vcpus = 3 WHERE name = 'n2'"))
            assert _touched(here, here.compute, last) == NAMES
        assert _touched(here, here.compute, last) == ["n2"]


def test_an_unchanged_report_is_renewed_once_in_a_period(scratch: str, tmp_path: Path) -> None:
    with place(scratch, tmp_path, [node(name) for name in NAMES]) as here:
        services.refresh(here.compute)
        last = LastReport()
        assert _touched(here, here.compute, last) == NAMES
        period = here.compute.zones.report_seconds
        later = replace(here.compute, now=lambda conn: database_time(conn) + timedelta(seconds=period))
        assert _touched(here, later, last) == []
        last.at -= period
        assert _touched(here, later, last) == NAMES
