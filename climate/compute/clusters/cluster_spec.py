"""The specification of a cluster in nodes.yaml: its members, and its rules for their servers."""

from dataclasses import dataclass

CLUSTER = "cluster"
"""The driver of a node that is the sum of its members."""

BALANCE_PERCENT = 25
"""Difference of the members' shares of allocated memory, in percent, from which servers are moved."""


@dataclass(frozen=True, slots=True)
class MemberSpec:
    """A member of a cluster. Sizes: MB of memory, GB of disk; 0 for one that another compute service describes."""

    name: str
    driver: str = "process"
    vcpus: int = 0
    memory_mb: int = 0
    local_gb: int = 0
    service: str | None = None
    """The compute service of the node; None: that of the cluster."""
    maintenance: bool = False
    """No servers are placed on it, and its servers move away."""
    fence: tuple[str, ...] = ()
    """The command that fences a member of another service; empty: there is none."""


@dataclass(frozen=True, slots=True)
class ClusterSpec:
    """The members of a cluster, and the rules by which it moves their servers."""

    members: tuple[MemberSpec, ...]
    restart: bool = True
    """Servers of a failed member are restarted on others."""
    balance_percent: int = BALANCE_PERCENT
    """See BALANCE_PERCENT; 0: servers are never moved for balance."""
