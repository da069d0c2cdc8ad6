"""TLS: the directives and what is wrong with them, handshakes good and bad, other certificates
while the server runs, and the server as clients see it through TLS.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import shutil
import socket
import ssl
import subprocess
import time
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import redis
from cryptography.hazmat.primitives import serialization
from redis.backoff import NoBackoff
from redis.retry import Retry

from resp_server import doors
from resp_server.doors import TlsDoor
from resp_server.listening import CannotListen
from resp_server.settings import BadSetting, Settings
from resp_server.tls import BadTls, server_context
from tests.certificates import Certificates, make_certificates
from tests.harness import ServerProcess, eventually, free_port, until
from tests.server.echo import Doors, answers, connected, opened, run, says
from tests.server.test_lifecycle import run_server
from tests.wire import Wire, encode

MakeServer = Callable[..., ServerProcess]
PASSPHRASE = "correct horse"
TLSV1_2, TLSV1_3 = ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return make_certificates(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="module")
def others(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    """Those of an authority that nobody trusts."""
    return make_certificates(tmp_path_factory.mktemp("others"))


def directives(certificates: Certificates, **more: Any) -> dict[str, Any]:
    """What a server with TLS has to be told; clients need no certificate."""
    return {
        "tls_cert_file": str(certificates.server_cert),
        "tls_key_file": str(certificates.server_key),
        "tls_auth_clients": "no",
        **more,
    }


def client_context(
    certificates: Certificates, *, own: Certificates | None = None, most: Any = TLSV1_3
) -> ssl.SSLContext:
    """A client that trusts the authority; `own`: with a certificate of this one's."""
    context = ssl.create_default_context(cafile=str(certificates.ca))
    context.maximum_version = most
    if own is not None:
        context.load_cert_chain(own.client_cert, own.client_key)
    return context


@contextlib.asynccontextmanager
async def opened_with_tls(certificates: Certificates, **more: Any) -> AsyncIterator[Doors]:
    """One address with TLS, and nothing else."""
    given = directives(certificates, port=0, tls_port=free_port(), **more)
    async with opened(**given) as open_doors:
        yield open_doors


async def answers_tls(open_doors: Doors, context: ssl.SSLContext) -> bool:
    """Whether a client gets in and is understood. A TLSv1.3 client learns only after its own side
    of the handshake that it is not wanted."""
    try:
        return await answers("127.0.0.1", open_doors.settings.tls_port, context)
    except asyncio.IncompleteReadError:
        return False


# The directives


@pytest.fixture(scope="module")
def strange(tmp_path_factory: pytest.TempPathFactory, certificates: Certificates) -> Path:
    """A directory of files that are not what they are taken for."""
    directory = tmp_path_factory.mktemp("strange")
    (directory / "garbage").write_bytes(b"\x00garbage\xff\n")
    certificate = b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"
    (directory / "broken.crt").write_bytes(certificate)
    key = serialization.load_pem_private_key(certificates.server_key.read_bytes(), None)
    secret = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.BestAvailableEncryption(PASSPHRASE.encode()),
    )
    (directory / "secret.key").write_bytes(secret)
    return directory


WRONG = [
    ({"tls_cert_file": ""}, "no tls-cert-file is configured"),
    ({"tls_key_file": ""}, "no tls-key-file is configured"),
    ({"tls_cert_file": "{strange}/missing"}, "tls-cert-file {strange}/missing: No such file or"),
    ({"tls_key_file": "{strange}"}, "tls-key-file {strange}: Is a directory"),
    ({"tls_cert_file": "{strange}/garbage"}, "tls-cert-file {strange}/garbage holds no cert"),
    ({"tls_cert_file": "{strange}/broken.crt"}, "tls-cert-file {strange}/broken.crt holds no c"),
    ({"tls_key_file": "{strange}/garbage"}, "tls-key-file {strange}/garbage holds no key"),
    ({"tls_key_file": "{other_key}"}, "the key in tls-key-file {other_key} is not that of the"),
    ({"tls_key_file": "{strange}/secret.key"}, "secret.key: tls-key-file-pass is not its pass"),
    (
        {"tls_key_file": "{strange}/secret.key", "tls_key_file_pass": "wrong"},
        "secret.key: tls-key-file-pass is not its passphrase",
    ),
    (
        {"tls_key_file": "{strange}/secret.key", "tls_key_file_pass": "x" * 2000},
        "secret.key: tls-key-file-pass is not its passphrase",
    ),
    ({"tls_auth_clients": "yes"}, "neither tls-ca-cert-file nor tls-ca-cert-dir"),
    ({"tls_auth_clients": "optional"}, "neither tls-ca-cert-file nor tls-ca-cert-dir"),
    ({"tls_ca_cert_file": "{strange}/missing"}, "tls-ca-cert-file {strange}/missing: No such f"),
    ({"tls_ca_cert_file": "{strange}/garbage"}, "tls-ca-cert-file {strange}/garbage holds no c"),
    ({"tls_ca_cert_dir": "{strange}/missing"}, "tls-ca-cert-dir {strange}/missing is not a dir"),
    ({"tls_ciphers": "ROT13"}, "tls-ciphers 'ROT13': no such cipher"),
    ({"tls_protocols": "TLSv1.1 TLSv1.3"}, "a version between two others is left out"),
]


@pytest.mark.parametrize(("wrong", "message"), WRONG, ids=[message for _, message in WRONG])
def test_what_is_wrong_is_said_in_one_line(
    certificates: Certificates,
    others: Certificates,
    strange: Path,
    wrong: dict[str, str],
    message: str,
) -> None:
    names = {"strange": strange, "other_key": others.server_key}
    given = directives(certificates, **{name: text.format(**names) for name, text in wrong.items()})
    with pytest.raises(BadTls) as refusal:
        server_context(Settings(**given))
    assert message.format(**names) in str(refusal.value)
    assert "\n" not in str(refusal.value)


def test_nothing_is_opened_without_a_certificate() -> None:
    async def test() -> None:
        port = free_port()
        with pytest.raises(CannotListen, match="cannot offer TLS: no tls-cert-file is configured"):
            async with opened(port=port, tls_port=free_port()):
                pass
        assert not await answers("127.0.0.1", port)

    run(test)


def test_a_key_with_a_passphrase(certificates: Certificates, strange: Path) -> None:
    secret = {"tls_key_file": str(strange / "secret.key"), "tls_key_file_pass": PASSPHRASE}

    async def test() -> None:
        async with opened_with_tls(certificates) as plain:
            plain.change(**secret)
            assert await answers_tls(plain, client_context(certificates))

    run(test)


# Who gets in


def test_the_same_addresses_with_and_without_tls(certificates: Certificates) -> None:
    async def test() -> None:
        given = directives(certificates, bind=("127.0.0.1", "127.0.0.2"), tls_port=free_port())
        async with opened(**given) as both:
            context = client_context(certificates)
            context.check_hostname = False  # the certificate is not for 127.0.0.2
            for host in both.settings.bind:
                assert await answers(host, both.settings.port)
                assert await answers(host, both.settings.tls_port, context)

    run(test)


@pytest.mark.parametrize("most", [TLSV1_2, TLSV1_3])
@pytest.mark.parametrize(
    ("mode", "with_none", "with_good", "with_bad"),
    [
        ("yes", False, True, False),
        ("optional", True, True, False),
        ("no", True, True, True),
    ],
)
def test_certificates_of_clients(
    certificates: Certificates,
    others: Certificates,
    most: Any,
    mode: str,
    with_none: bool,
    with_good: bool,
    with_bad: bool,
) -> None:
    async def test() -> None:
        async with opened_with_tls(
            certificates, tls_ca_cert_file=str(certificates.ca), tls_auth_clients=mode
        ) as secure:
            for own, welcome in ((None, with_none), (certificates, with_good), (others, with_bad)):
                context = client_context(certificates, own=own, most=most)
                assert await answers_tls(secure, context) == welcome

    run(test)


@pytest.mark.parametrize(
    ("most", "reason"),
    [
        (TLSV1_2, "SSLV3_ALERT_HANDSHAKE_FAILURE"),
        (TLSV1_3, "TLSV13_ALERT_CERTIFICATE_REQUIRED"),
    ],
)
def test_a_client_is_told_why_it_is_refused(
    certificates: Certificates, most: Any, reason: str
) -> None:
    async def test() -> None:
        async with opened_with_tls(
            certificates, tls_ca_cert_file=str(certificates.ca), tls_auth_clients="yes"
        ) as secure:
            with pytest.raises(ssl.SSLError) as refusal:
                async with connected(
                    "127.0.0.1", secure.settings.tls_port, client_context(certificates, most=most)
                ) as (reader, _):
                    await reader.read()
            assert refusal.value.reason == reason

    run(test)


@pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl is missing")
def test_authorities_in_a_directory(certificates: Certificates, tmp_path: Path) -> None:
    shutil.copy(certificates.ca, tmp_path)
    subprocess.run(["openssl", "rehash", tmp_path], check=True, capture_output=True)

    async def test() -> None:
        async with opened_with_tls(
            certificates, tls_ca_cert_dir=str(tmp_path), tls_auth_clients="yes"
        ) as secure:
            assert await answers_tls(secure, client_context(certificates, own=certificates))
            assert not await answers_tls(secure, client_context(certificates))

    run(test)


@pytest.mark.parametrize(
    ("protocols", "versions"),
    [
        ("", {"TLSv1.2", "TLSv1.3"}),
        ("TLSv1.2", {"TLSv1.2"}),
        ("tlsv1.3", {"TLSv1.3"}),
        ("TLSv1.2 TLSv1.3", {"TLSv1.2", "TLSv1.3"}),
        ("TLSv1 TLSv1.1 TLSv1.2", {"TLSv1.2"}),
    ],
)
def test_protocols(certificates: Certificates, protocols: str, versions: set[str]) -> None:
    async def test() -> None:
        found = set()
        async with opened_with_tls(certificates, tls_protocols=protocols) as secure:
            for version in (TLSV1_2, TLSV1_3):
                context = client_context(certificates, most=version)
                context.minimum_version = version
                with contextlib.suppress(OSError):
                    async with connected("127.0.0.1", secure.settings.tls_port, context) as (
                        reader,
                        writer,
                    ):
                        assert await says(reader, writer)
                        found.add(writer.get_extra_info("ssl_object").version())
        assert found == versions

    run(test)


@pytest.mark.parametrize(
    ("preference", "chosen"), [(True, "AES256-GCM-SHA384"), (False, "AES128-GCM-SHA256")]
)
def test_ciphers_and_whose_order_counts(
    certificates: Certificates, preference: bool, chosen: str
) -> None:
    given = {
        "tls_ciphers": "ECDHE-ECDSA-AES256-GCM-SHA384:ECDHE-ECDSA-AES128-GCM-SHA256",
        "tls_prefer_server_ciphers": preference,
    }

    async def test() -> None:
        context = client_context(certificates, most=TLSV1_2)
        context.set_ciphers("ECDHE-ECDSA-AES128-GCM-SHA256:ECDHE-ECDSA-AES256-GCM-SHA384")
        async with (
            opened_with_tls(certificates, **given) as secure,
            connected("127.0.0.1", secure.settings.tls_port, context) as (reader, writer),
        ):
            assert await says(reader, writer)
            assert writer.get_extra_info("cipher")[0].endswith(chosen)
            context.set_ciphers("ECDHE-ECDSA-CHACHA20-POLY1305")
            assert not await answers_tls(secure, context)

    run(test)


# Who does not


@pytest.mark.parametrize(
    "garbage",
    [b"PING\r\n", b"\x00" * 1000, b"\xff" * 70_000, b"GET / HTTP/1.1\r\n\r\n", b"\x16\x03\x01\xff"],
    ids=["a plain client", "zeros", "much", "a browser", "half a handshake"],
)
@pytest.mark.parametrize("leaves", [True, False])
def test_garbage_disturbs_nobody(
    certificates: Certificates, caplog: pytest.LogCaptureFixture, garbage: bytes, leaves: bool
) -> None:
    caplog.set_level(logging.INFO)

    async def test() -> None:
        async with (
            opened_with_tls(certificates) as secure,
            connected("127.0.0.1", secure.settings.tls_port) as (_, stranger),
            connected("127.0.0.1", secure.settings.tls_port, client_context(certificates)) as (
                reader,
                writer,
            ),
        ):
            stranger.write(garbage)
            if leaves:
                stranger.transport.abort()
            assert await says(reader, writer)
            assert len(secure.connected) == 1
            assert await answers_tls(secure, client_context(certificates))

    run(test)
    assert [record.getMessage() for record in caplog.records if record.levelno > logging.INFO] == []


async def sent_away(reader: asyncio.StreamReader) -> bool:
    """Once the server has ended the connection."""
    with contextlib.suppress(ConnectionError):
        await reader.read()
    return True


def test_a_handshake_that_never_ends_is_given_up(
    certificates: Certificates, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(doors, "HANDSHAKE_SECONDS", 0.05)

    async def test() -> None:
        async with (
            opened_with_tls(certificates) as secure,
            connected("127.0.0.1", secure.settings.tls_port) as (silent, _),
            connected("127.0.0.1", secure.settings.tls_port) as (halfway, stranger),
        ):
            stranger.write(b"\x16\x03\x01")
            assert await sent_away(silent)
            assert await sent_away(halfway)
            assert await answers_tls(secure, client_context(certificates))

    run(test)
    assert caplog.records == []


def test_the_oldest_of_too_many_handshakes_is_given_up(
    certificates: Certificates, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(doors, "MOST_HANDSHAKES", 3)

    async def test() -> None:
        async with opened_with_tls(certificates) as secure, contextlib.AsyncExitStack() as stack:
            port = secure.settings.tls_port
            strangers = [
                await stack.enter_async_context(connected("127.0.0.1", port)) for _ in range(4)
            ]
            assert await sent_away(strangers[0][0])
            assert await answers_tls(secure, client_context(certificates))
            assert await sent_away(strangers[1][0])
            assert not strangers[3][0].at_eof()

    run(test)


def test_of_a_crowd_of_silent_strangers_few_are_kept(
    certificates: Certificates, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(doors, "MOST_HANDSHAKES", 3)

    async def test() -> None:
        async with opened_with_tls(certificates) as secure:
            port = secure.settings.tls_port
            # All of them are there before the loop looks.
            strangers = [socket.create_connection(("127.0.0.1", port)) for _ in range(20)]
            (door,) = (each for each in secure.listeners._doors.values() if type(each) is TlsDoor)
            await eventually(lambda: len(strangers) > 3 and 0 < len(door._taking) <= 3)
            assert await answers_tls(secure, client_context(certificates))
            for _ in range(10):
                await asyncio.sleep(0)
                assert len(door._taking) <= 3
            for stranger in strangers:
                stranger.close()

    run(test)


def test_closing_the_doors_sends_away_who_shakes_hands(
    certificates: Certificates, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(doors, "HANDSHAKE_SECONDS", 1000.0)

    async def test() -> None:
        async with (
            opened_with_tls(certificates) as secure,
            connected("127.0.0.1", secure.settings.tls_port) as (stranger, _),
            connected("127.0.0.1", secure.settings.tls_port, client_context(certificates)) as (
                reader,
                writer,
            ),
        ):
            assert await says(reader, writer)
            secure.listeners.close()
            assert await sent_away(stranger)
            assert await says(reader, writer), "who is in stays in"
            assert not await answers_tls(secure, client_context(certificates))

    run(test)


def test_a_lack_of_descriptors_passes(
    certificates: Certificates, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(doors, "ACCEPT_AGAIN_SECONDS", 0.01)
    accept = socket.socket.accept
    failures = iter([OSError(24, "Too many open files"), ConnectionAbortedError()])

    def failing(self: socket.socket) -> Any:
        for failure in failures:
            raise failure
        return accept(self)

    monkeypatch.setattr(socket.socket, "accept", failing)

    async def test() -> None:
        async with opened_with_tls(certificates) as secure:
            assert await answers_tls(secure, client_context(certificates))

    run(test)
    assert [record.getMessage() for record in caplog.records] == [
        "a connection could not be accepted: Too many open files"
    ]


# Other certificates while it runs


def test_new_certificates_are_for_new_connections(
    certificates: Certificates, others: Certificates
) -> None:
    async def test() -> None:
        async with (
            opened_with_tls(certificates) as secure,
            connected("127.0.0.1", secure.settings.tls_port, client_context(certificates)) as (
                reader,
                writer,
            ),
        ):
            assert await says(reader, writer)
            secure.change(
                tls_cert_file=str(others.server_cert), tls_key_file=str(others.server_key)
            )
            assert await answers_tls(secure, client_context(others))
            assert not await answers_tls(secure, client_context(certificates))
            assert await says(reader, writer)

    run(test)


def test_a_file_with_a_new_certificate_is_read_again(
    certificates: Certificates, others: Certificates, tmp_path: Path
) -> None:
    certificate, key = tmp_path / "server.crt", tmp_path / "server.key"

    def put(source: Certificates) -> None:
        shutil.copy(source.server_cert, certificate)
        shutil.copy(source.server_key, key)

    async def test() -> None:
        put(certificates)
        given = {"tls_cert_file": str(certificate), "tls_key_file": str(key)}
        async with opened(port=0, tls_port=free_port(), tls_auth_clients="no", **given) as secure:
            assert await answers_tls(secure, client_context(certificates))
            put(others)
            assert await answers_tls(secure, client_context(certificates)), "not read yet"
            secure.change(tls_cert_file=str(certificate))
            assert await answers_tls(secure, client_context(others))

    run(test)


def test_certificates_that_cannot_be_used_change_nothing(
    certificates: Certificates, others: Certificates, caplog: pytest.LogCaptureFixture
) -> None:
    async def test() -> None:
        async with opened_with_tls(certificates) as secure:
            with pytest.raises(BadSetting) as refusal:
                secure.change(tls_key_file=str(others.server_key))
            assert str(refusal.value) == "Unable to update TLS configuration. Check server logs."
            assert refusal.value.directive == "tls-key-file"
            assert f"the key in tls-key-file {others.server_key} is not that of" in caplog.text
            assert await answers_tls(secure, client_context(certificates))

    run(test)


def test_certificates_change_only_together_with_the_port(
    certificates: Certificates, others: Certificates
) -> None:
    async def test() -> None:
        async with opened_with_tls(certificates) as secure:
            port = secure.settings.tls_port
            with (
                socket.create_server(("127.0.0.1", 0)) as other,
                pytest.raises(BadSetting, match="Unable to listen on this port"),
            ):
                secure.change(
                    tls_cert_file=str(others.server_cert),
                    tls_key_file=str(others.server_key),
                    tls_port=other.getsockname()[1],
                )
            assert await answers("127.0.0.1", port, client_context(certificates))

    run(test)


def test_tls_is_switched_on_moved_and_off(certificates: Certificates) -> None:
    async def test() -> None:
        context = client_context(certificates)
        async with opened() as secure:
            first, second = free_port(), free_port()
            with pytest.raises(BadSetting, match="Unable to update TLS configuration"):
                secure.change(tls_port=first)
            secure.change(**directives(certificates), tls_port=first)
            assert await answers("127.0.0.1", first, context)
            with pytest.raises(BadSetting, match="Unable to listen on this port"):
                secure.change(tls_port=secure.settings.port)
            assert await answers("127.0.0.1", first, context)
            secure.change(tls_port=second)
            assert not await answers("127.0.0.1", first, context)
            assert await answers("127.0.0.1", second, context)
            secure.change(tls_port=0, tls_cert_file="")
            assert not await answers("127.0.0.1", second, context)
            assert await answers("127.0.0.1", secure.settings.port)

    run(test)


# The server through TLS


class SecureServer(ServerProcess):
    """A server without a plain port, whose clients come through TLS."""

    def __init__(
        self,
        directory: Path,
        certificates: Certificates,
        *,
        own: Certificates | None = None,
        **more: Any,
    ) -> None:
        """`own` is what its clients have certificates of, if they have any."""
        self.certificates = certificates
        self.own = own
        self.tls_port = free_port()
        super().__init__(
            directory, port=0, tls_port=self.tls_port, **directives(certificates, **more)
        )

    def raw(self, timeout: float = 20.0) -> socket.socket:
        connection = socket.create_connection(("127.0.0.1", self.tls_port), timeout=timeout)
        try:
            context = client_context(self.certificates, own=self.own)
            return context.wrap_socket(connection, server_hostname="127.0.0.1")
        except OSError:
            connection.close()
            raise

    def client(self, protocol: int = 3, **options: Any) -> redis.Redis:
        return redis.Redis(
            port=self.tls_port,
            protocol=protocol,
            ssl=True,
            ssl_ca_certs=str(self.certificates.ca),
            ssl_check_hostname=True,
            retry=Retry(NoBackoff(), 0),
            socket_timeout=60,
            **options,
        )


@pytest.fixture(scope="module")
def secure(
    tmp_path_factory: pytest.TempPathFactory, certificates: Certificates
) -> Iterator[SecureServer]:
    running = SecureServer(tmp_path_factory.mktemp("secure") / "data", certificates)
    try:
        yield running.start()  # type: ignore[misc]
    finally:
        running.close()


@pytest.fixture
def wire(secure: SecureServer) -> Iterator[Wire]:
    with Wire(secure) as connected_wire:
        yield connected_wire
    assert "Traceback" not in secure.log


@pytest.mark.parametrize("protocol", [2, 3])
def test_a_stock_client_through_tls(secure: SecureServer, protocol: int, dataset: str) -> None:
    value = bytes(range(256))
    with secure.client(protocol=protocol) as client:
        assert client.execute_command("WCPUT", dataset, value, 1, value, value) == 1
        assert client.execute_command("WCGET", dataset, value) == [b"0", [[value, [[1, value]]]]]
        pipeline = client.pipeline(transaction=False)
        for number in range(10_000):
            pipeline.execute_command("WCPUT", dataset, f"r{number}", 1, "c", number)
        assert pipeline.execute() == [1] * 10_000


def test_replies_of_megabytes_through_tls(wire: Wire, dataset: str) -> None:
    value = b"0123456789abcdef" * 250_000
    assert wire.call("WCPUT", dataset, "r", 1, "c", value) == 1
    wire.send(encode("WCGET", dataset, "r") * 5)
    assert wire.read(5) == [[b"0", [[b"c", [[1, value]]]]]] * 5


def test_bytes_one_by_one_through_tls(wire: Wire) -> None:
    for byte in encode("ECHO", "slowly"):
        wire.send(bytes([byte]))
    assert wire.read(1) == [b"slowly"]


def test_a_client_that_never_reads_through_tls(secure: SecureServer, dataset: str) -> None:
    with Wire(secure) as greedy, Wire(secure) as other:
        assert other.call("WCPUT", dataset, "r", 1, "c", b"x" * 1_000_000) == 1
        greedy.send(encode("WCGET", dataset, "r") * 100)
        for _ in range(100):
            assert other.call("PING") == b"PONG"
        other.send(encode("WCGET", dataset, "r"))
        assert other.read(1)[0][0] == b"0"


def test_quit_and_a_polite_goodbye_through_tls(secure: SecureServer) -> None:
    with Wire(secure) as leaver, Wire(secure) as stayer:
        assert leaver.call("QUIT") == b"OK"
        assert leaver.read_to_end() == b""
        with Wire(secure) as polite:
            number = polite.call("CLIENT", "ID")
            assert isinstance(polite.socket, ssl.SSLSocket)
            polite.send(encode("PING"))
            polite.read(1)
            polite.socket.unwrap().close()
        until(lambda: b"id=%d " % number not in stayer.call("CLIENT", "LIST"))
    assert "eof_received" not in secure.log


def test_garbage_on_the_port_of_a_server(secure: SecureServer, wire: Wire) -> None:
    address, before = ("127.0.0.1", secure.tls_port), len(secure.log)
    for garbage in (b"PING\r\n", b"\xff" * 100_000, b"\x16\x03\x01"):
        with socket.create_connection(address, timeout=20) as stranger:
            stranger.sendall(garbage)
            assert wire.call("PING") == b"PONG"
    assert secure.log[before:] == ""


def test_certificates_are_changed_by_config_set(
    secure: SecureServer, wire: Wire, others: Certificates, certificates: Certificates
) -> None:
    refused = wire.call("CONFIG", "SET", "tls-cert-file", str(others.server_cert))
    assert str(refused) == (
        "ERR CONFIG SET failed (possibly related to argument 'tls-cert-file') - Unable to update"
        " TLS configuration. Check server logs."
    )
    assert f"is not that of the certificate in {others.server_cert}" in secure.log

    def change(source: Certificates) -> Any:
        pairs = ("tls-cert-file", str(source.server_cert), "tls-key-file", str(source.server_key))
        return wire.call("CONFIG", "SET", *pairs)

    assert change(others) == b"OK"
    with pytest.raises(ssl.SSLCertVerificationError):
        secure.raw()
    assert change(certificates) == b"OK"
    with Wire(secure) as again:
        assert again.call("PING") == b"PONG"


def test_a_server_that_requires_certificates(
    certificates: Certificates, others: Certificates, tmp_path: Path
) -> None:
    running = SecureServer(
        tmp_path / "data",
        certificates,
        own=certificates,
        tls_ca_cert_file=certificates.ca,
        tls_auth_clients="yes",
    )
    try:
        running.start()
        good: dict[str, Any] = {
            "ssl_certfile": str(certificates.client_cert),
            "ssl_keyfile": str(certificates.client_key),
        }
        bad: dict[str, Any] = {
            "ssl_certfile": str(others.client_cert),
            "ssl_keyfile": str(others.client_key),
        }
        with running.client(**good) as client:
            assert client.ping()
        for options in ({}, bad):
            with running.client(**options) as client, pytest.raises(redis.ConnectionError):
                client.ping()
        assert "Traceback" not in running.log
    finally:
        running.close()


def test_clients_over_the_limit_are_refused_through_tls(
    certificates: Certificates, tmp_path: Path
) -> None:
    running = SecureServer(tmp_path / "data", certificates, maxclients=1)
    try:
        running.start()
        with Wire(running) as first:
            assert first.call("PING") == b"PONG"
            with Wire(running) as second:
                assert second.read_to_end() == b"-ERR max number of clients reached\r\n"
    finally:
        running.close()


def test_a_subscriber_that_never_reads_is_cut_off_through_tls(
    certificates: Certificates, tmp_path: Path
) -> None:
    running = SecureServer(
        tmp_path / "data", certificates, client_output_buffer_limit="pubsub 2mb 0 0"
    )
    try:
        running.start()
        with Wire(running) as silent, Wire(running) as publisher:
            silent.call("SUBSCRIBE", "news")
            sent = 0
            while publisher.call("PUBLISH", "news", "x" * 100_000) == 1:
                sent += 1
                assert sent < 500, "nobody was cut off"
            with contextlib.suppress(OSError):
                silent.read_to_end()
            until(lambda: b"connected_clients:1\r\n" in publisher.call("INFO", "clients"))
        assert "Traceback" not in running.log
    finally:
        running.close()


def test_a_server_ends_with_clients_in_tls(certificates: Certificates, tmp_path: Path) -> None:
    running = SecureServer(tmp_path / "data", certificates)
    try:
        running.start()
        with Wire(running) as client:
            assert client.call("PING") == b"PONG"
            with socket.create_connection(("127.0.0.1", running.tls_port)):
                begun = time.monotonic()
                assert running.stop() == 0
                assert time.monotonic() - begun < 5
        assert "Traceback" not in running.log
    finally:
        running.close()


def test_a_server_with_a_wrong_certificate_does_not_begin(
    certificates: Certificates, others: Certificates, tmp_path: Path
) -> None:
    given = directives(certificates, tls_key_file=others.server_key, tls_port=free_port(), port=0)
    words = [word for name, value in given.items() for word in (f"--{name}", str(value))]
    ended = run_server(
        *(word.replace("_", "-") if word.startswith("--") else word for word in words),
        *("--dir", tmp_path / "data"),
    )
    assert ended.returncode == 1
    assert ended.stderr.splitlines() == [
        f"colonnade-server cannot start: cannot offer TLS: the key in tls-key-file"
        f" {others.server_key} is not that of the certificate in {certificates.server_cert}"
    ]
    assert "Traceback" not in ended.stdout
