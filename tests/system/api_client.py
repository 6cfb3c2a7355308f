"""A plain client of the API: knows its password, and fetches a new token when the old one is refused."""

import re
import threading
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import yaml


def moment(seconds: float) -> str:
    """A time in the form of ISO 8601 with seconds; `seconds` since 1970."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


@dataclass
class Api:
    """Speaks for one cloud of a clouds.yaml.  May be shared by threads."""

    home: Path
    cloud: str
    http: httpx.Client = field(init=False)
    project_id: str = ""
    _token: str = ""
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        entry = yaml.safe_load((self.home / "clouds.yaml").read_text(encoding="utf-8"))["clouds"][self.cloud]
        self._auth = entry["auth"]
        url = re.sub(r"/identity.*", "", self._auth["auth_url"])
        limits = httpx.Limits(max_connections=64, max_keepalive_connections=64)
        self.http = httpx.Client(base_url=url, timeout=300, trust_env=False, limits=limits)

    def sign_in(self) -> str:
        """A token of our own, kept until it is refused."""
        with self._lock:
            if not self._token:
                answer = self.http.post("/identity/v3/auth/tokens", json=self._credentials())
                assert answer.status_code == 201, answer.text
                self.project_id = answer.json()["token"]["project"]["id"]
                self._token = answer.headers["X-Subject-Token"]
            return self._token

    def _credentials(self) -> dict[str, Any]:
        auth, default = self._auth, {"name": "Default"}
        user = {"name": auth["username"], "password": auth["password"], "domain": default}
        scope = {"project": {"name": auth["project_name"], "domain": default}}
        return {"auth": {"identity": {"methods": ["password"], "password": {"user": user}}, "scope": scope}}

    def ask(self, method: str, path: str, body: Any = None, **headers: str) -> httpx.Response:
        """One request; a second one only where the token was refused."""
        for _ in range(2):
            token = self.sign_in()
            answer = self.http.request(method, path, json=body, headers={"X-Auth-Token": token, **headers})
            if answer.status_code != 401:
                break
            with self._lock:
                self._token = "" if self._token == token else self._token
        return answer

    def read(self, path: str) -> Any:
        """What a GET answers with; AssertionError where it is refused."""
        answer = self.ask("GET", path)
        assert answer.status_code == 200, f"{path}: {answer.status_code} {answer.text}"
        return answer.json()

    def all_of(self, path: str, kind: str) -> list[dict[str, Any]]:
        """A whole list, page by page."""
        found: list[dict[str, Any]] = []
        while True:
            after = f"&marker={found[-1]['id']}" if found else ""
            page = self.read(f"{path}?limit=500{after}")[kind]
            found += page
            if len(page) < 500:
                return found

    def close(self) -> None:
        self.http.close()


def host_lease(name: str, start: float | str, end: float, hosts: int = 1, properties: str = "") -> dict[str, Any]:
    """The body of a request for hosts; times in seconds since 1970, or `now`."""
    reservation = {
        "resource_type": "physical:host",
        "min": hosts,
        "max": hosts,
        "hypervisor_properties": "",
        "resource_properties": properties,
    }
    return {
        "name": name,
        "start_date": start if isinstance(start, str) else moment(start),
        "end_date": moment(end),
        "reservations": [reservation],
        "events": [],
    }


def key() -> str:
    return uuid4().hex
