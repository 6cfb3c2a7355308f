"""Answers as values: times have a zone, and what is not counted is None."""

from datetime import UTC, datetime

from climate.client import Availability, Server

OFFER = {
    "id": "sealed",
    "start_date": "2030-01-01T12:00:00.000000",
    "end_date": "2030-01-01T13:00:00.000000",
    "expires_at": "2030-01-01T11:10:00.000000",
    "reservations": [{"count": 2, "free": 3}, {"count": None, "free": None}],
}


def test_offers_have_times_in_utc_and_a_count_for_each_reservation() -> None:
    body = {
        "offers": [OFFER],
        "binding": None,
        "alternatives": [{"message": "fewer hosts", "offer": OFFER}],
        "free": [[{"time": "2030-01-01T12:00:00.000000", "free": 3}], None],
    }
    found = Availability.of(body)
    noon = datetime(2030, 1, 1, 12, tzinfo=UTC)
    assert (found.offers[0].start, found.offers[0].counts, found.offers[0].free) == (noon, [2, None], [3, None])
    assert found.alternatives[0][0] == "fewer hosts"
    assert found.free == [[(noon, 3)], None]
    assert "sealed" not in repr(found.offers[0])


def test_addresses_of_all_networks_are_listed() -> None:
    addresses = {"private": [{"addr": "10.0.0.2"}], "other": [{"addr": "10.1.0.2"}, {"addr": "2001:db8::2"}]}
    server = Server.of({"id": "1", "name": "node", "status": "ACTIVE", "addresses": addresses})
    assert server.addresses == ["10.0.0.2", "10.1.0.2", "2001:db8::2"]
