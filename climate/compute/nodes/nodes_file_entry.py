"""Validation of one entry of nodes.yaml, key by key."""

import ipaddress
import json
import math
import re
from collections.abc import Callable, Mapping
from typing import Any

from climate.compute.clusters.cluster_spec import ClusterSpec
from climate.compute.clusters.nodes_file_entry import KEYS, SIZES, cluster_of
from climate.compute.errors import VirtError
from climate.compute.models.node import NodeSpec
from climate.compute.nodes import hardware_discovery

AUTO = "auto"
_MOST = 2**31 - 1


def node_spec(entry: object) -> NodeSpec:
    """Return the node that an entry describes; VirtError names the node, the key and the expected value."""
    given = _checked(entry)
    name = str(given["name"])
    cluster = _cluster(name, given)
    values = {key: _read(name, key, value) for key, value in given.items() if value is not None and key in _READERS}
    if cluster is not None:
        values |= {**dict.fromkeys(SIZES, 0), "cluster": cluster}
    elif "cluster" in values:
        values["joins"] = values.pop("cluster")
    reported = {key: values.pop(key) for key in _REPORTED if key in values}
    if reported:
        values["stats"] = {**values.get("stats", {}), **reported}
    return NodeSpec(**values)


def _checked(entry: object) -> Mapping[str, object]:
    """Return an entry that is an object. Raise VirtError if it has no name, or has an unknown key."""
    name = entry.get("name") if isinstance(entry, Mapping) else None
    if not isinstance(entry, Mapping) or not isinstance(name, str) or not name.strip():
        raise VirtError(f"a node needs a name: {str(entry)[:80]}")
    unknown = [str(key) for key in entry if key not in (*_READERS, *KEYS)]
    if unknown:
        raise VirtError(f"node {name}: there is no key {', '.join(unknown)}; there are {', '.join((*_READERS, *KEYS))}")
    return entry


def _cluster(name: str, entry: Mapping[str, object]) -> ClusterSpec | None:
    """Return the cluster that an entry describes; None for a node, which must have its sizes."""
    try:
        cluster = cluster_of(entry)
    except ValueError as error:
        raise VirtError(f"node {name}: {error}") from None
    missing = [key for key in SIZES if entry.get(key) is None]
    if missing and cluster is None:
        raise VirtError(f"node {name}: {missing[0]} must be given")
    return cluster


def _read(name: str, key: str, value: object) -> Any:
    try:
        return _READERS[key](value)
    except ValueError as error:
        raise VirtError(f"node {name}: {key} must be {error}, not {str(value)[:60]!r}") from None


def _count(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= _MOST:
        raise ValueError(f"a whole number from 0 to {_MOST}")
    return value


def _number(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        raise ValueError("a number")
    return float(value)


def _ratio(value: object) -> float | None:
    """Return the ratio; None for 0, which selects the ratio of the settings as in Nova."""
    number = _number(value)
    if number < 0:
        raise ValueError("a number from 0")
    return number or None


def _text(value: object) -> str:
    if not isinstance(value, (str, int, float)) or isinstance(value, bool) or not str(value).strip():
        raise ValueError("a text")
    return str(value)


def _name(value: object) -> str:
    if not isinstance(value, str) or not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}", value):
        raise ValueError("the name of a network namespace")
    return value


def _address(value: object) -> str:
    try:
        if isinstance(value, (str, int, bytes)):
            return str(ipaddress.ip_address(value))
    except ValueError:
        pass
    raise ValueError("an IP address")


def _cpu_info(value: object) -> str:
    """Return the CPU info as JSON; a plain string is taken as the CPU model."""
    if value == "":
        return ""
    if not isinstance(value, (str, Mapping)):
        raise ValueError("an object or a text")
    return json.dumps(_object(value) if isinstance(value, Mapping) else _info(value), sort_keys=True)


def _info(text: str) -> Mapping[str, object]:
    try:
        read = json.loads(text)
    except ValueError:
        read = None
    return read if isinstance(read, dict) else {"model": text}


def _triples(value: object) -> tuple[tuple[str, str, str], ...]:
    if not isinstance(value, list) or not all(_is_triple(one) for one in value):
        raise ValueError("a list of [architecture, hypervisor type, mode]")
    return tuple((one[0], one[1], one[2]) for one in value)


def _is_triple(value: object) -> bool:
    return isinstance(value, list) and len(value) == 3 and all(isinstance(word, str) for word in value)


def _object(value: object) -> dict[str, object]:
    """Return a JSON object, without other YAML types such as dates."""
    try:
        if isinstance(value, Mapping) and all(isinstance(key, str) for key in value):
            return dict(json.loads(json.dumps(dict(value), allow_nan=False)))
    except (TypeError, ValueError):
        pass
    raise ValueError("an object of texts, numbers, lists and objects")


def _metrics(value: object) -> dict[str, float]:
    try:
        return {key: _number(number) for key, number in _object(value).items()}
    except ValueError:
        raise ValueError("an object of numbers") from None


def _cells(value: object) -> list[dict[str, object]]:
    """Return the NUMA cells; for `auto` those of this machine."""
    if value == AUTO:
        return hardware_discovery.numa_cells()
    message = "auto, or a list of {cpus: number, memory_mb: number}"
    if not isinstance(value, list) or not all(isinstance(one, Mapping) for one in value):
        raise ValueError(message)
    if any(set(one) != {"cpus", "memory_mb"} for one in value):
        raise ValueError(message)
    return [{key: _count(number) for key, number in one.items()} for one in value]


def _devices(value: object) -> list[dict[str, object]]:
    """Return the PCI devices; for `auto` those of this machine."""
    if value == AUTO:
        return hardware_discovery.pci_devices()
    if not isinstance(value, list) or not all(_is_device(one) for one in value):
        raise ValueError('auto, or a list of {address: text, vendor_id: "10de", product_id: "20b0"}')
    return [dict(one) for one in value]


def _is_device(value: object) -> bool:
    if not isinstance(value, Mapping) or not {"vendor_id", "product_id"} <= set(value) <= _DEVICE:
        return False
    ids = value["vendor_id"], value["product_id"]
    named = isinstance(value.get("address", ""), str)
    return named and all(isinstance(one, str) and re.fullmatch("[0-9a-fA-F]{4}", one) for one in ids)


_DEVICE = {"address", "vendor_id", "product_id"}

_REPORTED = ("numa_cells", "pci_devices")
"""Keys that become stats of the node, under the same names."""

_READERS: Mapping[str, Callable[[object], object]] = {
    "name": _text,
    "driver": _text,
    "vcpus": _count,
    "memory_mb": _count,
    "local_gb": _count,
    "zone": _text,
    "netns": _name,
    "host_ip": _address,
    "ram_ratio": _ratio,
    "cpu_ratio": _ratio,
    "disk_ratio": _ratio,
    "reserved_ram_mb": _count,
    "reserved_disk_mb": _count,
    "disk_least_gb": _count,
    "hypervisor_type": _text,
    "hypervisor_version": _count,
    "cpu_info": _cpu_info,
    "supported": _triples,
    "stats": _object,
    "metrics": _metrics,
    "numa_cells": _cells,
    "pci_devices": _devices,
    "cluster": _text,
}
