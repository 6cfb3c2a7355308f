"""Body of a new keypair."""

from api.schema.body import Below, Body, Key, as_given
from api.schema.shapes import one_of, or_null, text
from climate.compute.models import keypair
from climate.domain.errors import InvalidInput

NAME = {
    "type": "string",
    "minLength": 1,
    "maxLength": 255,
    "pattern": "^[A-Za-z0-9 ._@-]*[A-Za-z0-9._@-][A-Za-z0-9 ._@-]*$",
}


def _type(value: object, field: str) -> str:
    if value != "ssh":
        raise InvalidInput(f"{field} must be ssh")
    return str(value)


def _name(value: object, field: str) -> str:
    if not isinstance(value, str):
        raise InvalidInput(f"{field} must be a text")
    return keypair.check_name(value)


def public_key(value: object, field: str) -> str | None:
    """Return a public key as OpenSSH writes it in one line; None stays None."""
    if value is None:
        return None
    if not isinstance(value, str):
        raise InvalidInput(f"{field} must be a text")
    return keypair.check_public(value)


class NewKeypair(Body):
    """A public key and its name; without a key, a key pair is created."""

    type = Key(_type, one_of("ssh"), default="ssh")
    name = Key(_name, NAME, required=True)
    user_id = Key(as_given, or_null(text()))
    public_key = Key(public_key, or_null(text(keypair.LONGEST)))


NEW = Below("keypair", NewKeypair())
