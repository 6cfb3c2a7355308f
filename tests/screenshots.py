"""Pictures of the web pages for the documentation: `make screenshots` writes them to docs/images.

A climate with the demo cloud is started for them, and Chromium of the system takes them.
"""

import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from playwright.sync_api import sync_playwright

from tests.web_pages.chromium import ARGUMENTS, program, visitor
from tests.web_pages.stack import running

FOLDER = Path(__file__).parent.parent / "docs" / "images"
SIZE = (1200, 760)
PICTURES = (("home", False), ("find", True), ("lease", False))
"""Views, and whether they are shown dark."""


def main() -> int:
    """Take the pictures."""
    FOLDER.mkdir(exist_ok=True)
    with TemporaryDirectory(prefix="climate-screenshots-") as home, running(Path(home)) as pages:
        paths = pages.furnish()
        with sync_playwright() as playwright:
            chromium = playwright.chromium.launch(executable_path=program(), args=ARGUMENTS)
            for view, dark in PICTURES:
                with visitor(chromium, pages.url, size=SIZE, dark=dark) as demo:
                    demo.sign_in("demo", pages.password("demo"))
                    demo.go(paths[view])
                    demo.page.locator("time[data-done]").first.wait_for()
                    demo.page.screenshot(path=str(FOLDER / f"{view}.png"))
            chromium.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
