"""Reads of identity: domains, users, groups, projects, application credentials and role assignments."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from climate.database.connections import reading
from climate.domain.errors import NotFound
from climate.identity import projects_and_users
from climate.identity.models import (
    DEFAULT_DOMAIN,
    Assignment,
    Credential,
    Domain,
    Group,
    NameOrId,
    Project,
    Role,
    User,
)
from climate.identity.store import assignments
from climate.identity.store import credentials as credential_rows
from climate.identity.store import domains as domain_rows
from climate.identity.store import groups as group_rows
from climate.identity.store import projects as project_rows
from climate.identity.store import roles as role_rows
from climate.identity.store import users as user_rows
from climate.identity.store.assignments import Filter, Holder

if TYPE_CHECKING:
    from climate.identity.context import Identity


def users(identity: "Identity", name: str | None = None) -> list[User]:
    """Return all users by name, or the one of that name."""
    with reading(identity.engine) as conn:
        return user_rows.listing(conn, name)


def user(identity: "Identity", user_id: str) -> User:
    """Return a user. Raise NotFound."""
    with reading(identity.engine) as conn:
        result = user_rows.find(conn, NameOrId(id=user_id))
    if result is None:
        raise projects_and_users.no_such("user", user_id)
    return result


def projects(identity: "Identity", name: str | None = None, user_id: str | None = None) -> list[Project]:
    """Return the projects by name, or the one of that name; `user_id`: only those in which that user has a role."""
    with reading(identity.engine) as conn:
        return project_rows.listing(conn, name, user_id)


def usable_projects(identity: "Identity", user_id: str) -> list[Project]:
    """Return the projects by name for which a user can get a token."""
    with reading(identity.engine) as conn:
        return project_rows.usable(conn, user_id)


def domains(identity: "Identity") -> list[Domain]:
    """Return all domains by name."""
    with reading(identity.engine) as conn:
        return domain_rows.listing(conn)


def domain(identity: "Identity", domain_id: str | None) -> Domain:
    """Return a domain; None stands for the default one, which needs no SQL. Raise NotFound."""
    if domain_id is None:
        return DEFAULT_DOMAIN
    with reading(identity.engine) as conn:
        result = domain_rows.find(conn, domain_id)
    if result is None:
        raise projects_and_users.no_such("domain", domain_id)
    return result


def groups(identity: "Identity", user_id: str | None = None) -> list[Group]:
    """Return all groups by name, or those of a user."""
    with reading(identity.engine) as conn:
        return group_rows.listing(conn, user_id)


def group(identity: "Identity", group_id: str) -> Group:
    """Return a group. Raise NotFound."""
    with reading(identity.engine) as conn:
        result = group_rows.find(conn, group_id)
    if result is None:
        raise projects_and_users.no_such("group", group_id)
    return result


def members(identity: "Identity", group_id: str) -> list[User]:
    """Return the users in a group by name. Raise NotFound without the group."""
    group(identity, group_id)
    with reading(identity.engine) as conn:
        return user_rows.listing(conn, group_id=group_id)


def project(identity: "Identity", project_id: str, user_id: str | None = None) -> Project:
    """Return a project. Raise NotFound, also when `user_id` is given and that user has no role in it."""
    with reading(identity.engine) as conn:
        result = project_rows.listing(conn, user_id=user_id, project_id=project_id)
    if not result:
        raise projects_and_users.no_such("project", project_id)
    return result[0]


def credentials(identity: "Identity", user_id: str, name: str | None = None) -> list[Credential]:
    """Return the application credentials of a user by name, or the one of that name."""
    with reading(identity.engine) as conn:
        return credential_rows.listing(conn, user_id, name)


def credential(identity: "Identity", user_id: str, credential_id: str) -> Credential:
    """Return an application credential of a user. Raise NotFound."""
    with reading(identity.engine) as conn:
        result = credential_rows.find(conn, user_id, credential_id)
    if result is None:
        raise projects_and_users.no_such("application credential", credential_id)
    return result


def all_roles(identity: "Identity") -> list[Role]:
    """Return all roles by name."""
    with reading(identity.engine) as conn:
        return role_rows.listing(conn)


def role(identity: "Identity", role_id: str) -> Role:
    """Return a role. Raise NotFound."""
    with reading(identity.engine) as conn:
        result = role_rows.find(conn, role_id)
    if result is None:
        raise projects_and_users.no_such("role", role_id)
    return result


def named_roles(identity: "Identity", references: Iterable[str]) -> list[Role]:
    """Return the roles with these ids or names; deleted ones are left out. The default roles need no SQL."""
    wanted = tuple(references)
    if not set(wanted) - role_rows.DEFAULT.keys():
        return [role_rows.DEFAULT[one] for one in wanted]
    with reading(identity.engine) as conn:
        return role_rows.named(conn, wanted)


def role_rules(identity: "Identity") -> dict[str, list[Role]]:
    """Return the roles that a role implies directly, by its id; without those that are built in."""
    with reading(identity.engine) as conn:
        known = {one.id: one for one in role_rows.listing(conn)}
        found: dict[str, list[Role]] = {}
        for prior, implied in role_rows.rules(conn):
            if prior in known and implied in known:  # another transaction may have deleted one since
                found.setdefault(prior, []).append(known[implied])
    return found


def roles(identity: "Identity", holder: Holder, project_id: str | None) -> list[Role]:
    """Return the roles that were assigned to a user or a group in a project or, without one, in the system."""
    with reading(identity.engine) as conn:
        return assignments.roles(conn, holder, project_id)


def effective_roles(identity: "Identity", user_id: str, project_id: str | None) -> list[Role]:
    """Return the roles that a user has in a project or, without one, in the system, also by its groups."""
    with reading(identity.engine) as conn:
        return assignments.effective(conn, user_id, project_id)


def check_role(identity: "Identity", holder: Holder, project_id: str | None, role_id: str) -> None:
    """Raise NotFound unless a role was assigned to a user or a group in a project or, without one, in the system."""
    if role_id not in [one.id for one in roles(identity, holder, project_id)]:
        raise NotFound(f"The {'group' if holder.is_group else 'user'} does not have this role there")


def role_assignments(identity: "Identity", wanted: Filter) -> list[Assignment]:
    """Return the matching assignments, ordered by the names of projects and users."""
    with reading(identity.engine) as conn:
        return assignments.listing(conn, wanted)
