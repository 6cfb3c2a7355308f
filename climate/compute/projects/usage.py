"""Usage of projects: the time that their servers ran in a period, whatever their status was meanwhile."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby

from climate.compute.context import Compute
from climate.compute.store.servers import usage
from climate.database.connections import reading

SECONDS = 3600
MB_PER_GB = 1024


@dataclass(frozen=True, slots=True)
class Period:
    """Period of a report, and the servers of it that are asked for."""

    start: datetime
    stop: datetime
    marker: str | None = None
    """Id of a server; those after it are reported."""
    limit: int | None = None
    """Maximum number of servers."""


@dataclass(frozen=True, slots=True)
class ServerUsage:
    """A server that ran in the period, with its flavor."""

    server_id: str
    project_id: str
    name: str
    flavor: str
    vcpus: int
    ram_mb: int
    disk_mb: int
    started_at: datetime
    ended_at: datetime | None
    status: str | None
    """None: the server is deleted."""
    hours: float
    """Hours in the period, until now at most."""
    uptime: int
    """Seconds since its start, until its end."""

    @property
    def disk_gb(self) -> int:
        return -(-self.disk_mb // MB_PER_GB)


@dataclass(frozen=True, slots=True)
class ProjectUsage:
    """Servers of a project that ran in the period."""

    project_id: str
    servers: Sequence[ServerUsage]

    @property
    def hours(self) -> float:
        return sum(server.hours for server in self.servers)

    @property
    def vcpu_hours(self) -> float:
        return sum(server.hours * server.vcpus for server in self.servers)

    @property
    def mb_hours(self) -> float:
        return sum(server.hours * server.ram_mb for server in self.servers)

    @property
    def gb_hours(self) -> float:
        return sum(server.hours * server.disk_gb for server in self.servers)


def of_projects(compute: Compute, period: Period, project_id: str | None = None) -> list[ProjectUsage]:
    """Return the usage of a project, or of all that had servers in the period, by their ids."""
    with reading(compute.engine) as conn:
        now = compute.now(conn)
        rows = usage.ran(conn, period.start, period.stop, project_id, (period.marker, period.limit))
    end = min(now, period.stop)
    found = []
    for row in rows:
        started, ended = row["started_at"], row["ended_at"]
        seconds = (min(end, ended or end) - max(period.start, started)).total_seconds()
        uptime = int(((ended or now) - started).total_seconds())
        found.append(ServerUsage(**row, hours=max(0.0, seconds) / SECONDS, uptime=max(0, uptime)))
    found.sort(key=lambda one: one.project_id)
    return [ProjectUsage(project, tuple(of)) for project, of in groupby(found, lambda one: one.project_id)]
