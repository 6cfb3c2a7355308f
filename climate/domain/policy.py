"""Policy: actions, the roles that they require, and rules that replace these."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from climate.domain.errors import Forbidden
from climate.domain.policy_rules import BadRule, Check, Credentials, compiled

READER, MEMBER, ADMIN = "reader", "member", "admin"

IMPLIED = {ADMIN: {ADMIN, MEMBER, READER}, MEMBER: {MEMBER, READER}, READER: {READER}}
"""Roles implied by each role."""


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
    "oshosts:get_allocations": ADMIN,
    "oshosts:get_resource_properties": READER,
    "oshosts:update_resource_properties": ADMIN,
    "floatingips:get": READER,
    "floatingips:post": ADMIN,
    "floatingips:delete": ADMIN,
    "floatingips:allocations": ADMIN,
    "storage_pools:get": READER,
    "storage_pools:post": ADMIN,
    "storage_pools:put": ADMIN,
    "storage_pools:delete": ADMIN,
    "storage_pools:allocations": ADMIN,
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
    "notices:resend": ADMIN,
    "mail_preferences:get": READER,
    "mail_preferences:put": READER,
    "calendar_feeds:get": READER,
    "calendar_feeds:post": READER,
    "calendar_feeds:delete": READER,
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
    "audit:get": ADMIN,
    "usage:get": READER,
}
"""Minimum role for each action, as in Blazar's default policy. An action that is not listed is refused to everybody."""

ROLE_RULES = {"climate_admin": ADMIN, "climate_member": MEMBER, "climate_reader": READER}
"""Named rules that give a role to users of another identity service, such as Keystone."""

NAMED_RULES = {
    "admin": "is_admin:True or role:admin",
    "admin_or_owner": "rule:admin or project_id:%(project_id)s",
    "project_member_api": "role:member and project_id:%(project_id)s",
    "project_reader_api": "role:reader and project_id:%(project_id)s",
    "project_member_or_admin": "rule:project_member_api or rule:admin",
    "project_reader_or_admin": "rule:project_reader_api or rule:admin",
    **{name: f"role:{role}" for name, role in ROLE_RULES.items()},
}
"""Rules that others refer to, with Blazar's names."""

RULE_OF_ROLE = {
    READER: "rule:project_reader_or_admin",
    MEMBER: "rule:project_member_or_admin",
    ADMIN: "rule:admin",
}

METRICS = "metrics:get"
"""Action of monitoring. The metrics have figures of all projects."""

DEFAULT_RULES = {
    **{action: RULE_OF_ROLE[role] for action, role in RULES.items()},
    METRICS: "rule:admin or role:service",
}


@dataclass(frozen=True, slots=True)
class Policy:
    """Rule of each action; an action without one is refused to everybody."""

    checks: Mapping[str, Check]
    roles: Mapping[str, Check]
    """Rule of each role for the users of another identity service."""

    def allows(self, who: Credentials, action: str) -> bool:
        check = self.checks.get(action)
        return check is not None and check(who)

    def mapped(self, roles: Iterable[str], project_id: str, user_id: str) -> frozenset[str]:
        """Return the roles of a user of another identity service, who has `roles` there.

        Roles that climate does not know are kept, for rules that name them.
        """
        who = Credentials(frozenset(role.lower() for role in roles), project_id, user_id)
        return (who.roles - frozenset(IMPLIED)) | {role for role, check in self.roles.items() if check(who)}


def policy_of(actions: Mapping[str, str], named: Mapping[str, str]) -> Policy:
    """Return the policy with these rules of actions and these referenced rules, before the default ones.

    Raises BadRule with the name of an invalid rule.
    """
    known = {**NAMED_RULES, **named}
    for name, rule in named.items():
        _compiled(name, rule, known)
    checks = {name: _compiled(name, rule, known) for name, rule in {**DEFAULT_RULES, **actions}.items()}
    return Policy(checks, {role: _compiled(name, known[name], known) for name, role in ROLE_RULES.items()})


def _compiled(name: str, rule: str, known: Mapping[str, str]) -> Check:
    try:
        return compiled(rule, known, (name,) if name in known else ())
    except BadRule as error:
        raise BadRule(f"the rule of {name[:64]}: {error}") from None


DEFAULTS = policy_of({}, {})


@dataclass(frozen=True, slots=True)
class Caller:
    """User, project and roles of a request, as authenticated."""

    user_id: str
    project_id: str
    roles: frozenset[str] = field(default_factory=frozenset)
    request_id: str = ""
    user_name: str = ""
    project_name: str = ""
    is_system: bool = False
    """True for a token of the whole system, which has no project and is of use for Identity only."""
    policy: Policy = field(default=DEFAULTS, compare=False, repr=False)
    """Policy that decides about the caller's actions."""

    @property
    def is_admin(self) -> bool:
        return ADMIN in self.roles

    def has(self, role: str) -> bool:
        return any(role in IMPLIED.get(own, ()) for own in self.roles)

    @property
    def credentials(self) -> Credentials:
        """Return the credentials that the rules of the policy check."""
        implied = frozenset(role for own in self.roles for role in IMPLIED.get(own, {own.lower()}))
        return Credentials(implied, self.project_id, self.user_id)


def require(caller: Caller, action: str) -> None:
    """Return if `caller` may do `action`, otherwise raise Forbidden."""
    if not caller.policy.allows(caller.credentials, action):
        raise Forbidden(f"Policy doesn't allow climate:{action} to be performed")
