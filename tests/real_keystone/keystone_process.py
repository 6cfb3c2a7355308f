"""A real Keystone of its own, on SQLite, from a virtual environment with the package `keystone` and gunicorn."""

import os
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic
from typing import Any

import httpx

from tests.system.stack import free_port

ADMIN = "admin"
PASSWORD = "open-sesame"  # of every user
SECONDS = 600
WITHOUT = "no Keystone: `make test-keystone` installs one, or CLIMATE_TEST_KEYSTONE names a virtual environment with it"

CONFIGURATION = """
[database]
connection = sqlite:///{folder}/keystone.db
[token]
expiration = {expiration}
allow_expired_window = 3600
[fernet_tokens]
key_repository = {folder}/fernet
[fernet_receipts]
key_repository = {folder}/receipts
[credential]
key_repository = {folder}/credentials
[identity]
password_hash_rounds = 4
[cache]
enabled = false
"""

HOOK = """
import sys

keepalive = 600  # seconds: a client would send its next request on a connection that is being closed


def post_fork(server, worker):
    sys.argv = sys.argv[:1]  # oslo.config reads the arguments of the process, which are gunicorn's
"""


def installed() -> Path | None:
    """Return the folder of the programs, or None if Keystone is not installed."""
    root = Path(__file__).parent.parent.parent
    given = os.environ.get("CLIMATE_TEST_KEYSTONE")
    folders = [Path(given)] if given else [root / ".venv-keystone", root / ".venv-openstack"]
    for folder in (each / "bin" for each in folders):
        if (folder / "keystone-manage").exists() and (folder / "gunicorn").exists():
            return folder
    return None


@dataclass
class RealKeystone:
    """A running Keystone, and requests to it."""

    folder: Path
    port: int
    process: "subprocess.Popen[bytes] | None" = None
    tokens: dict[str, str] = field(default_factory=dict)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v3"

    def ask(self, method: str, path: str, token: str = "", **sent: Any) -> httpx.Response:
        headers = {**({"X-Auth-Token": token} if token else {}), **sent.pop("headers", {})}
        return httpx.request(method, self.url + path, headers=headers, timeout=60, trust_env=False, **sent)

    def sign_in(self, user: str, project: str) -> httpx.Response:
        domain = {"id": "default"}
        proof = {"user": {"name": user, "password": PASSWORD, "domain": domain}}
        identity = {"methods": ["password"], "password": proof}
        scope = {"project": {"name": project, "domain": domain}}
        return self.ask("POST", "/auth/tokens", json={"auth": {"identity": identity, "scope": scope}})

    def token(self, user: str, project: str) -> str:
        answer = self.sign_in(user, project)
        assert answer.status_code == 201, answer.text
        return answer.headers["X-Subject-Token"]

    def admin(self, method: str, path: str, **sent: Any) -> dict[str, Any]:
        """Return the answer to a request of the administrator."""
        answer = self.ask(method, path, self.tokens.get(ADMIN, ""), **sent)
        if answer.status_code == 401:
            self.tokens[ADMIN] = self.token(ADMIN, ADMIN)
            answer = self.ask(method, path, self.tokens[ADMIN], **sent)
        assert answer.status_code < 300, answer.text
        return dict(answer.json()) if answer.content else {}

    def role(self, name: str) -> str:
        """Return the id of a role, which is created if there is none of that name."""
        known = {one["name"]: one["id"] for one in self.admin("GET", "/roles")["roles"]}
        return known.get(name) or self.admin("POST", "/roles", json={"role": {"name": name}})["role"]["id"]

    def project(self, name: str) -> str:
        """Return the id of a project, which is created if there is none of that name."""
        found = self.admin("GET", "/projects", params={"name": name})["projects"]
        if found:
            return found[0]["id"]
        return self.admin("POST", "/projects", json={"project": {"name": name, "domain_id": "default"}})["project"][
            "id"
        ]

    def user(self, name: str, project: str, role: str) -> str:
        """Create a user with a role in a project, and return its id."""
        body = {"name": name, "password": PASSWORD, "domain_id": "default"}
        made = self.admin("POST", "/users", json={"user": body})["user"]["id"]
        self.admin("PUT", f"/projects/{self.project(project)}/users/{made}/roles/{self.role(role)}")
        return made

    def cloud(self, user: str, project: str, **more: object) -> dict[str, object]:
        """Return an entry of clouds.yaml."""
        auth = {"auth_url": self.url, "username": user, "password": PASSWORD, "project_name": project}
        return {"auth": {**auth, "user_domain_id": "default", "project_domain_id": "default"}, **more}

    def stop(self) -> None:
        if self.process is not None:
            self.process.terminate()
            self.process.wait(SECONDS)
            self.process = None


@contextmanager
def running(programs: Path, folder: Path) -> Iterator[RealKeystone]:
    """A new Keystone with an administrator, and a user `climate` with the role `service`."""
    there = RealKeystone(folder, free_port())
    conf = folder / "keystone.conf"
    _configure(there, 3600)
    (folder / "gunicorn.conf.py").write_text(HOOK)
    for name in ("fernet", "receipts", "credentials"):
        (folder / name).mkdir(mode=0o700)
    manage = [str(programs / "keystone-manage"), "--config-file", str(conf)]
    run_as = [f"--keystone-user={os.getuid()}", f"--keystone-group={os.getgid()}"]
    places = [f"--bootstrap-{one}-url={there.url}" for one in ("admin", "internal", "public")]
    for command in (
        ["db_sync"],
        ["fernet_setup", *run_as],
        ["credential_setup", *run_as],
        ["bootstrap", f"--bootstrap-password={PASSWORD}", "--bootstrap-region-id=RegionOne", *places],
    ):
        subprocess.run([*manage, *command], check=True, capture_output=True, timeout=600)
    start(programs, there)
    try:
        there.user("climate", "service", "service")
        yield there
    finally:
        there.stop()


def restart(programs: Path, there: RealKeystone, expiration: int = 3600) -> None:
    """Start the web server anew; tokens that it issues then expire after so many seconds."""
    there.stop()
    _configure(there, expiration)
    start(programs, there)


def _configure(there: RealKeystone, expiration: int) -> None:
    (there.folder / "keystone.conf").write_text(CONFIGURATION.format(folder=there.folder, expiration=expiration))


def start(programs: Path, there: RealKeystone) -> None:
    """Start the web server of a Keystone, and wait until it answers."""
    conf = there.folder / "keystone.conf"
    environ: Mapping[str, str] = {
        **os.environ,
        "HOME": str(there.folder),  # where gunicorn creates a control socket
        "OS_KEYSTONE_CONFIG_DIR": str(there.folder),
        "OS_KEYSTONE_CONFIG_FILES": str(conf),
    }
    command = [str(programs / "gunicorn"), "-c", str(there.folder / "gunicorn.conf.py"), "--threads", "4"]
    command += ["-b", f"127.0.0.1:{there.port}", "keystone.wsgi.api:application"]
    with (there.folder / "log").open("ab") as log:
        there.process = subprocess.Popen(command, env=environ, stdout=log, stderr=log)
    transport = httpx.HTTPTransport(retries=3)  # with pauses between them
    with httpx.Client(transport=transport, timeout=SECONDS, trust_env=False) as client:
        until = monotonic() + SECONDS
        while not _answers(client, there.url):
            if there.process.poll() is not None or monotonic() > until:
                raise AssertionError((there.folder / "log").read_text()[-2000:])


def _answers(client: httpx.Client, url: str) -> bool:
    try:
        return client.get(url).status_code == 200
    except httpx.TransportError:
        return False
