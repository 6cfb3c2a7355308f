"""Security groups: the traffic that they allow to and from the servers that have them."""

from dataclasses import dataclass, replace
from datetime import UTC, datetime
from uuid import NAMESPACE_URL, uuid4, uuid5

DEFAULT = "default"
INGRESS, EGRESS = "ingress", "egress"
DIRECTIONS = (INGRESS, EGRESS)
VERSIONS = {"IPv4": 4, "IPv6": 6}

PROTOCOLS = {
    "ah": 51,
    "dccp": 33,
    "egp": 8,
    "esp": 50,
    "gre": 47,
    "icmp": 1,
    "igmp": 2,
    "ipip": 4,
    "ipv6-encap": 41,
    "ipv6-frag": 44,
    "ipv6-icmp": 58,
    "icmpv6": 58,
    "ipv6-nonxt": 59,
    "ipv6-opts": 60,
    "ipv6-route": 43,
    "ospf": 89,
    "pgm": 113,
    "rsvp": 46,
    "sctp": 132,
    "tcp": 6,
    "udp": 17,
    "udplite": 136,
    "vrrp": 112,
}
"""Name of an IP protocol -> its number."""

MOST_GROUPS, MOST_RULES = 10, 100
"""Most security groups of a project, and most rules of all of them."""

BEGINNING = datetime(2026, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class SecurityRule:
    """Traffic that a group allows."""

    id: str
    group_id: str
    direction: str
    version: int
    """4 or 6."""
    protocol: str | None = None
    """Name or number of the IP protocol, as requested; None: any."""
    first: int | None = None
    """First port, or the type of ICMP."""
    last: int | None = None
    """Last port, or the code of ICMP."""
    remote_cidr: str | None = None
    remote_group_id: str | None = None
    description: str = ""
    created_at: datetime = BEGINNING

    @property
    def number(self) -> int | None:
        """Return the number of the protocol; None: any."""
        if self.protocol is None:
            return None
        # As in Neutron, icmp in a rule of IPv6 is the ICMP of IPv6.
        if self.version == 6 and self.protocol in ("icmp", "1"):
            return PROTOCOLS["icmpv6"]
        return PROTOCOLS.get(self.protocol) or int(self.protocol)

    @property
    def traffic(self) -> tuple[object, ...]:
        """Return the allowed traffic, which no two rules of a group have in common."""
        ports = (self.first, self.last)
        return (self.direction, self.version, self.number, *ports, self.remote_cidr, self.remote_group_id)


@dataclass(frozen=True, slots=True)
class SecurityGroup:
    """Group of rules of a project."""

    id: str
    project_id: str
    name: str
    description: str = ""
    created_at: datetime = BEGINNING
    updated_at: datetime = BEGINNING
    rules: tuple[SecurityRule, ...] = ()


def default_id(project_id: str) -> str:
    """Return the id of a project's group `default`."""
    return _derived(project_id)


def default_group(project_id: str) -> SecurityGroup:
    """Return the group `default` of a project as it is before its first change: it allows all traffic."""
    group = SecurityGroup(_derived(project_id), project_id, DEFAULT, "Lets everything through.")
    rules = (
        SecurityRule(_derived(project_id, direction, name), group.id, direction, version)
        for direction in (EGRESS, INGRESS)
        for name, version in VERSIONS.items()
    )
    return replace(group, rules=tuple(rules))


def new_group(project_id: str, name: str, description: str, now: datetime) -> SecurityGroup:
    """Return a new group: its servers may send anything, and get answers only."""
    group = SecurityGroup(str(uuid4()), project_id, name, description, now, now)
    rules = tuple(SecurityRule(str(uuid4()), group.id, EGRESS, version, created_at=now) for version in (4, 6))
    return replace(group, rules=rules)


def _derived(project_id: str, *words: str) -> str:
    return str(uuid5(NAMESPACE_URL, "/".join(("climate:security-group", project_id, *words))))
