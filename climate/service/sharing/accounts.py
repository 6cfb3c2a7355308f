"""Check of the projects and users with which a lease is to be shared."""

from climate.context import Climate
from climate.domain.errors import InvalidInput
from climate.domain.sharing.sharing import Sharing

MOST_NAMED = 3
"""Unknown ids that an error names."""


def check(climate: Climate, sharing: Sharing | None, field: str = "sharing") -> None:
    """Raise InvalidInput for projects and users of a field that the identity service does not know.

    Those of another identity service, such as Keystone, are taken as given: it only validates tokens.
    """
    if not sharing:
        return
    projects, users = climate.unknown_accounts(sharing.projects, {*sharing.viewers, *sharing.extenders})
    for kind, unknown in (("project", projects), ("user", users)):
        if unknown:
            raise InvalidInput(f"{field}: no {kind} has the id {' or '.join(sorted(unknown)[:MOST_NAMED])}")
