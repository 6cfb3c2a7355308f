"""Usage over HTTP: JSON and CSV, who sees what, and what is refused."""

import csv
import io

import pytest
from sqlalchemy import update

from climate.context import Climate
from climate.service.usage import round as usage
from climate.store.tables.hosts import hosts
from tests.api.reservation.api_clients import Person
from tests.conftest import Clock
from tests.service.lease_actions import make, run_due

COLUMNS = ["start", "key", "reserved_hours", "used_hours", "idle_hours", "slot_hours"]


@pytest.fixture
def used(climate: Climate, clock: Clock) -> None:
    """Two hours of one host of the member's project."""
    make(climate, clock, start=0, hours=4)
    run_due(climate)
    usage.run_round(climate)
    clock.forward(hours=2)


@pytest.mark.usefixtures("used")
def test_usage_in_json(member: Person, stranger: Person, admin: Person) -> None:
    answer = member.get("/usage?per=all")
    assert answer["usage"] == [
        {
            "start": answer["start"],
            "key": "project",
            "reserved_hours": 2.0,
            "used_hours": 0.0,
            "idle_hours": 2.0,
            "slot_hours": 0.0,
        }
    ]
    assert (answer["by"], answer["per"]) == ("project", "all")
    assert answer["end"] == "2030-01-01T14:00:00.000000"
    assert answer["measured_since"] == "2030-01-01T12:00:00.000000"
    assert stranger.get("/usage")["usage"] == []
    assert [line["key"] for line in admin.get("/usage?by=user&project=project")["usage"]] == ["user"]
    assert admin.get("/usage?project=nobody")["usage"] == []


@pytest.mark.usefixtures("used")
@pytest.mark.parametrize("asked", [("/usage?format=csv", None), ("/usage", "text/csv")])
def test_usage_in_csv_is_no_formula(admin: Person, climate: Climate, asked: tuple[str, str | None]) -> None:
    with climate.engine.begin() as conn:
        conn.execute(update(hosts).values(extra={"gpu_count": '=HYPERLINK("http://x")'}))
    path, accepted = asked
    separator = "&" if "?" in path else "?"
    answer = admin("GET", f"{path}{separator}by=property:gpu_count", headers={"Accept": accepted} if accepted else {})
    assert answer.status_code == 200
    assert answer.content_type == "text/csv; charset=utf-8"
    lines = list(csv.reader(io.StringIO(answer.text)))
    assert lines[0] == COLUMNS
    assert lines[1][1:] == ['\'=HYPERLINK("http://x")', "2.0", "0.0", "2.0", "0.0"]


@pytest.mark.parametrize(
    "query",
    [
        *("by=colour", "by=property", "by=property:nothing", "by=", "per=hour", "per=", "format=xml", "unknown=1"),
        *("start=yesterday", "start=2999-01-01%2000:00", "start=0001-01-01%2000:00", "end=2000-01-01%2000:00"),
        *("start=2029-12-31%2000:00&end=2029-12-30%2000:00", "start=1000-01-01%2000:00&per=all", f"by={'x' * 400}"),
    ],
)
def test_bad_questions_are_refused(admin: Person, query: str) -> None:
    answer = admin("GET", f"/usage?{query}")
    assert answer.status_code == 400, answer.text
    assert "Traceback" not in answer.text


def test_other_projects_are_for_administrators(stranger: Person) -> None:
    for query in ("project=project", "by=pool"):
        assert stranger("GET", f"/usage?{query}").status_code == 403


def test_only_json_and_csv_are_offered(member: Person) -> None:
    assert member("GET", "/usage", headers={"Accept": "text/html"}).status_code == 406
