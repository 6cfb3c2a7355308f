"""A cluster is one node: it has the sum of its members, places servers on them, and keeps them running."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from climate.compute.errors import VirtError
from climate.compute.virt import Guest, Interface, State
from climate.compute.virt.guest_volumes import Attached
from climate.compute.virt.hypervisor_cluster.server_placements import ServerPlacements
from tests.compute.virt.hypervisor_cluster.machines import Lab


@pytest.fixture
def lab(tmp_path: Path) -> Lab:
    """A cluster of two members here."""
    made = Lab(tmp_path)
    made.member("a")
    made.member("b")
    return made


@pytest.fixture
def far(tmp_path: Path) -> Lab:
    """A cluster of three machines."""
    made = Lab(tmp_path)
    for name in ("m1", "m2", "m3"):
        made.member(name, here=False)
    return made


def sizes(lab: Lab) -> tuple[int, int, int]:
    return lab.node.vcpus, lab.node.memory_mb, lab.node.local_gb


def slots(lab: Lab) -> Any:
    return lab.node.stats["cluster"]["slots"]


def test_vd_8_the_node_is_the_sum_of_its_members_and_grows_with_them(lab: Lab) -> None:
    assert sizes(lab) == (8, 8192, 80)
    lab.member("c3", 8192)
    assert sizes(lab) == (12, 16384, 120)
    lab.here.pop("a")
    assert sizes(lab) == (8, 12288, 80)


def test_images_find_a_cluster_by_what_its_members_run(lab: Lab) -> None:
    assert lab.node.supported == lab.local.kinds()


def test_reserved_memory_is_that_of_all_members(lab: Lab) -> None:
    spec = replace(lab.read()[0], reserved_ram_mb=100, ram_ratio=1.5)
    node = replace(lab.driver, read_nodes=lambda: [spec]).nodes()[0]
    assert (node.reserved_ram_mb, node.ram_ratio) == (200, 1.5)
    assert [slot[1] for slot in node.stats["cluster"]["slots"]] == [4096, 4096]


def test_servers_go_where_most_memory_is_free_and_the_largest_free_slots_are_reported(lab: Lab) -> None:
    lab.member("b", 8192)
    first, second, third = lab.run(1024), lab.run(4096), lab.run(1024)
    assert [lab.where(one) for one in (first, second, third)] == ["a", "b", "a"]
    assert slots(lab) == [[4, 2048, 38], [4, 4096, 39]]
    assert lab.node.stats["cluster"]["taken_ram_mb"] == 6144


def test_what_fits_no_member_in_one_piece_is_refused(lab: Lab) -> None:
    lab.run(2048)
    lab.run(2048)
    with pytest.raises(VirtError, match="no member of the cluster has 3000 MB of memory, 1 VCPUs and 1 GB of disk"):
        lab.run(3000)
    assert len(lab.local.guests) == 2
    lab.run(2048)


def test_room_is_free_again_when_a_server_is_deleted(lab: Lab) -> None:
    guests = [lab.run(4096), lab.run(4096)]
    with pytest.raises(VirtError, match="no member"):
        lab.run(1)
    lab.driver.delete(guests[0].id)
    assert lab.where(lab.run(4096)) is not None


def test_a_new_driver_knows_what_is_where(lab: Lab) -> None:
    guest = lab.run()
    lab.driver.pause(guest)
    assert (lab.where(guest), lab.driver.states()[guest.id]) == ("a", State.PAUSED)
    lab.driver.unpause(guest)
    lab.driver.stop(guest)
    assert lab.driver.states()[guest.id] is State.DEAD
    assert slots(lab)[0] == [4, 3072, 39]


def test_the_interfaces_volumes_and_drive_of_a_server_outlast_verbs_that_come_without_them(
    lab: Lab, tmp_path: Path
) -> None:
    def known() -> Guest:
        entry = ServerPlacements.of(tmp_path, "c").get(bare.id)
        assert entry is not None
        return entry.guest

    bare = lab.guest()
    volumes, config = (Attached("v1", 0, tmp_path),), {"openstack/latest/user_data": b"#!"}
    whole = replace(bare, interfaces=(Interface("02:00:00:00:00:01"),), volumes=volumes, config=config)
    lab.driver.run(whole)
    lab.driver.pause(bare)
    lab.driver.unpause(bare)
    lab.driver.snapshot(bare, tmp_path / "copy")
    lab.driver.suspend(bare)
    lab.driver.stop(bare)
    assert known() == whole
    connected = replace(bare, interfaces=(Interface("02:00:00:00:00:02"),))
    lab.driver.rewire(connected)
    assert known() == replace(connected, config=config)


def test_a_server_whose_disk_was_carried_is_created_from_its_ordinary_image_later(lab: Lab, tmp_path: Path) -> None:
    guest = lab.guest(image=tmp_path / "carried", carried=True, again=tmp_path / "ordinary")
    lab.driver.run(guest)
    entry = ServerPlacements.of(tmp_path, "c").get(guest.id)
    assert entry is not None
    assert entry.guest == replace(guest, image=tmp_path / "ordinary", carried=False, again=None)


def test_a_server_that_grows_moves_within_its_machine(lab: Lab) -> None:
    guest, other = lab.run(1024), lab.run(1024)
    filler = lab.run(2048)
    assert (lab.where(guest), lab.where(other), lab.where(filler)) == ("a", "b", "a")
    lab.driver.stop(guest)
    lab.driver.run(replace(guest, ram_mb=3072))
    assert lab.where(guest) == "b"
    with pytest.raises(VirtError, match="no member"):
        lab.driver.run(replace(guest, ram_mb=3073))
    assert [slot[1] for slot in slots(lab)] == [2048, 0]


def test_servers_leave_members_that_are_in_maintenance_or_gone(lab: Lab) -> None:
    guests = [lab.run() for _ in range(4)]
    lab.here["a"] = replace(lab.here["a"], maintenance=True)
    assert sizes(lab) == (4, 4096, 40)
    calls = len(lab.local.calls)
    lab.driver.clean_up()
    assert {lab.where(one) for one in guests} == {"b"}
    assert len(lab.local.calls) == calls, "on one machine nothing is stopped"
    lab.member("d")
    lab.here.pop("b")
    lab.driver.clean_up()
    assert {lab.where(one) for one in guests} == {"d"}


def test_a_member_that_leaves_keeps_what_has_no_room_elsewhere(lab: Lab) -> None:
    guests = [lab.run(3000), lab.run(3000)]
    lab.here.pop("a")
    lab.driver.clean_up()
    assert [lab.where(one) for one in guests] == ["a", "b"]
    lab.driver.pause(guests[0])
    lab.driver.delete(guests[0].id)
    assert lab.driver.states() == {guests[1].id: State.RUNNING}


def test_servers_move_for_balance_until_the_shares_are_close(lab: Lab) -> None:
    guests = [lab.run(1000) for _ in range(4)]
    lab.member("c3")
    lab.driver.clean_up()
    assert sorted(str(lab.where(one)) for one in guests) == ["a", "a", "b", "c3"]
    lab.driver.clean_up()
    assert sorted(str(lab.where(one)) for one in guests) == ["a", "a", "b", "c3"]


def test_nothing_moves_for_balance_where_it_is_switched_off(lab: Lab) -> None:
    guests = [lab.run(1000) for _ in range(4)]
    lab.terms = replace(lab.terms, balance_percent=0)
    lab.member("c3")
    lab.driver.clean_up()
    assert {lab.where(one) for one in guests} == {"a", "b"}


def test_nothing_moves_between_machines_for_balance(far: Lab) -> None:
    guests = [far.run(1000) for _ in range(6)]
    before = [far.where(one) for one in guests]
    far.member("m4", here=False)
    far.driver.clean_up()
    assert [far.where(one) for one in guests] == before


def test_servers_of_a_failed_member_are_restarted_on_others(far: Lab) -> None:
    guest, paused, ready, off = far.run(512), far.run(), far.run(), far.guest()
    far.driver.prepare(off)
    far.driver.pause(paused)
    far.driver.stop(ready)
    failed = str(far.where(guest))
    far.machines[failed].driver.up = False
    assert far.node.memory_mb == 8192
    assert far.driver.states()[guest.id] is State.RUNNING, "until it is restarted nobody takes it for dead"
    far.driver.clean_up()
    assert far.where(guest) != failed
    assert far.copies(guest) == [far.where(guest)]
    assert far.driver.states()[guest.id] is State.RUNNING
    assert [len(far.copies(one)) for one in (paused, ready, off)] == [1, 0, 0]
    far.machines[failed].driver.up = True
    far.driver.clean_up()
    assert guest.id not in far.machines[failed].driver.guests, "what the member had left of it is gone"


def test_a_prepared_server_is_prepared_on_another_member_and_its_wake_is_no_other(far: Lab) -> None:
    guest = far.guest()
    far.driver.prepare(guest)
    failed = str(far.where(guest))
    far.machines[failed].driver.up = False
    far.driver.clean_up()
    assert far.where(guest) != failed
    assert far.driver.states()[guest.id] is State.PREPARED
    far.machines[str(far.where(guest))].driver.up = False
    far.driver.run(guest)
    assert len(far.copies(guest)) == 1


def test_the_disk_of_a_server_that_is_shut_off_stays_with_its_member(far: Lab) -> None:
    guest = far.run()
    far.driver.stop(guest)
    failed = str(far.where(guest))
    far.machines[failed].driver.up = False
    far.driver.clean_up()
    assert far.where(guest) == failed
    with pytest.raises(VirtError, match="cannot be reached: its service is down"):
        far.driver.run(guest)
    far.machines[failed].driver.up = True
    far.driver.run(guest)
    assert far.copies(guest) == [failed]


def test_nothing_is_restarted_while_its_member_cannot_be_fenced(far: Lab) -> None:
    guest = far.run()
    failed = str(far.where(guest))
    far.machines[failed].driver.up = False
    far.machines[failed].can_fence = False
    for _ in range(2):
        far.driver.clean_up()
        assert (far.where(guest), far.copies(guest)) == (failed, [failed])
    far.machines[failed].can_fence = True
    far.driver.clean_up()
    assert far.copies(guest) == [far.where(guest)] != [failed]


def test_nothing_is_restarted_where_that_is_not_wanted(far: Lab) -> None:
    far.terms = replace(far.terms, restart=False)
    guest = far.run()
    failed = str(far.where(guest))
    far.machines[failed].driver.up = False
    far.driver.clean_up()
    assert (far.where(guest), far.copies(guest)) == (failed, [failed])


def test_what_has_no_room_elsewhere_waits_for_it(far: Lab) -> None:
    guests = [far.run(4000) for _ in range(3)]
    failed = str(far.where(guests[0]))
    far.machines[failed].driver.up = False
    far.driver.clean_up()
    assert far.where(guests[0]) == failed
    far.member("m4", here=False)
    far.driver.clean_up()
    assert (far.where(guests[0]), far.copies(guests[0])) == ("m4", ["m4"])


@pytest.mark.parametrize("returns", [False, True])
def test_a_restart_that_was_broken_off_is_ended_by_the_next_round(far: Lab, returns: bool) -> None:
    guest = far.run()
    failed = str(far.where(guest))
    far.machines[failed].driver.up = False
    others = [one.driver for name, one in far.machines.items() if name != failed]
    for driver in others:
        driver.broken_off = "run"
    with pytest.raises(KeyboardInterrupt):
        far.driver.clean_up()
    far.machines[failed].driver.up = returns
    far.driver.clean_up()
    assert len(far.copies(guest)) == 1
    assert far.copies(guest) == [far.where(guest)] != [failed]


def test_a_guest_on_a_member_that_fails_cannot_be_worked_on_or_deleted_unseen(far: Lab) -> None:
    guest = far.run()
    far.terms = replace(far.terms, restart=False)
    far.machines[str(far.where(guest))].driver.up = False
    for verb in (far.driver.pause, far.driver.stop):
        with pytest.raises(VirtError, match="cannot be reached: its service is down"):
            verb(guest)
    with pytest.raises(VirtError, match="cannot be reached"):
        far.driver.delete(guest.id)
    assert far.where(guest) is not None


def test_whoever_works_on_a_server_is_not_disturbed_by_the_round(far: Lab) -> None:
    guest = far.run()
    failed = str(far.where(guest))
    far.machines[failed].driver.up = False
    cluster = far.driver._clusters()[0]
    with cluster.placements.holding(guest.id):
        far.driver.clean_up()
        assert far.copies(guest) == [failed]
    far.driver.clean_up()
    assert far.copies(guest) != [failed]


def test_an_entry_that_cannot_be_read_is_no_server(lab: Lab, tmp_path: Path) -> None:
    guest, other = lab.run(), lab.run()
    file = next(tmp_path.rglob(f"{guest.id}.json"))
    file.write_text("{")
    assert lab.driver.states() == {other.id: State.RUNNING}
    lab.driver.run(guest)
    assert lab.driver.states().keys() == {guest.id, other.id}


def failed(lab: Lab, guest: Guest) -> str:
    """Let the member of a server fail; its name."""
    name = str(lab.where(guest))
    lab.machines[name].driver.up = False
    return name


def test_a_server_is_restarted_with_its_disk_where_another_member_finds_it(far: Lab) -> None:
    far.share("m1", "m2")
    guest = next(one for one in (far.run(), far.run(), far.run()) if far.where(one) == "m2")
    disk = far.machines["m2"].driver.disks[guest.id]
    far.member("m4", 9999, here=False)  # it has more room, and not the disk
    failed(far, guest)
    far.driver.clean_up()
    assert (far.where(guest), far.copies(guest)) == ("m1", ["m1"])
    assert far.machines["m1"].driver.disks[guest.id] == disk
    assert far.driver.restarts() == {guest.id: True}
    far.driver.reported([guest.id])
    assert far.driver.restarts() == {}


def test_a_disk_that_is_shared_is_not_cleared_away_when_its_old_member_comes_back(far: Lab) -> None:
    far.share("m1", "m2", "m3")
    guest = far.run()
    name = failed(far, guest)
    far.driver.clean_up()
    disk = far.machines[name].driver.disks[guest.id]
    far.machines[name].driver.up = True
    far.driver.clean_up()
    assert far.machines[str(far.where(guest))].driver.disks[guest.id] == disk


def test_a_server_without_a_shared_disk_is_recreated_and_that_is_reported(far: Lab) -> None:
    guest = far.run()
    name = failed(far, guest)
    far.driver.clean_up()
    assert far.driver.restarts() == {guest.id: False}
    again = failed(far, guest)
    far.machines[name].driver.up = True
    far.machines[name].driver.disks[guest.id] = "of its first stay"
    for other in set(far.machines) - {name, again}:
        far.machines[other].driver.up = False
    far.driver.clean_up()
    assert (far.where(guest), far.copies(guest)) == (name, [name])
    assert far.machines[name].driver.disks[guest.id] != "of its first stay"


def test_a_member_that_only_claims_to_share_disks_makes_the_server_anew_and_that_is_reported(far: Lab) -> None:
    for one in far.machines.values():
        one.disks = "a copy of one folder"
    guest = far.run()
    failed(far, guest)
    far.driver.clean_up()
    assert far.driver.restarts() == {guest.id: False}
    assert len(far.copies(guest)) == 1


@pytest.mark.parametrize("verb", ["stop", "suspend"])
def test_a_server_that_does_not_run_follows_its_disk_and_is_not_started(far: Lab, verb: str) -> None:
    far.share("m1", "m2", "m3")
    guest = far.run()
    getattr(far.driver, verb)(guest)
    name = failed(far, guest)
    far.driver.clean_up()
    assert far.where(guest) != name
    assert (far.copies(guest), far.driver.restarts()) == ([], {})
    far.driver.run(guest)
    assert far.copies(guest) == [far.where(guest)]


def test_a_server_is_started_where_its_disk_is_though_its_member_has_failed(far: Lab) -> None:
    far.share("m1", "m2", "m3")
    guest = far.run()
    far.driver.stop(guest)
    name = failed(far, guest)
    disk = far.machines[name].driver.disks[guest.id]
    far.driver.run(guest)
    assert far.copies(guest) == [far.where(guest)] != [name]
    assert far.machines[str(far.where(guest))].driver.disks[guest.id] == disk


def test_a_server_waits_for_room_where_its_disk_is(far: Lab) -> None:
    far.share("m1", "m2")
    guests = [far.run(4000) for _ in range(3)]
    guest = next(one for one in guests if far.where(one) == "m1")
    far.member("m4", here=False)
    failed(far, guest)
    far.driver.clean_up()
    assert far.where(guest) == "m1"
    other = next(one for one in guests if far.where(one) == "m2")
    far.driver.delete(other.id)
    far.driver.clean_up()
    assert (far.where(guest), far.driver.restarts()) == ("m2", {guest.id: True})


def test_a_disk_is_not_used_elsewhere_before_its_member_is_fenced(far: Lab) -> None:
    far.share("m1", "m2", "m3")
    guest = far.run()
    name = failed(far, guest)
    far.machines[name].can_fence = False
    far.driver.clean_up()
    assert (far.where(guest), far.copies(guest)) == (name, [name])
    far.machines[name].can_fence = True
    far.driver.clean_up()
    assert far.copies(guest) == [far.where(guest)] != [name]
