"""A cluster's ledger: a guest is read as it was written, whatever it has."""

import json
from dataclasses import fields, replace
from pathlib import Path

import pytest

from climate.compute.virt import Guest, Interface, State
from climate.compute.virt.guest_volumes import Attached
from climate.compute.virt.hypervisor_cluster.server_placements import (
    REST_SECONDS,
    Entry,
    LiveMove,
    Place,
    ServerPlacements,
)

WHOLE = Guest(
    "5f1c2a4e-0d7b-4f0e-9a38-1c6f6a1b2c3d",
    "web",
    "sum",
    vcpus=2,
    ram_mb=256,
    disk_gb=3,
    image=Path("/images/one"),
    carried=True,
    rescued=True,
    again=Path("/images/two"),
    properties={"os": "linux"},
    interfaces=(Interface("02:00:00:00:00:01", addresses=("10.0.0.2/24",)),),
    volumes=(Attached("v1", 0, Path("/volumes/v1")),),
    config={"openstack/latest/user_data": b"\x00\xff#cloud-config"},
)


def test_a_guest_is_read_as_it_was_written(tmp_path: Path) -> None:
    plain = Guest(WHOLE.id, "", "")
    assert [one.name for one in fields(Guest) if getattr(WHOLE, one.name) == getattr(plain, one.name)] == ["id"]
    ledger = ServerPlacements(tmp_path)
    entry = Entry(WHOLE, Place("near", "here"), State.RUNNING)
    ledger.write(entry)
    assert ServerPlacements(tmp_path).get(WHOLE.id) == entry


@pytest.mark.parametrize(("hours", "is_resting"), [(-1, False), (0, True), (1, False)])
def test_a_rest_ends_in_its_time_and_when_the_clock_is_set_back(hours: float, is_resting: bool) -> None:
    now = 1_800_000_000.0
    entry = Entry(WHOLE, Place("near", "here"), State.RUNNING, rests_until=now + REST_SECONDS)
    assert entry.is_resting(now + hours * 3600) == is_resting
    assert not replace(entry, rests_until=0.0).is_resting(now)


def test_an_entry_from_before_there_were_config_drives_is_read(tmp_path: Path) -> None:
    ledger = ServerPlacements(tmp_path)
    entry = Entry(WHOLE, Place("near", "here"), State.RUNNING)
    ledger.write(entry)
    file = tmp_path / f"{WHOLE.id}.json"
    said = json.loads(file.read_text(encoding="utf-8"))
    del said["guest"]["config"]
    file.write_text(json.dumps(said), encoding="utf-8")
    assert ledger.get(WHOLE.id) == replace(entry, guest=replace(WHOLE, config={}))


def test_an_entry_from_before_there_were_live_migrations_is_read(tmp_path: Path) -> None:
    ledger = ServerPlacements(tmp_path)
    entry = Entry(WHOLE, Place("near", "here"), State.RUNNING, moving=LiveMove(Place("far", "rack"), {"pid": "1 2"}))
    ledger.write(entry)
    assert ledger.get(WHOLE.id) == entry
    file = tmp_path / f"{WHOLE.id}.json"
    said = json.loads(file.read_text(encoding="utf-8"))
    del said["moving"], said["rests_until"]
    file.write_text(json.dumps(said), encoding="utf-8")
    assert ledger.get(WHOLE.id) == replace(entry, moving=None)
