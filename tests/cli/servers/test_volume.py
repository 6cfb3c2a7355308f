"""climate volume: what is sent, what is shown."""

from tests.cli.conftest import Cli
from tests.cli.fake_server import VOLUME, Wire

PATH = "/volume/v3/volumes"
SERVER = "3e1e3b51-6f1b-4b7a-9d2f-4d1c2b3a4f5e"


def test_volumes_are_shown_by_name_or_id(cli: Cli, wire: Wire) -> None:
    columns = ("-f", "value", "-c", "id", "-c", "reservation_id")
    assert cli("volume", "list", *columns).out == f"{VOLUME} r1\n"
    assert cli("volume", "list", "--all").code == 0
    assert wire.asked[-1].query == {"all_tenants": "true"}
    assert cli("volume", "show", "ssd-1", "-f", "value", "-c", "id").out == f"{VOLUME}\n"
    assert cli("volume", "show", VOLUME).code == 0
    assert wire.asked[-1].path == f"{PATH}/{VOLUME}"
    assert cli("volume", "show", "nothing").code == 3


def test_volumes_are_attached_and_detached(cli: Cli, wire: Wire) -> None:
    wire.servers[SERVER] = {"id": SERVER, "name": "web", "status": "ACTIVE", "build": None}
    ran = cli("volume", "attach", "ssd-1", "web", "-f", "value", "-c", "device")
    assert (ran.code, ran.out) == (0, "/dev/vdb\n"), ran.err
    path = f"/compute/v2.1/servers/{SERVER}/os-volume_attachments"
    assert wire.sent("POST", path).body == {"volumeAttachment": {"volumeId": VOLUME}}
    assert cli("volume", "detach", "ssd-1").code == 2, "no server has it"
    wire.volume_attached = True
    wire.servers["s1"] = wire.servers[SERVER]
    assert cli("volume", "detach", "ssd-1").code == 0
    assert (wire.asked[-1].method, wire.asked[-1].path) == (
        "DELETE",
        f"/compute/v2.1/servers/s1/os-volume_attachments/{VOLUME}",
    )


def test_volumes_are_deleted(cli: Cli, wire: Wire) -> None:
    assert cli("volume", "delete", "ssd-1", VOLUME).code == 0
    assert [asked.path for asked in wire.asked if asked.method == "DELETE"] == [f"{PATH}/{VOLUME}"] * 2
