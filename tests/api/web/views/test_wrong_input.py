"""Wrong input to each field of each form: a refusal in words, and never an error of the server."""

from collections.abc import Callable, Iterator
from urllib.parse import urlencode

import pytest

from tests.api.compute.api_clients import World
from tests.api.web.page_clients import Browser, Form, forms_of, signed_in
from tests.api.web.views.test_ids_of_others import furnished

pytestmark = pytest.mark.slow

WORDS = ("x", "-1", "1" * 30, "\0", "2030-13-45T99:99", "9999-12-31T23:59")
"""Values that no field of a form has."""
ENDS = ("/delete", "/sign-out", "/sign-out-everywhere", "/release")
"""Ends of forms after which there is nothing left to try."""
OF_MEMBERS = (
    *("/ui/", "/ui/leases", "/ui/find?hosts=1&length=1h", "/ui/calendar/table", "/ui/servers", "/ui/servers/new"),
    *("/ui/notices", "/ui/series/new?length=1h&every=day"),
)
OF_ADMINISTRATORS = ("/ui/hosts", "/ui/hosts/1", "/ui/hosts/pools/reservation", "/ui/past", "/ui/audit")


def changed(form: Form) -> Iterator[dict[str, str]]:
    """Yield the fields of a form with one of them wrong or missing."""
    names = [name for name in form.fields if name != "csrf_token"]
    for name in names:
        for word in WORDS:
            yield {**form.fields, name: word}
        yield {known: value for known, value in form.fields.items() if known != name}


def try_forms(browser: Browser, path: str) -> int:
    """Send each form of a page with wrong fields; return the number of requests."""
    sent = 0
    for form in forms_of(browser.get(path)):
        if form.action.endswith(ENDS):
            continue
        for fields in changed(form):
            is_get = form.method == "get"
            address = f"{form.action}?{urlencode(fields)}"
            answer = (
                browser.client.get(address, headers={"Accept": "text/html"})
                if is_get
                else browser.post(form.action, fields)
            )
            assert answer.status_code < 500, f"{form.action} {fields}: {answer.status_code}"
            assert answer.status_code < 400 or "<h1" in answer.text, f"{form.action} {fields} is refused without a page"
            sent += 1
    return sent


def test_no_field_is_an_error_of_the_server_for_members(cloud: World) -> None:
    browser = signed_in(cloud.app, "member")
    ids = furnished(browser)
    own = (f"/ui/leases/{ids['lease_id']}", f"/ui/holds/{ids['hold_id']}", f"/ui/servers/{ids['server_id']}")
    assert sum(try_forms(browser, path) for path in (*own, *OF_MEMBERS)) > 200


def test_no_field_is_an_error_of_the_server_for_administrators(cloud: World) -> None:
    browser = signed_in(cloud.app, "admin")
    assert sum(try_forms(browser, path) for path in OF_ADMINISTRATORS) > 100


def test_no_field_of_the_settings_is_an_error_of_the_server(visit: Callable[[str], Browser]) -> None:
    assert try_forms(visit("demo"), "/ui/settings") > 50
