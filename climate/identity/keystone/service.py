"""Authentication of requests by Keystone: headers in, a caller or an error out."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from climate.domain.errors import NotAuthenticated, Unavailable
from climate.domain.policy import Caller, Policy
from climate.identity.authentication.request_authentication import NOT_A_TOKEN, Headers
from climate.identity.authentication.tokens import LONGEST, Grant
from climate.identity.keystone.connection import FOREIGN, Keystone
from climate.identity.keystone.token_cache import TokenCache

DEFAULT_DOMAIN = "Default"
"""Domain of users who sign in without naming one."""


@dataclass(frozen=True)
class KeystoneIdentity:
    """The identity of one process, whose users, projects and roles are Keystone's."""

    keystone: Keystone
    policy: Policy
    """Policy that maps Keystone's roles."""
    cache: TokenCache
    service_role: str
    """Role of a user whose X-Service-Token extends the life of a token that it passes on."""
    public_url: str
    """URL of Keystone for clients."""

    def authenticate(self, headers: Headers, address: str = "") -> Caller:
        """Return the caller of these headers.

        Raise NotAuthenticated without a valid token, Unavailable while Keystone does not answer.
        """
        token = headers.get("X-Auth-Token")
        if not token or token == NOT_A_TOKEN:
            raise NotAuthenticated()
        service = headers.get("X-Service-Token")
        return self._mapped(self.grant(token, expired_too=bool(service) and self._is_service(str(service)))).caller()

    def mail_address(self, user_id: str) -> str:
        """Return the mail address that Keystone has for an enabled user, or ""."""
        user = self.keystone.user(user_id)
        address = user.get("email") if user.get("enabled", True) else None
        return address if isinstance(address, str) else ""

    def sign_in(self, name: str, password: str) -> str:
        """Return the token of a user, `name` or `name@domain`, without a project.

        Raise NotAuthenticated for a wrong password, Unavailable while Keystone does not answer.
        """
        user, _, domain = name.partition("@")
        return self.keystone.issue(password_proof(user, domain or DEFAULT_DOMAIN, password), "unscoped")

    def projects(self, token: str) -> Sequence[tuple[str, str]]:
        """Return ids and names of the enabled projects in which the holder of a token has a role."""
        return self.keystone.projects(token)

    def exchange(self, token: str, project_id: str) -> str:
        """Return another token of the same user, for a project. Raise NotAuthenticated without a role there."""
        proof = {"methods": ["token"], "token": {"id": token}}
        return self.keystone.issue(proof, {"project": {"id": project_id}})

    def sign_out(self, token: str) -> None:
        """Revoke a token in Keystone, and drop it from the cache of this process."""
        self.keystone.revoke(token)
        self.cache.drop(token)

    def grant(self, token: str, *, expired_too: bool = False) -> Grant:
        """Return the grant of a token with Keystone's own roles, from the cache or from Keystone."""
        if len(token) > LONGEST or not (token.isascii() and token.isprintable()) or " " in token:
            raise NotAuthenticated()
        known = self.cache.recall(token, expired_too=expired_too)
        if known is None:
            known = _grant(self.keystone.validate(token, expired_too=expired_too))
            self.cache.keep(token, known, expired_too=expired_too)
        return known

    def _is_service(self, token: str) -> bool:
        """Return whether a token is that of a service. Raise NotAuthenticated for an invalid one."""
        return self.service_role.lower() in {role.lower() for role in self.grant(token).roles}

    def _mapped(self, grant: Grant) -> Grant:
        """Return the grant with the roles that climate knows; without a project it has none."""
        roles = self.policy.mapped(grant.roles, grant.project_id, grant.user_id) if grant.project_id else frozenset()
        return replace(grant, roles=tuple(sorted(roles)))


def password_proof(user: str, domain: str, password: str) -> Mapping[str, object]:
    """Return the proof of a user of a domain, both by name."""
    who = {"name": user, "domain": {"name": domain}, "password": password}
    return {"methods": ["password"], "password": {"user": who}}


def _grant(body: Mapping[str, Any]) -> Grant:
    """Return the grant in the body of a token. Raise Unavailable for a body that is not one of Keystone's."""
    try:
        project = body.get("project") or {}
        return Grant(
            user_id=str(body["user"]["id"]),
            user_name=str(body["user"]["name"]),
            methods=tuple(body["methods"]),
            issued_at=_seconds(body["issued_at"]),
            expires_at=_seconds(body["expires_at"]),
            project_id=str(project.get("id", "")),
            project_name=str(project.get("name", "")),
            roles=tuple(str(role["name"]) for role in body.get("roles", ())),
            audit_ids=tuple(body["audit_ids"]),
        )
    except (LookupError, TypeError, ValueError, AttributeError):
        raise Unavailable(FOREIGN) from None


def _seconds(text: str) -> float:
    return datetime.fromisoformat(text.replace("Z", "+00:00")).astimezone(UTC).timestamp()
