"""The types of leases beside what the server declares and answers."""

from typing import Any

import pytest
from marshmallow import Schema

from api.reservation.leases import schema
from climate.cli.response_types import leases
from tests.cli.response_types.answer_types import differences, misfits, recorded

LEASE = "01a209fb-86b6-7881-8e18-1d459f33e582"


@pytest.mark.parametrize(
    ("kind", "declared"),
    [
        (leases.Lease, schema.LeaseOut),
        (leases.ReservationPart, schema.PartOut),
        (leases.LeaseEvent, schema.EventOut),
        (leases.Waiting, schema.WaitingOut),
        (leases.Sharing, schema.SharingOut),
        (leases.ParentLease, schema.ParentOut),
        (leases.Sublease, schema.SubleaseOut),
        (leases.LeaseEntry, schema.EntryOut),
        (leases.LeaseHost, schema.LeaseHostOut),
    ],
)
def test_a_type_has_the_keys_of_its_schema(kind: Any, declared: type[Schema]) -> None:
    assert differences(kind, declared) == []


def test_a_reservation_has_keys_of_its_plugin_besides() -> None:
    assert differences(leases.HeldReservation, schema.ReservationOut, whole=False) == []


@pytest.mark.parametrize(
    ("path", "key", "kind"),
    [
        ("/v1/leases", "leases", list[leases.Lease]),
        (f"/{LEASE}/history", "history", list[leases.LeaseEntry]),
        (f"/{LEASE}/hosts", "hosts", list[leases.LeaseHost]),
        ("/v1/events", "events", list[leases.ListedEvent]),
    ],
)
def test_recorded_answers_are_of_these_types(path: str, key: str, kind: Any) -> None:
    assert misfits(recorded(path, key), kind) == []


def test_a_value_of_another_type_is_found() -> None:
    lease = {**recorded("/v1/leases", "leases")[0], "degraded": None}
    del lease["name"]
    assert misfits(lease, leases.Lease) == [
        "answer has no name",
        "answer.degraded is None, and not <class 'bool'>",
    ]
