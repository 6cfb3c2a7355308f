"""Record the answers of a real Keystone that the fake one gives: `python -m tests.real_keystone.record_keystone`."""

import json
import re
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import httpx

from tests.real_keystone.keystone_process import RealKeystone, installed, restart, running

RECORDED = Path(__file__).parent.parent / "identity" / "keystone" / "recorded"
HERE = "http://keystone.example:5000"
"""Stands for the address of the Keystone in recorded answers."""

HEADERS = ("Content-Type", "WWW-Authenticate", "X-Subject-Token", "Vary", "x-openstack-request-id")
CHANGING = (
    (re.compile(r"gAAAA[\w=-]+"), "<token>"),
    (re.compile(r"\b[0-9a-f]{32}\b"), "<id>"),
    (re.compile(r"req-[0-9a-f-]{36}"), "<request>"),
    (re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z"), "<time>"),
    (re.compile(r'"audit_ids": \["[\w-]{22}"\]'), '"audit_ids": [<id>]'),
)
"""Values that differ from one Keystone to the next."""

ROLES = re.compile(r'"roles": \[\{(.*?)\}\]')
"""Roles of a token, whose order differs from one answer to the next."""


def recorded(programs: Path, there: RealKeystone) -> dict[str, dict[str, Any]]:
    """Return answers by name."""
    answers: dict[str, httpx.Response] = {"version": there.ask("GET", "")}
    there.user("alpha", "alpha", "member")
    answers["signed-in"] = there.sign_in("climate", "service")
    own = answers["signed-in"].headers["X-Subject-Token"]
    alpha = there.token("alpha", "alpha")
    answers["valid"] = _validated(there, own, alpha)
    answers["valid-service"] = _validated(there, own, own)
    answers["no-token"] = there.ask("GET", "/auth/tokens", headers={"X-Subject-Token": alpha})
    answers["unknown"] = _validated(there, own, "nonsense")
    answers["not-allowed"] = _validated(there, alpha, own)
    assert there.ask("DELETE", "/auth/tokens", alpha, headers={"X-Subject-Token": alpha}).status_code == 204
    answers["revoked"] = _validated(there, own, alpha)
    answers["catalog"] = there.ask("GET", "/auth/catalog", own)
    answers["wrong-password"] = there.sign_in("alpha", "nowhere")
    restart(programs, there, expiration=1)
    late, late_own = there.token("alpha", "alpha"), there.token("climate", "service")
    restart(programs, there)  # which takes longer than a second
    answers["expired"] = _validated(there, own, late)
    answers["expired-allowed"] = _validated(there, own, late, allow_expired="1")
    answers["own-token-refused"] = _validated(there, late_own, own)
    return {name: _kept(answer, there) for name, answer in answers.items()}


def _validated(there: RealKeystone, own: str, subject: str, **query: str) -> httpx.Response:
    headers = {"X-Subject-Token": subject}
    return there.ask("GET", "/auth/tokens", own, headers=headers, params={"nocatalog": "1", **query})


def _kept(answer: httpx.Response, there: RealKeystone) -> dict[str, Any]:
    """Return what of an answer is recorded: all but headers of the web server, with `HERE` for its address."""
    place = there.url.removesuffix("/v3")
    headers = {name: answer.headers[name].replace(place, HERE) for name in HEADERS if name in answer.headers}
    return {"status": answer.status_code, "headers": headers, "body": answer.text.replace(place, HERE)}


def normal(answer: dict[str, Any]) -> str:
    """Return a recorded answer without the values that differ from one Keystone to the next."""
    text = json.dumps({**answer, "body": ""}, sort_keys=True) + answer["body"]
    for pattern, name in CHANGING:
        text = pattern.sub(name, text)
    return ROLES.sub(lambda found: f'"roles": {sorted(found[1].split("}, {"))}', text)


def main() -> int:
    programs = installed()
    if programs is None:
        return 1
    with TemporaryDirectory() as folder, running(programs, Path(folder)) as there:
        answers = recorded(programs, there)
    RECORDED.mkdir(exist_ok=True)
    for name, answer in answers.items():
        (RECORDED / f"{name}.json").write_text(json.dumps(answer, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
