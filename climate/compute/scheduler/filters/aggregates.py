"""Filters by the metadata of a node's aggregates."""

from climate.compute.models.aggregate import NAMED
from climate.compute.models.request import Spec
from climate.compute.scheduler.filters.extra_specs_ops import match
from climate.compute.scheduler.filters.location import everywhere
from climate.compute.scheduler.hosts.table import Grouping, Hosts, Mask
from climate.compute.scheduler.scheduler_parts import Filter, Options

SCOPE = "aggregate_instance_extra_specs"


def extra_specs(spec: Spec, scope: str) -> list[tuple[str, str]]:
    """Return the flavor's extra specs without a scope or with this scope, which is removed."""
    split = [
        (key.partition(":"), str(value)) for key, value in (spec.flavor.extra_specs if spec.flavor else {}).items()
    ]
    return [(rest if mark else first, value) for (first, mark, rest), value in split if not mark or first == scope]


def specs_met(hosts: Hosts, spec: Spec, options: Options) -> Mask:
    """Return the nodes with matching aggregate metadata for each extra spec; flavors of reservations
    skip this filter.
    """
    asked = [(key, wanted) for key, wanted in extra_specs(spec, SCOPE) if not (spec.slots and key == NAMED)]
    if not asked:
        return everywhere(hosts)

    def fits(grouping: Grouping) -> bool:
        return all(any(match(word, wanted) for word in grouping.words(key)) for key, wanted in asked)

    return hosts.grouping.where(fits)


def type_welcome(hosts: Hosts, spec: Spec, options: Options) -> Mask:
    """Return the nodes whose aggregates name the flavor in `instance_type`, or name none."""

    def fits(grouping: Grouping) -> bool:
        named = grouping.values("instance_type")
        return not named or (spec.flavor is not None and spec.flavor.name in grouping.words("instance_type"))

    return hosts.grouping.where(fits)


def project_welcome(hosts: Hosts, spec: Spec, options: Options) -> Mask:
    """Return the nodes whose aggregates name the project in `filter_tenant_id`, or name none."""

    def fits(grouping: Grouping) -> bool:
        return not grouping.values("filter_tenant_id") or spec.project_id in grouping.words("filter_tenant_id")

    return hosts.grouping.where(fits)


def image_welcome(hosts: Hosts, spec: Spec, options: Options) -> Mask:
    """Return the nodes whose aggregates have the image's value under each common key; keys may need a prefix."""
    prefix = options.image_namespace + options.image_separator if options.image_namespace else ""
    said = {key: str(value) for key, value in spec.image.items() if value and key.startswith(prefix)}

    def fits(grouping: Grouping) -> bool:
        return all(said[key] in grouping.words(key) for key in said.keys() & grouping.keys())

    return hosts.grouping.where(fits) if said else everywhere(hosts)


INSTANCE_EXTRA_SPECS = Filter(
    "AggregateInstanceExtraSpecsFilter", specs_met, why=lambda *_: "is in no aggregate that fits the extra specs."
)
AGGREGATE_TYPE_AFFINITY = Filter(
    "AggregateTypeAffinityFilter", type_welcome, why=lambda *_: "is in an aggregate for other flavors."
)
MULTI_TENANCY = Filter(
    "AggregateMultiTenancyIsolation", project_welcome, why=lambda *_: "is in an aggregate for other projects."
)
IMAGE_ISOLATION = Filter(
    "AggregateImagePropertiesIsolation", image_welcome, why=lambda *_: "is in an aggregate for other images."
)
