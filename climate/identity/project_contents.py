"""Resources and settings that a project has outside of identity."""

from collections.abc import Mapping
from typing import Protocol

from sqlalchemy import Connection

from climate.domain.policy import Caller


class ProjectContents(Protocol):
    """Access to the resources and settings of projects in the other services of a deployment."""

    def count(self, conn: Connection, project_id: str) -> Mapping[str, int]:
        """Return the number of resources of a project by kind, without kinds of which it has none."""

    def delete_settings(self, conn: Connection, author: Caller, project_id: str) -> None:
        """Delete the quotas, limits and other settings of a project that has no resources."""


class NoContents:
    """Contents of projects where no other service shares the database."""

    def count(self, conn: Connection, project_id: str) -> Mapping[str, int]:
        return {}

    def delete_settings(self, conn: Connection, author: Caller, project_id: str) -> None:
        """Do nothing."""
