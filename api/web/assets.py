"""Static files of the pages: read once, and served at URLs that change with their content."""

from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import cast

from flask import Flask, Response, current_app, request
from werkzeug.exceptions import NotFound

from api.web.blueprint import ANYBODY, PREFIX, page

FOLDER = Path(__file__).parent / "static"
ASSETS = "climate.web_assets"
"""Key of the static files among the application's extensions."""
TYPES: Mapping[str, str] = {
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
"""Content types of what is served; other files, such as licences, are for readers of the repository."""
FOREVER = "public, max-age=31536000, immutable"


@dataclass(frozen=True, slots=True)
class Assets:
    """All static files, and the digest of their names and contents.

    One digest for all lets modules import each other by relative paths.
    """

    digest: str
    files: Mapping[str, bytes]


def load(folder: Path) -> Assets:
    """Read the static files below a folder."""
    paths = sorted(path for path in folder.rglob("*") if path.suffix in TYPES)
    files = {path.relative_to(folder).as_posix(): path.read_bytes() for path in paths}
    total = sha256()
    for name, content in files.items():
        total.update(f"{name}\0{len(content)}\0".encode() + content)
    return Assets(total.hexdigest()[:16], files)


def install(app: Flask) -> None:
    """Read the static files into the application."""
    app.extensions[ASSETS] = load(FOLDER)


def url(name: str) -> str:
    """Return the URL of a static file, such as `app.css`. Raise KeyError for one that is not there."""
    assets = _assets()
    if name not in assets.files:
        raise KeyError(name)
    return f"{PREFIX}/static/{assets.digest}/{name}"


@page("GET", "/static/<digest>/<path:name>", ANYBODY, answers=("*/*", *TYPES.values()))
def show(digest: str, name: str) -> Response:
    """Serve a static file; one of another release is served as it is now, and not cached."""
    assets = _assets()
    if name not in assets.files:
        raise NotFound(f"There is no file {name[:80]}.")
    response = Response(assets.files[name], content_type=TYPES[Path(name).suffix])
    response.headers["Cache-Control"] = FOREVER if digest == assets.digest else "no-cache"
    response.set_etag(assets.digest)
    return cast(Response, response.make_conditional(request))


def _assets() -> Assets:
    return cast(Assets, current_app.extensions[ASSETS])
