"""The recorded answers, which the fakes of other tests are compared with, are those of the installed services."""

from tests.cloud.exchanges import differences, exchanges, recorded
from tests.real_openstack.conftest import MARKS, People
from tests.real_openstack.layout import HOSTS

pytestmark = MARKS


def test_the_recordings_are_the_answers_of_the_services(people: People) -> None:
    now, before = exchanges(people.admin, HOSTS[0]), recorded()
    assert {name: each["status"] for name, each in now.items()} == {
        name: each["status"] for name, each in before.items()
    }
    wrong = {
        name: differences(before[name]["body"], each["body"]) + differences(each["body"], before[name]["body"])
        for name, each in now.items()
    }
    assert {name: found for name, found in wrong.items() if found} == {}
