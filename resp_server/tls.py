"""The TLS directives made into an ssl.SSLContext, for server use.

Reads the files that are named and says in one line which of them cannot be used and why. Knows
nothing of listening and of clients; a context is made anew for every change, never changed.
"""

from __future__ import annotations

import contextlib
import itertools
import socket
import ssl
import warnings
from contextvars import ContextVar
from pathlib import Path
from typing import Any

from resp_server.settings import Settings

_VERSIONS = {
    "tlsv1": ssl.TLSVersion.TLSv1,
    "tlsv1.1": ssl.TLSVersion.TLSv1_1,
    "tlsv1.2": ssl.TLSVersion.TLSv1_2,
    "tlsv1.3": ssl.TLSVersion.TLSv1_3,
}
"""The words of tls-protocols, oldest first."""

_CLIENT_CERTIFICATES = {
    "yes": ssl.VerifyMode.CERT_REQUIRED,
    "optional": ssl.VerifyMode.CERT_OPTIONAL,
    "no": ssl.VerifyMode.CERT_NONE,
}


class BadTls(Exception):
    """The TLS directives cannot be used; the text says which, and names the file if it is one."""


accepted: ContextVar[socket.socket] = ContextVar("accepted")
"""The connection that a task shakes hands on."""


class Handshake(ssl.SSLObject):
    """One that says why when it fails.

    OpenSSL leaves an alert to be sent, but asyncio and uvloop close the connection without it. Then
    clients learn nothing, and redis-cli is killed by SIGPIPE when it complains about that.
    """

    connection: socket.socket
    outgoing: ssl.MemoryBIO

    def do_handshake(self) -> None:
        try:
            super().do_handshake()
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
            raise
        except ssl.SSLError:
            with contextlib.suppress(OSError):
                self.connection.send(self.outgoing.read())
            raise


class ServerContext(ssl.SSLContext):
    """Begins a Handshake on the connection in `accepted`."""

    sslobject_class = Handshake

    def wrap_bio(
        self, incoming: ssl.MemoryBIO, outgoing: ssl.MemoryBIO, *words: Any, **options: Any
    ) -> ssl.SSLObject:
        handshake = super().wrap_bio(incoming, outgoing, *words, **options)
        assert isinstance(handshake, Handshake)
        handshake.connection, handshake.outgoing = accepted.get(), outgoing
        return handshake


def server_context(settings: Settings) -> ServerContext:
    """What connections are encrypted with, as the directives say now. BadTls if they cannot be."""
    context = ServerContext(ssl.PROTOCOL_TLS_SERVER)
    context.options |= ssl.Options.OP_NO_RENEGOTIATION  # it costs a server more than a client
    _choose_protocols(context, settings.tls_protocols)
    _choose_ciphers(context, settings)
    _load_certificate(context, settings)
    _load_authorities(context, settings)
    return context


def _choose_protocols(context: ssl.SSLContext, protocols: str) -> None:
    wanted = [word in protocols.lower().split() for word in _VERSIONS]
    if not any(wanted):
        return  # what Python thinks safe: TLSv1.2 and TLSv1.3, like Redis
    chosen = list(itertools.compress(_VERSIONS.values(), wanted))
    first = wanted.index(True)
    if not all(wanted[first : first + len(chosen)]):
        raise BadTls(f"tls-protocols '{protocols}': a version between two others is left out")
    with warnings.catch_warnings():  # it is the configuration that wants an old one
        warnings.simplefilter("ignore", DeprecationWarning)
        context.minimum_version, context.maximum_version = chosen[0], chosen[-1]


def _choose_ciphers(context: ssl.SSLContext, settings: Settings) -> None:
    if settings.tls_prefer_server_ciphers:
        context.options |= ssl.Options.OP_CIPHER_SERVER_PREFERENCE
    else:
        context.options &= ~ssl.Options.OP_CIPHER_SERVER_PREFERENCE
    if settings.tls_ciphers:
        try:
            context.set_ciphers(settings.tls_ciphers)
        except ssl.SSLError:
            raise BadTls(f"tls-ciphers '{settings.tls_ciphers}': no such cipher") from None


def _load_certificate(context: ssl.SSLContext, settings: Settings) -> None:
    certificate, key = settings.tls_cert_file, settings.tls_key_file
    for directive, path in (("tls-cert-file", certificate), ("tls-key-file", key)):
        if not path:
            raise BadTls(f"no {directive} is configured")
        _check_readable(directive, path)
    # A function, even for no passphrase: without one OpenSSL asks at the terminal.
    passphrase = settings.tls_key_file_pass
    try:
        context.load_cert_chain(certificate, key, password=lambda: passphrase)
    except (ssl.SSLError, ValueError) as error:
        raise BadTls(_what_is_wrong(certificate, key, error)) from None


def _what_is_wrong(certificate: str, key: str, error: ssl.SSLError | ValueError) -> str:
    """OpenSSL does not say which of the two files it failed on."""
    if _reason(error) == "key values mismatch":
        return f"the key in tls-key-file {key} is not that of the certificate in {certificate}"
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_verify_locations(certificate)
    except ssl.SSLError:
        return f"tls-cert-file {certificate} holds no certificate that can be used"
    if b"ENCRYPTED" in Path(key).read_bytes():
        return f"tls-key-file {key}: tls-key-file-pass is not its passphrase"
    if _reason(error):
        return f"tls-cert-file {certificate} with tls-key-file {key}: {_reason(error)}"
    return f"tls-key-file {key} holds no key that can be used"


def _load_authorities(context: ssl.SSLContext, settings: Settings) -> None:
    """Who may have signed the certificates of clients, and whether these need one."""
    file, directory = settings.tls_ca_cert_file, settings.tls_ca_cert_dir
    context.verify_mode = _CLIENT_CERTIFICATES[settings.tls_auth_clients]
    if context.verify_mode != ssl.VerifyMode.CERT_NONE and not (file or directory):
        raise BadTls(
            "clients need a certificate (tls-auth-clients), but neither tls-ca-cert-file nor"
            " tls-ca-cert-dir says who may have signed it"
        )
    if file:
        _check_readable("tls-ca-cert-file", file)
        try:
            context.load_verify_locations(cafile=file)
        except ssl.SSLError:
            raise BadTls(f"tls-ca-cert-file {file} holds no certificate") from None
    if directory:
        if not Path(directory).is_dir():
            raise BadTls(f"tls-ca-cert-dir {directory} is not a directory")
        context.load_verify_locations(capath=directory)


def _check_readable(directive: str, path: str) -> None:
    try:
        with Path(path).open("rb"):
            pass
    except OSError as error:
        raise BadTls(f"{directive} {path}: {error.strerror}") from None


def _reason(error: Exception) -> str:
    """`NO_CIPHER_MATCH` -> "no cipher match"; empty where OpenSSL gives none."""
    reason: str | None = getattr(error, "reason", None)
    return reason.lower().replace("_", " ") if reason else ""
