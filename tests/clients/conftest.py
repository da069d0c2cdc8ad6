"""The servers that all clients are tried on, and the certificates that TLS needs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from tests.certificates import Certificates, make_certificates
from tests.harness import ServerProcess, free_port


@dataclass(frozen=True, slots=True)
class Servers:
    """One that anybody may use, in clear text or over TLS, and one with a password.

    A test may restart the open one: tests run one after the other.
    """

    open: ServerProcess
    tls_port: int
    guarded: ServerProcess
    password: str
    certificates: Certificates


@pytest.fixture(scope="session")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Servers]:
    directory = tmp_path_factory.mktemp("clients")
    certificates = make_certificates(directory / "certificates")
    tls_port = free_port()
    with_tls = ServerProcess(
        directory / "open",
        tls_port=tls_port,
        tls_cert_file=certificates.server_cert,
        tls_key_file=certificates.server_key,
        tls_ca_cert_file=certificates.ca,
        tls_auth_clients="no",
    )
    guarded = ServerProcess(directory / "guarded", requirepass="secret")
    try:
        with_tls.start()
        guarded.start()
        yield Servers(with_tls, tls_port, guarded, "secret", certificates)
    finally:
        with_tls.close()
        guarded.close()
