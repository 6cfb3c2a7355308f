"""All that can be set from outside.  Nothing else reads the environment."""

import os
import socket
from collections.abc import Mapping
from dataclasses import Field, dataclass, field, fields
from pathlib import Path
from typing import Any, Self


class SettingError(Exception):
    """A setting has a value that cannot be used."""


def _setting(default: Any, says: str, least: float = 0, most: float = 10**9, words: tuple[str, ...] = ()) -> Any:
    """A setting; numbers lie between `least` and `most`, texts are one of `words` where there are any."""
    return field(default=default, metadata={"says": says, "least": least, "most": most, "words": words})


@dataclass(frozen=True, slots=True)
class Settings:
    """One field per setting; the variable is CLIMATE_ and the field's name in capitals."""

    home: Path = _setting(Path("var"), "Where everything that changes is kept: stores, servers, logs, clouds.yaml.")
    host: str = _setting("127.0.0.1", "Address the web process listens on.")
    port: int = _setting(8000, "Port that serves all APIs.", 1, 65535)
    database_url: str = _setting("", "PostgreSQL 15 or newer; when empty, `climate up` starts an own one.")
    redis_url: str = _setting("", "Redis 7 or Valkey; when empty, `climate up` starts an own one.")
    pg_bin: str = _setting("", "Folder with the programs of PostgreSQL for the own one, before all other places.")
    public_url: str = _setting("", "Base of the URLs in the service catalog; when empty, http://HOST:PORT.")
    cleaning_time: int = _setting(0, "Seconds that a host is kept free before and after each lease.")
    minutes_before_end: int = _setting(
        60, "Default distance of before_end_lease from the end, in minutes; 0: no event."
    )
    max_lease_days: int = _setting(730, "Longest lease, in days.", 1, 36500)
    on_end: str = _setting("create_image, delete", "Default actions at the end of a virtual:instance reservation.")
    poll_seconds: float = _setting(1.0, "Longest sleep of the poller, in seconds.", 0.05, 60)
    claim_seconds: float = _setting(
        15.0, "A worker that has not been heard of for so long has lost its event, in seconds.", 1
    )
    step_seconds: float = _setting(300.0, "Longest time that one run of an event may take, in seconds.", 1)
    wait_seconds: float = _setting(600.0, "Longest time that an event waits for the cloud, in seconds.", 1)
    token_seconds: int = _setting(3600, "Life of a token, in seconds.", 1)
    compute_host: str = _setting("", "Name of the compute service that this worker is; when empty, the machine's name.")
    web_processes: int = _setting(2, "Processes of the web server.", 1, 1000)
    web_threads: int = _setting(8, "Threads of each of them.", 1, 1000)
    requests_per_second: float = _setting(
        0.0, "Requests that a user may make in a second of each web process; 0: as many as he likes."
    )
    worker_processes: int = _setting(2, "Processes of the worker.", 1, 1000)
    worker_queues: str = _setting(
        "", "What this worker does, of events, compute and the resource types, by commas; when empty, everything."
    )
    log_format: str = _setting("console", "console or json.", words=("console", "json"))
    log_level: str = _setting("INFO", "DEBUG, INFO, WARNING or ERROR.", words=("DEBUG", "INFO", "WARNING", "ERROR"))

    @classmethod
    def from_env(cls, environ: Mapping[str, str]) -> Self:
        """Settings from CLIMATE_* variables; SettingError names the first that cannot be used."""
        given = {
            f: environ[f"CLIMATE_{f.name.upper()}"] for f in fields(cls) if environ.get(f"CLIMATE_{f.name.upper()}")
        }
        return cls(**{f.name: _read(f, text) for f, text in given.items()})

    @property
    def base_url(self) -> str:
        return self.public_url.rstrip("/") or f"http://{self.host}:{self.port}"

    @property
    def service_host(self) -> str:
        return self.compute_host or socket.gethostname()


def _kind(setting: "Field[Any]") -> Any:
    return type(setting.default)


def _read(setting: "Field[Any]", text: str) -> Any:
    name, kind = f"CLIMATE_{setting.name.upper()}", _kind(setting)
    if issubclass(kind, Path):
        return Path(text)
    try:
        value = kind(text)
    except ValueError:
        raise SettingError(f"{name}={text!r} is not a number") from None
    bounds, words = setting.metadata, setting.metadata["words"]
    if kind is not str and not bounds["least"] <= value <= bounds["most"]:
        raise SettingError(f"{name}={text!r} must lie between {bounds['least']} and {bounds['most']}")
    if words and value not in words:
        raise SettingError(f"{name}={text!r} must be one of {', '.join(words)}")
    return value


def environment() -> Mapping[str, str]:
    """The environment of the process, for its entry point to hand on."""
    return dict(os.environ)
