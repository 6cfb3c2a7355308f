"""The types of hosts beside what the server declares and answers."""

from typing import Any

import pytest
from marshmallow import Schema

from api.reservation.hosts import maintenance, power_schema, schema
from api.reservation.pools import schema as pool_schema
from climate.cli.response_types import hosts
from tests.cli.response_types.answer_types import differences, misfits, recorded


@pytest.mark.parametrize(
    ("kind", "declared"),
    [
        (hosts.Host, schema.HostOut),
        (hosts.HostProperty, schema.PropertyListed),
        (hosts.Held, schema.HeldOut),
        (hosts.HostAllocation, schema.AllocationOut),
        (hosts.Place, pool_schema.PlaceOut),
        (hosts.Maintenance, maintenance.MaintenanceOut),
        (hosts.LeaseInTheWay, maintenance.InTheWayOut),
        (hosts.Power, power_schema.PowerOut),
        (hosts.HoursOff, power_schema.HoursOut),
        (hosts.PowerReport, power_schema.ReportOut),
    ],
)
def test_a_type_has_the_keys_of_its_schema(kind: Any, declared: type[Schema]) -> None:
    assert differences(kind, declared) == []


@pytest.mark.parametrize(
    ("path", "key", "kind"),
    [
        ("/v1/os-hosts", "hosts", list[hosts.Host]),
        ("/v1/os-hosts", "hosts", list[hosts.HostWithGpus]),
        ("/os-hosts/allocations", "allocations", list[hosts.HostAllocation]),
        ("/os-hosts/properties", "resource_properties", list[hosts.HostProperty]),
        ("/os-hosts/1/history", "history", list[hosts.HostEntry]),
        ("/maintenances", "maintenances", list[hosts.Maintenance]),
    ],
)
def test_recorded_answers_are_of_these_types(path: str, key: str, kind: Any) -> None:
    assert misfits(recorded(path, key), kind) == []
