"""Sign-in: a proof and a scope in, a grant out.

No token may survive a change that revokes it. The time of issue is read before the user, and the user is read with a
lock that waits for concurrent changes. Every change locks the user's row before it records the time of revocation. A
sign-in therefore either sees the change or has an earlier time of issue.

Few passwords are verified at once, and other requests wait for a turn (passwords.py). Failures are counted before a
request waits, and again when it has its turn. A failure is recorded before the turn ends, so concurrent attempts exceed
the limit of a login by at most one per turn. A blocked login takes no turn, and neither does a password that was
verified a moment ago.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime
from ipaddress import IPv6Address, ip_address, ip_network
from typing import TYPE_CHECKING, NoReturn, TypeVar

from sqlalchemy import Connection

from climate.database.connections import reading
from climate.domain.errors import AccountGuessed, Forbidden, NotAuthenticated, TooManyAttempts
from climate.identity.authentication.tokens import Grant
from climate.identity.models import Credential, NameOrId, Scope, User, WholeSystem, implied
from climate.identity.store import assignments, attempts, credentials, domains, projects, revocations, roles, users
from climate.identity.store.revocations import TOKEN

if TYPE_CHECKING:
    from climate.identity.context import Identity

T = TypeVar("T")

PER_LOGIN, PER_ADDRESS = 5, 20
"""Maximum failures within a minute from one address, for one login and for all; successes do not count."""

GUESSED, PER_ADDRESS_GUESSED = 30, 2
"""Failures within ten minutes, from any address, after which a login counts as being guessed.

Then each address has its own limit of failures for it within ten minutes. An address below that limit can still sign
in, so that nobody can lock a user out.
"""

UNSCOPED = NameOrId()
"""Scope of a token without a project."""


def by_password(identity: "Identity", who: NameOrId, password: str, scope: Scope | None, address: str) -> Grant:
    """Return the grant of a user with that password; `scope` None stands for the user's default project."""
    with reading(identity.engine) as conn:
        named = users.find(conn, who)
        login = f"user:{named.id if named else who.id or who.name}"
        _check_attempts(conn, login, address)
    issued, named_user, kept = _proved(identity, lambda conn: users.for_sign_in(conn, who), password, (login, address))
    user = _present(named_user)
    if identity.passwords.outdated(kept):
        _rehash(identity, user.id, password, kept)
    return _scoped(identity, user, scope, _begin(identity, user, "password", issued))


def by_token(identity: "Identity", old: Grant, scope: Scope | None) -> Grant:
    """Return the grant of the holder of a valid token, for another project or the system.

    It expires with the old token.
    """
    if old.credential_id:
        raise Forbidden("A token of an application credential cannot be exchanged for another")
    with identity.engine.begin() as conn:
        issued = revocations.clock(conn)
        result = users.for_sign_in(conn, NameOrId(id=old.user_id))
    # An earlier change may have revoked the old token after the last read; the new token would be issued after it.
    identity.watch.forget()
    identity.watch.check(old)
    user = _present(result and result[0])
    fresh = _begin(identity, user, "token", issued)
    methods = tuple(dict.fromkeys((*old.methods, "token")))
    # Keep the first audit id of the chain, so that its revocation covers all tokens derived from it.
    audits = tuple(dict.fromkeys((*fresh.audit_ids, *old.audit_ids[:7], old.audit_ids[-1])))
    return _scoped(identity, user, scope, replace(fresh, methods=methods, audit_ids=audits, expires_at=old.expires_at))


def by_credential(identity: "Identity", who: NameOrId, owner: NameOrId | None, secret: str, address: str) -> Grant:
    """Return the grant of an application credential, given by id, or by name and owner."""
    with reading(identity.engine) as conn:
        named = users.find(conn, owner) if owner else None
        owner_id = named.id if named else None
        known = credentials.for_sign_in(conn, who, owner_id)
        login = f"credential:{known[0].id if known else who.id or who.name}"
        _check_attempts(conn, login, address)
    issued, credential, _ = _proved(
        identity, lambda conn: credentials.for_sign_in(conn, who, owner_id), secret, (login, address)
    )
    with identity.engine.begin() as conn:
        holder = users.for_sign_in(conn, NameOrId(id=credential.user_id))
        user = _present(holder and holder[0])
        fresh = _begin(identity, user, "application_credential", issued)
        granted = _in_project(conn, user, NameOrId(id=credential.project_id), fresh)
        allowed = [role.name for role in roles.named(conn, credential.roles)]
    return _limited(granted, credential, allowed, issued)


def sign_out(identity: "Identity", grant: Grant) -> None:
    """Revoke the token of a grant; this web server refuses it at once, and others within a second."""
    with identity.engine.begin() as conn:
        identity.revoke(conn, TOKEN, grant.audit_ids[0], grant.user_id)
    identity.watch.announce()


def check_attempts(identity: "Identity", login: str, address: str) -> None:
    """Raise TooManyAttempts if a login, or an address with any, failed too often of late."""
    with reading(identity.engine) as conn:
        _check_attempts(conn, login, address)


def count_failure(identity: "Identity", login: str, address: str) -> None:
    """Record that a login failed from an address."""
    with identity.engine.begin() as conn:
        attempts.add(conn, login, network_of(address))


def _proved(
    identity: "Identity", read: Callable[[Connection], tuple[T, str | None] | None], secret: str, of: tuple[str, str]
) -> tuple[datetime, T, str]:
    """Return the time of issue, the subject that `read` returns, and the hash that the secret matches.

    A secret that was verified a moment ago takes no turn. `of` is the login and the address that are counted.
    """
    issued, subject, kept = _subject(identity, read, of)
    if not identity.passwords.recalls(kept, secret):
        with identity.passwords.turn():
            issued, subject, kept = _subject(identity, read, of)
            if not identity.passwords.verify(kept, secret):
                _failed(identity, *of)
    if subject is None or kept is None:
        raise NotAuthenticated()
    return issued, subject, kept


def _subject(
    identity: "Identity", read: Callable[[Connection], tuple[T, str | None] | None], of: tuple[str, str]
) -> tuple[datetime, T | None, str | None]:
    with identity.engine.begin() as conn:
        _check_attempts(conn, *of)
        issued = revocations.clock(conn)
        return issued, *(read(conn) or (None, None))


def _limited(granted: Grant, credential: Credential, allowed: Sequence[str], now: datetime) -> Grant:
    own = tuple(role for role in allowed if role in implied(granted.roles))
    if not own or (credential.expires_at is not None and credential.expires_at <= now):
        raise NotAuthenticated()
    end = credential.expires_at.timestamp() if credential.expires_at else granted.expires_at
    return replace(
        granted,
        roles=own,
        credential_id=credential.id,
        restricted=not credential.unrestricted,
        expires_at=min(granted.expires_at, end),
    )


def _begin(identity: "Identity", user: User, method: str, issued: datetime) -> Grant:
    at = issued.timestamp()
    expires = at + identity.token_seconds
    return Grant(user.id, user.name, (method,), issued_at=at, expires_at=expires, user_domain_id=user.domain_id)


def _scoped(identity: "Identity", user: User, scope: Scope | None, grant: Grant) -> Grant:
    if scope == UNSCOPED:
        return grant
    with identity.engine.begin() as conn:
        users.for_sign_in(conn, NameOrId(id=user.id))
        if isinstance(scope, WholeSystem):
            return _in_system(conn, user, grant)
        if scope is not None:
            return _in_project(conn, user, scope, grant)
        if user.default_project_id is None:
            return grant
        try:
            return _in_project(conn, user, NameOrId(id=user.default_project_id), grant)
        except NotAuthenticated:
            return grant


def _in_project(conn: Connection, user: User, scope: NameOrId, grant: Grant) -> Grant:
    project = projects.find(conn, scope, share=True)
    if project is None or not project.enabled or not domains.is_enabled(conn, project.domain_id):
        raise NotAuthenticated()
    own = assignments.effective(conn, user.id, project.id)
    if not own:
        raise NotAuthenticated()
    return replace(
        grant,
        project_id=project.id,
        project_name=project.name,
        roles=tuple(role.name for role in own),
        project_domain_id=project.domain_id,
    )


def _in_system(conn: Connection, user: User, grant: Grant) -> Grant:
    own = assignments.effective(conn, user.id, None)
    if not own:
        raise NotAuthenticated()
    return replace(grant, is_system=True, roles=tuple(role.name for role in own))


def _present(user: User | None) -> User:
    if user is None or not user.enabled:
        raise NotAuthenticated()
    return user


def _check_attempts(conn: Connection, login: str, address: str) -> None:
    recent = attempts.recent(conn, login, network_of(address))
    if recent.with_login >= PER_LOGIN or recent.with_any >= PER_ADDRESS:
        raise TooManyAttempts()
    if recent.from_anywhere >= GUESSED and recent.with_login_long >= PER_ADDRESS_GUESSED:
        raise AccountGuessed()


def network_of(address: str) -> str:
    """Return the key by which failures are counted: the address, or the /64 of an IPv6 address."""
    try:
        known = ip_address(address)
    except ValueError:
        return address
    if isinstance(known, IPv6Address):
        return str(known.ipv4_mapped or ip_network((known, 64), strict=False))
    return str(known)


def _failed(identity: "Identity", login: str, address: str) -> NoReturn:
    count_failure(identity, login, address)
    raise NotAuthenticated()


def _rehash(identity: "Identity", user_id: str, password: str, kept: str) -> None:
    """Replace only the hash that was verified: the password may have been changed in the meantime."""
    fresh = identity.passwords.hash(password)
    with identity.engine.begin() as conn:
        users.replace_hash(conn, user_id, kept, fresh)
