"""Who may do what: one table of actions and the roles that they ask for."""

from dataclasses import dataclass, field

from climate.domain.errors import Forbidden

READER, MEMBER, ADMIN = "reader", "member", "admin"

IMPLIED = {ADMIN: {ADMIN, MEMBER, READER}, MEMBER: {MEMBER, READER}, READER: {READER}}
"""A role and the roles that it stands for as well."""


@dataclass(frozen=True, slots=True)
class Caller:
    """Who makes the request, and in whose name: the answer of the auth front to a set of headers."""

    user_id: str
    project_id: str
    roles: frozenset[str] = field(default_factory=frozenset)
    request_id: str = ""
    user_name: str = ""
    project_name: str = ""

    @property
    def is_admin(self) -> bool:
        return ADMIN in self.roles

    def has(self, role: str) -> bool:
        return any(role in IMPLIED.get(own, ()) for own in self.roles)


RULES = {
    "leases:get": READER,
    "leases:post": MEMBER,
    "leases:put": MEMBER,
    "leases:delete": MEMBER,
    "leases:confirm": MEMBER,
    "oshosts:get": ADMIN,
    "oshosts:post": ADMIN,
    "oshosts:put": ADMIN,
    "oshosts:delete": ADMIN,
    "oshosts:properties": READER,
    "floatingips:get": READER,
    "floatingips:post": ADMIN,
    "floatingips:delete": ADMIN,
    "floatingips:allocations": ADMIN,
    "pools:get": ADMIN,
    "pools:put": ADMIN,
    "oshosts:health": ADMIN,
    "oshosts:heal": ADMIN,
    "oshosts:fail": ADMIN,
    "oshosts:reallocate": ADMIN,
    "maintenances:get": ADMIN,
    "maintenances:post": ADMIN,
    "maintenances:put": ADMIN,
    "maintenances:delete": ADMIN,
    "plugins:get": READER,
    "events:get": ADMIN,
    "events:requeue": ADMIN,
    "notices:get": READER,
    "limits:get": READER,
    "limits:all": ADMIN,
    "limits:put": ADMIN,
    "limits:delete": ADMIN,
    "power:get": ADMIN,
    "power:put": ADMIN,
    "power:delete": ADMIN,
    "power:switch": ADMIN,
    "servers:get": READER,
    "servers:write": MEMBER,
    "compute:admin": ADMIN,
    "identity:admin": ADMIN,
}
"""Action -> the least role for it.  Defaults of the peer (reservation.md 1.7 E8); an action not listed is nobody's."""


def require(caller: Caller, action: str) -> None:
    """Return when `caller` may do `action`, else raise Forbidden."""
    role = RULES.get(action)
    if role is None or not caller.has(role):
        raise Forbidden(f"Policy doesn't allow climate:{action} to be performed")
