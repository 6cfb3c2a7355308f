"""Data that the scheduler needs beyond the request: image properties, hints, neighbours; read on demand."""

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from sqlalchemy import Connection

from climate.compute.errors import BadRequest
from climate.compute.models.flavor import Flavor
from climate.compute.models.request import Spec, read_destination
from climate.compute.placement import server_groups
from climate.compute.placement.numa_and_pci_requests import KEYS, Demand, demand_of
from climate.compute.placement.server_owners import Occupants
from climate.compute.scheduler.scheduler_parts import Rules, Sees
from climate.compute.store.nodes import availability_zones, server_owners
from climate.compute.store.projects import images
from climate.compute.store.servers import inserts

TYPE_AFFINITY = "TypeAffinityFilter"
"""The filter that needs the nodes of servers of other flavors."""

BY_DEMANDS = ("NUMATopologyFilter", "PciPassthroughFilter")
"""The filters that count the demands of servers beyond their sizes."""


def completed(conn: Connection, rules: Rules, spec: Spec) -> Spec:
    """Return the spec with the properties of its image, and the nodes named by its hints or needed by filters.

    Raises BadRequest for hints that are not ids of servers.
    """
    image = images.get(conn, spec.image_id) if spec.image_id else None
    by_type = spec.flavor is not None and any(rule.name == TYPE_AFFINITY for rule in rules.filters)
    return replace(
        spec,
        image=image.properties if image else {},
        same_host=_nodes(conn, spec, "same_host"),
        different_host=_nodes(conn, spec, "different_host"),
        occupants=occupied(conn, rules.occupants_read(), spec),
        demands=demanded(conn, spec) if _counts_demands(rules, spec) else None,
        other_flavors=inserts.nodes_of_other_flavors(conn, spec.flavor.id) if spec.flavor and by_type else frozenset(),
    )


def occupied(conn: Connection, sees: Sees, spec: Spec, nodes: Sequence[int] | None = None) -> Occupants | None:
    """Return the owners of servers on the nodes, or on all, without the servers of the request itself.

    None if no rule needs them.
    """
    if sees is Sees.NOTHING:
        return None
    own = (spec.project_id, spec.user_id) if sees is Sees.OWN else None
    return Occupants(server_owners.of(conn, own, spec.server_ids, nodes))


def _counts_demands(rules: Rules, spec: Spec) -> bool:
    asks = spec.flavor is not None and any(key in spec.flavor.extra_specs for key in KEYS)
    return asks and any(rule.name in BY_DEMANDS for rule in rules.filters)


def demanded(conn: Connection, spec: Spec, nodes: Sequence[int] | None = None) -> Mapping[int, tuple[Demand, ...]]:
    """Return the demands of servers for NUMA cells and PCI devices on the nodes, or on all, without the spec's own."""
    result: dict[int, tuple[Demand, ...]] = {}
    for row in server_owners.demands(conn, KEYS, spec.server_ids, nodes):
        # An invalid flavor makes no demands.
        with contextlib.suppress(BadRequest):
            demand = demand_of(row["extra_specs"], row["vcpus"], row["ram_mb"])
            result[row["node_id"]] = (*result.get(row["node_id"], ()), demand)
    return result


def check_image(conn: Connection, image_id: str | None, flavor: Flavor) -> None:
    """Check that servers of this size can be created from the image, else raise BadRequest."""
    image = images.get(conn, image_id) if image_id else None
    if image is not None:
        image.check_fits(flavor)


def pin_image(conn: Connection, image_id: str | None) -> None:
    """Prevent the deletion of the image of a server that is to be RESERVED until the transaction ends.

    BadRequest if the image is deleted already, because its content may be deleted too.
    """
    if image_id is not None and not images.pin(conn, image_id):
        raise BadRequest(f"Image {image_id} could not be found.")


def check_place(conn: Connection, spec: Spec, default_zone: str) -> None:
    """Check that the destination of a request exists, and its zone if no host is forced.

    BadRequest says no more than that it does not exist.
    """
    if spec.zone is not None and not spec.forced and not availability_zones.exists(conn, spec.zone, default_zone):
        raise BadRequest("The requested availability zone is not available")
    if spec.destination is not None and not availability_zones.has_node(conn, *read_destination(spec.destination)):
        raise BadRequest(f"Compute host {spec.destination.strip(':')} could not be found.")


def named_servers(hints: Mapping[str, object], hint: str) -> list[str]:
    """Return the ids of servers in a hint, a single one or a list. BadRequest for anything else."""
    named = hints.get(hint)
    ids: list[Any] = named if isinstance(named, list) else [named]
    if not all(server_groups.is_id(value) for value in ids):
        raise BadRequest(f"The hint '{hint}' must be the id of a server, or a list of such ids.")
    return ids


def _nodes(conn: Connection, spec: Spec, hint: str) -> frozenset[int] | None:
    """Return the nodes of the servers in a hint, without servers of other projects. None: no such hint."""
    if spec.hints.get(hint) is None:
        return None
    return inserts.nodes_of(conn, named_servers(spec.hints, hint), spec.project_id)
