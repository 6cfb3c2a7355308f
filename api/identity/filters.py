"""Filters of the lists of users and projects."""

from collections.abc import Mapping

from climate.identity.models import DOMAIN_ID, Project, User


def fits(query: Mapping[str, str], one: User | Project) -> bool:
    """Return whether a user or project has the state and the domain of a query; as in Keystone, `0` is false."""
    enabled = query.get("enabled")
    is_wanted = enabled is None or one.enabled == (enabled.lower() not in ("0", "false"))
    return is_wanted and query.get("domain_id", DOMAIN_ID) == DOMAIN_ID
