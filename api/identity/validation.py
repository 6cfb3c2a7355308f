"""Validation of Identity requests; InvalidInput names what is missing or wrong."""

from dataclasses import dataclass, field
from typing import Any

from climate.domain.errors import InvalidInput, NotAuthenticated
from climate.identity.models import DOMAIN_ID, DOMAIN_NAME, Who
from climate.identity.sign_in import UNSCOPED


@dataclass(frozen=True, slots=True)
class Password:
    who: Who
    password: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class Token:
    token: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class Secret:
    """Secret of an application credential, which is named by id, or by name and owner."""

    who: Who
    owner: Who | None
    secret: str = field(repr=False)


Proof = Password | Token | Secret


def sign_in(body: dict[str, Any]) -> tuple[Proof, Who | None]:
    """Return the proof of identity and the scope: a project, UNSCOPED, or None for the user's default."""
    auth = part(body, "auth")
    identity = part(auth, "identity", "auth.")
    methods = identity.get("methods")
    if methods == ["password"]:
        return _password(identity), _scope(auth)
    if methods == ["token"]:
        token = part(identity, "token", "auth.identity.")
        return Token(text(token, "id", "auth.identity.token.")), _scope(auth)
    if methods == ["application_credential"]:
        if auth.get("scope") not in (None, {}):
            raise NotAuthenticated("Application credentials cannot request a scope.")
        return _secret(identity), None
    raise InvalidInput('auth.identity.methods must be ["password"], ["token"] or ["application_credential"]')


def part(body: dict[str, Any], key: str, where: str = "") -> dict[str, Any]:
    """Return the object below `key`."""
    value = body.get(key)
    if not isinstance(value, dict):
        raise InvalidInput(f"{where}{key} must be an object")
    return value


def text(body: dict[str, Any], key: str, where: str = "") -> str:
    """Return the text below `key`."""
    value = body.get(key)
    if not isinstance(value, str) or not value:
        raise InvalidInput(f"{where}{key} must be a text")
    return value


def flag(body: dict[str, Any], key: str, default: bool) -> bool:
    """Return the boolean below `key`; `default` if it is absent or null."""
    value = body.get(key)
    if value is None:
        return default
    if not isinstance(value, bool):
        raise InvalidInput(f"{key} must be true or false")
    return value


def optional(body: dict[str, Any], key: str) -> str | None:
    """Return the text below `key`; None if it is absent or null."""
    return None if body.get(key) is None else text(body, key)


def _password(identity: dict[str, Any]) -> Password:
    user = part(part(identity, "password", "auth.identity."), "user", "auth.identity.password.")
    return Password(_who(user, "auth.identity.password.user"), text(user, "password", "auth.identity.password.user."))


def _secret(identity: dict[str, Any]) -> Secret:
    where = "auth.identity.application_credential"
    credential = part(identity, "application_credential", "auth.identity.")
    secret = text(credential, "secret", f"{where}.")
    if credential.get("id") is not None:
        return Secret(Who(id=text(credential, "id", f"{where}.")), None, secret)
    owner = _who(part(credential, "user", f"{where}."), f"{where}.user")
    return Secret(Who(name=text(credential, "name", f"{where}.")), owner, secret)


def _scope(auth: dict[str, Any]) -> Who | None:
    scope = auth.get("scope")
    if scope is None:
        return None
    if scope == "unscoped" or (isinstance(scope, dict) and "unscoped" in scope):
        return UNSCOPED
    if not isinstance(scope, dict) or "project" not in scope:
        raise InvalidInput("auth.scope must be a project: this cloud has no scope of system, domain or trust")
    return _who(part(scope, "project", "auth.scope."), "auth.scope.project")


def _who(thing: dict[str, Any], where: str) -> Who:
    if thing.get("id") is not None:
        return Who(id=text(thing, "id", f"{where}."))
    name = text(thing, "name", f"{where}.")
    domain = thing.get("domain")
    if domain is not None:
        _check_domain(part(thing, "domain", f"{where}."))
    return Who(name=name)


def _check_domain(domain: dict[str, Any]) -> None:
    known = domain.get("id") == DOMAIN_ID or str(domain.get("name", "")).lower() == DOMAIN_NAME.lower()
    if not known:
        raise NotAuthenticated()
