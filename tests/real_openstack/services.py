"""Services of one OpenStack: each in a process of its own, Keystone first."""

import base64
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx

from tests.real_openstack import accounts, configuration, stores
from tests.real_openstack.layout import BIN, HOSTS, PASSWORD, Layout
from tests.system.stack import await_so

APPLICATIONS = {
    "keystone": "keystone.wsgi.api:application",
    "placement": "placement.wsgi.api:application",
    "glance": "glance.wsgi.api:application",
    "neutron": "neutron.wsgi.api:application",
    "nova": "nova.wsgi.osapi_compute:application",
}
SETTINGS = Path(__file__).with_name("gunicorn_settings.py")
START_SECONDS = 900.0
SCHEDULER = "nova-scheduler"


@contextmanager
def running(home: Path, *filters: str) -> Iterator[Layout]:
    """Run an OpenStack as long as the block lasts; Nova has these filters beside its usual ones."""
    layout = Layout(home)
    try:
        start(layout, *filters)
        yield layout
    finally:
        layout.stop_all()


def start(layout: Layout, *filters: str) -> None:
    """Start everything, and wait until it answers."""
    configuration.write(layout, *filters)
    stores.start(layout)
    stores.fill(layout)
    _bootstrap(layout)
    for name in accounts.PROJECTS:
        _add_project(layout, name)
    _serve(layout, "keystone")
    accounts.create(layout)
    for name in ("placement", "glance", "neutron", "nova"):
        _serve(layout, name, wait=False)
    for name in ("nova-conductor", SCHEDULER):
        _start_with_nova(layout, name)
    for host in HOSTS:
        start_host(layout, host)
    for name in ("placement", "glance", "neutron", "nova"):
        _await(layout, name)
    accounts.furnish(layout, START_SECONDS)


def _add_project(layout: Layout, name: str) -> None:
    """Create a project with the id that the conformance tests know, which the API of Keystone does not allow."""
    columns = "(id, name, extra, description, enabled, domain_id, parent_id, is_domain)"
    values = f"('{name}', '{name}', '{{}}', '', 1, 'default', 'default', 0)"
    stores.sql(layout, f"insert into keystone.project {columns} values {values}")


def restart_scheduler(layout: Layout, **environ: str) -> None:
    """Start Nova's scheduler anew, and wait until it reports: it has read its file of settings then."""
    compute = accounts.connect(layout, "admin").compute

    def reported() -> str:
        (service,) = compute.services(binary=SCHEDULER)
        return str(service.updated_at)

    layout.stop(SCHEDULER)
    before = reported()
    _start_with_nova(layout, SCHEDULER, **environ)
    await_so(lambda: reported() != before, START_SECONDS, "the start of the scheduler")


def _start_with_nova(layout: Layout, name: str, **environ: str) -> None:
    layout.start(name, BIN / name, "--config-file", layout.etc("nova") / "nova.conf", **environ)


def start_host(layout: Layout, host: str) -> None:
    """Start a nova-compute."""
    layout.start(host, BIN / "nova-compute", "--config-file", layout.etc("nova") / f"{host}.conf")


def _bootstrap(layout: Layout) -> None:
    for folder in ("fernet", "credentials"):
        for number in ("0", "1"):  # the next key, and the primary one
            key = layout.folder(folder) / number
            key.write_bytes(base64.urlsafe_b64encode(os.urandom(32)))
            key.chmod(0o600)
    manage = (BIN / "keystone-manage", "--config-file", layout.etc("keystone") / "keystone.conf")
    url = layout.url("keystone", "/v3")
    faces = (word for face in ("admin", "internal", "public") for word in (f"--bootstrap-{face}-url", url))
    layout.run(*manage, "bootstrap", "--bootstrap-password", PASSWORD, *faces, "--bootstrap-region-id", "RegionOne")


def _serve(layout: Layout, name: str, *, wait: bool = True) -> None:
    etc = str(layout.etc(name))
    environ = {f"OS_{name.upper()}_CONFIG_DIR": etc}
    if name == "keystone":
        environ["OS_KEYSTONE_CONFIG_FILES"] = f"{etc}/keystone.conf"
    if name == "neutron":
        environ |= {"OS_NEUTRON_CONFIG_FILES": "neutron.conf", "NEUTRON_CONFIG_DIR": etc}
    own = ("-c", SETTINGS, "--workers", "1", "--threads", "8", "--timeout", "120", "--worker-class", "gthread")
    address = ("-b", f"127.0.0.1:{layout.ports[name]}")
    layout.start(name, BIN / "gunicorn", *own, *address, APPLICATIONS[name], **environ)
    if wait:
        _await(layout, name)


def _await(layout: Layout, name: str) -> None:
    def is_up() -> bool:
        assert layout.running[name].poll() is None, f"{name} ended: {layout.log(name)}"
        try:
            return httpx.get(layout.url(name, "/"), timeout=30, trust_env=False).status_code < 500
        except httpx.HTTPError:
            return False

    await_so(is_up, START_SECONDS, f"the start of {name}")
