"""Filters by NUMA cells, PCI devices and attested trust of a node."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping

import numpy as np

from climate.compute.errors import BadRequest
from climate.compute.models.request import Spec
from climate.compute.nodes import attestation
from climate.compute.placement.numa_and_pci_requests import Demand, demand_of
from climate.compute.scheduler.filters.location import everywhere
from climate.compute.scheduler.hosts import numa
from climate.compute.scheduler.hosts.table import Hosts, Mask, Numbers
from climate.compute.scheduler.scheduler_parts import Again, Filter, Keep, Options, Why

DEVICES = "pci_devices"
"""Key of PCI devices in a node's stats: a list of {"vendor_id": "10de", "product_id": "20b0"}."""

Product = tuple[str, str]
"""(vendor id, product id), four hexadecimal digits each."""


def demanded(spec: Spec) -> Demand:
    """Return the NUMA, PCI and trust demands of a flavor. Raise BadRequest if they are invalid."""
    flavor = spec.flavor
    return Demand() if flavor is None else demand_of(flavor.extra_specs, flavor.vcpus, flavor.ram_mb)


def cells_fit(hosts: Hosts, spec: Spec, options: Options) -> Mask:
    """Return the nodes whose free NUMA cells fit the guest's, beside those of existing servers."""
    cells = demanded(spec).cells
    if not cells:
        return everywhere(hosts)
    mask = hosts.profile.where(lambda profile: bool(numa.sizes(profile.stats)))
    for index in np.flatnonzero(mask).tolist():
        there = [one.cells for one in _there(spec, int(hosts.ids[index])) if one.cells]
        ratios = float(hosts.cpu_ratio[index]), float(hosts.ram_ratio[index])
        sizes = numa.sizes(hosts.profile.values[hosts.profile.codes[index]].stats)
        mask[index] = numa.fit(sizes, [*there, cells], ratios)
    return mask


def _why_no_cells(hosts: Hosts, spec: Spec, options: Options, index: int) -> str:
    known = numa.sizes(hosts.profile.row(index).values[0].stats)
    return "has no free NUMA cells for the guest's." if known else "reports no NUMA cells."


def devices_free(hosts: Hosts, spec: Spec, options: Options) -> Mask:
    """Return the nodes with enough free PCI devices of each requested kind."""
    mask = everywhere(hosts)
    for product, count in requested_devices(spec, options).items():
        mask &= _free(hosts, spec, options, product) >= count
    return mask


def requested_devices(spec: Spec, options: Options) -> Mapping[Product, int]:
    """Return the devices of the flavor's aliases. Raise BadRequest for an undefined alias."""
    known = dict(options.pci_aliases)
    devices = demanded(spec).devices
    unknown = [name for name, _ in devices if name not in known]
    if unknown:
        raise BadRequest(f"PCI alias {unknown[0][:80]} is not defined; known are {', '.join(sorted(known)) or 'none'}.")
    return _by_product(devices, known)


def _by_product(devices: Iterable[tuple[str, int]], known: Mapping[str, Product]) -> Counter[Product]:
    result: Counter[Product] = Counter()
    for name, count in devices:
        if name in known:
            result[known[name]] += count
    return result


def _free(hosts: Hosts, spec: Spec, options: Options, product: Product) -> Numbers:
    """Return the number of unallocated devices of a kind on each node."""
    free = hosts.profile.number(lambda profile: _reported(profile.stats)[product])
    known = dict(options.pci_aliases)
    for node_id, demands in (spec.demands or {}).items():
        index = int(np.searchsorted(hosts.ids, node_id))
        if index < len(hosts) and hosts.ids[index] == node_id:
            free[index] -= sum(_by_product(demand.devices, known)[product] for demand in demands)
    return free


def _reported(stats: Mapping[str, object]) -> Counter[Product]:
    devices = stats.get(DEVICES)
    try:
        result = (
            [(device["vendor_id"], device["product_id"]) for device in devices] if isinstance(devices, list) else []
        )
        return Counter((vendor.lower(), product.lower()) for vendor, product in result)
    except (AttributeError, KeyError, TypeError):
        return Counter()


def _why_no_devices(hosts: Hosts, spec: Spec, options: Options, index: int) -> str:
    row = hosts.row(index)
    counts = [
        f"{_free(row, spec, options, product)[0]:g} of {count} PCI devices {':'.join(product)}"
        for product, count in requested_devices(spec, options).items()
    ]
    return f"has {', '.join(counts)} free."


def _there(spec: Spec, node_id: int) -> Iterable[Demand]:
    return (spec.demands or {}).get(node_id, ())


def trusted(hosts: Hosts, spec: Spec, options: Options) -> Mask:
    """Return the nodes whose service has the flavor's trust level."""
    level = attestation.required_level(spec.flavor)
    if level is None:
        return everywhere(hosts)
    fits = (spec.trust.get(host, attestation.UNKNOWN) == level for host in hosts.service_hosts)
    return np.fromiter(fits, np.bool_, len(hosts))


def _why_not_trusted(hosts: Hosts, spec: Spec, options: Options, index: int) -> str:
    trust = spec.trust.get(hosts.service_hosts[index], attestation.UNKNOWN)
    return f"is {trust} by the attestation service; {attestation.required_level(spec.flavor)} is asked for."


TRUSTED = Filter(
    "TrustedFilter", trusted, why=_why_not_trusted, check=lambda hosts, spec: attestation.required_level(spec.flavor)
)


def _by_demands(name: str, keep: Keep, why: Why, asks: Callable[[Demand], bool]) -> Filter:
    """Return a filter by NUMA, PCI or trust demands, repeated only for requests with such demands."""
    return Filter(
        name,
        keep,
        Again.ROW,
        why,
        check=lambda hosts, spec: demanded(spec),
        when=lambda spec: asks(demanded(spec)),
    )


NUMA = _by_demands("NUMATopologyFilter", cells_fit, _why_no_cells, lambda demand: bool(demand.cells))
PCI = _by_demands("PciPassthroughFilter", devices_free, _why_no_devices, lambda demand: bool(demand.devices))
