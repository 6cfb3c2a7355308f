"""Processes of an OpenStack end together, the stores last."""

from pathlib import Path

import psutil

from tests.real_openstack.layout import Layout
from tests.system.stack import await_so

SERVICE = """
trap 'kill -0 {store} && touch met-store; wait; exit' TERM
sleep 600 &
touch ready
wait
"""


def test_services_end_with_their_children_before_the_stores(tmp_path: Path) -> None:
    layout = Layout(tmp_path)
    layout.start("mariadb", "sleep", "600")
    store = layout.running["mariadb"]
    for name in ("nova", "h1"):
        layout.start(name, "sh", "-c", SERVICE.format(store=store.pid))
    folders = [layout.folder("work", name) for name in ("nova", "h1")]
    await_so(lambda: all((each / "ready").exists() for each in folders), 60, "the start of the services")
    services = [psutil.Process(layout.running[name].pid) for name in ("nova", "h1")]
    families = [one for each in services for one in (each, *each.children())]
    assert len(families) == 4
    layout.stop_all()
    assert layout.running == {}
    assert [one for one in families if one.is_running()] == []
    assert [(each / "met-store").exists() for each in folders] == [True, True]
    assert store.poll() is not None
