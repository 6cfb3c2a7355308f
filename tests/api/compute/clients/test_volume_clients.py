"""Volumes by the openstack client: listed, shown, given to servers and taken from them."""

from uuid import uuid4

import pytest

from climate.compute import volumes
from climate.compute.servers import volume_attachments
from tests.api.compute.clients.conftest import Person
from tests.compute.served_cloud import Served
from tests.system.stack import await_so

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("cloud")]


def test_volumes_of_a_reservation(cloud: Served, boss: Person, demo: Person) -> None:
    compute, pool = cloud.here.compute, str(uuid4())
    project = demo.read("token issue")["project_id"]
    volumes.ensure(compute, volumes.ReservedVolume(pool, 1, project, "local", "ssd", 1), 1)
    (one,) = demo.read("volume list")
    assert (one["Status"], one["Size"]) == ("available", 1)
    assert demo.read(f"volume show {one['Name']}")["type"] == "ssd"
    assert boss.read("volume list") == []
    assert len(boss.read("volume list --all-projects")) == 1
    demo("server create --flavor m1.tiny --image demo with-volume")
    demo.sees("with-volume", "ACTIVE")
    demo(f"server add volume with-volume {one['Name']}")
    await_so(lambda: demo.read("volume list")[0]["Status"] == "in-use", 60, "the volume to be in use")
    assert one["ID"] in str(demo.read("server show with-volume")["volumes_attached"])
    assert [row["Volume ID"] for row in demo.read("server volume list with-volume")] == [one["ID"]]
    assert "409" in demo.refused(f"volume delete {one['Name']}")
    demo(f"server remove volume with-volume {one['Name']}")
    await_so(lambda: demo.read("volume list")[0]["Status"] == "available", 60, "the volume to be free")
    volume_attachments.drop(compute, pool, 2, keep=True)
    demo(f"volume delete {one['Name']}")
    assert demo.read("volume list") == []
    demo("server delete --wait with-volume")


def test_limits_and_quotas_know_of_volumes(demo: Person) -> None:
    assert {"totalVolumesUsed", "total_volumes_used"} & set(demo.names("limits show --absolute"))
    assert {row["Resource"]: row["Limit"] for row in demo.read("quota show")}["gigabytes"] == -1
