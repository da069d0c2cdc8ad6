"""What a server says to another machine: run as a program inside a network of its own.

    unshare -rn python -m tests.server.other_network redis-server

starts the server there with all addresses open, and prints, as a JSON list, what it says to a
client of loopback that quits and to one with an address that no machine outside can have here.
"""

from __future__ import annotations

import json
import socket
import subprocess
import sys

from tests.harness import listens, until

PORT = 6379
PATIENCE_SECONDS = 20.0
OTHER_ADDRESS = "10.9.9.1"


def said_to(source: str) -> str:
    """All that the server says to a client of this address that says QUIT, until it is cut off."""
    address = (OTHER_ADDRESS, PORT)
    with socket.create_connection(address, PATIENCE_SECONDS, source_address=(source, 0)) as client:
        received = b""
        try:
            client.sendall(b"QUIT\r\n")
            while data := client.recv(65536):
                received += data
        except ConnectionError:  # a server that refuses does not read what was sent, and resets
            pass
        return received.decode()


def main(command: list[str]) -> None:
    for words in ("ip link set lo up", f"ip address add {OTHER_ADDRESS}/32 dev lo"):
        subprocess.run(words.split(), check=True)
    opened = ["--port", str(PORT), "--bind", "*", "-::*"]
    server = subprocess.Popen([*command, *opened], stdout=sys.stderr)
    try:
        until(lambda: listens(PORT))
        print(json.dumps([said_to("127.0.0.1"), said_to(OTHER_ADDRESS)]))
    finally:
        server.terminate()
        server.wait()


if __name__ == "__main__":
    main(sys.argv[1:])
