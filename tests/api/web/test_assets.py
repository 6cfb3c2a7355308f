"""Static files: locked copies of others' scripts, URLs that change with the content, and no inline script or style."""

import re
from pathlib import Path

import pytest
from flask import Flask

from api.web import assets
from api.web.blueprint import blueprint
from climate.domain.hosts.timeline import SpanKind
from tests.api.web.page_clients import Browser

VENDOR = assets.FOLDER / "vendor"
TEMPLATES = sorted((Path(assets.__file__).parent / "templates").rglob("*.html"))


def test_scripts_of_others_are_the_locked_ones() -> None:
    from hashlib import sha256

    locked = [line.split("  ") for line in (VENDOR / "vendor.lock").read_text().splitlines()]
    present = {str(path.relative_to(VENDOR)) for path in VENDOR.rglob("*") if path.is_file()} - {"vendor.lock"}
    assert {name for _, name in locked} == present
    assert [name for digest, name in locked if sha256((VENDOR / name).read_bytes()).hexdigest() != digest] == []


def test_each_package_of_others_has_its_licence() -> None:
    folders = [folder for folder in VENDOR.iterdir() if folder.is_dir()]
    assert folders
    assert [folder.name for folder in folders if not (folder / "LICENSE").read_text()] == []


def test_kinds_of_the_calendar_differ_by_word_and_by_pattern() -> None:
    words = re.search(r"const WORDS = \{(.*?)\};", (assets.FOLDER / "js/lease-timeline.js").read_text(), re.DOTALL)
    assert words
    kinds = dict(re.findall(r'(\w+): "([^"]+)"', words[1]))
    assert {*kinds} == {str(kind) for kind in SpanKind}
    assert len({*kinds.values()}) == len(kinds)
    styles = (assets.FOLDER / "timeline.css").read_text()
    patterns = dict(
        re.findall(r"^\.lt-(\w+) \{ [^}]*?((?:repeating-)?(?:linear|radial)-gradient\([^;]*);", styles, re.M)
    )
    drawn = {kind: re.sub(r"--lt-\w+(-line)?", "colour", patterns.get(kind, "plain")) for kind in kinds}
    assert len({*drawn.values()}) == len(kinds), "two kinds differ by colour alone"


def test_files_are_cached_for_good_at_urls_of_their_content(app: Flask) -> None:
    browser = Browser(app)
    page = browser.text("/ui/sign-in")
    (url,) = re.findall(r'href="(/ui/static/[0-9a-f]{16}/app\.css)"', page)
    answer = browser.get(url)
    assert answer.headers["Cache-Control"] == "public, max-age=31536000, immutable"
    assert answer.content_type == "text/css; charset=utf-8"
    assert "Set-Cookie" not in answer.headers
    browser.get(url, 304, headers={"If-None-Match": answer.headers["ETag"]})
    other = browser.get(re.sub(r"[0-9a-f]{16}", "0" * 16, url))
    assert other.headers["Cache-Control"] == "no-cache"


def test_url_changes_with_any_file(tmp_path: Path) -> None:
    (tmp_path / "a.js").write_text("1")
    first = assets.load(tmp_path).digest
    (tmp_path / "a.js").write_text("2")
    assert assets.load(tmp_path).digest != first


@pytest.mark.parametrize("name", ["../blueprint.py", "vendor/vendor.lock", "vendor/htmx-4.0.1/LICENSE", "nothing.css"])
def test_other_files_are_not_served(app: Flask, name: str) -> None:
    Browser(app).get(f"/ui/static/{'0' * 16}/{name}", 404)


def test_templates_have_neither_inline_scripts_nor_styles() -> None:
    assert len(TEMPLATES) > 3
    inline = re.compile(r"<script(?![^>]*\bsrc=)|<style|\sstyle=|\son[a-z]+=|javascript:|hx-on|hx-vals=.js:|\|\s*safe")
    found = [f"{path.name}: {hit}" for path in TEMPLATES for hit in inline.findall(path.read_text(encoding="utf-8"))]
    assert found == []


def test_every_answer_restricts_what_the_browser_does(app: Flask) -> None:
    for path, status in (("/ui/sign-in", 200), ("/ui/", 303), ("/ui/nothing", 404)):
        headers = Browser(app).get(path, status).headers
        assert headers["Content-Security-Policy"].startswith("default-src 'none'; script-src 'self'; style-src 'self';")
        assert "unsafe" not in headers["Content-Security-Policy"]
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert headers["Referrer-Policy"] == "same-origin"
        assert headers["Cross-Origin-Opener-Policy"] == "same-origin"
        assert headers["Cache-Control"] == "no-store"


def test_each_view_names_the_action_that_it_is(app: Flask) -> None:
    views = {name: view for name, view in app.view_functions.items() if name.startswith(f"{blueprint.name}.")}
    assert [name for name, view in views.items() if not getattr(view, "action", "")] == []


def test_pages_of_administrators_have_the_style_of_their_links() -> None:
    pages = {page.name: page.read_text(encoding="utf-8") for page in TEMPLATES}
    with_links = {name for name, page in pages.items() if "{{ admin_links(" in page}
    assert with_links
    assert {name for name in with_links if "asset('hosts.css')" not in pages[name]} == set()
