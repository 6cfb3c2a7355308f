"""A running climate with the demo cloud, for browsers."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from tests.system.api_client import Api
from tests.system.stack import Stack
from tests.web_pages.chromium import NOWHERE

READER = "only-looks-at-it"
GPUS = '[">", "$gpu_count", "1"]'


@dataclass(frozen=True)
class Pages:
    """A stack, and who may sign in to it."""

    stack: Stack

    @property
    def url(self) -> str:
        return self.stack.url

    def climate(self, *words: str) -> str:
        """Run a command as the member of project demo, and return what it printed."""
        done = self.stack.command(*self.stack.program, *words, more={"OS_CLOUD": "climate-demo"})
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def furnish(self) -> dict[str, str]:
        """Create leases, servers and a hold; return the paths of the pages that have something to show."""
        self.climate("lease", "create", "training", "--hosts", "2", "--for", "2h", "--resource", GPUS, "--wait")
        self.climate("lease", "create", "evaluation", "--hosts", "1", "--start", "+3d", "--for", "2d")
        self.climate("lease", "create", "workshop", "--hosts", "3", "--start", "+5d", "--for", "1d")
        self.climate("boot", "node-1", "--flavor", "m1.large", "--image", "demo", "--lease", "training", "--wait")
        asleep = (
            "boot",
            "later",
            "--flavor",
            "m1.tiny",
            "--image",
            "demo",
            "--reserved",
            "--start",
            "+2h",
            "--for",
            "1h",
        )
        self.climate(*asleep)
        self.climate("find", "--hosts", "1", "--for", "2h", "--from", "+8d", "--hold", "1", "--name", "kept")
        daily = ("--start", "+9d", "--for", "2h", "--repeat", "FREQ=DAILY;COUNT=3")
        self.climate("lease", "create", "course", "--hosts", "1", *daily)
        self.climate("lease", "create", "crowd", "--hosts", "4", "--start", "+5d", "--for", "6h", "--wait-list")
        self.climate("lease", "create", "rest", "--hosts", "1", "--start", "+3d", "--for", "1d", "--preemptible")
        series = self._ids("series")["course"]
        leases = self._ids("lease")
        lease, soon = leases["training"], datetime.now(UTC) + timedelta(days=1)
        servers = self._ids("server")
        return {
            "home": "/ui/",
            "leases": "/ui/leases",
            "lease": f"/ui/leases/{lease}",
            "give hosts": f"/ui/leases/{lease}/subleases",
            "delete lease": f"/ui/leases/{lease}/delete",
            "waiting": f"/ui/leases/{leases['crowd']}",
            "preemptible": f"/ui/leases/{leases['rest']}",
            "as it was": f"/ui/leases/{lease}?step=1",
            "all series": "/ui/series",
            "series": f"/ui/series/{series}",
            "delete series": f"/ui/series/{series}/delete",
            "dates": f"/ui/series/new?hosts=3&length=6h&every=day&times=6&earliest={soon:%Y-%m-%dT%H:00}",
            "calendar": "/ui/calendar",
            "month": "/ui/calendar?span=744&group=zone",
            "three months": "/ui/calendar?span=2208&group=rack",
            "kiosk": "/ui/calendar?kiosk=1",
            "table": "/ui/calendar/table",
            "find": "/ui/find?q=2+hosts+gpu_count%3E1+6h+this+week",
            "nothing fits": "/ui/find?q=4+hosts+2h+tomorrow+please&hosts=4",
            "hold": f"/ui/holds/{leases['kept']}",
            "servers": "/ui/servers",
            "server": f"/ui/servers/{servers['node-1']}",
            "asleep": f"/ui/servers/{servers['later']}",
            "boot": "/ui/servers/new",
            "delete server": f"/ui/servers/{servers['node-1']}/delete",
            "usage": "/ui/usage",
            "notices": "/ui/notices",
            "settings": "/ui/settings",
            "error": NOWHERE,
        }

    def clear(self) -> None:
        """Delete all series, leases and holds of project demo."""
        for series in self._ids("series").values():
            self.climate("series", "delete", series)
        for lease in self._ids("lease").values():
            self.climate("lease", "delete", lease)

    def add_reader(self) -> None:
        """Add user `reader` with the password READER, who may look at project demo and change nothing."""
        api = Api(self.stack.home, "climate")
        roles = {one["name"]: one["id"] for one in api.read("/identity/v3/roles")["roles"]}
        projects = {one["name"]: one["id"] for one in api.read("/identity/v3/projects")["projects"]}
        made = api.ask("POST", "/identity/v3/users", {"user": {"name": "reader", "password": READER}})
        user = made.json()["user"]["id"]
        path = f"/identity/v3/projects/{projects['demo']}/users/{user}/roles/{roles['reader']}"
        assert api.ask("PUT", path).status_code == 204

    def id_of(self, noun: str, name: str) -> str:
        """Return the id of a lease, series or server of project demo."""
        return self._ids(noun)[name]

    def _ids(self, noun: str) -> dict[str, str]:
        return {one["name"]: one["id"] for one in json.loads(self.climate(noun, "list", "-f", "json"))}

    def password(self, user: str) -> str:
        """Return the password that the first start wrote for `admin` or `demo`."""
        return (self.stack.home / f"{user}-password").read_text(encoding="utf-8").strip()


@contextmanager
def running(home: Path, settings: Mapping[str, str] | None = None) -> Iterator[Pages]:
    """Start a climate with the demo cloud and these settings, and stop it in the end."""
    one = Stack(home, settings or {})
    try:
        one.start()
        yield Pages(one)
    finally:
        result = one.stop()
    assert result == 0, one.tail()
    assert one.left() == []
