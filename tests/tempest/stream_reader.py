"""Program that prints a subunit stream as lines of JSON; it runs in the environment of Tempest."""

import json
import sys
from importlib import import_module
from typing import Any

LONGEST = 400
"""Maximum length of a reason in characters."""


def reason(details: dict[str, Any]) -> str:
    """Return the error at the end of a traceback, or the reason of a skipped test, in one line."""
    texts = {name: content.as_text() for name, content in details.items() if name.startswith(("traceback", "reason"))}
    return error(texts[max(texts)]) if texts else ""


def error(traceback: str) -> str:
    """Return the text behind the last source line of a traceback in one line, or the whole text if there is none."""
    lines = traceback.strip().splitlines()
    frames = [number for number, line in enumerate(lines) if line.startswith("  ")]
    behind = [line.strip() for line in lines[frames[-1] + 1 if frames else 0 :]]
    return " ".join(filter(None, behind))[:LONGEST]


def main() -> None:
    """Read the stream from stdin and print the final status of each test."""
    testtools, subunit = import_module("testtools"), import_module("subunit")

    def tell(case: Any) -> None:
        status = str(case["status"])
        line = {"test": case["id"], "status": status, "reason": reason(case["details"])}
        sys.stdout.write(json.dumps(line) + "\n")

    result = testtools.StreamToDict(tell)
    result.startTestRun()
    subunit.ByteStreamToStreamResult(sys.stdin.buffer, non_subunit_name="stdout").run(result)
    result.stopTestRun()


if __name__ == "__main__":
    main()
