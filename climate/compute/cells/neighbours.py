"""Neighbours: the parents and children of this cell, stored in its database."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any
from urllib.parse import urlsplit

import structlog
from sqlalchemy import Connection

from climate.compute import audit_trail
from climate.compute.audit_trail import CELL, Change
from climate.compute.cells.errors import CellError, CellExists, CellNotFound
from climate.compute.cells.messaging import paths
from climate.compute.cells.models import Broker, Cell
from climate.compute.context import Compute
from climate.compute.errors import BadRequest
from climate.compute.store.cells import cells as rows
from climate.compute.store.cells.cells import Row
from climate.database.connections import reading
from climate.sealed_secrets import Unreadable

log = structlog.get_logger(__name__)

SHORTEST_SECRET = 16
"""Minimum length of a link's secret in characters."""

_DATABASE = re.compile(r"(/\d{0,5})?")

SEALED = ("password", "transport_url", "secret")
"""Fields of a broker that are stored encrypted and never shown."""


@dataclass(frozen=True, slots=True)
class Around:
    """Neighbours of a cell, by name."""

    parents: Mapping[str, Cell]
    children: Mapping[str, Cell]


def around(conn: Connection) -> Around:
    """Return all neighbours, without their secrets."""
    return _sides(row.cell for row in rows.listed(conn))


@dataclass(frozen=True, slots=True)
class Links:
    """Neighbours of a cell without their reports; secrets are decrypted on demand."""

    compute: Compute
    rows: Mapping[str, Row]
    around: Around
    cells: dict[str, Cell] = field(default_factory=dict, repr=False)

    def opened(self, name: str) -> Cell | None:
        """Return the neighbour of a name with the secrets of its link, or None."""
        if name not in self.cells and name in self.rows:
            self.cells[name] = _opened(self.compute, self.rows[name])
        return self.cells.get(name)


def links(compute: Compute, conn: Connection) -> Links:
    """Return all neighbours, ready for sending."""
    result = rows.links(conn)
    return Links(compute, {row.cell.name: row for row in result}, _sides(row.cell for row in result))


def listed(compute: Compute) -> list[Cell]:
    """Return all neighbours by name, without their secrets."""
    with reading(compute.engine) as conn:
        return [row.cell for row in rows.listed(conn)]


def get(compute: Compute, name: str) -> Cell:
    """Return a neighbour without its secrets. Raise CellNotFound."""
    with reading(compute.engine) as conn:
        return _found(rows.named(conn, [name]), name).cell


def with_secrets(compute: Compute, conn: Connection, *names: str) -> dict[str, Cell]:
    """Return the neighbours with the secrets of their links, by name."""
    return {row.cell.name: _opened(compute, row) for row in rows.named(conn, names)}


def create(compute: Compute, cell: Cell) -> Cell:
    """Store a new neighbour. Raise BadRequest, CellExists."""
    paths.check_name(cell.name)
    if cell.name == compute.cells.name:
        raise BadRequest(f"Cell {cell.name} cannot be its own neighbour.")
    _check_broker(cell.broker)
    with compute.engine.begin() as conn:
        _check_side(conn, cell)
        if not rows.insert(conn, _sealed(compute, cell)):
            raise CellExists(f"Cell {cell.name} is a neighbour already.")
        given = audit_trail.secrets(asdict(cell.broker), SEALED, audit_trail.SET)
        compute.tell_change(conn, Change(CELL, cell.name, cell.name, None, fields_of(cell) | given))
    return cell


def change(compute: Compute, name: str, cell: Mapping[str, Any], broker: Mapping[str, Any]) -> Cell:
    """Update given fields of a neighbour and of its broker.

    Raise CellNotFound, BadRequest.
    """
    with compute.engine.begin() as conn:
        row = rows.lock(conn, name)
        if row is None:
            raise CellNotFound(f"Cell {name} could not be found.")
        present = _opened(compute, row)
        wanted = replace(present, **cell, broker=replace(present.broker, **broker))
        _check_broker(wanted.broker)
        _check_side(conn, wanted)
        rows.update(conn, _sealed(compute, wanted))
        given = audit_trail.secrets(broker, SEALED, audit_trail.CHANGED)
        compute.tell_change(conn, Change(CELL, name, name, fields_of(present), fields_of(wanted) | given))
    return wanted


def fields_of(cell: Cell) -> dict[str, object]:
    """Return the fields of a neighbour for the audit trail: those that administrators set, without secrets."""
    broker = {key: value for key, value in asdict(cell.broker).items() if key not in SEALED}
    weights = {"weight_offset": cell.weight_offset, "weight_scale": cell.weight_scale}
    return {"is_parent": cell.is_parent, **weights, **broker}


def leads_to(conn: Connection, path: str) -> bool:
    """Return whether the cell at a path is this one, or is below one of its children."""
    names = paths.split(path)
    return len(names) == 1 or any(not row.cell.is_parent for row in rows.named(conn, names[1:2]))


def _sides(cells: Iterable[Cell]) -> Around:
    result = list(cells)
    return Around(
        {cell.name: cell for cell in result if cell.is_parent},
        {cell.name: cell for cell in result if not cell.is_parent},
    )


def _found(rows: list[Row], name: str) -> Row:
    if not rows:
        raise CellNotFound(f"Cell {name} could not be found.")
    return rows[0]


def _check_broker(broker: Broker) -> None:
    if broker.secret is not None and len(broker.secret) < SHORTEST_SECRET:
        raise BadRequest(f"The secret of a cell must have at least {SHORTEST_SECRET} characters.")
    if broker.transport_url:
        _check_url(broker.transport_url)


def _check_url(url: str) -> None:
    """Raise BadRequest for an invalid broker URL; the message omits the URL, which may contain a password."""
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError:
        parts = urlsplit("")
    if parts.scheme == "unix":
        usable = parts.hostname is None and parts.path.startswith("/")
    else:
        usable = parts.scheme in ("redis", "rediss") and bool(parts.hostname) and bool(_DATABASE.fullmatch(parts.path))
    if not usable or parts.fragment:
        raise BadRequest(
            "transport_url must be redis://[user:password@]host[:port][/database], rediss://… or unix:///path; "
            "write special characters of a password as %xx."
        )


def _check_side(conn: Connection, cell: Cell) -> None:
    """Raise BadRequest for a parent that is known to be below a child of this cell."""
    if cell.is_parent:
        for child in around(conn).children.values():
            if cell.name in _below(child.children):
                raise BadRequest(
                    f"Cell {cell.name} cannot be a parent: it is below the child {child.name}, "
                    "so that the cells would form a cycle."
                )


def _below(children: Sequence[Mapping[str, Any]]) -> set[str]:
    result = {str(child.get("name")) for child in children}
    return result.union(*(_below(child.get("children") or ()) for child in children))


def _sealed(compute: Compute, cell: Cell) -> Row:
    if compute.cells.vault is None:
        raise CellError("The credentials of a cell cannot be stored: there is no encryption key.")
    secrets = {key: getattr(cell.broker, key) for key in SEALED}
    return Row(cell, compute.cells.vault.seal(secrets))


def _opened(compute: Compute, row: Row) -> Cell:
    """Return a neighbour with decrypted secrets; without a usable key it has none, and its link is closed."""
    try:
        secrets = compute.cells.vault.open(row.sealed) if compute.cells.vault is not None else {}
    except Unreadable as error:
        log.error("credentials of a cell cannot be decrypted", cell=row.cell.name, reason=str(error))
        secrets = {}
    known = {key: value for key, value in secrets.items() if key in SEALED}
    return replace(row.cell, broker=replace(row.cell.broker, **known))
