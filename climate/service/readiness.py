"""Readiness of this deployment, with one short result for each dependency."""

from collections.abc import Callable, Collection
from importlib import resources
from pathlib import Path
from time import time

from sqlalchemy import Connection

from climate.context import Climate
from climate.database.connections import reading
from climate.service import broker_health, process_health
from climate.service.disk_space import DiskWatch
from climate.service.process_health import Check
from climate.settings import SettingError, Settings
from climate.store import db_errors, schema_versions

CLOCKS_APART = 2.0
"""Maximum difference in seconds between this process's clock and the database's."""

NEEDS = (
    "database",
    "migrations",
    "clock",
    "broker",
    "poller",
    "events",
    "workers",
    "cells",
    "disk",
    "compute",
    "network",
    "zones",
)
"""All checks that CLIMATE_READY_NEEDS may name."""


def needed(settings: Settings) -> frozenset[str]:
    """Return the checks that readiness requires; raise SettingError for an unknown one."""
    words = frozenset(word.strip() for word in settings.ready_needs.split(",") if word.strip())
    if unknown := sorted(words - set(NEEDS)):
        there = ", ".join(NEEDS)
        raise SettingError(f"CLIMATE_READY_NEEDS: there is no check {', '.join(unknown)}; there are {there}")
    return words


def missing(checks: Collection[Check], settings: Settings) -> list[Check]:
    """Return the failed checks among the required ones."""
    needs = needed(settings)
    return [check for check in checks if check.name in needs and not check.ok]


def readiness(climate: Climate, wall: Callable[[], float] = time, disk: DiskWatch | None = None) -> list[Check]:
    """Return the checks of the dependencies of every deployment. `disk` knows failed writes of this process."""
    of_disk = (disk or DiskWatch(climate.settings.home)).check()
    return [*of_database(climate, wall), check_broker(climate.settings.redis_url), of_disk]


def check_broker(url: str) -> Check:
    """Check that the broker answers."""
    ok = broker_health.answers(url)
    return Check("broker", ok, "answers" if ok else "does not answer")


def check_migrations(conn: Connection) -> Check:
    """Check that the tables are those of this release."""
    if schema_versions.present(conn) == newest_migrations():
        return Check("migrations", True, "at head")
    return Check("migrations", False, "not at head: run `climate migrate`")


def newest_migrations() -> frozenset[str]:
    """Return the newest revisions of this release."""
    return schema_versions.newest(Path(str(resources.files("migrations"))))


def check_clock(now: float, here: float) -> Check:
    """Check that this process's clock agrees with the database's."""
    apart = abs(here - now)
    return Check("clock", apart <= CLOCKS_APART, f"{apart:.1f} s from the database's")


def of_database(climate: Climate, wall: Callable[[], float] = time) -> list[Check]:
    """Return the checks that need the database; if it is unreachable, only that result is returned."""
    result: list[Check] = []
    try:
        with reading(climate.engine) as conn:
            moment = climate.now(conn)
            result += [check_clock(moment.timestamp(), wall()), check_migrations(conn)]
            result += process_health.checks(conn, climate, moment)
    except db_errors.ERRORS as error:
        full = db_errors.disk_full(error)
        detail = "its disk is full: free some space" if full else "does not answer as it should"
        return [Check("database", False, detail), *result]
    return [Check("database", True, "answers"), *result]
