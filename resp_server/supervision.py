"""What a service manager learns of this process: its number, in a file, and that it is ready.

The file is that of `pidfile`. systemd is told as sd_notify(3) describes, if `supervised` says so.
Failures are logged: nobody's data depends on this.
"""

from __future__ import annotations

import contextlib
import logging
import os
import socket
from collections.abc import Iterator, Mapping
from pathlib import Path

log = logging.getLogger(__name__)

_ADDRESS = "NOTIFY_SOCKET"
"""The variable in which systemd passes the socket to tell it at."""


@contextlib.contextmanager
def announced(
    pid_file: str, supervised: str, environment: Mapping[str, str] = os.environ
) -> Iterator[None]:
    """The server is ready inside, and ends when this does.

    `pid_file` is a path or "", `supervised` is "systemd", "auto" or "no".
    """
    if pid_file:
        _write_number(Path(pid_file))
    address = environment.get(_ADDRESS, "") if supervised != "no" else ""
    if supervised == "systemd" and not address:
        log.warning("supervised is systemd, but it did not start this process: no %s", _ADDRESS)
    _tell(address, "READY=1\nSTATUS=Ready to accept connections")
    try:
        yield
    finally:
        _tell(address, "STOPPING=1")
        if pid_file:
            with contextlib.suppress(OSError):
                Path(pid_file).unlink()


def _write_number(file: Path) -> None:
    try:
        file.write_text(f"{os.getpid()}\n")
    except OSError as error:
        log.warning("cannot write the pidfile %s: %s", file, error.strerror)


def _tell(address: str, state: str) -> None:
    if not address:
        return
    if address.startswith("@"):  # an abstract socket
        address = "\0" + address[1:]
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
            manager.sendto(state.encode(), address)
    except OSError as error:
        log.warning("systemd could not be told %s: %s", state.splitlines()[0], error.strerror)
