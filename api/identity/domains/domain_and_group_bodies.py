"""Bodies of domains and groups."""

from api.identity.bodies import Extensible, description_key, domain_key, flag_or, name_key
from api.identity.common_body_keys import below, flag
from api.schema import shapes
from api.schema.body import ABSENT, Key


class NewDomain(Extensible):
    """Domain."""

    UNUSED = Extensible.UNUSED | {"tags"}

    name = name_key(required=True)
    description = description_key()
    enabled = flag_or(True)


class ChangedDomain(Extensible):
    """New values of a domain."""

    UNUSED = NewDomain.UNUSED

    name = name_key(default=ABSENT)
    description = description_key(default=ABSENT)
    enabled = Key(flag, shapes.flag(), default=ABSENT)


class NewGroup(Extensible):
    """Group of users."""

    name = name_key(required=True)
    description = description_key()
    domain_id = domain_key()


class ChangedGroup(Extensible):
    """New values of a group."""

    name = name_key(default=ABSENT)
    description = description_key(default=ABSENT)


DOMAIN, CHANGED_DOMAIN = below("domain", NewDomain()), below("domain", ChangedDomain())
GROUP, CHANGED_GROUP = below("group", NewGroup()), below("group", ChangedGroup())
