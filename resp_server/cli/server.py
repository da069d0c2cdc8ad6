"""Which server a command of the command line means, and how it is reached: --server, --user, TLS.

The options are alike in all commands, and those for TLS are called as in redis-cli. Unlike there
the name in the server's certificate is checked, too.
"""

from __future__ import annotations

import argparse
import ssl

from resp_server.cli.link import Link, Refused

DEFAULT_SERVER = "127.0.0.1:6379"


def add_server_options(
    parser: argparse.ArgumentParser,
    source: argparse._MutuallyExclusiveGroup | None = None,
    *,
    default: str | None = DEFAULT_SERVER,
) -> None:
    """`source` is what --server belongs to where there is something else to choose."""
    unless_given = f"; {default} unless given" if default else ""
    (source or parser).add_argument(
        "--server",
        default=default,
        metavar="HOST:PORT",
        help=f"a running server, or the path of its socket{unless_given}",
    )
    parser.add_argument(
        "--user",
        metavar="NAME",
        help="who to log in as; the password is COLONNADE_PASSWORD or REDISCLI_AUTH",
    )
    tls = parser.add_argument_group("TLS")
    tls.add_argument("--tls", action="store_true", help="encrypt the connection")
    for option, metavar, text in (
        ("--cacert", "FILE", "who may have signed the server's certificate"),
        ("--cert", "FILE", "a certificate to show to the server"),
        ("--key", "FILE", "its key, where the file of --cert does not hold it"),
        ("--sni", "NAME", "whose certificate it must be, where that is not HOST"),
    ):
        tls.add_argument(option, metavar=metavar, help=text)
    tls.add_argument("--insecure", action="store_true", help="accept any certificate")


def linked(given: argparse.Namespace) -> Link:
    """A connection as these options say. Refused if there is none; ArgumentError for options that
    do not go together."""
    if not given.tls:
        for option in ("cacert", "cert", "key", "sni", "insecure"):
            if getattr(given, option):
                raise argparse.ArgumentError(None, f"--{option} is nothing without --tls")
        return Link(given.server, given.user)
    if "/" in given.server:
        raise argparse.ArgumentError(None, "--tls is nothing for a unix socket")
    return Link(given.server, given.user, tls=_context(given), server_name=given.sni)


def _context(given: argparse.Namespace) -> ssl.SSLContext:
    if given.key and not given.cert:
        raise argparse.ArgumentError(None, "--key is nothing without --cert")
    try:
        context = ssl.create_default_context(cafile=given.cacert)
    except OSError as error:
        raise Refused(f"--cacert {given.cacert}: {_wrong(error, 'no certificate')}") from error
    if given.insecure:
        context.check_hostname = False
        context.verify_mode = ssl.VerifyMode.CERT_NONE
    if given.cert:
        files = f"--cert {given.cert}" + (f" --key {given.key}" if given.key else "")
        try:
            context.load_cert_chain(given.cert, given.key)
        except OSError as error:
            raise Refused(f"{files}: {_wrong(error, 'no certificate with its key')}") from error
    return context


def _wrong(error: OSError, expected: str) -> str:
    """OpenSSL says little of a file that it cannot make use of."""
    return f"there is {expected} in it" if isinstance(error, ssl.SSLError) else str(error.strerror)
