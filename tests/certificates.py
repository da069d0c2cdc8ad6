"""Certificates for tests of TLS: an authority, a server of 127.0.0.1 and localhost, a client.

Made anew for each test run, in milliseconds: nothing secret is kept in the repository and nothing
expires there. Knows nothing of servers and of pytest; `tests/conftest.py` and the tests say when.
"""

from __future__ import annotations

import datetime
import ipaddress
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID, ObjectIdentifier

# Clocks may differ a little, and a test run does not last a day.
VALID_BEFORE = datetime.timedelta(hours=1)
VALID_AFTER = datetime.timedelta(days=2)


@dataclass(frozen=True, slots=True)
class Certificates:
    """Paths of PEM files. The keys have no passphrase."""

    ca: Path
    server_cert: Path
    server_key: Path
    client_cert: Path
    client_key: Path


@dataclass(frozen=True, slots=True)
class Signed:
    """A certificate with its key, in memory."""

    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey


def make_certificates(directory: Path) -> Certificates:
    """Write an authority's certificate and two that it signed into `directory`, which may exist."""
    directory.mkdir(parents=True, exist_ok=True)
    authority = make_authority("Colonnade test authority")
    server = make_leaf("localhost", ExtendedKeyUsageOID.SERVER_AUTH, authority)
    client = make_leaf("Colonnade test client", ExtendedKeyUsageOID.CLIENT_AUTH, authority)
    paths = Certificates(
        ca=directory / "ca.crt",
        server_cert=directory / "server.crt",
        server_key=directory / "server.key",
        client_cert=directory / "client.crt",
        client_key=directory / "client.key",
    )
    write_certificate(authority, paths.ca)
    write_certificate(server, paths.server_cert)
    write_certificate(client, paths.client_cert)
    write_key(server, paths.server_key)
    write_key(client, paths.client_key)
    return paths


def make_authority(name: str) -> Signed:
    """A self-signed certificate that may sign others and do nothing else."""
    key = ec.generate_private_key(ec.SECP256R1())
    usage = key_usage(sign_certificates=True)
    builder = (
        unsigned(name, name, key)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(usage, critical=True)
    )
    return Signed(builder.sign(key, hashes.SHA256()), key)


def make_leaf(name: str, purpose: ObjectIdentifier, authority: Signed) -> Signed:
    """A certificate for one purpose, valid for loopback by address and by name."""
    key = ec.generate_private_key(ec.SECP256R1())
    names = x509.SubjectAlternativeName(
        [
            x509.DNSName("localhost"),
            x509.IPAddress(ipaddress.ip_address("127.0.0.1")),
            x509.IPAddress(ipaddress.ip_address("::1")),
        ]
    )
    issuer = authority.certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME)[0].value
    builder = (
        unsigned(name, str(issuer), key)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(key_usage(sign_certificates=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([purpose]), critical=False)
        .add_extension(names, critical=False)
        # Python from 3.13 on, with its strict checks, and Go want to know who signed.
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(authority.key.public_key()),
            critical=False,
        )
    )
    return Signed(builder.sign(authority.key, hashes.SHA256()), key)


def unsigned(subject: str, issuer: str, key: ec.EllipticCurvePrivateKey) -> x509.CertificateBuilder:
    """What every certificate has: names, a number, the time it is valid, a key and its digest."""
    now = datetime.datetime.now(datetime.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(common_name(subject))
        .issuer_name(common_name(issuer))
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - VALID_BEFORE)
        .not_valid_after(now + VALID_AFTER)
        .public_key(key.public_key())
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    )


def common_name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def key_usage(*, sign_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not sign_certificates,
        key_cert_sign=sign_certificates,
        crl_sign=sign_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def write_certificate(signed: Signed, path: Path) -> None:
    path.write_bytes(signed.certificate.public_bytes(serialization.Encoding.PEM))


def write_key(signed: Signed, path: Path) -> None:
    encoded = signed.key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    path.touch(mode=0o600)
    path.write_bytes(encoded)
