"""Owners of the servers on each node, and their demands beyond their sizes."""

from collections.abc import Mapping, Sequence

from sqlalchemy import Connection, RowMapping, text

_OF = """
    SELECT node_id, project_id, user_id, count(*) AS servers FROM compute_servers
    WHERE node_id IS NOT NULL AND id <> ALL(CAST(:without AS uuid[])) {where}
    GROUP BY node_id, project_id, user_id
"""
# There is an index for each of the two. A flavor whose extra specs have none of the keys makes no such demands.
_DEMANDS = text("""
    SELECT node_id, flavor -> 'extra_specs' AS extra_specs, CAST(flavor ->> 'vcpus' AS int) AS vcpus,
           CAST(flavor ->> 'ram_mb' AS int) AS ram_mb
    FROM compute_servers
    WHERE node_id IS NOT NULL AND id <> ALL(CAST(:without AS uuid[]))
      AND (flavor -> 'extra_specs') ?| CAST(:keys AS text[])
      AND (CAST(:nodes AS int[]) IS NULL OR node_id = ANY(CAST(:nodes AS int[])))
    ORDER BY node_id, created_at, id
""")

_OWN = "AND (project_id = :project_id OR user_id = :user_id)"
_ON = "AND node_id = ANY(CAST(:nodes AS int[]))"


def of(
    conn: Connection, own: tuple[str, str] | None, without: Sequence[str], nodes: Sequence[int] | None = None
) -> Mapping[int, Mapping[tuple[str, str], int]]:
    """Return node id -> (project id, user id) -> number of servers, without these servers.

    `own`: only servers of this project id or this user id. `nodes`: only those on these nodes.
    """
    where = f"{_OWN if own else ''} {_ON if nodes is not None else ''}"
    project_id, user_id = own or ("", "")
    asked = {"without": list(without), "nodes": list(nodes or ()), "project_id": project_id, "user_id": user_id}
    result: dict[int, dict[tuple[str, str], int]] = {}
    for node, project, user, servers in conn.execute(text(_OF.format(where=where)), asked):
        result.setdefault(node, {})[project, user] = servers
    return result


def demands(
    conn: Connection, keys: Sequence[str], without: Sequence[str], nodes: Sequence[int] | None = None
) -> Sequence[RowMapping]:
    """Return node_id, extra_specs, vcpus and ram_mb of the servers whose flavor has one of these extra specs.

    They are oldest first on each node, without these servers. `nodes`: only those on these nodes.
    """
    asked = {"keys": list(keys), "without": list(without), "nodes": None if nodes is None else list(nodes)}
    return conn.execute(_DEMANDS, asked).mappings().all()
