"""Pages of servers: list, form, one server with its console log, and the scheduler's explanation."""

import re
from uuid import uuid4

import pytest

from tests.api.compute.api_clients import World, hours_away
from tests.api.web.page_clients import Browser, signed_in

XSS = "<script>alert(1)</script>"
FORM, LIST = "/ui/servers/new", "/ui/servers"


def boot(browser: Browser, **fields: str) -> str:
    """Return the path of the page of a server that the form booted."""
    answer = browser.submit(FORM, LIST, **{"name": "node-1", **fields})
    assert answer.status_code == 303, answer.get_data(as_text=True)
    return str(answer.location)


def test_server_is_booted_stopped_started_and_deleted(cloud: World) -> None:
    member = signed_in(cloud.app, "member")
    path = boot(member, name=XSS)
    cloud.settle()
    for page in (path, LIST, f"{path}/delete"):
        text = member.text(page)
        assert "&lt;script&gt;" in text
        assert XSS not in text
    assert "Running." in member.text(path)
    assert member.submit(path, f"{path}/power", wish="stop").location == path
    cloud.settle()
    assert "Stopped." in member.text(path)
    member.submit(path, f"{path}/power", wish="start")
    cloud.settle()
    assert member.submit(f"{path}/delete", f"{path}/delete").location == LIST
    cloud.settle()
    assert "No server matches." in member.text(LIST)


def test_server_sleeps_until_its_lease_and_says_when_it_wakes(cloud: World) -> None:
    member = signed_in(cloud.app, "member")
    path = boot(member, when="asleep", start=hours_away(2).replace(" ", "T"), end=hours_away(3).replace(" ", "T"))
    cloud.here.settle()
    text = member.text(path)
    assert "Asleep" in text
    assert "It wakes at" in text
    assert re.search(r"/ui/leases/[0-9a-f-]{36}", text)


def test_form_has_the_hint_of_a_lease_preset(cloud: World) -> None:
    member = signed_in(cloud.app, "member")
    hold = member.submit("/ui/find?hosts=1&length=2h", "/ui/holds").location or ""
    lease = str(member.submit(hold, f"{hold}/take", name="training").location)
    cloud.settle()
    (link,) = re.findall(r'href="(/ui/servers/new\?reservation=[0-9a-f-]{36})"', member.text(lease))
    assert member.form(link, LIST).fields["reservation"] in link
    path = str(member.submit(link, LIST, name="on-lease", when="lease").location)
    cloud.settle()
    assert "Running." in member.text(path)
    assert "on-lease" in member.text(lease)
    assert "Its end also ends these servers: on-lease." in member.text(f"{lease}/delete")


def test_decisions_are_drawn_for_administrators(cloud: World) -> None:
    admin, member = signed_in(cloud.app, "admin"), signed_in(cloud.app, "member")
    path = boot(admin)
    cloud.settle()
    text = admin.text(f"{path}/explain")
    assert "RamFilter" in text
    assert "<svg" in text
    member.get(f"{path}/explain", 403)


@pytest.mark.parametrize(
    "fields",
    [
        {"name": ""},
        {"flavor": XSS},
        {"image": "y"},
        {"network": "n"},
        {"key": "k"},
        {"when": "lease"},
        {"when": "asleep", "start": "now"},
        {"when": "asleep", "start": "2030-01-01T00:00"},
        {"when": "lease", "reservation": "00000000-0000-0000-0000-000000000000"},
    ],
)
def test_wrong_requests_are_refused_in_the_form(cloud: World, fields: dict[str, str]) -> None:
    answer = signed_in(cloud.app, "member").submit(FORM, LIST, **{"name": "x", **fields})
    assert answer.status_code == 400
    text = answer.get_data(as_text=True)
    assert 'role="alert"' in text
    assert XSS not in text


def test_lists_refuse_wrong_filters(cloud: World) -> None:
    member = signed_in(cloud.app, "member")
    assert "No server matches." in member.text(f"{LIST}?name=x&status=ACTIVE")
    for query in ("status=NONE", "marker=x", "name=%00", "name=%5B"):
        member.get(f"{LIST}?{query}", 400)
    member.get(f"{LIST}?marker={uuid4()}", 404)


def test_servers_of_others_are_not_found(cloud: World) -> None:
    path = boot(signed_in(cloud.app, "member"))
    stranger, reader = signed_in(cloud.app, "stranger"), signed_in(cloud.app, "reader")
    for other in (path, f"{LIST}/x", f"{LIST}/{uuid4()}"):
        for page in ("", "/delete"):
            stranger.get(f"{other}{page}", 404)
        for action in ("delete", "power"):
            answer = stranger.post(f"{other}/{action}", {"csrf_token": "secret", "wish": "stop"})
            assert answer.status_code == 404
    assert "No server matches." in stranger.text(LIST)
    assert "Boot a server" not in reader.text(LIST)
    reader.get(FORM, 403)
    for action in ("", f"/{path.rpartition('/')[2]}/delete", f"/{path.rpartition('/')[2]}/power"):
        assert reader.post(f"{LIST}{action}", {"csrf_token": "secret"}).status_code == 403
