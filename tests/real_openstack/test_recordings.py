"""The recorded answers, which the fakes of other tests are compared with, are those of the installed services."""

from typing import Any

from tests.cloud.exchanges import differences, exchanges, recorded
from tests.real_openstack.conftest import MARKS, People
from tests.real_openstack.layout import HOSTS

pytestmark = MARKS


def merged(body: Any) -> Any:
    """Return a body in which one object with the keys of all stands for a list: the order of images differs."""
    if isinstance(body, dict):
        return {key: merged(value) for key, value in body.items()}
    if isinstance(body, list) and body and all(isinstance(each, dict) for each in body):
        return [{key: value for each in body for key, value in merged(each).items()}]
    return body


def test_the_recordings_are_the_answers_of_the_services(people: People) -> None:
    now, before = exchanges(people.admin, HOSTS[0]), recorded()
    assert {name: each["status"] for name, each in now.items()} == {
        name: each["status"] for name, each in before.items()
    }
    wrong = {}
    for name, each in now.items():
        real, known = merged(each["body"]), merged(before[name]["body"])
        wrong[name] = differences(known, real) + differences(real, known)
    assert {name: found for name, found in wrong.items() if found} == {}
