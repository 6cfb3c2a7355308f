"""Body of a sign-in: the proof of identity, and the scope of the token."""

from dataclasses import dataclass, field
from typing import Unpack

from api.identity.common_body_keys import below, text_key
from api.schema import shapes
from api.schema.body import Body, Key, KeyOptions, Values, as_given, part
from climate.domain.errors import InvalidInput, NotAuthenticated
from climate.identity.authentication.sign_in import UNSCOPED
from climate.identity.models import NameOrId, Scope, WholeSystem

METHODS = 'auth.identity.methods must be ["password"], ["token"] or ["application_credential"]'
NO_SCOPE = "auth.scope must be a project or the system: this cloud has no scope of a domain or a trust"


@dataclass(frozen=True, slots=True)
class Password:
    """Proof of identity by a user and its password."""

    who: NameOrId
    password: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class Token:
    """Proof of identity by an older token."""

    token: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class Secret:
    """Secret of an application credential, which is named by id, or by name and owner."""

    who: NameOrId
    owner: NameOrId | None
    secret: str = field(repr=False)


Proof = Password | Token | Secret


def _domain(value: object, name: str) -> NameOrId:
    """Return the domain of a user or a project, by its id or its name."""
    if not isinstance(value, dict):
        raise InvalidInput(f"{name} must be an object")
    domain_id, domain_name = value.get("id"), value.get("name")
    if isinstance(domain_id, str) and domain_id:
        return NameOrId(id=domain_id)
    if isinstance(domain_name, str) and domain_name:
        return NameOrId(name=domain_name)
    raise NotAuthenticated()


DOMAIN: shapes.Schema = {"type": "object", "properties": {"id": shapes.text(), "name": shapes.text()}}


class ById(Body):
    """User or project by its id."""

    IS_OPEN = True

    id = text_key(required=True)


class ByName(Body):
    """User or project by its name and domain."""

    IS_OPEN = True

    name = text_key(required=True)
    domain = Key(_domain, DOMAIN).or_null()


class UserById(ById):
    """User by its id, with its password."""

    password = text_key(required=True)


class UserByName(ByName):
    """User by its name and domain, with its password."""

    password = text_key(required=True)


def _who(values: Values) -> NameOrId:
    return NameOrId(id=values["id"]) if "id" in values else NameOrId(name=values["name"], domain=values.get("domain"))


def _either(by_id: Body, by_name: Body, **options: Unpack[KeyOptions]) -> Key:
    """Return a key whose value has the first schema if it has an id, otherwise the second."""

    def read(value: object, name: str) -> Values:
        has_id = isinstance(value, dict) and value.get("id") is not None
        return (by_id if has_id else by_name).read_value(value, name)

    return Key(read, {"anyOf": [by_id.shape(), by_name.shape()]}, **options)


class PasswordMethod(Body):
    """Sign-in by password."""

    IS_OPEN = True
    PREFIX = "auth.identity.password."
    WHERE = "auth.identity.password.user."

    user = _either(UserById(WHERE), UserByName(WHERE), required=True)


class TokenMethod(Body):
    """Sign-in by an older token."""

    IS_OPEN = True
    PREFIX = "auth.identity.token."

    id = text_key(required=True)


class CredentialById(Body):
    """Application credential by its id."""

    IS_OPEN = True
    PREFIX = "auth.identity.application_credential."

    secret = text_key(required=True)
    id = text_key(required=True)


class CredentialByName(Body):
    """Application credential by its name and its user."""

    IS_OPEN = True
    PREFIX = "auth.identity.application_credential."
    WHERE = "auth.identity.application_credential.user."

    secret = text_key(required=True)
    user = _either(ById(WHERE), ByName(WHERE), required=True)
    name = text_key(required=True)


class Identity(Body):
    """Methods of a sign-in."""

    IS_OPEN = True
    PREFIX = "auth.identity."

    methods = Key(as_given, shapes.listing(shapes.text(), 1), required=True)


class PasswordIdentity(Identity):
    """Sign-in by password."""

    password = part(PasswordMethod(), required=True)


class TokenIdentity(Identity):
    """Sign-in by an older token."""

    token = part(TokenMethod(), required=True)


class SecretIdentity(Identity):
    """Sign-in by an application credential."""

    application_credential = _either(CredentialById(), CredentialByName(), required=True)


IDENTITIES = {"password": PasswordIdentity(), "token": TokenIdentity(), "application_credential": SecretIdentity()}


def _proof(value: object, name: str) -> Proof:
    if not isinstance(value, dict):
        raise InvalidInput(f"{name} must be an object")
    method = next((method for method in IDENTITIES if value.get("methods") == [method]), None)
    if method is None:
        raise InvalidInput(METHODS)
    given = IDENTITIES[method].read(value)[method]
    if method == "password":
        return Password(_who(given["user"]), given["user"]["password"])
    if method == "token":
        return Token(given["id"])
    owner = _who(given["user"]) if "user" in given else None
    return Secret(_who(given), owner, given["secret"])


class ProjectScope(Body):
    """Project of a token."""

    IS_OPEN = True
    PREFIX = "auth.scope."
    WHERE = "auth.scope.project."

    project = _either(ById(WHERE), ByName(WHERE), required=True)


SCOPE = ProjectScope()
SYSTEM: shapes.Schema = {
    "type": "object",
    "properties": {"system": {"type": "object", "properties": {"all": {"enum": [True]}}, "required": ["all"]}},
    "required": ["system"],
}


def _scope(value: object) -> Scope | None:
    """Return the project, the system, UNSCOPED, or None for the default of the user."""
    if value is None:
        return None
    if value == "unscoped" or (isinstance(value, dict) and "unscoped" in value):
        return UNSCOPED
    if isinstance(value, dict) and "system" in value:
        if not isinstance(value["system"], dict) or value["system"].get("all") is not True:
            raise InvalidInput("auth.scope.system.all must be true")
        return WholeSystem()
    if not isinstance(value, dict) or "project" not in value:
        raise InvalidInput(NO_SCOPE)
    return _who(SCOPE.read(value)["project"])


class Auth(Body):
    """Proof of identity and scope."""

    IS_OPEN = True
    PREFIX = "auth."

    proof = Key(_proof, {"anyOf": [form.shape() for form in IDENTITIES.values()]}, key="identity", required=True)
    scope = Key(as_given, {"anyOf": [shapes.one_of("unscoped"), SCOPE.shape(), SYSTEM, {"type": "null"}]})


AUTH = below("auth", Auth())


def sign_in(body: Values) -> tuple[Proof, Scope | None]:
    """Return the proof of identity and the scope: a project, the system, UNSCOPED, or None for the user's default."""
    given = AUTH.read(body)
    proof, scope = given["proof"], given["scope"]
    if not isinstance(proof, Secret):
        return proof, _scope(scope)
    if scope not in (None, {}):
        raise NotAuthenticated("Application credentials cannot request a scope.")
    return proof, None
