"""The certificate authority of a project's VPN: a root of its own, so that no other project's certificate is valid."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from climate.compute.errors import Conflict

LIFE = timedelta(days=3650)
"""Lifetime of an authority, and of the certificate of its server."""
CLIENT_LIFE = timedelta(days=365)

_CLOCKS_DIFFER = timedelta(minutes=10)
_LONGEST_NAME = 64
"""Maximum bytes of a common name (X.520)."""


@dataclass(frozen=True, slots=True)
class Pair:
    """A certificate and its private key, both in PEM."""

    certificate: str
    key: str = field(repr=False)

    @property
    def serial(self) -> str:
        """Return the serial number of the certificate, in hexadecimal digits."""
        return f"{_certificate(self).serial_number:x}"

    @property
    def expires_at(self) -> datetime:
        """Return the time at which the certificate expires."""
        return _certificate(self).not_valid_after_utc


def create(project_id: str, now: datetime) -> Pair:
    """Return a new authority for a project."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = _name(f"VPN of project {project_id}")
    made = (
        _builder(name, key, now, LIFE)
        .issuer_name(name)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(signs=True), critical=True)
        .sign(key, hashes.SHA256())
    )
    return _pair(made, key)


def sign_server(authority: Pair, now: datetime) -> Pair:
    """Return a certificate for the cloudpipe, valid as long as its authority."""
    life = authority.expires_at - now
    return _signed(authority, "cloudpipe", now, life, ExtendedKeyUsageOID.SERVER_AUTH)


def sign_client(authority: Pair, name: str, now: datetime) -> Pair:
    """Return a certificate for a user; its private key is not stored. Conflict if the authority has expired."""
    if authority.expires_at <= now:
        expired = f"The authority of this VPN expired on {authority.expires_at:%Y-%m-%d}"
        raise Conflict(f"{expired}: delete the cloudpipe with its authority, and create it anew.")
    life = min(CLIENT_LIFE, authority.expires_at - now)
    return _signed(authority, name, now, life, ExtendedKeyUsageOID.CLIENT_AUTH)


def revocations(authority: Pair, revoked: Iterable[tuple[str, datetime]], now: datetime) -> str:
    """Return the certificate revocation list in PEM, of serial numbers and times.

    It is valid as long as the authority, because a cloudpipe reads a new list only when it restarts.
    """
    issuer = _certificate(authority)
    made = x509.CertificateRevocationListBuilder().issuer_name(issuer.subject)
    made = made.last_update(now - _CLOCKS_DIFFER).next_update(issuer.not_valid_after_utc)
    for serial, at in revoked:
        entry = x509.RevokedCertificateBuilder().serial_number(int(serial, 16)).revocation_date(at).build()
        made = made.add_revoked_certificate(entry)
    return made.sign(_key(authority), hashes.SHA256()).public_bytes(serialization.Encoding.PEM).decode()


def _signed(authority: Pair, name: str, now: datetime, life: timedelta, purpose: x509.ObjectIdentifier) -> Pair:
    key, issuer = ec.generate_private_key(ec.SECP256R1()), _certificate(authority)
    above = x509.AuthorityKeyIdentifier.from_issuer_public_key(_key(authority).public_key())
    made = (
        _builder(_name(name), key, now, life)
        .issuer_name(issuer.subject)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(signs=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([purpose]), critical=False)
        .add_extension(above, critical=False)
        .sign(_key(authority), hashes.SHA256())
    )
    return _pair(made, key)


def _usage(*, signs: bool) -> x509.KeyUsage:
    """Return the usage of a key: signing certificates, or else connections; OpenVPN refuses keys without it."""
    return x509.KeyUsage(
        digital_signature=not signs,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=not signs,
        key_cert_sign=signs,
        crl_sign=signs,
        encipher_only=False,
        decipher_only=False,
    )


def _builder(
    name: x509.Name, key: ec.EllipticCurvePrivateKey, now: datetime, life: timedelta
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _CLOCKS_DIFFER)
        .not_valid_after(now + life)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    )


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text.encode()[:_LONGEST_NAME].decode(errors="ignore"))])


def _pair(certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey) -> Pair:
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return Pair(certificate.public_bytes(serialization.Encoding.PEM).decode(), private.decode())


def _certificate(pair: Pair) -> x509.Certificate:
    return x509.load_pem_x509_certificate(pair.certificate.encode())


def _key(pair: Pair) -> ec.EllipticCurvePrivateKey:
    key = serialization.load_pem_private_key(pair.key.encode(), None)
    assert isinstance(key, ec.EllipticCurvePrivateKey)
    return key
