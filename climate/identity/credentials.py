"""Application credentials: created, listed and deleted by the user that they act for."""

from dataclasses import dataclass, field
from datetime import datetime
from secrets import token_urlsafe
from typing import TYPE_CHECKING
from uuid import uuid4

from climate.domain.errors import Forbidden, InvalidInput, NotFound
from climate.domain.policy import Caller
from climate.identity import audit_trail, read_operations
from climate.identity.authentication.passwords import LONGEST, SHORTEST
from climate.identity.authentication.tokens import Grant
from climate.identity.models import Credential, implied
from climate.identity.projects_and_users import check_name, check_text
from climate.identity.store import credentials as store
from climate.identity.store import revocations, unique, users
from climate.identity.store.revocations import CREDENTIAL

if TYPE_CHECKING:
    from climate.identity.context import Identity

LONGEST_NAME = 255


@dataclass(frozen=True, slots=True)
class NewCredential:
    """Fields of a credential to create.

    Without a secret, a random one is generated; without roles, all roles of the user apply.
    """

    name: str
    secret: str | None = field(default=None, repr=False)
    roles: tuple[str, ...] = ()
    description: str = ""
    unrestricted: bool = False
    expires_at: datetime | None = None


def create(identity: "Identity", grant: Grant, author: Caller, new: NewCredential) -> tuple[Credential, str]:
    """Return a new credential and its secret, which is shown only once."""
    if grant.restricted:
        raise Forbidden("This application credential may not create others")
    if not grant.project_id:
        raise Forbidden("An application credential needs a project; use a token with a project scope")
    roles = read_operations.named_roles(identity, new.roles or grant.roles)
    allowed = _allowed(identity, grant)
    if len(roles) < len(set(new.roles)) or {role.name for role in roles} - allowed:
        raise InvalidInput(f"roles must be among those of the user in the project: {', '.join(sorted(allowed))}")
    credential = Credential(
        id=uuid4().hex,
        name=check_name(new.name, LONGEST_NAME),
        user_id=grant.user_id,
        project_id=grant.project_id,
        roles=tuple(role.id for role in roles),
        description=check_text("description", new.description),
        unrestricted=new.unrestricted,
        expires_at=new.expires_at,
    )
    secret = _secret(new.secret)
    kept = identity.passwords.hash(secret)
    with unique.begin(identity.engine, "You have an application credential of this name already") as conn:
        if new.expires_at is not None and new.expires_at <= revocations.clock(conn):
            raise InvalidInput(f"expires_at must be in the future, and is {new.expires_at:%Y-%m-%d %H:%M:%S} UTC")
        store.add(conn, credential, kept)
        audit_trail.credential_created(conn, author, credential)
    return credential, secret


def remove(identity: "Identity", grant: Grant, author: Caller, user_id: str, credential_id: str) -> None:
    """Delete a credential and revoke its tokens."""
    if grant.restricted:
        raise Forbidden("This application credential may not delete others")
    with identity.engine.begin() as conn:
        users.lock(conn, user_id)
        credential = store.find(conn, user_id, credential_id)
        if credential is None or not store.remove(conn, user_id, credential_id):
            raise NotFound(f"Could not find application credential: {credential_id[:80]}.")
        audit_trail.credential_deleted(conn, author, credential)
        identity.revoke(conn, CREDENTIAL, credential_id, user_id)
    identity.watch.announce()


def _allowed(identity: "Identity", grant: Grant) -> frozenset[str]:
    """Return the roles that a credential may have: those of the token, and those that its user was given since."""
    if grant.credential_id:
        return implied(grant.roles)
    own = read_operations.effective_roles(identity, grant.user_id, grant.project_id)
    return implied((*grant.roles, *(role.name for role in own)))


def _secret(wanted: str | None) -> str:
    if wanted is None:
        return token_urlsafe(48)
    if not SHORTEST <= len(wanted) <= LONGEST:
        raise InvalidInput(f"secret must have {SHORTEST} to {LONGEST} characters, or be left out")
    return wanted
