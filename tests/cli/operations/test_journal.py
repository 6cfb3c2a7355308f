"""climate journal, on the database itself."""

from datetime import timedelta
from pathlib import Path
from uuid import UUID

import pytest
from sqlalchemy import text

from climate.context import Climate
from climate.service.leases import leases
from climate.service.leases.leases import LeaseRequest
from tests.cli.conftest import Cli
from tests.conftest import MEMBER, Clock

HOST = {"resource_type": "physical:host", "min": 1, "max": 1}
OF_A_NEWER_RELEASE = """
    INSERT INTO journal (stream, version, kind, body, actor, request_id)
    SELECT stream, version + 1, 'LeasePraised', body, actor, request_id FROM journal WHERE stream = :id
"""


@pytest.fixture
def environ(environ: dict[str, str], database_url: str) -> dict[str, str]:
    return {**environ, "CLIMATE_DATABASE_URL": database_url}


@pytest.fixture
def lease_id(climate: Climate, clock: Clock) -> str:
    order = LeaseRequest("one", clock.time + timedelta(hours=1), clock.time + timedelta(hours=2), reservations=[HOST])
    return str(leases.create(climate, MEMBER, order).id)


def test_a_healthy_journal_has_no_differences(cli: Cli, lease_id: str) -> None:
    ran = cli("journal", "check", "-f", "json")
    assert (ran.code, ran.data) == (0, [])


def test_a_row_that_lies_is_found_and_recreated(cli: Cli, climate: Climate, lease_id: str) -> None:
    with climate.engine.begin() as conn:
        conn.execute(text("UPDATE leases SET name = 'forged'"))
    found = cli("journal", "check", "-f", "json")
    assert found.code == 1
    assert found.data[0]["stream"] == lease_id
    assert cli("journal", "rebuild").code == 0
    assert cli("journal", "check").code == 0


def test_the_doctor_compares_a_part_and_says_since_when_all_was(cli: Cli, climate: Climate, lease_id: str) -> None:
    def said() -> tuple[str, str]:
        (one,) = [one for one in cli("doctor", "-f", "json").data if one["check"] == "journal"]
        return one["is"], one["says"]

    level, says = said()
    assert (level, "each stream was compared since" in says) == ("good", True)
    with climate.engine.begin() as conn:
        conn.execute(text("UPDATE allocations SET state = 'released'"))
    level, says = said()
    assert (level, "1 streams differ" in says, f"{lease_id} allocations" in says) == ("BAD", True, True)


def test_what_cannot_be_mended_is_shown(cli: Cli, climate: Climate, lease_id: str) -> None:
    with climate.engine.begin() as conn:
        conn.execute(text(OF_A_NEWER_RELEASE), {"id": lease_id})
    ran = cli("journal", "rebuild", "-f", "json")
    assert (ran.code, [one["stream"] for one in ran.data]) == (1, [lease_id])
    assert "a LeasePraised, cannot be read by this release" in ran.data[0]["difference"]


def test_the_facts_of_a_lease_are_reported(cli: Cli, lease_id: str) -> None:
    told = cli("journal", "show", lease_id, "-f", "json").data
    assert [line["kind"] for line in told] == ["LeaseCreated"]
    assert told[0]["at"] == "2030-01-01T12:00:00Z"


def test_a_lease_is_shown_as_it_was(cli: Cli, climate: Climate, clock: Clock, lease_id: str) -> None:
    clock.forward(minutes=10)
    leases.delete(climate, MEMBER, UUID(lease_id))
    before = cli("journal", "show", lease_id, "--at", "2030-01-01T12:05:00Z", "-f", "json").data
    assert (before["name"], before["status"]) == ("one", "PENDING")
    assert cli("journal", "show", lease_id, "-f", "value", "-c", "kind").out.splitlines()[-1] == "LeaseDeleted"


def test_a_lease_that_never_was_is_not_found(cli: Cli) -> None:
    assert cli("journal", "show", "00000000-0000-0000-0000-000000000000").code == 3


def test_a_database_that_is_away_is_unreachable(cli: Cli, environ: dict[str, str]) -> None:
    environ["CLIMATE_DATABASE_URL"] = "postgresql://one:hidden@127.0.0.1:1/none"
    ran = cli("journal", "check")
    assert ran.code == 8
    assert ran.err.count("\n") == 2
    assert "hidden" not in ran.err


def test_a_lease_that_is_set_aside_is_shown_and_mended(cli: Cli, climate: Climate, lease_id: str) -> None:
    with climate.engine.begin() as conn:
        conn.execute(text("UPDATE leases SET name = 'forged'"))
        conn.execute(text("INSERT INTO leases_set_aside SELECT id, created_at, 'ValueError: broken' FROM leases"))
    found = cli("event", "set-aside", "-f", "json").data
    assert [(one["lease_id"], one["reason"]) for one in found] == [(lease_id, "ValueError: broken")]
    (told,) = [one for one in cli("doctor", "-f", "json").data if lease_id in one["says"] and one["check"] == "events"]
    assert (told["is"], "`climate event mend`" in told["says"]) == ("BAD", True)
    assert cli("event", "mend", "nothing").code == 2
    assert cli("event", "mend").code == 0
    assert cli("event", "set-aside", "-f", "json").data == []
    assert cli("journal", "check").code == 0


def test_the_mending_goes_on_after_a_journal_that_cannot_be_read(
    cli: Cli, climate: Climate, clock: Clock, lease_id: str
) -> None:
    order = LeaseRequest("two", clock.time + timedelta(hours=1), clock.time + timedelta(hours=2), reservations=[HOST])
    unread, unknown = str(leases.create(climate, MEMBER, order).id), "00000000-0000-0000-0000-000000000000"
    with climate.engine.begin() as conn:
        conn.execute(text(OF_A_NEWER_RELEASE), {"id": unread})
        aside = "INSERT INTO leases_set_aside SELECT id, created_at, 'ValueError: broken' FROM leases"
        conn.execute(text(aside))
    ran = cli("event", "mend", unknown, unread, lease_id)
    assert ran.code != 0
    assert unknown in ran.err
    assert f"the journal of lease {unread} cannot be read" in ran.out + ran.err
    assert f"the rows of lease {lease_id} were rebuilt" in ran.out + ran.err
    assert [one["lease_id"] for one in cli("event", "set-aside", "-f", "json").data] == [unread]


LONG_AGO = """
    UPDATE leases SET updated_at = now() - interval '400 days', start_date = start_date - interval '10 years',
        end_date = end_date - interval '10 years'
"""


def test_leases_of_long_ago_are_archived_and_shown_still(
    cli: Cli, climate: Climate, lease_id: str, environ: dict[str, str], tmp_path: Path
) -> None:
    environ["CLIMATE_ARCHIVE_DIR"] = str(tmp_path / "kept")
    leases.delete(climate, MEMBER, UUID(lease_id))
    before = cli("journal", "show", lease_id, "-f", "json").data
    with climate.engine.begin() as conn:
        conn.execute(text(LONG_AGO))
    ran = cli("journal", "archive", "--older-than", "365d")
    assert ran.code == 0, ran.err
    assert "leases archived: 1, series: 0 (4 facts, 1 files); kept: 0" in ran.out + ran.err
    assert len(list((tmp_path / "kept").glob("*.jsonl.gz"))) == 1
    assert cli("journal", "show", lease_id, "-f", "json").data == before
    assert cli("journal", "check").code == 0


def _archives(cli: Cli) -> list[str]:
    """Return what the doctor says of archives."""
    return [one["says"] for one in cli("doctor", "-f", "json").data if one["check"] == "archives"]


def test_an_archive_whose_file_is_away_is_named_and_can_be_declared_lost(
    cli: Cli, climate: Climate, lease_id: str, environ: dict[str, str], tmp_path: Path
) -> None:
    environ["CLIMATE_ARCHIVE_DIR"] = str(tmp_path / "kept")
    leases.delete(climate, MEMBER, UUID(lease_id))
    with climate.engine.begin() as conn:
        conn.execute(text(LONG_AGO))
    assert cli("journal", "archive", "--older-than", "365d").code == 0
    (path,) = (tmp_path / "kept").glob("*.jsonl.gz")
    path.unlink()
    with climate.engine.begin() as conn:
        conn.execute(text("UPDATE archives SET state = 'written'"))
    ran = cli("journal", "archive", "--older-than", "365d")
    assert (ran.code, path.name in ran.err, "climate journal lost" in ran.err) == (1, True, True)
    assert [path.name in says for says in _archives(cli)] == [True]
    ran = cli("journal", "lost", path.name)
    assert (ran.code, "without history: 1" in ran.out + ran.err) == (0, True)
    assert _archives(cli) == []
    assert cli("journal", "archive", "--older-than", "365d").code == 0
    assert "no archive is named" in cli("journal", "lost", path.name).err


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("--older-than", "10d"), "--older-than must be at least 60d"),
        (("--older-than", "soon"), "not a duration"),
        ((), "--older-than"),
    ],
)
def test_an_archive_of_the_wrong_age_is_refused(cli: Cli, arguments: tuple[str, ...], told: str) -> None:
    ran = cli("journal", "archive", *arguments)
    assert ran.code != 0
    assert told in ran.err


def test_a_folder_that_cannot_be_written_is_reported(
    cli: Cli, climate: Climate, lease_id: str, environ: dict[str, str], tmp_path: Path
) -> None:
    environ["CLIMATE_ARCHIVE_DIR"] = str(tmp_path / "file" / "below")
    leases.delete(climate, MEMBER, UUID(lease_id))
    with climate.engine.begin() as conn:
        conn.execute(text(LONG_AGO))
    (tmp_path / "file").write_text("")
    ran = cli("journal", "archive", "--older-than", "365d")
    assert ran.code == 1
    assert "the archive cannot be written" in ran.err
    with climate.engine.connect() as conn:
        assert conn.scalar(text("SELECT count(*) FROM leases")) == 1
