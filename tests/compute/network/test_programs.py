"""The system's programs: found, run, and asked for by their packages."""

import pytest

from climate.compute.errors import NetworkError
from climate.compute.network.linux import commands
from climate.compute.network.render import dnsmasq, radvd


def test_what_a_program_says_is_answered_and_what_goes_wrong_is_its_own_words() -> None:
    assert commands.run(None, ("cat",), text="hello") == "hello"
    assert commands.run(None, ("sh", "-c", "echo $A"), environment={"A": "b"}) == "b\n"
    with pytest.raises(NetworkError, match="sh: it is broken"):
        commands.run(None, ("sh", "-c", "echo it is broken >&2; exit 3"))
    with pytest.raises(NetworkError, match="sh: exit code 3"):
        commands.run(None, ("sh", "-c", "exit 3"))


def test_a_program_that_is_not_there_is_asked_for_by_its_package() -> None:
    with pytest.raises(NetworkError, match=r"no-such-program is not installed \(Debian: no-such-program\)"):
        commands.run(None, ("no-such-program",))
    assert commands.missing("sh", "cat") is None
    assert commands.missing("no-such-program", "sh", "nor-this") == (
        "no-such-program is not installed (Debian: no-such-program); nor-this is not installed (Debian: nor-this)"
    )
    assert {dnsmasq.PROGRAM, radvd.PROGRAM} <= commands.PACKAGES.keys()


def test_a_place_that_is_not_there_is_an_error_of_the_network() -> None:
    with pytest.raises(NetworkError, match="no-such-namespace"):
        commands.run("no-such-namespace", ("cat",))
