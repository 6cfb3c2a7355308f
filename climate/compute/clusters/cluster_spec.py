"""A cluster as its entry in nodes.yaml describes it: the members, and what the cluster does with their servers."""

from dataclasses import dataclass

CLUSTER = "cluster"
"""The driver of a node that is the sum of its members."""

BALANCE_PERCENT = 25
"""By so much may the shares of memory that members have promised differ before servers are moved."""


@dataclass(frozen=True, slots=True)
class MemberSpec:
    """A member of a cluster.  Sizes: MB of memory, GB of disk; 0 for one that another compute service describes."""

    name: str
    driver: str = "process"
    vcpus: int = 0
    memory_mb: int = 0
    local_gb: int = 0
    service: str | None = None
    """The compute service whose node it is; None: that of the cluster."""
    maintenance: bool = False
    """No servers are put on it, and those there move away."""
    fence: tuple[str, ...] = ()
    """The command that ends everything on it for certain, for a member of another service; empty: there is none."""


@dataclass(frozen=True, slots=True)
class ClusterSpec:
    """The members of a cluster, and the rules by which it moves their servers."""

    members: tuple[MemberSpec, ...]
    restart: bool = True
    """Servers of a failed member are restarted on others."""
    balance_percent: int = BALANCE_PERCENT
    """See BALANCE_PERCENT; 0: servers are never moved for balance."""
