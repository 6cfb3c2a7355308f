"""Certificates of a project's VPN: valid by its own authority and for their purpose, and by no other."""

from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import serialization
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from climate.compute.vpn import authority
from climate.compute.vpn.authority import Pair

NOW = datetime(2027, 3, 1, 12, tzinfo=UTC)


def read(pair: Pair) -> x509.Certificate:
    return x509.load_pem_x509_certificate(pair.certificate.encode())


def purposes(pair: Pair) -> list[x509.ObjectIdentifier]:
    return list(read(pair).extensions.get_extension_for_class(x509.ExtendedKeyUsage).value)


def test_a_certificate_is_valid_by_its_own_authority_and_by_no_other() -> None:
    ours, theirs = authority.create("ours", NOW), authority.create("theirs", NOW)
    client = read(authority.sign_client(ours, "ada", NOW))
    client.verify_directly_issued_by(read(ours))
    with pytest.raises((ValueError, InvalidSignature)):
        client.verify_directly_issued_by(read(theirs))
    same_name = authority.create("ours", NOW)
    with pytest.raises(InvalidSignature):
        client.verify_directly_issued_by(read(same_name))


def test_a_client_cannot_be_taken_for_the_server_nor_sign_others() -> None:
    own = authority.create("p", NOW)
    client, server = authority.sign_client(own, "ada", NOW), authority.sign_server(own, NOW)
    assert purposes(client) == [ExtendedKeyUsageOID.CLIENT_AUTH]
    assert purposes(server) == [ExtendedKeyUsageOID.SERVER_AUTH]
    for pair in (client, server):
        usage = read(pair).extensions.get_extension_for_class(x509.KeyUsage).value
        assert (usage.digital_signature, usage.key_cert_sign, usage.crl_sign) == (True, False, False)
    for pair, is_ca in ((own, True), (client, False), (server, False)):
        assert read(pair).extensions.get_extension_for_class(x509.BasicConstraints).value.ca is is_ca
    assert read(client).subject.get_attributes_for_oid(NameOID.COMMON_NAME)[0].value == "ada"


def test_certificates_last_a_year_and_never_longer_than_their_authority() -> None:
    own = authority.create("p", NOW)
    assert authority.sign_client(own, "ada", NOW).expires_at == NOW + timedelta(days=365)
    late = own.expires_at - timedelta(days=10)
    assert authority.sign_client(own, "ada", late).expires_at == own.expires_at
    assert authority.sign_server(own, NOW).expires_at == own.expires_at


def test_a_revocation_list_names_those_that_are_revoked_and_lasts_as_long_as_the_authority() -> None:
    own = authority.create("p", NOW)
    good, bad = (authority.sign_client(own, name, NOW) for name in ("good", "bad"))
    text = authority.revocations(own, [(bad.serial, NOW)], NOW)
    found = x509.load_pem_x509_crl(text.encode())
    assert found.is_signature_valid(read(own).public_key())  # type: ignore[arg-type]
    assert found.get_revoked_certificate_by_serial_number(int(bad.serial, 16)) is not None
    assert found.get_revoked_certificate_by_serial_number(int(good.serial, 16)) is None
    assert found.next_update_utc == own.expires_at


def test_names_are_cut_to_what_a_certificate_can_hold() -> None:
    own = authority.create("p" * 200, NOW)
    assert len(read(own).subject.get_attributes_for_oid(NameOID.COMMON_NAME)[0].value) == 64
    assert read(authority.sign_client(own, "ä" * 200, NOW))


def test_a_key_belongs_to_its_certificate_and_is_never_shown() -> None:
    pair = authority.create("p", NOW)
    key = serialization.load_pem_private_key(pair.key.encode(), None)
    assert key.public_key() == read(pair).public_key()
    assert "PRIVATE" not in repr(pair)
