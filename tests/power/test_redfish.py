"""Redfish services that are odd, hostile, or whose certificate is not to be trusted."""

import json
import traceback
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from ipaddress import IPv4Address
from pathlib import Path

import pytest
import sushy
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from marshmallow import ValidationError
from sushy.auth import BasicAuth

from climate.power import OFF, ON, UNKNOWN, PowerError, PowerRefused, Target
from climate.power.redfish import RedfishDriver, RedfishSettings
from tests.power import emulator, hostile
from tests.power.emulator import PASSWORD, USER
from tests.power.hostile import Hostile, action, answer, system

DRIVER = RedfishDriver(Path("/nowhere"))


@pytest.fixture
def service() -> Iterator[Hostile]:
    with hostile.serving() as server:
        yield server


def target(address: str, path: str = "/redfish/v1/Systems/1", **settings: object) -> Target:
    return Target("n1", {"address": address, "system": path, "username": USER, **settings}, {"password": PASSWORD})


def refused(service: Hostile, *answers: bytes, verb: str = "on", **settings: object) -> PowerError:
    """The error that these answers lead to; it repeats nothing of what was sent or answered."""
    service.answers = list(answers)
    with pytest.raises(PowerError) as caught:
        getattr(DRIVER, verb)(target(service.address, **settings))
    shown = "".join(traceback.format_exception(caught.value))
    assert PASSWORD not in shown
    assert "evil" not in shown
    return caught.value


STATUSES = {
    "301 Moved": PowerRefused,
    "307 Temporary Redirect": PowerRefused,
    "400 Bad Request": PowerError,
    "401 Unauthorized": PowerRefused,
    "403 Forbidden": PowerRefused,
    "404 Not Found": PowerRefused,
    "405 Method Not Allowed": PowerRefused,
    "409 Conflict": PowerError,
    "429 Too Many Requests": PowerError,
    "500 Internal Server Error": PowerError,
    "503 Service Unavailable": PowerError,
}


@pytest.mark.parametrize("status", STATUSES)
def test_a_status_says_whether_another_try_is_of_use(service: Hostile, status: str) -> None:
    said = answer(b'{"error": "evil correct horse"}', status, "Location: http://evil.example/")
    for answers in ([said], [system(), said]):
        error = refused(service, *answers)
        assert type(error) is STATUSES[status]
        assert f"HTTP {status[:3]}" in str(error)


GARBAGE = {
    "nothing": b"",
    "no HTTP": b"evil correct horse\r\n\r\n",
    "bad header": b"HTTP/1.1 200 OK\r\nevil correct horse\r\n\r\n",
    "no JSON": answer(b"<html>evil correct horse</html>"),
    "no text": answer(b"\xff\xfe\x00"),
    "a list": answer(b"[1]"),
    "a number too long": answer(b"1" * 100_000),
    "too deep": answer(b"[" * 500_000),
    "packed": answer(b"evil", "200 OK", "Content-Encoding: gzip"),
    "cut off": answer(b'{"PowerState"')[:-5],
    "no actions": system(Actions=None),
    "actions that are none": system(Actions=["evil"]),
    "a reset that is none": system(Actions={"#ComputerSystem.Reset": "evil"}),
}


@pytest.mark.parametrize("name", GARBAGE)
def test_garbage_is_an_error_that_may_pass(service: Hostile, name: str) -> None:
    assert type(refused(service, GARBAGE[name])) is PowerError


def test_no_more_is_read_than_a_system_can_have_to_say(service: Hostile) -> None:
    assert "more than 1048576 bytes" in str(refused(service, answer(b"{}" + b" " * (1 << 20))))


HEAD = b"HTTP/1.1 200 OK\r\n"
DRIPS = {
    "status": (b"", b"H"),
    "headers": (HEAD, b"X: y\r\n"),
    "body": (HEAD + b"Content-Length: 99999\r\n\r\n", b" "),
    "chunks": (HEAD + b"Transfer-Encoding: chunked\r\n\r\n", b"1\r\n \r\n"),
}


@pytest.mark.parametrize("verb", ["state", "on"])
@pytest.mark.parametrize("name", DRIPS)
def test_one_that_drips_is_given_up(service: Hostile, verb: str, name: str) -> None:
    begin, service.drip = DRIPS[name]
    assert "within 0.3 s" in str(refused(service, begin, verb=verb, timeout_seconds=0.3))


EVIL = "http://evil.example/reset"


@pytest.mark.parametrize(
    "path",
    [None, 7, "", "/", "reset", EVIL, EVIL[5:], "@evil.example/reset", "/\\evil.example", "/a b", "/a?b", "/a\n"],
)
def test_the_password_goes_to_no_other_place(service: Hostile, path: object) -> None:
    with hostile.serving() as other:
        led = path.replace("evil.example", f"127.0.0.1:{other.port}") if isinstance(path, str) else path
        assert "names no path" in str(refused(service, action(target=led)))
        assert other.requests == []
    assert [request[:4] for request in service.requests] == [b"GET "]


def test_the_password_is_sent_as_basic_authentication_to_the_address_alone(service: Hostile) -> None:
    service.answers = [system(), answer(b"", "204 No Content")]
    DRIVER.on(target(service.address + "/"))
    assert [request.split(b" ")[1] for request in service.requests] == [
        b"/redfish/v1/Systems/1",
        b"/redfish/v1/Systems/1/Actions/ComputerSystem.Reset",
    ]
    assert all(b"Authorization: Basic " in request for request in service.requests)


WORDS = {"On": ON, "Off": OFF, "PoweringOn": UNKNOWN, "PoweringOff": UNKNOWN, "Paused": UNKNOWN, "evil": UNKNOWN}


@pytest.mark.parametrize("word", [*WORDS, None, 7, []])
def test_a_state_that_is_neither_is_unknown(service: Hostile, word: object) -> None:
    service.answers = [system(PowerState=word)]
    expected = WORDS[word] if isinstance(word, str) else UNKNOWN
    assert DRIVER.state(target(service.address)) == expected


ASKED = [
    ("on", "Off", ["On"]),
    ("on", "PoweringOff", ["On"]),
    ("on", None, ["On"]),
    ("on", "On", []),
    ("on", "PoweringOn", []),
    ("off", "On", ["GracefulShutdown"]),
    ("off", "PoweringOn", ["GracefulShutdown"]),
    ("off", "Off", []),
    ("off", "PoweringOff", []),
    ("hard", "On", ["ForceOff"]),
    ("hard", "PoweringOff", ["ForceOff"]),
    ("hard", None, ["ForceOff"]),
    ("hard", "Off", []),
]


@pytest.mark.parametrize(("verb", "state", "asked"), ASKED)
def test_only_what_is_not_so_is_asked_for(service: Hostile, verb: str, state: object, asked: list[str]) -> None:
    service.answers = [system(PowerState=state), answer(b"", "204 No Content")]
    host = target(service.address)
    DRIVER.on(host) if verb == "on" else DRIVER.off(host, hard=verb == "hard")
    assert [body["ResetType"] for body in service.posted()] == asked


KINDS = "ResetType@Redfish.AllowableValues"


def test_a_kind_of_reset_that_the_system_takes_is_chosen(service: Hostile) -> None:
    for allowed in (["ForceOn", "ForceOff"], ["On", "ForceOn"], None):
        service.answers = [action(**{KINDS: allowed}), answer(b"", "202 Accepted")]
        DRIVER.on(target(service.address))
    assert [body["ResetType"] for body in service.posted()] == ["ForceOn", "On", "On"]


def test_what_the_system_does_not_take_is_not_asked_for(service: Hostile) -> None:
    only = json.dumps({**hostile.SYSTEM, "PowerState": "On"}).replace('"GracefulShutdown"', '"PushPowerButton"')
    error = refused(service, answer(only.encode()), verb="off")
    assert type(error) is PowerRefused
    assert "GracefulShutdown" in str(error)
    assert service.posted() == []


def certificate(folder: Path) -> tuple[str, str]:
    """A certificate for 127.0.0.1 that signs itself, and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "bmc")])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(IPv4Address("127.0.0.1"))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    private = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    (folder / "cert.pem").write_bytes(made.public_bytes(pem))
    (folder / "key.pem").write_bytes(private)
    return str(folder / "cert.pem"), str(folder / "key.pem")


def test_a_certificate_is_checked_unless_it_is_not_to_be(systems: emulator.Systems, tmp_path: Path) -> None:
    files = certificate(tmp_path)
    path = f"/redfish/v1/Systems/{systems.add()}"
    with emulator.serving(systems, files) as served:
        for verify in (False, files[0]):
            assert DRIVER.state(target(served.address, path, verify=verify)) == OFF
        elsewhere = served.address.replace("127.0.0.1", "localhost")
        for address, verify in ((served.address, True), (elsewhere, files[0])):
            with pytest.raises(PowerRefused, match="certificate of the controller of n1 is not accepted"):
                DRIVER.state(target(address, path, verify=verify))
        (tmp_path / "none.pem").write_text("correct horse")
        for name in ("none.pem", "missing.pem", "."):
            with pytest.raises(PowerRefused, match="cannot be read") as caught:
                DRIVER.state(target(served.address, path, verify=str(tmp_path / name)))
            assert "horse" not in str(caught.value)
        with pytest.raises(PowerError) as caught:
            DRIVER.state(target(served.address.replace("https", "http"), path))
        assert not isinstance(caught.value, PowerRefused)


def test_tls_to_what_does_not_speak_it_is_an_error_that_may_pass(redfish_address: str) -> None:
    with pytest.raises(PowerError, match="TLS") as caught:
        DRIVER.state(target(redfish_address.replace("http", "https")))
    assert not isinstance(caught.value, PowerRefused)


def test_another_client_sees_what_the_driver_did(systems: emulator.Systems, redfish_address: str) -> None:
    uuid = systems.add()
    path = f"/redfish/v1/Systems/{uuid}"
    auth = BasicAuth(USER, PASSWORD)
    seen = sushy.Sushy(f"{redfish_address}/redfish/v1", auth=auth, verify=False).get_system(path)
    for verb, state in (("on", ON), ("off", OFF)):
        getattr(DRIVER, verb)(target(redfish_address, path))
        systems.settle(uuid)
        seen.refresh(force=True)
        assert str(seen.power_state.value).lower() == DRIVER.state(target(redfish_address, path)) == state
    seen.reset_system(sushy.RESET_TYPE_ON)
    systems.settle(uuid)
    assert DRIVER.state(target(redfish_address, path)) == ON


GOOD = {"address": "https://bmc.example", "system": "/redfish/v1/Systems/1", "username": "admin", "password": "x"}
BAD = {
    "address": [
        "", "bmc.example", "ftp://bmc.example", "https://", "https://admin:pw@bmc.example", "https://bmc.example/redfish",
        "https://bmc.example?x", "https://bmc.example#x", "https://bmc_.example", "https://[::1", "https://[abc]",
        "https://bmc.example:0", "https://bmc.example:65536", "https://bmc.example:x", "https://bmc.example\n",
        "https://bmc .example", "https://[fe80::1%eth0]", "https://" + "a" * 254, 7, None,
    ],
    "system": ["", "/", "Systems/1", "//evil/1", "/a?b", "/a#b", "/a b", "/a\n", "/a\\b", "/" + "a" * 500, 7, None],
    "username": ["", "a:b", "a\nb", "a" * 256, "\ud800", 7, None],
    "password": ["", "a\r\nb", "a" * 256, "\udfff", 7, None],
    "verify": ["", "yes", "ca.pem", "/ca\0.pem", "/\ud800", 1, None],
    "timeout_seconds": [0, -1, 61, "soon", float("nan"), float("inf"), None],
    "passwd": ["x"],
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_bad_settings_are_refused_by_name(name: str) -> None:
    for value in BAD[name]:
        with pytest.raises(ValidationError) as caught:
            RedfishSettings().load({**GOOD, name: value})
        assert set(caught.value.messages_dict) == {name}


@pytest.mark.parametrize(
    "address", ["http://bmc", "https://192.0.2.7:8443/", "https://[2001:db8::7]", "https://[::ffff:192.0.2.7]:1"]
)
def test_good_addresses_are_accepted(address: str) -> None:
    assert RedfishSettings().load({**GOOD, "address": address, "verify": "/etc/ca.pem"})["address"] == address


def test_certificates_are_checked_by_default() -> None:
    assert RedfishSettings().load(GOOD)["verify"] is True
