"""How the command line reaches a server: passwords, sockets, TLS; what is said where it fails."""

from __future__ import annotations

import argparse
import contextlib
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from resp_server.cli.link import Link, Refused
from resp_server.cli.server import add_server_options, linked
from tests.certificates import Certificates, make_certificates
from tests.harness import ROOT, ServerProcess, free_port


def link(*words: object) -> Link:
    """As the commands make one of their options."""
    parser = argparse.ArgumentParser()
    add_server_options(parser)
    return linked(parser.parse_args([str(word) for word in words]))


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return make_certificates(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="module")
def others(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    """Those of an authority that nobody trusts."""
    return make_certificates(tmp_path_factory.mktemp("others"))


@pytest.fixture(scope="module")
def secure(
    tmp_path_factory: pytest.TempPathFactory, certificates: Certificates
) -> Iterator[ServerProcess]:
    """A server with a port for TLS, `directives["tls_port"]`, that asks for certificates."""
    running = ServerProcess(
        tmp_path_factory.mktemp("secure") / "data",
        tls_port=free_port(),
        tls_cert_file=certificates.server_cert,
        tls_key_file=certificates.server_key,
        tls_ca_cert_file=certificates.ca,
    )
    try:
        yield running.start()
    finally:
        running.close()


@pytest.fixture
def address(secure: ServerProcess) -> str:
    """Where TLS is spoken."""
    return f"127.0.0.1:{secure.directives['tls_port']}"


@pytest.fixture
def own(certificates: Certificates) -> tuple[object, ...]:
    return ("--cert", certificates.client_cert, "--key", certificates.client_key)


# TLS


def test_the_server_s_certificate_is_checked_and_ours_is_shown(
    address: str, certificates: Certificates, own: tuple[object, ...], tmp_path: Path
) -> None:
    both = tmp_path / "both.pem"
    both.write_bytes(certificates.client_cert.read_bytes() + certificates.client_key.read_bytes())
    trusted = ("--server", address, "--tls", "--cacert", certificates.ca)
    with link(*trusted, *own) as first, link(*trusted, "--cert", both) as second:
        assert first.call(b"PING") == second.call(b"PING") == b"PONG"
        value = b"x" * 3_000_000
        assert first.pipeline([[b"ECHO", value]] * 3) == [value] * 3
    with link(*trusted, *own, "--sni", "localhost") as named:
        assert named.call(b"PING") == b"PONG"
    with link("--server", address, "--tls", "--insecure", *own) as trusting:
        assert trusting.call(b"PING") == b"PONG"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("--cacert {others.ca} {own}", "its certificate is not accepted: "),
        ("{own}", "its certificate is not accepted: "),
        (
            "--cacert {good.ca} {own} --sni db.example.org",
            "is not accepted: Hostname mismatch, certificate is not valid for 'db.example.org' (",
        ),
        ("--cacert {good.ca}", "it asks for a certificate: --cert and --key"),
        (
            "--cacert {good.ca} --cert {others.client_cert} --key {others.client_key}",
            "it does not know who signed the certificate of --cert",
        ),
        ("--cacert {here}/missing", "--cacert {here}/missing: No such file or directory"),
        ("--cacert {good.server_key}", "--cacert {good.server_key}: there is no certificate in it"),
        ("--cert {here}/missing", "--cert {here}/missing: No such file or directory"),
        (
            "--cert {good.client_cert} --key {others.client_key}",
            "--key {others.client_key}: there is no certificate with its key in it",
        ),
    ],
)
def test_why_there_is_no_connection_is_said_in_one_line(
    address: str,
    certificates: Certificates,
    others: Certificates,
    own: tuple[object, ...],
    tmp_path: Path,
    words: str,
    message: str,
) -> None:
    def filled(text: str) -> str:
        known = " ".join(map(str, own))
        return text.format(good=certificates, others=others, own=known, here=tmp_path)

    given = ("--server", address, "--tls", *filled(words).split())
    with pytest.raises(Refused) as refusal, link(*given) as reached:
        reached.call(b"PING")
    assert filled(message) in str(refusal.value)
    assert "\n" not in str(refusal.value)


def test_with_tls_where_there_is_none_and_the_other_way_round(
    secure: ServerProcess, address: str, certificates: Certificates
) -> None:
    with pytest.raises(Refused, match="it does not speak TLS there"):
        link("--server", f"127.0.0.1:{secure.port}", "--tls", "--cacert", certificates.ca)
    with link("--server", address) as plain, pytest.raises(Refused, match=r"needs --tls\)"):
        plain.call(b"PING")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--cacert", "x"], "--cacert is nothing without --tls"),
        (["--insecure"], "--insecure is nothing without --tls"),
        (["--tls", "--key", "x"], "--key is nothing without --cert"),
        (["--tls", "--server", "/run/socket"], "--tls is nothing for a unix socket"),
    ],
)
def test_options_that_do_not_go_together(words: list[str], message: str) -> None:
    with pytest.raises(argparse.ArgumentError) as wrong:
        link(*words)
    assert str(wrong.value) == message


def test_all_commands_take_the_same_options(
    address: str,
    secure: ServerProcess,
    certificates: Certificates,
    others: Certificates,
    own: tuple[object, ...],
    tmp_path: Path,
) -> None:
    def colonnade(*words: object, ca: Path) -> subprocess.CompletedProcess[str]:
        reached = ("--server", address, "--tls", "--cacert", ca, *own)
        return subprocess.run(
            [sys.executable, "-m", "resp_server.cli", *map(str, (*words, *reached))],
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
        )

    file = tmp_path / "events.csv"
    file.write_text("row,column,timestamp,value\nr,c,1,v\n")
    for words, done in (
        (("import", "events", file), "1 cells in"),
        (("export", "events", tmp_path / "exported"), "1 cells in 1 files"),
        (("backup", tmp_path / "backup"), "backup "),
    ):
        ended = colonnade(*words, ca=certificates.ca)
        assert (ended.returncode, ended.stderr) == (0, "")
        assert ended.stdout.startswith(done)
    refused = colonnade("import", "events", file, ca=others.ca)
    assert refused.returncode == 1
    (line,) = refused.stderr.splitlines()
    assert line.startswith(f"colonnade import: cannot reach {address}: its certificate is not")


# Without it


def test_passwords_come_from_the_environment(
    server: ServerProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    at = ("--server", f"127.0.0.1:{server.port}", "--user", "linked")
    with server.client() as client:
        client.execute_command("ACL", "SETUSER", "linked", "on", ">right", "+@all")
        for variables, refusal in (
            ({"COLONNADE_PASSWORD": "right"}, None),
            ({"REDISCLI_AUTH": "right"}, None),
            ({"COLONNADE_PASSWORD": "right", "REDISCLI_AUTH": "wrong"}, None),
            ({"COLONNADE_PASSWORD": "", "REDISCLI_AUTH": "right"}, None),
            ({"COLONNADE_PASSWORD": "wrong", "REDISCLI_AUTH": "right"}, "WRONGPASS"),
            ({}, "linked has no password here: set COLONNADE_PASSWORD"),
        ):
            for name in ("COLONNADE_PASSWORD", "REDISCLI_AUTH"):
                monkeypatch.delenv(name, raising=False)
            for name, value in variables.items():
                monkeypatch.setenv(name, value)
            if refusal:
                with pytest.raises(Refused, match=refusal):
                    link(*at)
            else:
                with link(*at) as reached:
                    assert reached.call(b"ACL", b"WHOAMI") == b"linked"
        client.execute_command("ACL", "DELUSER", "linked")


def test_settings_and_fields(server: ServerProcess) -> None:
    with link("--server", f"127.0.0.1:{server.port}") as reached:
        assert reached.setting("dir") == str(server.directory)
        assert reached.fields("server")["tcp_port"] == str(server.port)
        with pytest.raises(Refused, match="has no setting nonsense: is it a Colonnade server"):
            reached.setting("nonsense")


@pytest.mark.parametrize("address", ["127.0.0.1", "127.0.0.1:99999", "127.0.0.1:", "x:y"])
def test_what_is_no_address(address: str) -> None:
    with pytest.raises(Refused, match=f"cannot reach {address}: it is no HOST:PORT"):
        link("--server", address)


def test_by_the_path_of_a_socket(tmp_path: Path) -> None:
    path = tmp_path / "s"
    with answering(socket.AF_UNIX, str(path), b"+PONG\r\n"), link("--server", path) as reached:
        assert reached.call(b"PING") == b"PONG"


def test_what_is_no_server(tmp_path: Path) -> None:
    path = tmp_path / "s"
    with (
        answering(socket.AF_UNIX, str(path), b"HTTP/1.1 400 Bad Request\r\n"),
        link("--server", path) as reached,
        pytest.raises(Refused, match="what came is no reply"),
    ):
        reached.call(b"PING")


@contextlib.contextmanager
def answering(family: socket.AddressFamily, address: str, answer: bytes) -> Iterator[None]:
    """Somebody who says one thing to the first who speaks to it."""

    def answer_one() -> None:
        connection, _ = listener.accept()
        with connection:
            connection.recv(65536)
            connection.sendall(answer)

    with socket.socket(family) as listener:
        listener.bind(address)
        listener.listen()
        thread = threading.Thread(target=answer_one)
        thread.start()
        try:
            yield
        finally:
            thread.join(timeout=20)
