"""Chromium of the system, and people in front of it whose pages are watched for errors and violations."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, ConsoleMessage, Page, Response, expect

SECONDS = 60.0
ARGUMENTS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
NOWHERE = "/ui/nowhere"
"""Path of a page that is not there."""
WIDE, MEDIUM, NARROW = (1600, 950), (1200, 760), (375, 812)
TELLS_VIOLATIONS = """
document.addEventListener("securitypolicyviolation", (event) => {
  console.error(`CSP: ${event.violatedDirective} ${event.blockedURI} ${event.sourceFile}:${event.lineNumber}`);
});
"""
WCAG = {"runOnly": {"type": "tag", "values": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]}}


def program() -> str:
    """Return the path of Chromium, which Debian's package of that name installs."""
    found = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    assert found, "install chromium: apt install chromium"
    return found


@dataclass
class Visitor:
    """Somebody at a browser of their own."""

    page: Page
    url: str
    complaints: list[str] = field(default_factory=list)
    """Errors of scripts, refused resources and violations of the page's policy."""

    def go(self, path: str, status: int = 200) -> Page:
        """Open a page of the stack."""
        answer: Response | None = self.page.goto(self.url + path)
        assert answer is not None
        assert answer.status == status, f"{path}: {answer.status}"
        return self.page

    def sign_in(self, name: str, password: str) -> None:
        self.go("/ui/sign-in")
        self.page.get_by_label("User name").fill(name)
        self.page.get_by_label("Password").fill(password)
        self.page.get_by_role("button", name="Sign in").click()
        self.page.get_by_role("button", name="Sign out").wait_for()

    def preview_move(self, pool: str, *hosts: str) -> Page:
        """Open the preview of a move from the board of pools; without names, of all hosts in the reservation pool."""
        page = self.go("/ui/hosts")
        named = [page.get_by_label(f"Choose {host}") for host in hosts]
        for box in named or page.locator('[data-pool="reservation"]').get_by_label("Choose").all():
            box.check()
        page.get_by_label("Move chosen hosts to").select_option(pool)
        page.get_by_label("Reason").fill("new disks")
        page.get_by_role("button", name="Preview").click()
        page.get_by_role("heading", name=f"Move to {pool}").wait_for()
        return page

    def check_accessible(self) -> None:
        """Fail with what axe-core finds wrong on the page, once its calendar is drawn."""
        if (calendar := self.page.locator(".lt-grid")).count():
            calendar.locator('button[tabindex="0"]').wait_for(state="attached")
        found = Axe().run(self.page, options=WCAG)
        problems = [
            f"{one['id']}: {one['help']}: {[node['html'][:200] for node in one['nodes'][:4]]}"
            for one in found.response["violations"]
        ]
        assert problems == [], f"{self.page.url}\n" + "\n".join(problems)

    def check_no_sideways_scrolling(self) -> None:
        """Fail where the page is wider than the window."""
        width = self.page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        assert width <= 0, f"{self.page.url} is {width} px wider than the window"

    def picture(self, path: Path) -> None:
        """Save what is seen, for somebody to look at."""
        path.parent.mkdir(parents=True, exist_ok=True)
        self.page.screenshot(path=str(path), full_page=True)


def _is_complaint(said: ConsoleMessage) -> bool:
    """Return whether a message is an error, and not the status of the page that is not there."""
    return said.type == "error" and not said.location["url"].endswith(NOWHERE)


@contextmanager
def visitor(
    chromium: Browser, url: str, *, size: tuple[int, int] = WIDE, dark: bool = False, scripts: bool = True
) -> Iterator[Visitor]:
    """Open a browser with cookies of its own; fail in the end if a page complained."""
    context = chromium.new_context(
        viewport={"width": size[0], "height": size[1]},
        color_scheme="dark" if dark else "light",
        java_script_enabled=scripts,
        timezone_id="Europe/Berlin",
        locale="en-GB",
    )
    context.set_default_timeout(SECONDS * 1000)
    expect.set_options(timeout=SECONDS * 1000)
    try:
        page = context.new_page()
        one = Visitor(page, url)
        page.on("pageerror", lambda error: one.complaints.append(str(error)))
        page.on("console", lambda said: one.complaints.append(said.text) if _is_complaint(said) else None)
        if scripts:
            page.add_init_script(TELLS_VIOLATIONS)
        yield one
    finally:
        context.close()
    assert one.complaints == [], "\n".join(one.complaints)
