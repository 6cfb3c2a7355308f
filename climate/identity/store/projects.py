"""Projects as rows."""

from collections.abc import Collection, Mapping

from sqlalchemy import Connection, Row, Select, delete, exists, func, insert, select, update

from climate.identity.models import NameOrId, Project
from climate.identity.store import domains, groups
from climate.identity.store.tables import projects

COLUMNS = (
    projects.c.id,
    projects.c.name,
    projects.c.description,
    projects.c.enabled,
    projects.c.parent_id,
    projects.c.tags,
    projects.c.extra,
    projects.c.domain_id,
)


def find(conn: Connection, who: NameOrId, *, share: bool = False) -> Project | None:
    """Return the project of that id, or else of that name in its domain; with `share`, wait for concurrent changes."""
    named = (projects.c.name == (who.name or "")) & domains.named_in(projects.c.domain_id, who.domain)
    question = select(*COLUMNS).where(projects.c.id == who.id if who.id else named)
    row = conn.execute(question.with_for_update(read=True) if share else question).one_or_none()
    return row and _project(row)


def lock(conn: Connection, project_id: str) -> Project | None:
    """Return the project of that id, or None; nobody else changes it until this transaction ends."""
    row = conn.execute(select(*COLUMNS).where(projects.c.id == project_id).with_for_update()).one_or_none()
    return row and _project(row)


def listing(
    conn: Connection, name: str | None = None, user_id: str | None = None, project_id: str | None = None
) -> list[Project]:
    """Return all projects by name, or those of a name or id; with a user, only those in which it has a role."""
    question = select(*COLUMNS).order_by(projects.c.name, projects.c.id)
    if name is not None:
        question = question.where(projects.c.name == name)
    if project_id is not None:
        question = question.where(projects.c.id == project_id)
    if user_id is not None:
        question = question.where(projects.c.id.in_(_of_user(user_id)))
    return [_project(row) for row in conn.execute(question)]


def usable(conn: Connection, user_id: str) -> list[Project]:
    """Return the projects by name for which a user can get a token."""
    is_enabled = projects.c.enabled & domains.none_disabled(projects.c.domain_id)
    question = select(*COLUMNS).where(projects.c.id.in_(_of_user(user_id)), is_enabled)
    return [_project(row) for row in conn.execute(question.order_by(projects.c.name, projects.c.id))]


def _of_user(user_id: str) -> Select[tuple[str]]:
    effective = groups.effective()
    return select(effective.c.project_id).where(effective.c.user_id == user_id)


def missing(conn: Connection, ids: Collection[str]) -> set[str]:
    """Return those of the ids that no project has."""
    known = select(projects.c.id).where(projects.c.id == func.any(list(ids)))
    return set(ids).difference(conn.scalars(known)) if ids else set()


def has_children(conn: Connection, project_id: str, *, enabled: bool = False) -> bool:
    """Return whether a project has projects below it; with `enabled`, whether one of them is enabled."""
    below = projects.c.parent_id == project_id
    return bool(conn.execute(select(exists().where(below & projects.c.enabled if enabled else below))).scalar_one())


def add(conn: Connection, project: Project) -> None:
    conn.execute(
        insert(projects).values(
            id=project.id,
            name=project.name,
            description=project.description,
            enabled=project.enabled,
            parent_id=project.parent_id,
            tags=list(project.tags),
            extra=dict(project.extra),
            domain_id=project.domain_id,
        )
    )


def change(conn: Connection, project_id: str, changes: Mapping[str, object]) -> bool:
    """Update a project; return whether it exists."""
    return conn.execute(update(projects).where(projects.c.id == project_id).values(**changes)).rowcount == 1


def remove(conn: Connection, project_id: str) -> bool:
    """Delete a project with its roles and credentials; return whether it existed."""
    return conn.execute(delete(projects).where(projects.c.id == project_id)).rowcount == 1


def _project(row: Row[*tuple[object, ...]]) -> Project:
    return Project(**{**row._mapping, "tags": tuple(row.tags)})
