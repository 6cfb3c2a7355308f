"""Members of clusters behind other compute services: their offers, and orders to them."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import Connection, and_, bindparam, delete, insert, or_, select, text, update

from climate.compute.clusters.cluster_spec import MemberSpec
from climate.compute.store.tables.cluster_members import members, orders
from climate.compute.store.tables.nodes import services

_REPORT = text("""
    INSERT INTO compute_cluster_members
        (service_host, name, cluster, driver, machine, disks, vcpus, memory_mb, local_gb, seen_at)
    SELECT :host, r.name, r.cluster, r.driver, :machine, r.disks, r.vcpus, r.memory_mb, r.local_gb, :now
    FROM jsonb_to_recordset(CAST(:offers AS jsonb))
         AS r(name text, cluster text, driver text, disks text, vcpus int, memory_mb int, local_gb int)
    ON CONFLICT (service_host, name) DO UPDATE
    SET cluster = excluded.cluster, driver = excluded.driver, machine = excluded.machine, disks = excluded.disks,
        vcpus = excluded.vcpus, memory_mb = excluded.memory_mb, local_gb = excluded.local_gb, seen_at = excluded.seen_at
""")

# Both must be fresh: a live service that offers the member no more has withdrawn it.
_OFFERED = (
    select(
        members,
        and_(
            ~services.c.forced_down, services.c.beat_at > bindparam("since"), members.c.seen_at > bindparam("since")
        ).label("up"),
    )
    .join(services, services.c.host == members.c.service_host)
    .where(members.c.service_host == bindparam("host"), members.c.name == bindparam("name"))
    .where(members.c.cluster == bindparam("cluster"))
)


@dataclass(frozen=True, slots=True)
class Offered:
    """A member as its service offers it."""

    spec: MemberSpec
    machine: str
    """Equal for two services that can end each other's processes."""
    up: bool
    """Its service has a recent heartbeat, and still offers it."""
    disks: str
    """Equal for members that find each other's disks; empty: no other member finds them."""


@dataclass(frozen=True, slots=True)
class MemberOffer:
    """A service that offers members to clusters."""

    host: str
    machine: str
    """Equal for two services that can end each other's processes."""
    disks: Mapping[str, str]
    """Driver -> the identity of the folder of its guests."""


def report(conn: Connection, by: MemberOffer, offers: Sequence[tuple[str, MemberSpec]], now: datetime) -> None:
    """Store the offers of a service: (cluster, member)."""
    rows = [
        {
            "cluster": cluster,
            "name": one.name,
            "driver": one.driver,
            "disks": by.disks.get(one.driver, ""),
            "vcpus": one.vcpus,
            "memory_mb": one.memory_mb,
            "local_gb": one.local_gb,
        }
        for cluster, one in offers
    ]
    conn.execute(_REPORT, {"host": by.host, "machine": by.machine, "offers": json.dumps(rows), "now": now})


def offered(conn: Connection, host: str, name: str, cluster: str, now: datetime, down: float) -> Offered | None:
    """Return the offer of a service to a cluster under a name; None if there never was one."""
    given = {"host": host, "name": name, "cluster": cluster, "since": now - timedelta(seconds=down)}
    row = conn.execute(_OFFERED, given).one_or_none()
    if row is None:
        return None
    spec = MemberSpec(row.name, row.driver, row.vcpus, row.memory_mb, row.local_gb, host)
    return Offered(spec, row.machine, row.up, row.disks)


def add_order(conn: Connection, host: str, verb: str, said: Mapping[str, object], now: datetime, seconds: float) -> str:
    """Insert an order for a service, which may begin it for so many seconds; return its id."""
    until = now + timedelta(seconds=seconds)
    row = {"service_host": host, "verb": verb, "said": dict(said), "asked_at": now, "until": until}
    return str(conn.execute(insert(orders).values(row).returning(orders.c.id)).scalar_one())


def read_order(conn: Connection, order_id: str) -> tuple[bool, bool, object, str | None]:
    """Return of an order: begun, done, the answer, and the error."""
    own = orders.c
    query = select(own.begun_at.is_not(None), own.done_at.is_not(None), own.answer, own.error).where(own.id == order_id)
    begun, done, answer, error = conn.execute(query).one()
    return begun, done, answer, error


def withdraw(conn: Connection, order_id: str) -> bool:
    """Withdraw an order that was not begun; False if it was."""
    this = (orders.c.id == order_id, orders.c.begun_at.is_(None))
    return conn.scalar(delete(orders).where(*this).returning(orders.c.id)) is not None


def drop(conn: Connection, order_id: str, now: datetime) -> None:
    """Delete an order whose answer was read, and abandoned orders older than a day."""
    conn.execute(delete(orders).where(or_(orders.c.id == order_id, orders.c.until < now - timedelta(days=1))))


def begin(conn: Connection, order_id: str, host: str, now: datetime) -> tuple[str, Mapping[str, object]] | None:
    """Begin an order as its service: return (verb, arguments); None if there is none to begin."""
    own = orders.c
    this = (own.id == order_id, own.service_host == host, own.begun_at.is_(None), own.until > now)
    row = conn.execute(update(orders).where(*this).values(begun_at=now).returning(own.verb, own.said)).first()
    return None if row is None else (row.verb, row.said)


def finish(conn: Connection, order_id: str, answer: object, error: str | None, now: datetime) -> None:
    """Store the answer to an order."""
    conn.execute(update(orders).where(orders.c.id == order_id).values(done_at=now, answer=answer, error=error))
