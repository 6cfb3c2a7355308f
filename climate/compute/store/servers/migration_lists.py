"""Lists of migrations by filters: each page is read from one index, however few of many rows match."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from itertools import product

from sqlalchemy import Connection, text

from climate.compute.models.migration import Migration
from climate.compute.store.servers.migrations import COLUMNS, migration_of
from climate.compute.store.tables.migrations import PAIRS

COLUMNS_OF: Mapping[str, Sequence[str]] = {
    "server_id": ("server_id",),
    "status": ("status",),
    "type": ("type",),
    "source_host": ("source_host",),
    "host": ("source_host", "dest_host"),
}
"""Filters of lists by a value, and their columns, one of which has to have it."""

CONDITIONS: Mapping[str, str] = {
    "id": "m.id = :id",
    "uuid": "m.uuid = CAST(:uuid AS uuid)",
    "statuses": "m.status = ANY(:statuses)",
    "changed_before": "m.updated_at <= :changed_before",
}
"""The other filters of lists; `changed_since` is in the rows of the list, see `_parts`."""

_LEADING: Sequence[tuple[str, ...]] = (
    *(("server_id",), *PAIRS),
    *(("status",), ("type",), ("source_host",), ("dest_host",), ()),
)
"""Columns before the time and id in the indexes of lists. A list uses the first index whose columns it knows."""

_IN_UTC = tuple(
    f"timezone('UTC', {moment})"
    for moment in ("m.created_at", *(f"CAST(:{end} AS timestamptz)" for end in ("since", "until")))
)
"""Time of a row and both ends of a list without a filter by value, as their index has it."""

# Made before a moment and changed since: under way at that moment. There are few, whatever was made before or since.
_UNDER_WAY = """
    m.created_at < :changed_since AND m.id = ANY(ARRAY(
        SELECT c.id FROM compute_migrations c
        WHERE tstzrange(c.created_at, greatest(c.created_at, c.updated_at), '[]')
              @> CAST(:changed_since AS timestamptz)))
"""

_NEWEST = "ORDER BY m.created_at DESC, m.id DESC LIMIT :limit"

_EVER = (datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC))
_LAST_ID = 2**63 - 1


def listed(
    conn: Connection, wanted: Mapping[str, object], limit: int, after: Migration | None = None
) -> list[Migration]:
    """Return migrations that match all of `wanted` (names of COLUMNS_OF and CONDITIONS), newest first.

    `after`: the last migration of the page before.
    """
    since, until = wanted.get("changed_since", _EVER[0]), (wanted.get("changed_before", _EVER[1]), _LAST_ID)
    if after is not None:
        until = min(until, (after.created_at, after.id - 1))
    others = [CONDITIONS[name] for name in wanted if name in CONDITIONS]
    parts = [part for known in _alternatives(wanted) for part in _parts(known, others, "changed_since" in wanted)]
    if not parts:
        return []
    # A migration within one host is in both parts of its list.
    rows = " UNION ALL ".join(f"(SELECT * FROM compute_migrations m WHERE {part})" for part in parts)
    query = text(f"SELECT DISTINCT ON (m.created_at, m.id) {COLUMNS} FROM ({rows}) m {_NEWEST}")
    given = {**wanted, "limit": limit, "since": since, "until": until[0], "until_id": until[1]}
    return [migration_of(row) for row in conn.execute(query, given).mappings()]


def _alternatives(wanted: Mapping[str, object]) -> list[dict[str, str]]:
    """Return the ways in which a migration can match the filters by value: column -> the filter with its value."""
    names = [name for name in wanted if name in COLUMNS_OF]
    result = []
    for columns in product(*(COLUMNS_OF[name] for name in names)):
        known = dict(zip(columns, names, strict=True))
        if all(wanted[known[column]] == wanted[name] for column, name in zip(columns, names, strict=True)):
            result.append(known)
    return result


def _parts(known: Mapping[str, str], others: Sequence[str], changed: bool) -> list[str]:
    """Return the condition and order of each statement of a list, whose columns in `known` have one value each.

    Only one index has the equation and the order of the first. Where the planner can choose, it may take an index that
    knows less, and read all rows that do not match.
    """
    leading = next(columns for columns in _LEADING if set(columns) <= set(known))
    at, since, until = ("m.created_at", ":since", ":until") if leading else _IN_UTC
    rest = [f"m.{column} || '' = {_value(column, known[column])}" for column in known if column not in leading]
    between = [f"({at}, m.id) <= ({until}, :until_id)", f"{at} >= {since}"]
    newest = " AND ".join([*_equation(leading, known), *between, *rest, *others])
    parts = [f"{newest} ORDER BY {at} DESC, m.id DESC LIMIT :limit"]
    if changed:
        before = [_UNDER_WAY, "(m.created_at, m.id) <= (:until, :until_id)"]
        of_value = [f"m.{column} = {_value(column, name)}" for column, name in known.items()]
        parts.append(" AND ".join([*before, *of_value, *others]))  # an order would let the planner read by it
    return parts


def _equation(columns: Sequence[str], known: Mapping[str, str]) -> list[str]:
    """Return the condition on the first columns of an index, which are one array if there are two."""
    values = [_value(column, known[column]) for column in columns]
    if len(columns) < 2:
        return [f"m.{column} = {value}" for column, value in zip(columns, values, strict=True)]
    return [f"ARRAY[{', '.join(f'm.{column}' for column in columns)}] = ARRAY[{', '.join(values)}]"]


def _value(column: str, name: str) -> str:
    return f"CAST(:{name} AS {'uuid' if column == 'server_id' else 'text'})"
