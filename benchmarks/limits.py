"""What hostile and clumsy clients cost: memory of the server, and how long others wait.

Starts a server on loopback for each case, lets the case happen, and measures from outside: resident
memory before, at its highest and after, and the time PING takes for somebody else meanwhile.

    python benchmarks/limits.py [case ...]
"""

from __future__ import annotations

import argparse
import resource
import socket
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack, closing
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tests.harness import ServerProcess

MEGABYTE = 1024 * 1024
PROBE_SECONDS = 0.01


def encode(*words: bytes) -> bytes:
    return b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%b\r\n" % (len(w), w) for w in words)


PUT = encode(b"WCPUT", b"d", b"row", b"*", b"column", b"v" * 1000)


class Probe:
    """Somebody else: how long its PINGs take, and how large the server is meanwhile."""

    def __init__(self, server: ServerProcess) -> None:
        self._server = server
        self._ends = threading.Event()
        self.pings: list[float] = []
        self.first = self.most = self.resident()
        self._thread = threading.Thread(target=self._run)

    def resident(self) -> int:
        status = Path(f"/proc/{self._server.pid}/status").read_text()
        line = next(line for line in status.splitlines() if line.startswith("VmRSS"))
        return int(line.split()[1]) * 1024

    def _run(self) -> None:
        with closing(self._server.raw(timeout=600)) as wire:
            while not self._ends.wait(PROBE_SECONDS):
                started = time.perf_counter()
                wire.sendall(b"PING\r\n")
                assert wire.recv(64) == b"+PONG\r\n"
                self.pings.append(time.perf_counter() - started)
                self.most = max(self.most, self.resident())

    def __enter__(self) -> Probe:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ends.set()
        self._thread.join()

    def tell(self, name: str, remark: str) -> None:
        pings = sorted(self.pings)
        high = pings[int(len(pings) * 0.99)] if pings else 0.0
        print(
            f"{name:14} memory {self.first / MEGABYTE:6.0f} MB -> {self.most / MEGABYTE:6.0f} MB"
            f" -> {self.resident() / MEGABYTE:6.0f} MB   PING of others: median"
            f" {statistics.median(pings) * 1000:7.2f} ms, p99 {high * 1000:7.2f} ms,"
            f" longest {pings[-1] * 1000:7.2f} ms   {remark}",
            flush=True,
        )


def send_without_reading(wire: socket.socket, data: bytes, least_seconds: float) -> int:
    """Send until the server takes no more for so long, or hangs up; how many bytes it took."""
    sent = 0
    wire.settimeout(least_seconds)
    try:
        while True:
            sent += wire.send(data)
    except TimeoutError:
        return sent
    except OSError:
        return -sent


def sending(wire: socket.socket, data: bytes, times: int) -> threading.Thread:
    """Send so much on a thread, which has been started."""

    def send() -> None:
        for _ in range(times):
            wire.sendall(data)

    thread = threading.Thread(target=send)
    thread.start()
    return thread


def idle(server: ServerProcess, _probe: Probe) -> str:
    with ExitStack() as stack:
        before = _probe.resident()
        for _ in range(10_000):
            wire = stack.enter_context(closing(server.raw()))
            wire.sendall(b"PING\r\n")
            wire.recv(64)
        each = (_probe.resident() - before) / 10_000
    return f"10,000 idle connections, {each:,.0f} bytes each"


def never_reads(server: ServerProcess, _probe: Probe) -> str:
    with closing(server.raw()) as writer:
        writer.sendall(PUT * 1000)
        got = 0
        while got < 4000:
            got += len(writer.recv(65536))
    with ExitStack() as stack:
        taken = []
        for _ in range(20):
            wire = stack.enter_context(closing(server.raw()))
            calls = encode(b"WCGET", b"d", b"row", b"VERSIONS", b"ALL") * 1000
            taken.append(abs(send_without_reading(wire, calls, 0.3)))
    return f"20 clients ask for replies of 1 MB and read none; {sum(taken) / MEGABYTE:.1f} MB taken"


def byte_by_byte(server: ServerProcess, _probe: Probe) -> str:
    with ExitStack() as stack:
        wires = [stack.enter_context(closing(server.raw())) for _ in range(500)]
        for place in range(200):
            for wire in wires:
                wire.sendall(PUT[place : place + 1])
    return "500 clients send a command byte by byte"


def pipeline(server: ServerProcess, _probe: Probe) -> str:
    total = 1024 * MEGABYTE
    count = total // len(PUT)
    started = time.perf_counter()
    with closing(server.raw(timeout=600)) as wire:
        sender = sending(wire, PUT * 100, count // 100)
        got = 0
        while got < 4 * (count // 100) * 100:
            got += len(wire.recv(1 << 20))
        sender.join()
    return f"1 GB of WCPUT in one pipeline, {time.perf_counter() - started:.0f} s"


def transaction(server: ServerProcess, _probe: Probe) -> str:
    small = encode(b"WCPUT", b"d", b"row", b"*", b"c", b"v")
    count = 1_000_000
    started = time.perf_counter()
    with closing(server.raw(timeout=600)) as wire:
        wire.sendall(encode(b"MULTI"))
        sender = sending(wire, small * 1000, count // 1000)
        expected = len(b"+OK\r\n") + count * len(b"+QUEUED\r\n")
        while expected > 0:
            expected -= len(wire.recv(1 << 20))
        sender.join()
        queued = time.perf_counter()
        wire.sendall(encode(b"EXEC"))
        expected = len(b"*1000000\r\n") + 4 * count
        while expected > 0:
            expected -= len(wire.recv(1 << 20))
    ended = time.perf_counter()
    return f"1,000,000 WCPUT queued in {queued - started:.0f} s, EXEC {ended - queued:.1f} s"


def subscription(server: ServerProcess, _probe: Probe) -> str:
    message = encode(b"PUBLISH", b"news", b"x" * 10_000)
    with closing(server.raw()) as deaf, closing(server.raw(timeout=600)) as wire:
        deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        deaf.sendall(encode(b"SUBSCRIBE", b"news"))
        deaf.recv(64)
        published = 0
        while True:
            wire.sendall(message * 100)
            replies = b""
            while replies.count(b"\r\n") < 100:
                replies += wire.recv(65536)
            published += 100 * 10_000
            if b":0\r\n" in replies:
                break
    return f"a subscriber that never reads, cut off after {published / MEGABYTE:.0f} MB"


CASES: dict[str, Callable[[ServerProcess, Probe], str]] = {
    "idle": idle,
    "never-reads": never_reads,
    "byte-by-byte": byte_by_byte,
    "pipeline": pipeline,
    "transaction": transaction,
    "subscription": subscription,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("case", nargs="*", metavar="case", help=", ".join(CASES))
    chosen = parser.parse_args().case or list(CASES)
    if unknown := set(chosen) - set(CASES):
        parser.error(f"no such case: {', '.join(sorted(unknown))}")
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    for name in chosen:
        with tempfile.TemporaryDirectory() as directory:
            server = ServerProcess(Path(directory) / "data", maxclients=12_000)
            server.start()
            try:
                with Probe(server) as probe:
                    remark = CASES[name](server, probe)
                probe.tell(name, remark)
            finally:
                server.close()


if __name__ == "__main__":
    main()
