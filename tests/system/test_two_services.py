"""A second compute service beside that of the stack: it joins, works, dies and clears up; its workers die at work."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from climate.compute.linux import processes
from climate.compute.models.node import NodeSpec
from climate.compute.virt.guest_folders import MARK
from tests.compute.virt.driver_cases import cannot
from tests.system.api_client import Api
from tests.system.second_service import NEW, SECOND, C, Second, boot, deadly, is_ready, second, service
from tests.system.stack import Stack, await_so


@pytest.fixture
def beside(stack: Stack, admin: Api, tmp_path: Path) -> Iterator[Second]:
    with second(stack, admin, tmp_path, NodeSpec("second-1", 4, 4096, 40)) as made:
        made.start()
        yield made


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_a_second_service_joins_works_dies_and_clears_up_after_itself(beside: Second, admin: Api) -> None:
    await_so(lambda: is_ready(admin), 300, "the second service")
    node = next(
        one for one in admin.read(f"{C}/os-hypervisors/detail")["hypervisors"] if one["service"]["host"] == SECOND
    )
    assert (node["hypervisor_hostname"], node["memory_mb_used"]) == ("second-1", 512)
    server_id = boot(admin, "nova::second-1")
    await_so(lambda: admin.read(f"{C}/servers/{server_id}")["server"]["status"] == "ACTIVE", 300, "the server")
    assert (beside.home / "servers" / server_id / "pid").exists()
    beside.stop()
    path = f"{C}/os-services/{service(admin)['id']}"
    assert admin.ask("PUT", path, {"forced_down": True}, **NEW).status_code == 200
    assert admin.ask("DELETE", path, **NEW).status_code == 409
    assert admin.ask("DELETE", f"{C}/servers/{server_id}").status_code == 204
    await_so(lambda: admin.ask("GET", f"{C}/servers/{server_id}").status_code == 404, 300, "the end of the server")
    left = beside.home / "servers" / server_id
    assert (left / "pid").exists()  # nobody was there to end the guest
    beside.start()
    await_so(lambda: not left.exists(), 300, "the end of its guest")


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize(
    ("driver", "program", "word"), [("qemu", "qemu-system-x86_64", "-uuid"), ("container", "bwrap", "--info-fd")]
)
def test_a_worker_that_dies_while_it_boots_a_server_is_replaced_and_there_is_one_guest(
    stack: Stack, admin: Api, tmp_path: Path, driver: str, program: str, word: str
) -> None:
    real = shutil.which(program) or cannot(f"{program} is not installed")
    more = deadly(tmp_path / "bin", program, word, str(real))
    with second(stack, admin, tmp_path, NodeSpec("second-1", 4, 4096, 40, driver=driver), more) as beside:
        beside.start()
        beside.start()
        await_so(lambda: is_ready(admin), 300, "the second service")
        server_id = boot(admin, "nova::second-1")
        await_so(lambda: beside.alive() == 1, 300, "the death of a worker")
        await_so(lambda: admin.read(f"{C}/servers/{server_id}")["server"]["status"] == "ACTIVE", 300, "the server")
        guests = list(processes.carrying({MARK: server_id}))
        assert guests
        assert len({os.getsid(pid.number) for pid in guests}) == 1
        assert admin.ask("DELETE", f"{C}/servers/{server_id}").status_code == 204
        await_so(lambda: admin.ask("GET", f"{C}/servers/{server_id}").status_code == 404, 300, "the end of the server")
        await_so(lambda: not list(processes.carrying({MARK: server_id})), 300, "the end of its guest")
