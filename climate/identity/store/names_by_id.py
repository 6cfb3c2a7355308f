"""Names of users and projects by their ids, for people who read ids elsewhere."""

from collections.abc import Collection

from sqlalchemy import Connection, String, func, literal, select, union_all

from climate.identity.models import AccountNames
from climate.identity.store.tables import projects, users


def names(conn: Connection, user_ids: Collection[str], project_ids: Collection[str]) -> AccountNames:
    """Return the names of those of the ids that exist, in one statement."""
    rows = conn.execute(
        union_all(
            *(
                select(literal(kind, String).label("kind"), table.c.id, table.c.name).where(
                    table.c.id == func.any(sorted(ids))
                )
                for kind, table, ids in (("user", users, user_ids), ("project", projects, project_ids))
            )
        )
    ).all()
    of_users, of_projects = ({row.id: row.name for row in rows if row.kind == kind} for kind in ("user", "project"))
    return AccountNames(of_users, of_projects)
