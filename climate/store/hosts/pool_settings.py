"""Pool settings of administrators, which override the settings of the deployment."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Connection, select
from sqlalchemy.dialects.postgresql import insert

from climate.domain.hosts.pool_scaling import Rules
from climate.domain.hosts.pools import Pool
from climate.domain.operator_facts import PoolTermsSet, decided, terms_stream
from climate.domain.policy import Caller
from climate.settings import Settings
from climate.store.journal import journal
from climate.store.leases import row_consistency
from climate.store.tables.hosts import pool_terms

FILLING = ("horizon", "spare", "margin", "slack", "dwell", "drain", "move_servers")
"""Settings that let the pool's target follow its allocations."""

NAMES = ("on_end", "grace_period", "recycle_deadline", "idle", "target", *FILLING)
"""Names of the settings."""


@dataclass(frozen=True, slots=True)
class PoolSettings:
    """Settings of the reservation pool. Times in seconds."""

    on_end: str
    grace_period: int
    recycle_deadline: str
    target: int
    idle: str = "keep"
    """Action for a lease that is still idle after two notices."""
    horizon: int = 0
    spare: int = 2
    margin: int = 25
    slack: int = 2
    dwell: int = 3600
    drain: bool = True
    move_servers: bool = False
    """True if servers on draining hosts are migrated; otherwise the pool waits for them to end."""

    @property
    def filling(self) -> Rules:
        """Return how the pool's target follows its allocations."""
        return Rules(
            horizon=timedelta(seconds=self.horizon),
            spare=self.spare,
            margin=self.margin,
            slack=self.slack,
            dwell=timedelta(seconds=self.dwell),
            drain=self.drain,
            target=self.target,
        )

    @property
    def of_a_lease(self) -> Mapping[str, object]:
        """Return the settings that apply to the end of a reservation with none of its own."""
        return {
            "on_end": self.on_end,
            "grace_period": self.grace_period,
            "recycle_deadline": self.recycle_deadline,
        }


def of(conn: Connection, settings: Settings, said: Mapping[str, Any] | None = None) -> PoolSettings:
    """Return the effective settings: `said`, or the stored ones, with defaults of the deployment."""
    said = stored_settings(conn) if said is None else said
    fallback: dict[str, Any] = {
        "on_end": settings.host_on_end,
        "grace_period": settings.grace_period,
        "recycle_deadline": settings.recycle_deadline,
        "target": settings.pool_target,
        "idle": settings.pool_idle,
        **{name: getattr(settings, f"pool_{name}") for name in FILLING},
    }
    return PoolSettings(**{name: value if said.get(name) is None else said[name] for name, value in fallback.items()})


def stored_settings(conn: Connection) -> Mapping[str, Any]:
    """Return the stored settings of the reservation pool; empty if there are none."""
    row = conn.execute(select(pool_terms).where(pool_terms.c.pool == Pool.RESERVATION)).one_or_none()
    return row._asdict() if row else {}


def settings_at(conn: Connection, at: datetime) -> Mapping[str, object]:
    """Return the settings of the reservation pool at that moment."""
    known = journal.until(journal.read(conn, terms_stream(Pool.RESERVATION)), at)
    return decided(journal.of_operators(known))


def store(conn: Connection, author: Caller, changes: Mapping[str, object], now: datetime) -> None:
    """Store settings of the reservation pool; None restores the default.

    Raise Tampered if the row does not match the facts.
    """
    stream = terms_stream(Pool.RESERVATION)
    known = journal.lock_stream(conn, stream)
    row_consistency.refuse_values(
        f"the pool {Pool.RESERVATION}", _set_values(stored_settings(conn)), decided(journal.of_operators(known))
    )
    journal.append(conn, author, stream, known, PoolTermsSet(now, Pool.RESERVATION, dict(changes)))
    write(conn, Pool.RESERVATION, changes, now)


def write(conn: Connection, pool: str, changes: Mapping[str, object], now: datetime) -> None:
    """Write the row of a pool's settings."""
    row = {**changes, "updated_at": now}
    made = insert(pool_terms).values(pool=pool, **row)
    conn.execute(made.on_conflict_do_update(index_elements=[pool_terms.c.pool], set_=row))


def _set_values(row: Mapping[str, object]) -> dict[str, object]:
    return {name: row[name] for name in NAMES if row.get(name) is not None}
