"""climate clouds: the entries of clouds.yaml, and its recovery."""

from collections.abc import Mapping

import click

from climate.cli.accounts.admin_password import check_home, print_written
from climate.cli.connection import clouds
from climate.cli.connection.session import current
from climate.cli.errors import ERROR, Failure
from climate.cli.options import listed

COLUMNS = ("name", "user", "project", "auth_url", "file")


@click.group("clouds")
def group() -> None:
    """The entries of clouds.yaml, and its recovery."""


@group.command("list")
@listed
def list_() -> None:
    """List the clouds that commands find in the files clouds.yaml, without passwords."""
    session = current()
    paths = clouds.files(session.environ, session.settings.home)
    files = {path.resolve(): path for path in reversed(list(paths))}
    rows = [
        _row(name, entry, str(file))
        for file in reversed(files.values())
        for name, entry in clouds.entries(file).items()
        if isinstance(entry, Mapping)
    ]
    session.show_all(rows, COLUMNS)


@group.command("write")
@click.option("--url", help="URL of the APIs; by default that in the file, or that of the settings.")
def write(url: str | None) -> None:
    """Write the clouds `climate` and `climate-demo` to CLIMATE_HOME/clouds.yaml, and keep its other entries.

    The passwords are those in the file, or else the initial ones in CLIMATE_HOME/admin-password and demo-password.
    If the administrator's was changed since, `climate admin-password reset` writes the file with a new one.
    """
    session = current()
    check_home(session.settings)
    if url is not None:
        clouds.check_url(url, "--url")
    from climate.identity.authentication import recovery

    troubles: list[str] = []
    address = recovery.write_clouds(
        session.settings, troubles.append, (url or "").rstrip("/").removesuffix("/identity/v3")
    )
    if troubles:
        raise Failure("; ".join(troubles), ERROR, "`climate admin-password reset` sets a password, and writes the file")
    print_written(session.settings, address)


def _row(name: object, entry: Mapping[str, object], file: str) -> dict[str, object]:
    auth = entry.get("auth")
    auth = auth if isinstance(auth, Mapping) else {}
    credential = auth.get("application_credential_name") or auth.get("application_credential_id")
    user = auth.get("username") or auth.get("user_id") or (f"credential {credential}" if credential else None)
    project = auth.get("project_name") or auth.get("project_id")
    return {"name": str(name), "user": user, "project": project, "auth_url": auth.get("auth_url"), "file": file}
