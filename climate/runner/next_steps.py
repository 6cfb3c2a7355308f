"""Last lines of the start of `climate up`: commands to type next in another terminal."""

import shlex
import shutil
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

CLOUDS = "clouds.yaml"


def next_steps(home: Path, environ: Mapping[str, str], *, demo: bool) -> Iterator[str]:
    """Return the lines; none if the home has no clouds.yaml, because its users are Keystone's."""
    clouds = home / CLOUDS
    if not clouds.is_file():
        return
    yield "Next, in another terminal:"
    own = Path(sys.executable).parent
    activate = own / "activate"
    if shutil.which("climate", path=environ.get("PATH")) != str(own / "climate") and activate.is_file():
        yield f"  . {shlex.quote(str(activate))}"
    yield f"  export OS_CLIENT_CONFIG_FILE={shlex.quote(str(clouds))} OS_CLOUD={'climate-demo' if demo else 'climate'}"
    yield "  climate lease create mine --hosts 1 --for 2h --wait" if demo else "  climate node list"
    yield "Ctrl-C stops climate."


def in_a_browser(home: Path, url: str, *, demo: bool) -> str:
    """Return the line with the address of the web pages, and where the password of a first user is."""
    user = "demo" if demo else "admin"
    password = home / f"{user}-password"
    return f"In a browser: {url}/" + (f" (user {user}, password in {password})" if password.is_file() else "")
