"""Operations at the top cell act in the cell of the server, over three cells with databases of their own."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any
from uuid import uuid4

import pytest
from sqlalchemy import text

from climate.compute import server_operations
from climate.compute.cells.builds import top_cell_servers
from climate.compute.cells.errors import CellServiceAPIMethodNotFound, CellTimeout, InstanceUnknownCell
from climate.compute.cells.messaging import send
from climate.compute.cells.messaging.messages import UP
from climate.compute.cells.servers import allowed_methods, methods, proxy, sync
from climate.compute.errors import BadRequest, Busy, Conflict, Forbidden, NotFound, QuotaExceeded
from climate.compute.metadata import guest_metadata
from climate.compute.models import keypair
from climate.compute.models.image import ACTIVE, Image
from climate.compute.models.server import (
    DELETE,
    PAUSE,
    REBOOT,
    REBOOT_HARD,
    REBUILD,
    RESUME,
    REVERT,
    START,
    STOP,
    SUSPEND,
    UNPAUSE,
    Server,
)
from climate.compute.nodes import services
from climate.compute.projects import quotas
from climate.compute.servers import actions
from climate.compute.servers.rebuild import Rebuilt
from climate.compute.store.cells import servers
from climate.compute.store.projects import flavors, images, keypairs
from climate.compute.store.servers import tasks
from climate.compute.store.servers.lists import Listing
from climate.compute.virt import Guest
from climate.compute.virt.in_memory import MemoryDriver
from tests.compute.cells.server_tree import LEAF, LEAF_PATH, TOP, ServerTree, server_tree, who
from tests.compute.cells.tree import CellDatabases
from tests.compute.cloud_factory import HALF, TINY, request


@pytest.fixture(scope="module")
def standing(cell_databases: CellDatabases, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerTree]:
    with server_tree(cell_databases, tmp_path_factory.mktemp("cells")) as found:
        yield found


@pytest.fixture
def cells(standing: ServerTree) -> ServerTree:
    """One tree for all tests here, without servers."""
    standing.clear()
    return standing


def test_a_server_of_a_grandchild_is_seen_at_the_top_and_in_no_other_cell(cells: ServerTree) -> None:
    server = cells.boot()
    assert (server.status, server.service_host) == ("ACTIVE", LEAF_PATH)
    assert server.addresses == cells.leaf.look(server.id).addresses
    middle = cells.tree.places["right"]
    assert middle.count("compute_servers") == middle.count("compute_cell_servers") == 0
    assert cells.tree.places[TOP].count("compute_servers") == 0


def test_each_task_is_done_in_the_cell(cells: ServerTree) -> None:
    server = cells.boot()
    for task, status in (
        (STOP, "SHUTOFF"),
        (START, "ACTIVE"),
        (PAUSE, "PAUSED"),
        (UNPAUSE, "ACTIVE"),
        (SUSPEND, "SUSPENDED"),
        (RESUME, "ACTIVE"),
        (REBOOT, "ACTIVE"),
        (STOP, "SHUTOFF"),
        (REBOOT_HARD, "ACTIVE"),
    ):
        proxy.request_task(cells.top, who(server), task)
        assert cells.seen(server.id).task == task
        assert cells.leaf.look(server.id).task is None
        cells.settle()
        found, there = cells.seen(server.id), cells.leaf.look(server.id)
        assert (found.status, found.task) == (there.status, there.task) == (status, None)


def test_what_the_state_does_not_allow_is_refused_at_the_top(cells: ServerTree) -> None:
    server = cells.boot()
    with pytest.raises(Conflict, match="vm_state active"):
        proxy.request_task(cells.top, who(server), START)
    proxy.request_task(cells.top, who(server), STOP)
    with pytest.raises(Busy, match="powering-off"):
        proxy.request_task(cells.top, who(server), PAUSE)
    proxy.request_task(cells.top, who(server), STOP)
    cells.settle()
    with pytest.raises(NotFound):
        proxy.request_task(cells.top, who(server, "another"), STOP)


def test_a_server_is_deleted_in_its_cell_and_then_at_the_top(cells: ServerTree) -> None:
    server = cells.boot()
    proxy.request_task(cells.top, who(server), DELETE)
    assert cells.seen(server.id).task == DELETE
    cells.settle()
    assert cells.at_top(server.id) is None
    with pytest.raises(NotFound):
        cells.leaf.look(server.id)


def test_words_metadata_and_lock_are_kept_at_the_top_and_sent_to_the_cell(cells: ServerTree) -> None:
    server = cells.boot(metadata={"a": "1"})
    shown = proxy.describe(cells.top, who(server), {"name": "other", "description": "d"})
    assert (shown.name, shown.description) == ("other", "d")
    assert proxy.set_metadata(cells.top, who(server), lambda there: {**there, "b": "2"}) == {"a": "1", "b": "2"}
    proxy.lock(cells.top, who(server), "mine")
    with pytest.raises(Conflict, match="is locked"):
        proxy.request_task(cells.top, who(server), STOP)
    cells.settle()
    for found in (cells.seen(server.id), cells.leaf.look(server.id)):
        assert (found.name, found.description, found.metadata) == ("other", "d", {"a": "1", "b": "2"})
        assert (found.locked_by, found.locked_reason) == ("owner", "mine")
    proxy.unlock(cells.top, who(server))
    cells.settle()
    assert cells.leaf.look(server.id).locked_by is None
    proxy.lock(cells.top, replace(who(server, None), by={"project_id": "x", "user_id": "x", "request_id": "x"}), None)
    with pytest.raises(Forbidden):
        proxy.unlock(cells.top, who(server))


def test_a_server_is_resized_confirmed_and_reverted_in_its_cell(cells: ServerTree) -> None:
    server = cells.boot()
    with pytest.raises(BadRequest, match="already"):
        proxy.resize(cells.top, who(server), TINY)
    for last in (proxy.confirm, lambda compute, asks: proxy.request_task(compute, asks, REVERT)):
        proxy.resize(cells.top, who(server), HALF)
        cells.settle()
        assert cells.seen(server.id).status == "VERIFY_RESIZE"
        last(cells.top, who(server))
        cells.settle()
        proxy_flavor = cells.seen(server.id).flavor.name
        if proxy_flavor == HALF.name:
            proxy.resize(cells.top, who(server), TINY)
            cells.settle()
            proxy.confirm(cells.top, who(server))
            cells.settle()
    assert cells.seen(server.id).flavor.name == cells.leaf.look(server.id).flavor.name == TINY.name
    with pytest.raises(Conflict, match="confirmResize"):
        proxy.confirm(cells.top, who(server))


def test_a_command_that_the_cell_refuses_is_reported_in_the_list_of_actions(cells: ServerTree) -> None:
    server = cells.boot()
    huge = replace(HALF, id="gone", name="gone")
    proxy.resize(cells.top, who(server), huge)
    assert cells.seen(server.id).task == "resize_migrating"
    cells.settle()
    found = cells.seen(server.id)
    assert (found.status, found.task, found.flavor.name) == ("ACTIVE", None, TINY.name)
    with cells.top.engine.connect() as conn:
        newest = tasks.notes(conn, server.id)[0]
    assert (newest["action"], newest["message"]) == ("resize", "Error")


def test_shelving_and_rebuilding_are_done_in_the_cell(cells: ServerTree) -> None:
    server = cells.boot()
    image = shared_image(cells)
    proxy.rebuild(cells.top, who(server), Rebuilt(image, name="again"))
    cells.settle()
    assert (cells.seen(server.id).name, cells.seen(server.id).image_id) == ("again", image)
    assert cells.leaf.look(server.id).name == "again"
    proxy.shelve(cells.top, who(server))
    cells.settle()
    assert cells.seen(server.id).status == cells.leaf.look(server.id).status == "SHELVED_OFFLOADED"
    proxy.unshelve(cells.top, who(server), None)
    cells.settle()
    assert cells.seen(server.id).status == cells.leaf.look(server.id).status == "ACTIVE"


def test_rebuild_brings_the_key_pair_and_the_user_data_to_the_cell(cells: ServerTree) -> None:
    server, image = cells.boot(), shared_image(cells)
    public = keypair.generate("top").public
    with cells.top.engine.begin() as conn:
        keypairs.add(conn, server.user_id, "laptop", public, "")
    rebuild(cells, server, image, key_name="laptop", user_data="ZWNobw==")
    assert cells.seen(server.id).key_name == "laptop"
    cells.settle()
    assert (cells.seen(server.id).key_name, cells.seen(server.id).task) == ("laptop", None)
    assert boot_data(cells, server) == (("laptop", public), b"echo")
    rebuild(cells, server, image)
    cells.settle()
    assert boot_data(cells, server) == (("laptop", public), b"echo")
    rebuild(cells, server, image, key_name=None, user_data=None)
    cells.settle()
    assert (boot_data(cells, server), cells.seen(server.id).key_name) == ((None, None), None)


def test_rebuild_that_the_cell_refuses_leaves_the_key_pair(cells: ServerTree) -> None:
    server = cells.boot()
    rebuild(cells, server, str(uuid4()), key_name="laptop", user_data="ZWNobw==")
    cells.settle()
    assert cells.seen(server.id).key_name is None
    assert boot_data(cells, server) == (None, None)


def test_rebuild_of_a_top_cell_of_an_older_release_is_carried_out(cells: ServerTree) -> None:
    server, image = cells.boot(), shared_image(cells)
    args = {"image_id": image, "image_name": "shared", "name": "again", "metadata": None, "description": None}
    proxy.cast(cells.top, who(server), proxy.Command("rebuild", args=args, task=REBUILD))
    cells.settle()
    assert (cells.leaf.look(server.id).name, cells.seen(server.id).status) == ("again", "ACTIVE")


def rebuild(cells: ServerTree, server: Server, image_id: str, **data: str | None) -> None:
    proxy.rebuild(cells.top, who(server), Rebuilt(image_id, boot_data=data))


def boot_data(cells: ServerTree, server: Server) -> tuple[tuple[str, str] | None, bytes | None]:
    """The key pair and the user data that the guest in the cell reads."""
    with cells.leaf.compute.engine.connect() as conn:
        found = guest_metadata.gathered(cells.leaf.compute, conn, cells.leaf.look(server.id))
    return found.key, found.user_data


def shared_image(cells: ServerTree) -> str:
    """An image that the top and the leaf have by the same name."""
    for compute, image_id in ((cells.top, services.IMAGE_ID), (cells.leaf.compute, str(uuid4()))):
        with compute.engine.begin() as conn:
            images.insert(conn, Image(image_id, "shared", None, ACTIVE, "public", "raw", "bare", 0, None))
    return services.IMAGE_ID


def test_calls_bring_the_value_of_the_cell(cells: ServerTree) -> None:
    server = cells.boot()
    with cells.running():
        assert proxy.console(cells.top, who(server), 3) == cells.leaf.driver.console(
            _guest(cells.leaf.look(server.id)), 3
        )
        ports = proxy.interfaces(cells.top, who(server))
        assert [port.addresses for port in ports] == [(server.addresses[0].address,)]
        image = proxy.create_image(cells.top, who(server), "snap", {})
        with pytest.raises(NotFound, match="no interface"):
            proxy.detach(cells.top, who(server), str(uuid4()))
    cells.settle()
    assert cells.leaf.count("compute_images", f"id = '{image}' AND status = 'active'") == 1


class _Serial(MemoryDriver):
    """Nodes whose consoles begin with what a serial line prints at power-on."""

    def console(self, guest: Guest, lines: int | None) -> str:
        return "\0login:"


def test_a_console_may_print_characters_that_no_message_can_hold(cells: ServerTree) -> None:
    server = cells.boot()
    before = cells.leaf.compute
    cells.leaf.compute = replace(before, driver=_Serial(cells.leaf.driver.specs))
    try:
        with cells.running():
            assert proxy.console(cells.top, who(server), None) == "\N{REPLACEMENT CHARACTER}login:"
    finally:
        cells.leaf.compute = before


def _guest(server: Server) -> Any:
    from climate.compute.virt import Guest

    return Guest(server.id, server.name, server.node or "", 1, 512, 1, None, {})


def test_a_call_that_gets_no_answer_times_out_and_is_not_run_later(cells: ServerTree) -> None:
    server = cells.boot()
    top = replace(cells.top, cells=replace(cells.top.cells, call_timeout=0.05))
    with pytest.raises(CellTimeout):
        proxy.create_image(top, who(server), "late", {})
    cells.settle()
    assert cells.leaf.count("compute_images", "name = 'late'") == 0


def test_only_methods_of_the_list_can_be_run(cells: ServerTree) -> None:
    server = cells.boot()
    order = methods.order_of(server.id, "drop_everything", {}, who(server).by)
    with cells.running(), pytest.raises(CellServiceAPIMethodNotFound, match="drop_everything"):
        send.call(cells.top, LEAF_PATH, methods.RUN, order, 20)
    assert not {"drop_everything", "__init__"} & (set(allowed_methods.COMMANDS) | set(allowed_methods.CALLS))


def test_a_server_that_its_cell_does_not_have_is_destroyed_at_the_top(cells: ServerTree) -> None:
    server = cells.boot()
    with cells.leaf.compute.engine.begin() as conn:
        conn.execute(text("SET LOCAL session_replication_role = replica"))  # behind the triggers' back
        conn.execute(text("DELETE FROM compute_vifs"))
        conn.execute(text("DELETE FROM compute_servers"))
    assert cells.at_top(server.id) is not None
    with cells.running(), pytest.raises(NotFound):
        proxy.interfaces(cells.top, who(server))
    cells.settle()
    assert cells.at_top(server.id) is None


@pytest.mark.parametrize("late", [1, 2])
def test_a_command_that_comes_again_or_too_late_is_not_run(cells: ServerTree, late: int) -> None:
    server = cells.boot()
    proxy.request_task(cells.top, who(server), STOP)
    cells.settle()
    proxy.request_task(cells.top, who(server), START)
    cells.settle()
    order = methods.order_of(server.id, "stop", {}, who(server).by, late)
    with cells.running(), pytest.raises(Conflict, match="was run"):
        send.call(cells.top, LEAF_PATH, methods.RUN, order, 20)
    cells.settle()
    assert cells.leaf.look(server.id).status == "ACTIVE"


def test_a_report_from_before_a_command_does_not_hide_its_task(cells: ServerTree) -> None:
    server = cells.boot()
    actions.request_task(cells.leaf.compute, server.id, PAUSE)
    proxy.request_task(cells.top, who(server), STOP)
    methods.report_changes(cells.leaf.compute)
    report = replace(cells.leaf.look(server.id))
    cells.leaf.settle()
    methods.report_changes(cells.leaf.compute)
    for name in (LEAF, "right", "top"):  # the reports go up, and nothing comes down
        cells.tree._of(name)
    assert report.task == PAUSE
    assert cells.seen(server.id).task == STOP
    cells.settle()
    found, there = cells.seen(server.id), cells.leaf.look(server.id)
    assert (found.status, found.task) == (there.status, there.task)


def begun(cells: ServerTree, **wanted: Any) -> list[Server]:
    with cells.top.engine.begin() as conn:
        ids = top_cell_servers.begun(cells.top, conn, request(**wanted), "r-12345678")
    return [cells.seen(server_id) for server_id in ids]


def test_nothing_but_deleting_is_done_while_the_cell_is_not_known(cells: ServerTree) -> None:
    server = begun(cells)[0]
    assert (cells.seen(server.id).status, cells.seen(server.id).task) == ("BUILD", "scheduling")
    with pytest.raises(Conflict, match="building"):
        proxy.request_task(cells.top, who(server), STOP)
    with pytest.raises(InstanceUnknownCell, match=f"Cell is not known for instance {server.id}"):
        proxy.console(cells.top, who(server), None)
    assert proxy.describe(cells.top, who(server), {"name": "other"}).name == "other"
    assert proxy.set_metadata(cells.top, who(server), lambda there: {"a": "b"}) == {"a": "b"}
    cells.settle()


@pytest.mark.parametrize("delete_type", [methods.HARD, methods.SOFT])
def test_ce_14_a_server_of_an_unknown_cell_is_deleted_everywhere(cells: ServerTree, delete_type: str) -> None:
    server = begun(cells)[0]
    made = cells.leaf.boot_one()
    _rename_id(cells, made.id, server.id)
    proxy.delete(cells.top, who(server), delete_type)
    assert cells.at_top(server.id) is None
    cells.tree.settle()
    assert cells.leaf.count("compute_servers") == 0
    cells.settle()
    assert cells.at_top(server.id) is None


def test_a_build_that_reaches_its_cell_after_the_deletion_is_deleted_there(cells: ServerTree) -> None:
    server = begun(cells)[0]
    proxy.delete(cells.top, who(server))
    cells.settle()
    made = cells.leaf.boot_one()
    _rename_id(cells, made.id, server.id)
    cells.settle()
    assert cells.leaf.count("compute_servers") == 0
    assert cells.at_top(server.id) is None


def _rename_id(cells: ServerTree, present: str, wanted: str) -> None:
    """Give a server of the leaf the id that the top has chosen."""
    with cells.leaf.compute.engine.begin() as conn:
        conn.execute(text("SET LOCAL session_replication_role = replica"))
        for table, column in (
            ("compute_servers", "id"),
            ("compute_vifs", "server_id"),
            ("compute_addresses", "server_id"),
            ("compute_cell_changes", "server_id"),
        ):
            conn.execute(
                text(f"UPDATE {table} SET {column} = CAST(:wanted AS uuid) WHERE {column} = CAST(:present AS uuid)"),
                {"wanted": wanted, "present": present},
            )
    cells.leaf.driver.guests[wanted] = cells.leaf.driver.guests.pop(present)


def test_a_build_that_no_cell_takes_ends_in_error_unless_a_cell_reports_it(cells: ServerTree) -> None:
    lost, taken = begun(cells, count=2)
    made = cells.leaf.boot_one()
    _rename_id(cells, made.id, taken.id)
    cells.settle()
    with cells.top.engine.begin() as conn:
        assert top_cell_servers.failed(cells.top, conn, [lost.id, taken.id], "No cells available") == {lost.id}
    assert cells.seen(taken.id).status == "ACTIVE"
    found = cells.seen(lost.id)
    assert (found.status, (found.fault or {})["message"]) == ("ERROR", "No cells available")
    proxy.request_task(cells.top, who(found), DELETE)
    assert cells.at_top(lost.id) is None


def test_ce_13_reports_of_the_leaf_change_the_database_of_the_top_only(cells: ServerTree) -> None:
    server = begun(cells)[0]
    with cells.leaf.compute.engine.begin() as conn:
        told = {"instances": [server.id], "message": "no node", "id": 7}
        send.broadcast(cells.leaf.compute, conn, UP, sync.FAULT, told)
    cells.settle()
    assert (cells.seen(server.id).status, (cells.seen(server.id).fault or {})["message"]) == ("ERROR", "no node")
    gone = cells.boot()
    with cells.leaf.compute.engine.begin() as conn:
        send.broadcast(cells.leaf.compute, conn, UP, sync.DESTROY, {"instances": [gone.id]})
    cells.settle()
    assert cells.at_top(gone.id) is None
    for name in ("right", LEAF):
        assert cells.tree.places[name].count("compute_cell_servers") == 0


def test_the_quota_of_the_top_counts_the_servers_of_all_cells(cells: ServerTree) -> None:
    cells.boot()
    cells.tree.places["right"].boot_one()
    cells.settle()
    begun(cells, count=2)
    used = quotas.quota_usage(cells.top, "demo").used
    assert (used["instances"], used["cores"], used["ram_mb"]) == (4, 4, 2048)
    quotas.change(cells.top, "demo", {"instances": 4})
    with pytest.raises(QuotaExceeded, match="already used 4 of 4 instances"):
        begun(cells)


FILTERS: list[tuple[dict[str, Any], Callable[[Server], bool]]] = [
    ({"project_id": "demo"}, lambda server: True),
    ({"project_id": "other"}, lambda server: False),
    ({"name": "^s$"}, lambda server: server.name == "s"),
    ({"vm_states": ["SHUTOFF"]}, lambda server: server.status == "SHUTOFF"),
    ({"host": LEAF_PATH}, lambda server: server.service_host == LEAF_PATH),
    ({"zone": "nova"}, lambda server: True),
    ({"ip": "^10[.]10[.]0[.]"}, lambda server: True),
    ({"ip": "^192"}, lambda server: False),
    ({"flavor": "h"}, lambda server: server.flavor.id == "h"),
    ({"locked": True}, lambda server: False),
]


def test_lists_at_the_top_take_the_filters_of_lists(cells: ServerTree) -> None:
    cells.leaf.boot_one(name="s")
    stopped = cells.boot(name="t", flavor=HALF)
    gone = cells.boot(name="gone")
    proxy.request_task(cells.top, who(gone), DELETE)
    proxy.request_task(cells.top, who(stopped), STOP)
    cells.tree.places["right"].boot_one(name="u")
    cells.settle()
    everything = server_operations.listed(cells.top, Listing())
    assert sorted(server.name for server in everything) == ["s", "t", "u"]
    for wanted, fits in FILTERS:
        found = server_operations.listed(cells.top, Listing(wanted))
        assert {server.id for server in found} == {server.id for server in everything if fits(server)}, wanted


def test_lists_at_the_top_have_pages_and_orders(cells: ServerTree) -> None:
    for name in ("b", "a", "c"):
        cells.leaf.boot_one(name=name)
    cells.settle()
    for key in ("display_name", "host", "node", "availability_zone", "created_at", "uuid"):
        names: list[str] = []
        marker = None
        while page := server_operations.listed(cells.top, Listing(order=((key, False),), marker=marker, limit=1)):
            names, marker = [*names, page[0].name], page[0].id
        assert sorted(names) == ["a", "b", "c"]
    with pytest.raises(NotFound):
        server_operations.listed(cells.top, Listing(marker=str(uuid4())))


def test_tombstones_are_forgotten_after_a_while(cells: ServerTree) -> None:
    server = cells.boot()
    proxy.request_task(cells.top, who(server), DELETE)
    cells.settle()
    with cells.top.engine.begin() as conn:
        now = cells.top.now(conn)
        assert servers.forget(conn, now.replace(year=now.year - 1)) == 0
        assert servers.forget(conn, now) == 1


def test_the_flavor_of_a_resize_is_found_by_its_name(cells: ServerTree) -> None:
    with cells.leaf.compute.engine.begin() as conn:
        assert allowed_methods.find_flavor(conn, "another id", HALF.name).id == "h"
        assert allowed_methods.find_flavor(conn, "t", HALF.name).id == "h"
        flavors.insert(conn, replace(HALF, id="h2", name="half2"))
        with pytest.raises(BadRequest, match="has no flavor 'none'"):
            allowed_methods.find_flavor(conn, "t", "none")
