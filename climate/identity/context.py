"""Dependencies of the operations of identity."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from sqlalchemy import Connection, Engine

from climate.database.connections import reading
from climate.domain.policy import Caller
from climate.identity.authentication import request_authentication
from climate.identity.authentication.password_cache import Memory
from climate.identity.authentication.passwords import Passwords
from climate.identity.authentication.request_authentication import Headers
from climate.identity.authentication.revocation_cache import Watch
from climate.identity.authentication.tokens import Grant, GrantCache
from climate.identity.keys import KeyRing
from climate.identity.models import AccountNames, NameOrId
from climate.identity.project_contents import NoContents, ProjectContents
from climate.identity.store import assignments, names_by_id, projects, revocations, users


class Authenticator(Protocol):
    """Identity service of other software, whose tokens callers present instead of bundled ones."""

    @property
    def public_url(self) -> str:
        """Return the URL of its Identity v3 for clients."""

    def authenticate(self, headers: Headers, address: str = "") -> Caller:
        """Return the caller of these headers, as `Identity` does."""

    def mail_address(self, user_id: str) -> str:
        """Return the mail address of a user; "" without one. Raise Unavailable if the service does not answer."""

    def sign_in(self, name: str, password: str) -> str:
        """Return the token of a user, without a project. Raise NotAuthenticated for a wrong password."""

    def projects(self, token: str) -> Sequence[tuple[str, str]]:
        """Return ids and names of the projects in which the holder of a token has a role."""

    def exchange(self, token: str, project_id: str) -> str:
        """Return another token of the same user, for a project. Raise NotAuthenticated without a role there."""

    def sign_out(self, token: str) -> None:
        """Revoke a token."""


@dataclass(frozen=True)
class Identity:
    """The embedded identity service of one process; built by `climate.identity.build`."""

    engine: Engine
    token_seconds: float
    """Lifetime of a token in seconds."""
    keys: KeyRing
    watch: Watch
    passwords: Passwords = field(default_factory=Passwords)
    memory: Memory[Grant] = field(default_factory=Memory)
    grants: GrantCache = field(default_factory=GrantCache)
    contents: ProjectContents = field(default_factory=NoContents)
    external: Authenticator | None = None
    """Service that authenticates all requests instead of this one."""

    def authenticate(self, headers: Headers, address: str = "") -> Caller:
        """Return the caller of these headers.

        Raise NotAuthenticated without valid proof, InvalidInput if headers contradict.
        """
        if self.external is not None:
            return self.external.authenticate(headers, address)
        return self.grant(headers, address).caller()

    def grant(self, headers: Headers, address: str = "") -> Grant:
        """Return the grant of these headers, with method and expiry."""
        return request_authentication.grant(self, headers, address)

    def may_read(self, user_id: str, project_id: str) -> bool:
        """Return whether a user has a role in a project, and both are enabled.

        With another identity service it is always true: a service that only validates tokens does not know roles.
        """
        if self.external is not None:
            return True
        with reading(self.engine) as conn:
            return assignments.is_active_member(conn, user_id, project_id)

    def addresses(self, user_ids: Collection[str]) -> dict[str, str]:
        """Return the mail addresses of enabled users by their ids; without those that have none."""
        if self.external is not None:
            known = {user_id: self.external.mail_address(user_id) for user_id in user_ids}
            return {user_id: address for user_id, address in known.items() if address}
        with reading(self.engine) as conn:
            return users.addresses(conn, user_ids)

    def unknown_accounts(self, project_ids: Collection[str], user_ids: Collection[str]) -> tuple[set[str], set[str]]:
        """Return those of the ids of projects and of users that do not exist; none with another identity service."""
        if self.external is not None or not (project_ids or user_ids):
            return set(), set()
        with reading(self.engine) as conn:
            return projects.missing(conn, project_ids), users.missing(conn, user_ids)

    def names(self, user_ids: Collection[str], project_ids: Collection[str]) -> AccountNames:
        """Return the names of users and projects, in one statement; none with another identity service."""
        if self.external is not None or not (user_ids or project_ids):
            return AccountNames()
        with reading(self.engine) as conn:
            return names_by_id.names(conn, user_ids, project_ids)

    def account_ids(self, user_name: str, project_name: str) -> tuple[str | None, str | None]:
        """Return the ids of the user and the project of these names; None for one that is unknown or not named."""
        if self.external is not None or not (user_name or project_name):
            return None, None
        with reading(self.engine) as conn:
            user = users.find(conn, NameOrId(name=user_name)) if user_name else None
            project = projects.find(conn, NameOrId(name=project_name)) if project_name else None
        return (user.id if user else None), (project.id if project else None)

    def revoke(self, conn: Connection, kind: str, subject: str, owner: str | None = None) -> None:
        """Revoke all tokens that name the subject and were issued until now, effective everywhere within a second.

        `owner` is the user whose token or credential it is. A call of `watch.announce` after the commit makes it
        effective in this web server at once.
        """
        revocations.add(conn, kind, subject, self.token_seconds + 60, owner)

    def revoke_all(self, conn: Connection, kind: str, subjects: Sequence[str]) -> None:
        """Revoke all tokens that name one of the subjects, as `revoke` does."""
        revocations.add_all(conn, kind, subjects, self.token_seconds + 60)
