"""One service, many nodes: what is left of the vectors of cloud.md G.7 beside those of services and drivers."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from climate.compute.errors import BadRequest, VirtError
from climate.compute.images import image_data
from climate.compute.models.image import Image
from climate.compute.models.node import NodeSpec
from climate.compute.models.server import ACTIVE
from climate.compute.nodes import services
from climate.compute.reservations import pools
from climate.compute.virt import Guest
from climate.compute.virt.in_memory import MemoryDriver
from climate.compute.virt.multi_node import MultiNodeDriver
from tests.compute.cloud_factory import HALF, SERVICE, Place, node, place

FAKE = {"vcpus": 1, "memory_mb": 8192, "local_gb": 1028}


def cluster(*specs: NodeSpec) -> MultiNodeDriver:
    return MultiNodeDriver(lambda: specs, {"memory": MemoryDriver()})


@pytest.mark.parametrize("names", [["xyz"], ["aaa", "bbb"]])
def test_one_driver_tells_of_one_node_or_of_several_and_of_no_other(names: Sequence[str]) -> None:
    """VD-1."""
    driver = cluster(*(node(name, **FAKE) for name in names))
    assert [(spec.name, spec.memory_mb) for spec in driver.nodes()] == [(name, 8192) for name in names]
    assert not driver.knows_guests("xxx")
    with pytest.raises(VirtError, match="The resource xxx does not exist"):
        driver.run(Guest("00000000-0000-4000-8000-000000000000", "s", "xxx"))


def test_the_room_of_the_chosen_node_is_taken_and_of_no_other(scratch: str, tmp_path: Path) -> None:
    """VD-4: of N1 with 1 GB and N2 with 8 GB it is N2 of service H; the ring goes to H."""
    with place(scratch, tmp_path, [node("N1", memory_mb=1024), node("N2", memory_mb=8192)]) as here:
        server = here.boot(HALF)[0]
        assert (server.service_host, server.node) == (SERVICE, "N2")
        assert here.rings.rung == [(SERVICE, server.id)]
        assert (here.used("N1"), here.used("N2")) == ((0, 0, 0), (4, 4096, 10240))


def test_another_node_of_the_same_service_may_still_be_tried(scratch: str, tmp_path: Path) -> None:
    """VD-5: retries go by (host, node)."""
    with place(scratch, tmp_path, [node("N1"), node("N2", memory_mb=65536)]) as here:
        here.driver.broken = {"N2"}
        server = here.boot_one()
        assert (server.status, server.service_host, server.node) == (ACTIVE, SERVICE, "N1")
        assert (here.used("N2"), here.drift()) == ((0, 0, 0), [])


def test_nodes_that_cannot_work_are_warned_of_and_the_others_are_there(here: Place) -> None:
    """VD-7; that a service of nothing else refuses to start where none can: tests/cli/operations/test_processes.py."""

    def seen(*specs: NodeSpec) -> list[str]:
        services.refresh(replace(here.compute, driver=cluster(*specs)))
        return [found.name for found in pools.nodes(here.compute)]

    with capture_logs() as said:
        assert seen(node("A"), node("B", driver="vcenter")) == ["A"]
    left_out = [line for line in said if line["event"] == "node skipped"]
    assert [(line["node"], line["log_level"]) for line in left_out] == [("B", "warning")]
    assert seen(node("B", driver="vcenter")) == []


def test_an_image_may_name_the_hypervisor_type_of_a_node_that_there_is(here: Place) -> None:
    asking = Image("i", "i", "demo", "active", "private", None, None, 0, None, {"hypervisor_type": "Homemade"})

    def checked(*specs: NodeSpec) -> None:
        services.refresh(replace(here.compute, driver=cluster(*specs)))
        with here.compute.engine.connect() as conn:
            image_data.check_words(conn, asking)

    with pytest.raises(BadRequest, match="'homemade'"):
        checked(node("A"))
    checked(node("A", hypervisor_type="homemade"))
