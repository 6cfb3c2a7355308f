"""Filters by the capabilities that a node reports."""

from collections.abc import Sequence

import numpy as np

from climate.compute.models.flavor import GROUP
from climate.compute.models.request import Spec
from climate.compute.scheduler.distributed import json_query
from climate.compute.scheduler.distributed.json_query import Path, Query
from climate.compute.scheduler.filters.extra_specs_ops import match
from climate.compute.scheduler.filters.location import everywhere
from climate.compute.scheduler.hosts import attributes
from climate.compute.scheduler.hosts.table import Hosts, Mask
from climate.compute.scheduler.scheduler_parts import Again, Filter, Options

SCOPE = "capabilities"


def _capability_specs(spec: Spec) -> list[tuple[Path, str]]:
    """Return the flavor's extra specs about capabilities, as paths."""
    result = []
    for key, wanted in (spec.flavor.extra_specs if spec.flavor else {}).items():
        scope, *rest = key.split(":")
        if (not rest and not _is_mark(spec, key)) or scope == SCOPE:
            result.append((tuple(rest) or (scope,), str(wanted)))
    return result


def _is_mark(spec: Spec, key: str) -> bool:
    return key == GROUP and spec.flavor is not None and spec.flavor.reservation is not None


def capable(hosts: Hosts, spec: Spec, options: Options) -> Mask:
    """Return the nodes with a matching attribute or driver statistic for each extra spec about capabilities."""
    mask = everywhere(hosts)
    for path, wanted in _capability_specs(spec):
        mask &= _met(hosts, path, wanted)
    return mask


def _met(hosts: Hosts, path: Path, wanted: str) -> Mask:
    return attributes.at_or_stats(hosts, path).where(lambda value: value is not None and match(str(value), wanted))


def _capable_why(hosts: Hosts, spec: Spec, options: Options, index: int) -> str:
    row = hosts.row(index)
    unmet = [f"{':'.join(path)} {wanted}" for path, wanted in _capability_specs(spec) if not _met(row, path, wanted)[0]]
    return f"fails extra_specs requirements: {', '.join(unmet)}."


def query_of(hosts: Hosts, spec: Spec) -> Query:
    """Return the query in the hint `query`. Raise BadRequest."""
    return json_query.parse(spec.hints.get("query"))


def query_met(hosts: Hosts, spec: Spec, options: Options) -> Mask:
    """Return the nodes that match the query."""
    query = query_of(hosts, spec)

    def column(path: Path) -> Sequence[object]:
        known = attributes.at(hosts, path)
        return [known.values[code] for code in known.codes.tolist()]

    return query.where(column, len(hosts))


def measured(hosts: Hosts, spec: Spec, options: Options) -> Mask:
    """Return the nodes that report all configured metrics."""
    if not options.metrics:
        return everywhere(hosts)
    names = {name for name, _ in options.metrics}
    return np.fromiter((names <= metrics.keys() for metrics in hosts.metrics), np.bool_, len(hosts))


COMPUTE_CAPABILITIES = Filter("ComputeCapabilitiesFilter", capable, why=_capable_why)
JSON = Filter("JsonFilter", query_met, Again.ROW, lambda *_: "does not match the query.", check=query_of)
METRICS = Filter("MetricsFilter", measured, why=lambda *_: "does not report all configured metrics.")
