"""Connections to Postgres, and its clock."""

from datetime import datetime

from sqlalchemy import Connection, Engine, create_engine, func, select

OPTIONS = (
    "-c timezone=UTC -c statement_timeout=5s -c lock_timeout=3s -c idle_in_transaction_session_timeout=30s "
    # A concrete window lets the planner flip to reading a whole index: 190 ms instead of 0.1 (performance.md L6).
    "-c plan_cache_mode=force_generic_plan "
    # The statements take milliseconds; compiling one takes a hundred where the estimates are off.
    "-c jit=off"
)


UNSYNCED = "-c synchronous_commit=off"
"""Option of connections whose commits do not wait for the disk."""


def connect(url: str, *, pool_size: int = 10, application: str = "climate", options: str = "") -> Engine:
    """An engine for `url`: UTC, bounded statements, plans that do not depend on the window asked for."""
    return create_engine(
        url.replace("postgres://", "postgresql://", 1),
        pool_size=pool_size,
        max_overflow=pool_size,
        pool_timeout=10,
        pool_pre_ping=False,
        hide_parameters=True,
        connect_args={
            "application_name": application,
            "options": f"{OPTIONS} {options}".strip(),
            "prepare_threshold": 0,
            "connect_timeout": 5,
            "keepalives_idle": 5,
            "keepalives_interval": 2,
            "keepalives_count": 3,
        },
    )


_CLOCK = select(func.clock_timestamp())


def database_time(conn: Connection) -> datetime:
    """Now, by the database's clock, in UTC."""
    return conn.scalar(_CLOCK) or _never()


def _never() -> datetime:
    raise AssertionError("the database has a clock")
