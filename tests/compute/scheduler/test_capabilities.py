"""The filters that read what nodes, images and aggregates say of themselves, by the vectors of the specification."""

import json
from dataclasses import replace
from typing import Any

import pytest

from climate.compute.errors import BadRequest
from climate.compute.models.flavor import Flavor
from climate.compute.models.request import Spec
from climate.compute.scheduler.filters import aggregates, capabilities, images
from climate.compute.scheduler.hosts import hypervisor_version
from climate.compute.scheduler.hosts.table import Grouping
from climate.compute.scheduler.scheduler_parts import Options
from tests.compute.node_tables import hosts
from tests.compute.scheduler.filter_answers import SMALL, kept, labels

ROOMY = {"memory_mb": 10**6, "local_gb": 10**4}


def asking(extra_specs: dict[str, str]) -> Spec:
    return replace(SMALL, flavor=Flavor("f", "small", 1, 512, 1, extra_specs=extra_specs))


@pytest.mark.parametrize(
    ("stats", "extra_specs", "stays"),
    [
        ({"opt1": 1, "opt2": 2}, {"opt1": "1", "opt2": "2", "trust:trusted_host": "true"}, True),
        ({"opt1": 1, "opt2": 2}, {"opt1": "1", "opt2": "222"}, False),
        ({"opt1": 1}, {"capabilities:opt1": "1"}, True),
        ({"opt1": 1}, {"capabilities:opt1": ">= 2"}, False),
        ({}, {"wrong_scope:opt1": "1"}, True),
        ({}, {"opt1": "1"}, False),
        ({"opt1": {"a": 1, "b": {"aa": 2}}, "opt2": 2}, {"opt1:a": "1", "capabilities:opt1:b:aa": "2"}, True),
        ({"opt1": {"a": 1, "b": {"aa": 2}}}, {"capabilities:opt1:b:bb": "2"}, False),
        ({"opt1": {"a": 1}}, {"capabilities:opt1:a:aa": "1"}, False),
        ({}, {"free_ram_mb": "8192"}, True),
        ({}, {"free_ram_mb": ">= 8193"}, False),
        ({}, {"capabilities:hypervisor_type": "climate"}, True),
        ({}, {"ram_allocation_ratio": "1.5"}, True),
        ({"free_ram_mb": 1}, {"free_ram_mb": "1"}, False),
        ({}, {"capabilities:cpu_info:topology:cores": "4"}, True),
        ({}, {"capabilities:cpu_info:features": "<in> avx"}, True),
        ({}, {"capabilities:cpu_info:features": "<all-in> avx aes"}, True),
        ({}, {"capabilities:cpu_info:topology:cores": "5"}, False),
        ({}, {}, True),
    ],
)
def test_every_extra_spec_is_met_by_the_node_or_its_statistics(
    stats: dict[str, Any], extra_specs: dict[str, str], stays: bool
) -> None:
    cpu_info = json.dumps({"topology": {"cores": 4}, "features": ["avx", "aes"]})
    table = hosts({"stats": stats, "cpu_info": cpu_info}, {"stats": stats, "cpu_info": cpu_info})
    assert kept(capabilities.COMPUTE_CAPABILITIES, table, asking(extra_specs)) == [stays, stays]


def test_where_an_attribute_is_missing_statistics_are_asked() -> None:
    table = hosts({"hypervisor_version": None, "stats": {"hypervisor_version": 7}}, {"hypervisor_version": 7}, {})
    assert kept(capabilities.COMPUTE_CAPABILITIES, table, asking({"hypervisor_version": "7"})) == [True, True, False]


def test_texts_that_are_not_json_have_nothing_below_them() -> None:
    assert kept(
        capabilities.COMPUTE_CAPABILITIES, hosts({"cpu_info": "{"}), asking({"capabilities:cpu_info:a": "1"})
    ) == [False]


def test_the_reason_names_the_extra_specs_that_are_not_met() -> None:
    table, spec = hosts({"stats": {"a": 1}}), asking({"a": "1", "capabilities:b:c": ">= 4"})
    why = capabilities.COMPUTE_CAPABILITIES.why
    assert why is not None
    assert why(table, spec, Options(), 0) == "fails extra_specs requirements: b:c >= 4."


@pytest.mark.parametrize(("ram", "disk", "stays"), [(1024, 204800, True), (1023, 204800, False), (1024, 204799, False)])
def test_a_query_is_about_what_is_free(ram: int, disk: int, stays: bool) -> None:
    query = ["and", [">=", "$free_ram_mb", 1024], [">=", "$free_disk_mb", 200 * 1024]]
    full = ROOMY | {"used_ram_mb": 10**6 - ram, "used_disk_mb": 10**4 * 1024 - disk}
    assert kept(capabilities.JSON, hosts(full), replace(SMALL, hints={"query": json.dumps(query)})) == [stays]
    assert kept(capabilities.JSON, hosts(full)) == [True]


def test_a_query_may_ask_for_names_services_and_statistics() -> None:
    table = hosts({"stats": {"gpu": {"model": "a100"}}}, {"disabled": True}, {"name": "c"})
    for query, stays in (
        (["=", "$service.disabled", False], [True, False, True]),
        (["in", "$hypervisor_hostname", "c", "n1"], [True, False, True]),
        (["=", "$capabilities.gpu.model", "a100"], [True, False, False]),
        (["=", "$no.such", "a100"], [False, False, False]),
        (["not", "$no.such"], [False, False, False]),
    ):
        assert kept(capabilities.JSON, table, replace(SMALL, hints={"query": json.dumps(query)})) == stays


def test_a_query_that_cannot_be_understood_is_refused() -> None:
    with pytest.raises(BadRequest, match="unknown operator"):
        kept(capabilities.JSON, hosts({}), replace(SMALL, hints={"query": '["!=", 1, 2]'}))


def test_metrics_that_count_must_be_reported() -> None:
    table, options = (
        hosts({"metrics": {"idle": 1, "user": 2}}, {"metrics": {"idle": 1}}),
        Options(metrics=(("user", 1.0),)),
    )
    assert kept(capabilities.METRICS, table, SMALL, options) == [True, False]
    assert kept(capabilities.METRICS, table) == [True, True]


X86 = {"architecture": "x86_64"}
KVM, XEN = ("x86_64", "kvm", "hvm"), ("x86_64", "xen", "xen")


@pytest.mark.parametrize(
    ("properties", "supported", "version", "stays"),
    [
        (X86 | {"vm_mode": "hvm"}, [KVM], None, True),
        (X86 | {"vm_mode": "hvm"}, [XEN], None, False),
        ({"architecture": "armv7", "hypervisor_type": "qemu", "vm_mode": "hvm"}, [KVM], None, False),
        (X86 | {"hypervisor_version_requires": ">=6.2"}, [KVM], 6000000, False),
        (X86 | {"hypervisor_version_requires": ">=6.0,<6.2"}, [KVM], 6000000, True),
        (X86 | {"hypervisor_version_requires": ">=6.2"}, [KVM], None, True),
        ({"hypervisor_version_requires": ">=6.0"}, [KVM], 5000, False),
        (X86, [], None, False),
        ({}, [], None, True),
        ({"vm_mode": "pv"}, [XEN], None, True),
        ({"vm_mode": "hv"}, [KVM], None, True),
        ({"architecture": "x86_32"}, [("i686", "kvm", "hvm")], None, True),
        ({"hypervisor_type": "xapi"}, [XEN], None, True),
        ({"vm_mode": "baremetal"}, [KVM], None, True),
        ({"hw_architecture": "AMD64", "img_hv_type": "kvm", "hw_vm_mode": "hvm"}, [XEN, KVM], None, True),
        ({"hypervisor_type": "homemade"}, [("x86_64", "homemade", "hvm")], None, True),
    ],
)
def test_a_node_runs_what_the_image_asks_for(
    properties: dict[str, str], supported: list[tuple[str, str, str]], version: int | None, stays: bool
) -> None:
    table = hosts({"supported": supported, "hypervisor_version": version})
    assert kept(images.IMAGE_PROPERTIES, table, replace(SMALL, image=properties)) == [stays]


@pytest.mark.parametrize(
    "properties", [{"architecture": "pdp11"}, {"vm_mode": "odd"}, X86 | {"hypervisor_version_requires": "6"}]
)
def test_an_image_that_asks_for_what_nobody_knows_is_refused(properties: dict[str, str]) -> None:
    with pytest.raises(BadRequest, match="The image requires"):
        kept(images.IMAGE_PROPERTIES, hosts({"supported": [KVM]}), replace(SMALL, image=properties))


def test_versions_have_three_digits_to_a_part() -> None:
    for number, text, stays in (
        (6000000, "==6.0.0", True),
        (6002001, ">6.2, <=6.2.1", True),
        (6002001, "!=6.2.1", False),
        (10000000, ">9.9.9", True),
    ):
        assert hypervisor_version.within(number, hypervisor_version.parse(text)) is stays


def test_extra_specs_are_met_by_the_values_of_aggregates() -> None:
    table = hosts(labels({"ssd": "true, 7"}), labels({"ssd": "false"}, {"ssd": "8"}), {})
    for extra, stays in (
        ({"aggregate_instance_extra_specs:ssd": "true"}, [True, False, False]),
        ({"ssd": ">= 7"}, [True, True, False]),
        ({"other:ssd": "true"}, [True, True, True]),
        ({"capabilities:ssd": "true"}, [True, True, True]),
        ({"ssd": "true", "gpu": "1"}, [False, False, False]),
        ({}, [True, True, True]),
    ):
        assert kept(aggregates.INSTANCE_EXTRA_SPECS, table, asking(extra)) == stays


def test_aggregates_for_some_flavors_or_projects_only() -> None:
    table = hosts(labels({"instance_type": "large,small"}), labels({"instance_type": "large"}), {})
    assert kept(aggregates.AGGREGATE_TYPE_AFFINITY, table, asking({})) == [True, False, True]
    table = hosts(labels({"filter_tenant_id": "demo, x"}), labels({"filter_tenant_id": "x"}), {})
    assert kept(aggregates.MULTI_TENANCY, table) == [True, False, True]


def test_what_aggregate_and_image_both_say_is_the_same() -> None:
    table = hosts(labels({"os": "linux, bsd", "own.os": "bsd"}), labels({"os": "windows"}), {})
    image = {"os": "linux", "own.os": "bsd", "size": 5}
    assert kept(aggregates.IMAGE_ISOLATION, table, replace(SMALL, image=image)) == [True, False, True]
    only_own = Options(image_namespace="own", image_separator=".")
    assert kept(aggregates.IMAGE_ISOLATION, table, replace(SMALL, image=image), only_own) == [True, True, True]
    other = replace(SMALL, image={"own.os": "linux"})
    assert kept(aggregates.IMAGE_ISOLATION, table, other, only_own) == [False, True, True]
    assert kept(aggregates.IMAGE_ISOLATION, table) == [True, True, True]


def test_the_metadata_of_several_aggregates_are_read_together() -> None:
    grouping = Grouping(None, labels({"k1": "1"}, {"k1": "3", "k2": "x"}, {"k1": "6,7"})["labels"])
    assert grouping.values("k1") == ["1", "3", "6,7"]
    assert grouping.words("k1") == {"1", "3", "6", "7"}
    assert grouping.keys() == {"k1", "k2"}
    assert grouping.words("k3") == frozenset()
