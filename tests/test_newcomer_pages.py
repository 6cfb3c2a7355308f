"""Paths, links and commands on the pages for newcomers exist."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGES = ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "docs/architecture.md", "docs/glossary.md", "docs/api.md")
TOPS = (
    "climate",
    "api",
    "workers",
    "plugins",
    "tests",
    "migrations",
    "benchmarks",
    "docs",
    "deploy",
    ".ci",
    ".devcontainer",
)
PATH = re.compile(r"`((?:%s)/[\w./-]*)`" % "|".join(re.escape(top) for top in TOPS))  # noqa: UP031
LINK = re.compile(r"\]\(([^)#:]+)(?:#[^)]*)?\)")
TARGET = re.compile(r"`make ([a-z-]+)")


@pytest.mark.parametrize("page", PAGES)
def test_each_path_exists(page: str) -> None:
    named = PATH.findall((ROOT / page).read_text(encoding="utf-8"))
    assert [path for path in named if not (ROOT / path).exists()] == []


@pytest.mark.parametrize("page", PAGES)
def test_each_link_leads_to_a_file(page: str) -> None:
    links = LINK.findall((ROOT / page).read_text(encoding="utf-8"))
    assert [link for link in links if not ((ROOT / page).parent / link).exists()] == []


def test_each_make_target_exists() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    named = set(TARGET.findall((ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")))
    assert named - targets == set()
