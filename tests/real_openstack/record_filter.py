"""Write what Nova gives to scheduler filters: `python -m tests.real_openstack.record_filter`.

It starts an OpenStack of its own, whose scheduler has a filter that records. The filter of climate is tested with
these requests and states of hosts.
"""

import json
import shutil
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from climate.cloud import MAINTENANCE, Capacity, openstack
from climate.cloud.openstack.slots import class_of
from tests.deploy.host_states import HOST_STATES, POOL, SLOTS
from tests.real_openstack import accounts, services
from tests.real_openstack.configuration import BINDING
from tests.real_openstack.conftest import People
from tests.real_openstack.layout import Layout

RECORDER = Path(__file__).with_name("filter_recorder.py")


def main() -> None:
    """Record, with sorted keys so that a change of Nova shows as a small difference."""
    with TemporaryDirectory(prefix="openstack-") as folder, services.running(Path(folder), BINDING) as layout:
        found = _scenes(layout, _install(layout))
    HOST_STATES.write_text(json.dumps(found, indent=1, sort_keys=True) + "\n", encoding="utf-8")


def _install(layout: Layout) -> Path:
    """Start Nova's scheduler anew with the recorder as the first filter; return the file that it writes."""
    folder, conf = layout.folder("plugins"), layout.etc("nova") / "nova.conf"
    shutil.copy(RECORDER, folder)
    text = conf.read_text(encoding="utf-8").replace("enabled_filters = ", "enabled_filters = Recorder,")
    line = "available_filters = nova.scheduler.filters.all_filters\n"
    conf.write_text(text.replace(line, f"{line}available_filters = {RECORDER.stem}.Recorder\n"), encoding="utf-8")
    services.restart_scheduler(layout, PYTHONPATH=str(folder), FILTER_RECORDS=str(folder / "records"))
    return folder / "records"


def _scenes(layout: Layout, place: Path) -> dict[str, Any]:
    """Return requests and hosts by scene: their hosts are those of tests/deploy."""
    people, found = People(layout), dict[str, Any]()
    cloud = openstack.of("admin", str(accounts.clouds(layout)))

    def boot(scene: str, user: str, hint: str | None = None, flavor: str = "") -> None:
        place.unlink(missing_ok=True)
        people.boot(user, hint, flavor=flavor)
        lines = place.read_text(encoding="utf-8").splitlines()
        found[scene] = sorted(map(json.loads, lines), key=lambda line: str(line["host"]))

    for host in ("h1", "h2"):
        cloud.enrol(host, 1)
    cloud.lend(POOL, "demo", ["h1"], 1)
    boot("owner with hint", "demo", POOL)
    boot("owner without hint", "demo")
    boot("stranger with hint", "other", POOL)
    boot("hint of no reservation", "demo", SLOTS)
    cloud.close(POOL, 2)
    boot("closed pool", "demo", POOL)
    for server in people.servers():
        people.delete(server.id)
    cloud.take_back(POOL, ["h1"], 3)
    cloud.grant(Capacity(SLOTS, "demo", 1, 128, 1, {"h1": 2}), 4)
    # Placement would refuse the third server before the filters run.
    people.admin.compute.delete_flavor_extra_specs_property(SLOTS, f"resources:{class_of(SLOTS)}")
    boot("first in two slots", "demo", flavor=SLOTS)
    boot("second in two slots, with another hint", "demo", POOL, flavor=SLOTS)
    boot("third in two slots", "demo", flavor=SLOTS)
    boot("ordinary flavor beside slots", "demo")
    people.delete(next(each.id for each in people.servers() if each.hypervisor_hostname == "h1"))
    cloud.place("h1", MAINTENANCE, 5)
    boot("slots of a host in maintenance", "demo", flavor=SLOTS)
    return found


if __name__ == "__main__":
    main()
