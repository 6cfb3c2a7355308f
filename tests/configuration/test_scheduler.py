"""The scheduler is the one that the settings ask for, and wrong names are found at start-up."""

from importlib.metadata import entry_points
from typing import Any

import pytest

from climate.bootstrap import build
from climate.compute.scheduler import chance, simple
from climate.compute.scheduler import entry_points as load
from climate.compute.scheduler.distributed import host_filters, least_cost
from climate.compute.scheduler.distributed.costs import compute_fill_first_cost_fn
from climate.compute.scheduler.distributed.host_filters import HOST_FILTERS
from climate.compute.scheduler.filtering.scheduler import select
from climate.compute.scheduler.filters import FILTERS
from climate.compute.scheduler.filters.capacity import CORE
from climate.compute.scheduler.filters.mandatory import MANDATORY_FILTERS
from climate.compute.scheduler.scheduler_parts import Cost, Options, Rules
from climate.compute.scheduler.weighers import WEIGHERS
from climate.configuration.scheduler import BUNDLED, chosen
from climate.settings import SettingError, Settings

NOWHERE = "postgresql://nobody@127.0.0.1:1/none"


def rules(**variables: str) -> Rules:
    return chosen(settings(**variables))[1]


def settings(**variables: str) -> Settings:
    return Settings.from_env({f"CLIMATE_{name.upper()}": text for name, text in variables.items()})


def test_without_settings_it_is_the_filter_scheduler_with_its_defaults() -> None:
    schedule, found = chosen(Settings())
    assert (schedule, found.filters, found.weighers) == (select, FILTERS, WEIGHERS)
    assert found.options == Options()
    assert [(cost.name, cost.weight) for cost in found.costs] == [("noop_cost_fn", 1.0)]


@pytest.mark.parametrize(
    ("name", "schedule"),
    [
        ("filter", select),
        ("least_cost", least_cost.least_cost),
        ("host_filter", least_cost.host_filter),
        ("chance", chance.chance),
        ("availability_zone", chance.availability_zone),
        ("simple", simple.simple),
    ],
)
def test_each_scheduler_is_chosen_by_its_name(name: str, schedule: Any) -> None:
    made = build(settings(scheduler=name, database_url=NOWHERE)).compute
    assert made.schedule is schedule
    assert made.rules.filters == (FILTERS if name == "filter" else MANDATORY_FILTERS)


def test_each_bundled_part_is_installed() -> None:
    assert {entry.name for entry in entry_points(group=load.SCHEDULER_GROUP)} == set(BUNDLED)
    assert {entry.name: entry.load() for entry in entry_points(group=host_filters.GROUP)} == HOST_FILTERS
    assert rules(scheduler_host_filters="JsonFilter,AllHostsFilter").host_filters.keys() == {
        "JsonFilter",
        "AllHostsFilter",
    }


def test_the_core_filter_is_a_default_one_where_the_settings_say_so() -> None:
    assert "CoreFilter" not in [rule.name for rule in rules().filters]
    assert rules(scheduler_core_filter="true").filters == (*FILTERS, CORE)
    named = rules(scheduler_core_filter="true", scheduler_filters="RamFilter").filters
    assert [rule.name for rule in named] == ["ReservationFilter", "RamFilter"]


def test_filters_and_weighers_come_in_the_order_of_the_settings() -> None:
    found = rules(scheduler_filters="CoreFilter, RamFilter,", scheduler_weighers="IoOpsWeigher,RAMWeigher")
    assert [rule.name for rule in found.filters] == ["ReservationFilter", "CoreFilter", "RamFilter"]
    assert [rule.name for rule in found.weighers] == ["IoOpsWeigher", "RAMWeigher"]


def test_each_setting_is_an_option() -> None:
    found = rules(
        scheduler_host_subset_size="2",
        scheduler_max_attempts="4",
        max_io_ops_per_host="5",
        max_instances_per_host="6",
        isolated_images="i1, i2",
        isolated_hosts="h1",
        restrict_isolated_hosts_to_isolated_images="false",
        ram_weight_multiplier="-1.5",
        io_ops_weight_multiplier="2.5",
        metrics_weight_multiplier="3.5",
        soft_affinity_weight_multiplier="4.5",
        soft_anti_affinity_weight_multiplier="5.5",
        metrics_weight_setting="idle=1,user=-0.5",
        metrics_required="false",
        metrics_weight_of_unavailable="-7",
        default_availability_zone="south",
        default_schedule_zone="west",
        aggregate_image_properties_isolation_namespace="os",
        aggregate_image_properties_isolation_separator="_",
        default_host_filter="JsonFilter",
        simple_max_cores="9",
        pci_aliases="gpu=10DE:20b0, nic = 8086:1572",
    )
    assert found.options == Options(
        host_subset_size=2,
        max_attempts=4,
        max_io_ops_per_host=5,
        max_instances_per_host=6,
        isolated_images=frozenset({"i1", "i2"}),
        isolated_hosts=frozenset({"h1"}),
        restrict_isolated=False,
        ram_multiplier=-1.5,
        io_ops_multiplier=2.5,
        metrics_multiplier=3.5,
        soft_affinity_multiplier=4.5,
        soft_anti_affinity_multiplier=5.5,
        metrics=(("idle", 1.0), ("user", -0.5)),
        metrics_required=False,
        weight_of_unavailable=-7.0,
        default_zone="south",
        schedule_zone="west",
        image_namespace="os",
        image_separator="_",
        host_filter="JsonFilter",
        max_cores=9,
        pci_aliases=(("gpu", ("10de", "20b0")), ("nic", ("8086", "1572"))),
    )


def test_costs_have_their_weights() -> None:
    found = rules(least_cost_functions="compute_fill_first_cost_fn = -2.5").costs
    assert found == (Cost("compute_fill_first_cost_fn", compute_fill_first_cost_fn, -2.5),)


@pytest.mark.parametrize(
    ("variable", "text", "says"),
    [
        (
            "SCHEDULER",
            "random",
            "random could not be found; known are availability_zone, chance, .*simple",
        ),
        ("SCHEDULER_FILTERS", "RamFilter,Mine,Yours", "Mine, Yours could not be found; known are .*RamFilter"),
        ("SCHEDULER_WEIGHERS", "Mine", "Mine could not be found; known are .*RAMWeigher"),
        ("SCHEDULER_HOST_SUBSET_SIZE", "0", "between 1 and"),
        ("SCHEDULER_MAX_ATTEMPTS", "0", "between 1 and"),
        ("RAM_ALLOCATION_RATIO", "0", "between 0.01 and"),
        ("CPU_ALLOCATION_RATIO", "-1", "between 0.01 and"),
        ("DISK_ALLOCATION_RATIO", "nan", "between 0.01 and"),
        ("RESERVED_HOST_MEMORY_MB", "-1", "between 0 and"),
        ("RESERVED_HOST_DISK_MB", "1.5", "not a number"),
        ("RAM_WEIGHT_MULTIPLIER", "inf", "between"),
        ("IO_OPS_WEIGHT_MULTIPLIER", "x", "not a number"),
        ("METRICS_WEIGHT_MULTIPLIER", "nan", "between"),
        ("METRICS_REQUIRED", "maybe", "one of true, false"),
        ("METRICS_WEIGHT_OF_UNAVAILABLE", "-inf", "between"),
        ("MAX_IO_OPS_PER_HOST", "0", "between 1 and"),
        ("MAX_INSTANCES_PER_HOST", "0", "between 1 and"),
        ("RESTRICT_ISOLATED_HOSTS_TO_ISOLATED_IMAGES", "yes", "one of true, false"),
        ("DEFAULT_HOST_FILTER", "Mine", "Host Filter Mine could not be found. Known are .*JsonFilter"),
        ("SCHEDULER_HOST_FILTERS", "Mine,JsonFilter", "Mine could not be found; known are .*JsonFilter"),
        ("MULTI_SCHEDULERS", "boot=mine", "mine could not be found; known are .*simple"),
        ("MULTI_SCHEDULERS", "volume=simple", "one of boot, reserve, resize, unshelve, migrate"),
        ("MULTI_SCHEDULERS", "boot", "like boot=least_cost"),
        ("MULTI_SCHEDULERS", "boot=multi", "cannot be one of its own"),
        ("LEAST_COST_FUNCTIONS", "mine=1", "mine could not be found; known are .*noop_cost_fn"),
        ("LEAST_COST_FUNCTIONS", "noop_cost_fn", "a cost function and its weight"),
        ("LEAST_COST_FUNCTIONS", "noop_cost_fn=nan", "a cost function and its weight"),
        ("LEAST_COST_FUNCTIONS", "=1", "a cost function and its weight"),
        ("LEAST_COST_FUNCTIONS", ",", "at least one"),
        ("PCI_ALIASES", "gpu", "like gpu=10de:20b0"),
        ("PCI_ALIASES", "gpu=10de:20b0,gpu=10de:20b1", "once"),
        ("SIMPLE_MAX_CORES", "0", "between 1 and"),
    ],
)
@pytest.mark.parametrize("scheduler", ["filter", "chance"])
def test_what_cannot_be_used_is_named_whichever_scheduler_is_chosen(
    scheduler: str, variable: str, text: str, says: str
) -> None:
    variables = {"CLIMATE_SCHEDULER": scheduler, "CLIMATE_DATABASE_URL": NOWHERE, f"CLIMATE_{variable}": text}
    with pytest.raises(SettingError, match=f"CLIMATE_{variable}='{text}'.*{says}"):
        build(Settings.from_env(variables))


def test_requests_have_uuids_where_the_settings_say_so() -> None:
    assert not build(settings(database_url=NOWHERE)).compute.uuid_builds
    assert build(settings(database_url=NOWHERE, reservation_id_format="uuid")).compute.uuid_builds
