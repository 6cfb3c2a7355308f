"""What is done to a lease can be followed through the logs by the lease's id."""

import io
import json

from climate.cloud import Refused
from climate.cloud.fake import FakeCloud
from climate.context import Climate
from tests.api.reservation.api_clients import Person, run_due


def lines(log: io.StringIO, word: str) -> list[dict[str, object]]:
    """Lines of that event, and an empty log from here on."""
    found = [line for line in map(json.loads, log.getvalue().splitlines()) if line["event"] == word]
    log.truncate(0)
    log.seek(0)
    return found


def test_requests_say_which_lease_they_are_about(member: Person, log: io.StringIO) -> None:
    made = member.lease()
    assert [line["lease_id"] for line in lines(log, "request")] == [made["id"]]
    member("PUT", f"/leases/{made['id']}", {"name": "other"})
    member("GET", f"/leases/{made['id']}/history")
    member("DELETE", f"/leases/{made['id']}")
    assert {line["lease_id"] for line in lines(log, "request")} == {made["id"]}
    member("GET", "/leases")
    assert all("lease_id" not in line for line in lines(log, "request"))


def test_workers_say_which_lease_they_work_on(member: Person, climate: Climate, log: io.StringIO) -> None:
    cloud = climate.cloud
    assert isinstance(cloud, FakeCloud)
    made = member.lease(start_date="now")
    cloud.failures["lend"] = Refused("broken")
    run_due(climate)
    settled = lines(log, "event settled")
    assert [(line["lease_id"], line["kind"]) for line in settled] == [(made["id"], "start_lease")]
    assert settled[0]["event_id"]
