"""Sign-in of web pages: a name and a password in, a token out, with the bundled identity or another one."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from climate.domain.errors import NotAuthenticated
from climate.identity import read_operations
from climate.identity.authentication import request_authentication, sign_in
from climate.identity.authentication.tokens import Grant, seal
from climate.identity.models import NameOrId, Scope
from climate.identity.store.revocations import TOKEN, USER

if TYPE_CHECKING:
    from climate.identity.context import Identity


@dataclass(frozen=True, slots=True)
class OwnProject:
    """Project in which a user may work."""

    id: str
    name: str


def token(identity: "Identity", name: str, password: str, address: str) -> str:
    """Return the token of a user for the default project, or else for the first one that has a role for the user.

    Raise NotAuthenticated for a wrong password, TooManyAttempts after too many of them. With another identity service
    the failures are counted here as well.
    """
    if identity.external is not None:
        login = f"page:{name}"
        sign_in.check_attempts(identity, login, address)
        try:
            plain = identity.external.sign_in(name, password)
        except NotAuthenticated:
            sign_in.count_failure(identity, login, address)
            raise
    else:
        plain = seal(identity.keys, sign_in.by_password(identity, NameOrId(name=name), password, None, address))
        if request_authentication.of_token(identity, plain).project_id:
            return plain
    own = projects(identity, plain)
    return for_project(identity, plain, own[0].id) if own else plain


def projects(identity: "Identity", of_token: str) -> Sequence[OwnProject]:
    """Return the projects for which the holder of a token can get another one, by name."""
    if identity.external is not None:
        return [OwnProject(*one) for one in sorted(identity.external.projects(of_token), key=lambda one: one[1])]
    user_id = request_authentication.of_token(identity, of_token).user_id
    return [OwnProject(one.id, one.name) for one in read_operations.usable_projects(identity, user_id)]


def for_project(identity: "Identity", old: str, project_id: str) -> str:
    """Return the token of the same user for another project. Raise NotAuthenticated without a role there."""
    if identity.external is not None:
        return identity.external.exchange(old, project_id)
    scope: Scope = NameOrId(id=project_id)
    return seal(identity.keys, sign_in.by_token(identity, request_authentication.of_token(identity, old), scope))


def sign_out(identity: "Identity", last: str, *, everywhere: bool = False) -> None:
    """Revoke a token and, with the bundled identity, all that the same sign-in led to, or all tokens of the user."""
    if identity.external is not None:
        identity.external.sign_out(last)
        return
    grant: Grant = request_authentication.of_token(identity, last)
    kind, subject = (USER, grant.user_id) if everywhere else (TOKEN, grant.audit_ids[-1])
    with identity.engine.begin() as conn:
        identity.revoke(conn, kind, subject, grant.user_id)
    identity.watch.announce()
