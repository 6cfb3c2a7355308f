"""A database without room is called a full disk: 507, nothing is promised, and readiness says so."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from sqlalchemy import Engine, text

from tests.api.compute.api_clients import Person, World, done, hours_away

FULL = """
    CREATE OR REPLACE FUNCTION no_room() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        RAISE EXCEPTION 'could not extend file "base/1/2": No space left on device' USING ERRCODE = '53100';
    END $$
"""


@contextmanager
def full(engine: Engine, table: str) -> Iterator[None]:
    """Refuse every new row of a table as Postgres does where its disk is full."""
    with engine.begin() as conn:
        conn.execute(text(FULL))
        conn.execute(text(f"CREATE TRIGGER no_room BEFORE INSERT ON {table} EXECUTE FUNCTION no_room()"))
    try:
        yield
    finally:
        with engine.begin() as conn:
            conn.execute(text(f"DROP TRIGGER no_room ON {table}"))


LEASE = {
    "name": "l",
    "start_date": "now",
    "end_date": hours_away(2),
    "reservations": [
        {"resource_type": "physical:host", "min": 1, "max": 1, "hypervisor_properties": "", "resource_properties": ""}
    ],
    "events": [],
}


def test_a_lease_that_cannot_be_written_is_507_and_not_promised(
    there: World, member: Person, caplog: pytest.LogCaptureFixture
) -> None:
    with full(there.climate.engine, "leases"), caplog.at_level(logging.ERROR):
        answers = [member("POST", "/reservation/v1/leases", LEASE) for _ in range(3)]
    assert {answer.status_code for answer in answers} == {507}
    assert answers[0].headers["Retry-After"] == "60"
    assert answers[0].json is not None
    assert answers[0].json["error_message"].startswith("The disk of the database is full; nothing was changed.")
    assert member.get("/reservation/v1/leases")["leases"] == []
    assert len([one for one in caplog.records if "disk full" in one.getMessage()]) == 1
    disk = member("GET", "/readyz").json["checks"]["disk"]
    assert not disk["ok"]
    assert disk["detail"].startswith("the disk of the database is full, a write failed 0 s ago")
    assert done(member("POST", "/reservation/v1/leases", LEASE), 201)["lease"]["name"] == "l"


@pytest.mark.parametrize(
    ("table", "path", "body"),
    [
        ("compute_servers", "/compute/v2.1/servers", None),
        ("compute_images", "/image/v2/images", {"name": "i", "disk_format": "raw", "container_format": "bare"}),
        ("compute_keypairs", "/compute/v2.1/os-keypairs", {"keypair": {"name": "k"}}),
    ],
)
def test_what_the_cloud_cannot_write_is_507_too(
    there: World, member: Person, table: str, path: str, body: dict[str, object] | None
) -> None:
    with full(there.climate.engine, table):
        answer = member.boot() if body is None else member("POST", path, body)
    assert answer.status_code == 507, answer.text
    assert "disk of the database is full" in answer.text
