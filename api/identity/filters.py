"""Filters of the lists of users and projects."""

from collections.abc import Callable, Mapping

from climate.identity.models import DOMAIN_ID, Group, Project, User


def fits(query: Mapping[str, str], one: User | Project) -> bool:
    """Return whether a user or project has the state and the domain of a query; as in Keystone, `0` is false."""
    enabled = query.get("enabled")
    is_wanted = enabled is None or one.enabled == (enabled.lower() not in ("0", "false"))
    return is_wanted and fits_domain(query, one)


def fits_domain(query: Mapping[str, str], one: User | Project | Group) -> bool:
    """Return whether a user, a group or a project is in the domain of a query."""
    own = one.domain_id or DOMAIN_ID
    return query.get("domain_id", own) == own


TAGS: Mapping[str, Callable[[set[str], set[str]], bool]] = {
    "tags": lambda wanted, own: wanted <= own,
    "tags-any": lambda wanted, own: bool(wanted & own),
    "not-tags": lambda wanted, own: not wanted <= own,
    "not-tags-any": lambda wanted, own: not wanted & own,
}
"""Filters by tags, which a query separates by commas."""


def fits_project(query: Mapping[str, str], one: Project) -> bool:
    """Return whether a project also has the parent and the tags of a query; no project is a domain."""
    if query.get("is_domain", "false").lower() not in ("0", "false"):
        return False
    above = one.parent_id or one.domain_id or DOMAIN_ID
    if query.get("parent_id", above) != above:
        return False
    if not all(has(set(query[key].split(",")), set(one.tags)) for key, has in TAGS.items() if key in query):
        return False
    return fits(query, one)
