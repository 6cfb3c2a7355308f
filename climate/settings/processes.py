"""Settings of stores, processes and logs."""

from dataclasses import dataclass
from pathlib import Path

from climate.settings.setting_fields import setting


@dataclass(frozen=True)
class ProcessSettings:
    """Stores, addresses, processes and logs."""

    home: Path = setting(Path("var"), "Folder of all changing data: stores, servers, logs, clouds.yaml.")
    host: str = setting("127.0.0.1", "Address on which the web process listens.")
    port: int = setting(8000, "Port that serves all APIs.", 1, 65535)
    database_url: str = setting("", "URL of PostgreSQL 15 or newer; when empty, `climate up` starts its own.")
    redis_url: str = setting("", "URL of Redis 7 or Valkey; when empty, `climate up` starts its own.")
    pg_bin: str = setting(
        "", "Folder with PostgreSQL's programs for the server that `climate up` starts; searched before all others."
    )
    public_url: str = setting("", "Base of the URLs in the service catalog; when empty, http://HOST:PORT.")
    policy_file: str = setting(
        "", "Policy file in YAML or JSON; a path below CLIMATE_HOME, or from /; when empty, none."
    )
    token_seconds: int = setting(3600, "Lifetime of a token, in seconds.", 1)
    web_processes: int = setting(2, "Processes of the web server.", 1, 1000)
    web_threads: int = setting(8, "Threads of each process of the web server.", 1, 1000)
    upload_bytes_per_second: int = setting(
        65536, "Pace of uploads of images, in bytes per second; a slower one is given up while others wait.", 0
    )
    ready_needs: str = setting(
        "database, migrations, clock, broker, poller, events, workers, cells, disk",
        "Checks, by commas, whose failure makes /readyz answer 503; other failures are only reported.",
    )
    trusted_proxies: int = setting(
        0,
        "Reverse proxies before the web process that add to X-Forwarded-For; 0: the header is ignored.",
        0,
        10,
    )
    requests_per_second: float = setting(
        200.0, "Requests per second of a user to each web process; 0: no limit. Administrators have no limit."
    )
    worker_processes: int = setting(3, "Processes of the worker; rounds over hosts can occupy two of them.", 1, 1000)
    worker_queues: str = setting(
        "", "Queues of this worker, by commas: events, compute and resource types; when empty, all."
    )
    log_format: str = setting("console", "Format of log lines: console or json.", words=("console", "json"))
    log_level: str = setting(
        "INFO", "Lowest level of log lines: DEBUG, INFO, WARNING or ERROR.", words=("DEBUG", "INFO", "WARNING", "ERROR")
    )
