"""Leases, and resources of the bundled cloud, that keep a project from being deleted."""

from collections.abc import Mapping

from sqlalchemy import Connection

from climate.compute.projects import contents
from climate.domain.policy import Caller
from climate.store import limits
from climate.store.engine import database_time
from climate.store.leases import leases


class DeploymentContents:
    """Contents of projects in the engine and in the bundled cloud, which share one database with identity."""

    def count(self, conn: Connection, project_id: str) -> Mapping[str, int]:
        numbers = {"leases": leases.count_open(conn, project_id), **contents.count(conn, project_id)}
        return {kind: number for kind, number in numbers.items() if number}

    def delete_settings(self, conn: Connection, author: Caller, project_id: str) -> None:
        limits.drop(conn, author, project_id, database_time(conn))
        contents.delete_settings(conn, project_id)
