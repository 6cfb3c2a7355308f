"""Builds that were sent to a neighbour, and their servers."""

from collections.abc import Sequence

from sqlalchemy import Connection, text
from sqlalchemy.dialects.postgresql import insert

from climate.compute.store.tables.cells import builds

# The top cell has a row for each server of a build, whose request may have other builds. Other cells know only the
# contents of the outbox.
_WAITING = text("""
    WITH outbox AS (
        SELECT CAST(body AS jsonb) #>> '{method_kwargs,build,build_id}' AS build_id FROM compute_cell_outbox
        WHERE cell = :cell AND kind = 'targeted' AND body LIKE '%"method_name":"schedule_run_instance"%')
    SELECT count(*) FROM compute_cell_builds b
    WHERE b.cell = :cell AND (
        EXISTS (SELECT FROM compute_cell_servers s JOIN jsonb_array_elements_text(b.server_ids) AS i(id)
                ON s.id = CAST(i.id AS uuid)
                WHERE s.cell IS NULL AND s.status = 'BUILD' AND s.deleted_at IS NULL)
        OR b.build_id IN (SELECT build_id FROM outbox)
           AND NOT EXISTS (SELECT FROM compute_cell_servers s JOIN jsonb_array_elements_text(b.server_ids) AS i(id)
                           ON s.id = CAST(i.id AS uuid)))
""")

_UNREPORTED = text("""
    SELECT i.id FROM compute_cell_builds b, jsonb_array_elements_text(b.server_ids) AS i(id)
    WHERE b.cell = :cell AND NOT EXISTS (
        SELECT FROM compute_cell_servers s
        WHERE s.id = CAST(i.id AS uuid) AND (s.cell IS NOT NULL OR s.deleted_at IS NOT NULL OR s.status <> 'BUILD'))
    ORDER BY i.id
""")


def sent(conn: Connection, build_id: str, cell: str, server_ids: Sequence[str]) -> bool:
    """Record that a build is sent to a neighbour; False if it was sent or carried out here before."""
    row = insert(builds).values(build_id=build_id, cell=cell, server_ids=list(server_ids))
    return conn.scalar(row.on_conflict_do_nothing().returning(builds.c.build_id)) is not None


def waiting(conn: Connection, cell: str) -> int:
    """Return the number of builds that wait for a neighbour: not sent yet, or without a report of their servers."""
    return int(conn.execute(_WAITING, {"cell": cell}).scalar_one())


def unreported(conn: Connection, cell: str) -> list[str]:
    """Return the ids of servers that were sent to a neighbour and never reported."""
    return list(conn.execute(_UNREPORTED, {"cell": cell}).scalars())
