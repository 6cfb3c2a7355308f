"""Bodies of users, projects, roles and application credentials, and keys that others share."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Unpack

from api.identity.common_body_keys import below, flag, text, text_key
from api.schema import shapes
from api.schema.body import ABSENT, Body, Key, KeyOptions, Values
from climate.domain.errors import InvalidInput
from climate.identity import projects_and_users, roles
from climate.identity.models import DOMAIN_ID
from climate.service.leases import dates


def name_key(longest: int = projects_and_users.LONGEST_NAME, **options: Unpack[KeyOptions]) -> Key:
    """Return the key of a name."""
    return Key(lambda value, _name: projects_and_users.check_name(value, longest), shapes.name(longest), **options)


def _domain(value: object, name: str) -> str | None:
    """Return the domain of a new user, group or project; None is the default one."""
    return None if value in (None, DOMAIN_ID) else text(value, name)


def domain_key() -> Key:
    """Return the key of a domain's id, which may be null."""
    return Key(_domain, shapes.or_null(shapes.text()))


def _description(value: object, name: str) -> str:
    return projects_and_users.check_text(name, value or "")


def _short_text(value: object, name: str) -> str:
    return projects_and_users.check_text(name, value)


def description_key(**options: Unpack[KeyOptions]) -> Key:
    """Return the key of a description; null stands for none."""
    return Key(_description, shapes.or_null(shapes.text()), **options)


def flag_or(default: bool) -> Key:
    """Return a key whose value is a boolean; null is the default."""
    return Key(lambda value, name: default if value is None else flag(value, name), shapes.or_null(shapes.flag()))


READ_ONLY = frozenset(("id", "links", "options", "domain_id", "extra"))
"""Keys of a user or a project that clients send back and that have no effect."""


def _parent(value: object, name: str) -> str | None:
    """Return the id of the project above; the default domain is above all of its own, and null stands for it."""
    return None if value in (None, DOMAIN_ID) else text(value, name)


def _tags(value: object, name: str) -> tuple[str, ...]:
    return projects_and_users.check_tags(name, value)


def _no_domain(value: object, name: str) -> object:
    if value not in (None, False):
        raise InvalidInput(f"{name} must be false: no project acts as a domain; create one by POST /v3/domains")
    return ABSENT


class Extensible(Body):
    """Body whose other keys are attributes that are only stored, as in Keystone."""

    IS_OPEN = True
    UNUSED: frozenset[str] = READ_ONLY

    def read(self, body: Mapping[str, object]) -> Values:
        """Return the values of the keys, and under `extra` the other attributes if there are any."""
        others = body.keys() - self.keys().keys() - self.UNUSED
        values = super().read(body)
        return {**values, "extra": {key: body[key] for key in sorted(others)}} if others else values


class NewUser(Extensible):
    """User; without a password it cannot sign in."""

    UNUSED = READ_ONLY | {"password_expires_at", "original_password", "federated"}

    name = name_key(projects_and_users.LONGEST_USER_NAME, required=True)
    password = text_key().or_null()
    description = description_key()
    domain_id = domain_key()
    email = Key(_short_text, shapes.text()).or_null()
    enabled = flag_or(True)
    default_project_id = text_key().or_null()


class ChangedUser(Extensible):
    """New values of a user."""

    UNUSED = NewUser.UNUSED

    name = name_key(projects_and_users.LONGEST_USER_NAME, default=ABSENT)
    password = text_key(default=ABSENT).or_null()
    description = description_key(default=ABSENT)
    email = Key(_short_text, shapes.text(), default=ABSENT).or_null()
    enabled = Key(flag, shapes.flag(), default=ABSENT)
    default_project_id = Key(_short_text, shapes.text(), default=ABSENT).or_null()


class ChangedPassword(Body):
    """New password of a user, and the current one."""

    IS_OPEN = True

    original_password = text_key(required=True)
    password = text_key(required=True)


class NewProject(Extensible):
    """Project."""

    name = name_key(required=True)
    description = description_key()
    domain_id = domain_key()
    enabled = flag_or(True)
    parent_id = Key(_parent, shapes.or_null(shapes.text()))
    is_domain = Key(_no_domain, shapes.or_null(shapes.flag()), default=ABSENT)
    tags = Key(_tags, shapes.listing(shapes.text(), projects_and_users.MOST_TAGS), default=())


class ChangedProject(Extensible):
    """New values of a project."""

    name = name_key(default=ABSENT)
    description = description_key(default=ABSENT)
    enabled = Key(flag, shapes.flag(), default=ABSENT)
    parent_id = Key(_parent, shapes.or_null(shapes.text()), default=ABSENT)
    is_domain = Key(_no_domain, shapes.or_null(shapes.flag()), default=ABSENT)
    tags = Key(_tags, shapes.listing(shapes.text(), projects_and_users.MOST_TAGS), default=ABSENT)


class NewRole(Body):
    """Role besides the default ones."""

    IS_OPEN = True

    name = name_key(roles.LONGEST_NAME, required=True)
    description = description_key()
    domain_id = text_key().or_null()


class ChangedRole(Body):
    """New values of a role."""

    IS_OPEN = True

    name = name_key(roles.LONGEST_NAME, default=ABSENT)
    description = description_key(default=ABSENT)


def _roles(value: object, name: str) -> tuple[str, ...]:
    """Return roles, each by its id or its name."""
    if not value:
        return ()
    if not isinstance(value, list) or not all(isinstance(role, dict) for role in value):
        raise InvalidInput(f"{name} must be a list of objects with id or name")
    return tuple(str(role.get("id") or role.get("name")) for role in value)


def _moment(value: object, name: str) -> datetime:
    try:
        moment = datetime.fromisoformat(text(value, name))
        moment = moment.replace(tzinfo=moment.tzinfo or UTC).astimezone(UTC)
    except (ValueError, OverflowError):
        raise InvalidInput(f"{name} must be a date and time like 2030-01-31T12:00:00") from None
    if not dates.EARLIEST <= moment <= dates.LATEST:
        raise InvalidInput(f"{name} is out of range: years 2000 to 2199")
    return moment


def _no_rules(value: object, name: str) -> None:
    if value:
        raise InvalidInput(f"{name} are not supported; omit them")


class NewCredential(Body):
    """Application credential; without roles it has all of its user."""

    IS_OPEN = True

    name = text_key(required=True)
    secret = text_key().or_null()
    roles = Key(_roles, shapes.or_null(shapes.listing({"type": "object"})))
    description = text_key().or_null()
    unrestricted = flag_or(False)
    expires_at = Key(_moment, shapes.text()).or_null()
    access_rules = Key(_no_rules, shapes.or_null(shapes.listing({"type": "object"}, 0)))


CREDENTIAL = below("application_credential", NewCredential())
USER, CHANGED_USER = below("user", NewUser()), below("user", ChangedUser())
CHANGED_PASSWORD = below("user", ChangedPassword())
ROLE, CHANGED_ROLE = below("role", NewRole()), below("role", ChangedRole())
PROJECT, CHANGED_PROJECT = below("project", NewProject()), below("project", ChangedProject())
