"""Requests that read all of Identity: by administrators, and by readers with a token of the whole system."""

from api.request_context import caller
from climate.domain.policy import ADMIN, READER, Caller, require


def may_read_all(caller: Caller) -> bool:
    """Return whether a caller reads users, projects and roles by a token of the whole system."""
    return caller.is_system and caller.has(READER)


def require_reader() -> None:
    """Raise Forbidden unless the caller may read users, projects and role assignments of others."""
    if not may_read_all(caller()):
        require(caller(), "identity:admin")


def own_user_id() -> str | None:
    """Return the user to whose projects the caller's reads are limited; None for those who read all."""
    return None if caller().has(ADMIN) or may_read_all(caller()) else caller().user_id
