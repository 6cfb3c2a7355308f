"""The log of usage audits has the form of Nova, and says that none has run."""

import pytest

from tests.api.compute.api_clients import SERVICE, Person, message

LOG = "/compute/v2.1/os-instance_usage_audit_log"


@pytest.mark.parametrize(
    ("before", "beginning", "ending"),
    [
        ("2026-11-23 21:00:00", "2026-10-01 00:00:00", "2026-11-01 00:00:00"),
        ("2026-01-01 00:00:00.000001", "2025-12-01 00:00:00", "2026-01-01 00:00:00"),
    ],
)
def test_the_last_full_month_before_a_time_has_no_audit(
    admin: Person, before: str, beginning: str, ending: str
) -> None:
    log = admin.get(f"{LOG}/{before}")["instance_usage_audit_log"]
    assert (log["period_beginning"], log["period_ending"]) == (beginning, ending)
    assert (log["hosts_not_run"], log["num_hosts"], log["num_hosts_done"], log["log"]) == ([SERVICE], 1, 0, {})
    assert log["overall_status"] == "0 of 1 hosts done. 0 errors."


def test_the_list_is_of_the_last_full_month(admin: Person) -> None:
    log = admin.get(LOG)["instance_usage_audit_logs"]
    assert log["period_beginning"] < log["period_ending"]
    assert log["period_ending"].endswith("-01 00:00:00")


@pytest.mark.parametrize("wrong", ["invalid_time", "2026-13-01 00:00:00", "0001-01-31 00:00:00"])
def test_a_time_that_is_none_is_refused(admin: Person, wrong: str) -> None:
    assert "ime" in message(admin("GET", f"{LOG}/{wrong}"), 400, "badRequest")


def test_only_administrators_see_it(member: Person) -> None:
    assert message(member("GET", LOG), 403, "forbidden")
    assert message(member("GET", f"{LOG}/invalid_time"), 403, "forbidden")
