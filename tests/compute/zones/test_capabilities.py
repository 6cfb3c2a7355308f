"""Capabilities: the text of the settings, and the aggregation of reports."""

from datetime import UTC, datetime, timedelta

import pytest

from climate.compute.errors import BadRequest
from climate.compute.zones.capabilities import ServiceReport, aggregate, parse, written

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def report(host: str, service: str, age: float = 0, *, enabled: bool = True, **values: float) -> ServiceReport:
    return ServiceReport(host, service, NOW - timedelta(seconds=age), values, enabled)


def test_zn_16_parse_splits_keys_and_keeps_values() -> None:
    parsed = parse("key=value;value;value, other=a;b;c")
    assert parsed == {"key": "value;value;value", "other": "a;b;c"}


@pytest.mark.parametrize("text", ["", "  "])
def test_parse_of_nothing_is_nothing(text: str) -> None:
    assert parse(text) == {}


def test_parse_splits_at_the_first_equals() -> None:
    assert parse("a=b=c") == {"a": "b=c"}


@pytest.mark.parametrize("text", ["a", "a=", "=b", "a=b,", "a=b;;c", "a=b, a=c", "name=x", "a=b\x07", "a b=c", ","])
def test_parse_refuses_nonsense(text: str) -> None:
    with pytest.raises(BadRequest):
        parse(text)


@pytest.mark.parametrize(("age", "low"), [(180, (1, 3)), (181, (3, 3))])
def test_zn_7_report_counts_until_three_periods_have_passed(age: float, low: tuple[float, float]) -> None:
    reports = [report("host1", "svc1", age, vcpus=1, networks=2), report("host2", "svc1", vcpus=3, networks=4)]
    assert aggregate(reports, NOW, 60)["svc1_vcpus"] == low


def test_zn_8_stale_services_are_left_out_one_by_one() -> None:
    reports = [
        report("host1", "svc1", vcpus=1, networks=2),
        report("host1", "svc2", 181, vcpus=5, networks=6),
        report("host2", "svc1", 181, vcpus=3, networks=4),
        report("host2", "svc2", vcpus=7, networks=8),
    ]
    expected = {"svc1_vcpus": (1, 1), "svc1_networks": (2, 2), "svc2_vcpus": (7, 7), "svc2_networks": (8, 8)}
    assert aggregate(reports, NOW, 60) == expected
    assert aggregate(reports, NOW + timedelta(seconds=181), 60) == {}


def test_disabled_services_and_unlisted_names_are_left_out() -> None:
    reports = [
        report("host1", "compute", host_memory_free=1, host_uuid=5),
        report("host2", "compute", enabled=False, host_memory_free=9),
    ]
    assert aggregate(reports, NOW, 60) == {"compute_host_memory_free": (1, 1)}


def test_numbers_are_written_whole() -> None:
    assert written((1073741824, 3221225472.0)) == "1073741824,3221225472"
    assert written((0.5, 2)) == "0.5,2"
