"""Protected mode: a server that anybody may use is used from its own machine only.

A server started without a thought of passwords must not be open to a network by accident.
"""

from __future__ import annotations

from commands.access.user import User


def refuses(peer: object, default_user: User, *, protected_mode: bool) -> bool:
    """Whether a connection from there is refused (errors.ProtectedModeDenial).

    `peer` is the transport's peername: a tuple for TCP, anything else for a unix socket.
    """
    return protected_mode and default_user.without_password and not is_local(peer)


def is_local(peer: object) -> bool:
    """Whether it is this machine: a unix socket, or what Redis takes for a loopback address."""
    if not isinstance(peer, tuple):
        return True
    host = str(peer[0])
    return host.startswith("127.") or host == "::1"
