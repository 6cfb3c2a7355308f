"""Validation of a cluster and its members in an entry of nodes.yaml, key by key."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from climate.compute.clusters.cluster_spec import CLUSTER, ClusterSpec, MemberSpec

KEYS = ("members", "restart", "balance_percent")
"""Keys of an entry that only a cluster has."""

SIZES = ("vcpus", "memory_mb", "local_gb")
_MOST = 2**31 - 1


def cluster_of(entry: Mapping[str, object]) -> ClusterSpec | None:
    """Return the cluster that an entry describes, None if it describes a node; ValueError says what is wrong."""
    given = [key for key, value in entry.items() if value is not None]
    if entry.get("driver") != CLUSTER:
        if strange := _first(KEYS, given):
            raise ValueError(f"{strange} is for nodes with `driver: {CLUSTER}`")
        return None
    if size := _first(SIZES, given):
        raise ValueError(f"{size} is the sum over the members of a cluster, so it must not be given")
    if entry.get("cluster") is not None:
        raise ValueError("cluster is for members: a cluster cannot be a member of a cluster")
    members = entry.get("members")
    if not isinstance(members, list) or not members:
        raise ValueError("members must be a list of at least one member of the cluster")
    read = tuple(_member(member) for member in members)
    _check_together(read)
    terms = {key: check(entry[key]) for key, check in _TERMS.items() if key in given}
    return ClusterSpec(read, **terms)


def _first(keys: Sequence[str], given: Sequence[str]) -> str | None:
    return next((key for key in keys if key in given), None)


def _check_together(members: tuple[MemberSpec, ...]) -> None:
    names = [member.name for member in members]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise ValueError(f"members names {twice} twice")
    here = [member for member in members if member.service is None]
    other = next((one for one in here if one.driver != here[0].driver), None)
    if other is not None:
        raise ValueError(
            f"members must all have one driver: {here[0].name} has {here[0].driver}, {other.name} has {other.driver}"
        )


def _member(value: object) -> MemberSpec:
    if not isinstance(value, Mapping) or not isinstance(value.get("name"), str) or not value["name"].strip():
        raise ValueError(f"a member needs a name: {str(value)[:80]}")
    name = value["name"]
    unknown = [str(key) for key in value if key not in _MEMBER]
    if unknown:
        raise ValueError(f"member {name} has no key {', '.join(unknown)}; there are {', '.join(_MEMBER)}")
    try:
        read = MemberSpec(**{key: _MEMBER[key](one) for key, one in value.items() if one is not None})
    except ValueError as error:
        raise ValueError(f"member {name}: {error}") from None
    _check_where(value, read)
    return read


def _check_where(value: Mapping[str, object], read: MemberSpec) -> None:
    """Check that a member has sizes here, or a service that describes it elsewhere."""
    if read.service is None:
        missing = [key for key in SIZES if value.get(key) is None]
        if missing:
            raise ValueError(f"member {read.name}: {missing[0]} must be given")
        if read.fence:
            raise ValueError(f"member {read.name}: fence is for members of another service")
        return
    given = [key for key in (*SIZES, "driver") if value.get(key) is not None]
    if given:
        raise ValueError(f"member {read.name}: {given[0]} is told by the service {read.service}, not here")


def _text(value: object) -> str:
    if not isinstance(value, str) or not value.strip():
        raise ValueError(f"a text is wanted, not {str(value)[:60]!r}")
    return value


def _driver(value: object) -> str:
    if _text(value) == CLUSTER:
        raise ValueError("a cluster cannot be a member of a cluster")
    return _text(value)


def _count(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 < value <= _MOST:
        raise ValueError(f"sizes are whole numbers from 1 to {_MOST}, not {str(value)[:60]!r}")
    return value


def _yes(value: object) -> bool:
    if not isinstance(value, bool):
        raise ValueError(f"true or false is wanted, not {str(value)[:60]!r}")
    return value


def _percent(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= 100:
        raise ValueError(f"balance_percent must be a whole number from 0 to 100, not {str(value)[:60]!r}")
    return value


def _command(value: object) -> tuple[str, ...]:
    if not isinstance(value, list) or not value or not all(isinstance(word, str) and word for word in value):
        raise ValueError(f"fence must be a list of words, the first of them a program, not {str(value)[:60]!r}")
    return tuple(value)


_TERMS: Mapping[str, Callable[[object], Any]] = {"restart": _yes, "balance_percent": _percent}
_MEMBER: Mapping[str, Callable[[object], Any]] = {
    "name": _text,
    "driver": _driver,
    "vcpus": _count,
    "memory_mb": _count,
    "local_gb": _count,
    "service": _text,
    "maintenance": _yes,
    "fence": _command,
}
