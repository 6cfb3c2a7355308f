"""Images of servers in Glance: one per occasion, however many images have its name."""

import pytest

from climate.cloud import Cloud, NotYet
from climate.cloud.openstack.server_actions import MADE_OF, OCCASION
from tests.cloud.exchanges import recorded
from tests.cloud.nova import Nova

pytestmark = pytest.mark.filterwarnings("ignore::PendingDeprecationWarning")  # of the SDK's own code

N1 = "n1.example.org"


@pytest.fixture
def server(there: Nova) -> str:
    there.run("s1", N1)
    return "s1"


def snapshots(there: Nova) -> int:
    return there.log.count("createImage s1")


def test_an_image_of_another_occasion_or_server_is_not_the_one(there: Nova, cloud: Cloud, server: str) -> None:
    there.image.put("saved", "active", **{MADE_OF: server, OCCASION: "another"})
    there.image.put("saved", "active", **{MADE_OF: "s2", OCCASION: "end"})
    there.image.put("saved", "active")
    with pytest.raises(NotYet, match="still being saved"):
        cloud.snapshot(server, "saved", 1, "end")
    there.image.put("saved", "active", **{MADE_OF: server, OCCASION: "end"})
    cloud.snapshot(server, "saved", 1, "end")
    assert snapshots(there) == 1


def test_an_image_on_a_later_page_is_seen(there: Nova, cloud: Cloud, server: str) -> None:
    there.image.put("saved", "active", **{MADE_OF: server, OCCASION: "end"})
    for _ in range(2 * there.image.page_size):
        there.image.put("saved", "active")
    cloud.snapshot(server, "saved", 1, "end")
    assert snapshots(there) == 0


def test_an_image_without_content_is_replaced(there: Nova, cloud: Cloud, server: str) -> None:
    """The server is idle, so that its content does not come any more."""
    there.image.put("saved", "queued", **{MADE_OF: server, OCCASION: "end"})
    with pytest.raises(NotYet):
        cloud.snapshot(server, "saved", 1, "end")
    assert snapshots(there) == 1


def test_a_real_glance_lists_states_and_properties_as_the_port_reads_them() -> None:
    listed = recorded()["image list"]["body"]["images"]
    assert sorted((each["status"], each[OCCASION]) for each in listed) == [
        ("active", "image create"),
        ("queued", "image create alike"),
    ]
    first, second = (recorded()[name]["body"] for name in ("image page", "image next page"))
    assert ("next" in first, "next" in second) == (True, False)
    assert {each["id"] for page in (first, second) for each in page["images"]} == {each["id"] for each in listed}
