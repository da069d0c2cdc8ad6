"""What driver.c does, for machines without a compiler: the same words, the same output.

    python driver.py ADDRESS PORT CONNECTIONS PIPELINE CALLS KEYSPACE NUMBERS SEED  < calls

It takes several times the processor time a call, on a machine that the server needs too, so its
figures are of the two together and only good for comparing servers that are slower than it. Knows
nothing of the benchmark: driver.c says what the words mean.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import random
import signal
import socket
import sys
import time
from collections.abc import Iterator
from typing import Any, BinaryIO

import hiredis

HOLE = b"__rand_int__"
ZIPF_EXPONENT = 0.99
SCATTER = 982451653
"""A prime: ranks become numbers by it, each one once."""
READ_BYTES = 1 << 18

Template = tuple[list[bytes], int]
"""What lies between the numbers of a call, and how many commands it is."""


def read_calls(source: BinaryIO) -> tuple[list[Template], list[int]]:
    """The calls and their weights."""
    templates: list[Template] = []
    weights = []
    while heading := source.readline():
        weight, commands, length = map(int, heading.split())
        templates.append((source.read(length).split(HOLE), commands))
        weights.append(weight)
    return templates, weights


def numbers_of(kind: str, keyspace: int, dice: random.Random) -> Iterator[int]:
    if kind == "sequence":
        for number in itertools.count():
            yield number % keyspace
    elif kind == "zipf":
        powers = ((rank + 1) ** -ZIPF_EXPONENT for rank in range(keyspace))
        sums, ranks = list(itertools.accumulate(powers)), range(keyspace)
        while True:
            for rank in dice.choices(ranks, cum_weights=sums, k=1000):
                yield rank * SCATTER % keyspace
    else:
        while True:
            yield dice.randrange(keyspace)


class Driver:
    """One load: what it draws calls from, and what came of them."""

    def __init__(self, words: list[str], source: BinaryIO) -> None:
        self.pipeline, self.wanted, keyspace = int(words[3]), int(words[4]), int(words[5])
        self.dice = random.Random(int(words[7]))
        self.templates, self.weights = read_calls(source)
        self.numbers = numbers_of(words[6], keyspace, self.dice)
        self.issued = self.errors = 0
        self.first_error = ""
        self.latencies: list[float] = []
        self.stopping = False

    def next_pipeline(self) -> tuple[bytes, int]:
        """The bytes of the next calls and how many replies they get; no bytes: the end."""
        count = min(self.pipeline, self.wanted - self.issued) if self.wanted else self.pipeline
        if self.stopping or not count:
            return b"", 0
        self.issued += count
        drawn = self.dice.choices(self.templates, self.weights, k=count)
        parts = [(b"%012d" % next(self.numbers)).join(pieces) for pieces, _ in drawn]
        return b"".join(parts), sum([commands for _, commands in drawn])

    def note(self, reply: Any) -> None:
        if isinstance(reply, hiredis.HiredisError):
            self.errors += 1
            self.first_error = self.first_error or str(reply)

    async def converse(self, wire: socket.socket) -> None:
        """One connection, until there is nothing left to do."""
        loop, reader = asyncio.get_running_loop(), hiredis.Reader()
        while True:
            out, replies = self.next_pipeline()
            if not out:
                return
            began = time.perf_counter()
            # Both at once: a server may stop reading while its replies are not read.
            sending = asyncio.create_task(loop.sock_sendall(wire, out))
            await self.receive(wire, reader, replies)
            await sending
            self.latencies.append(time.perf_counter() - began)

    async def receive(self, wire: socket.socket, reader: hiredis.Reader, replies: int) -> None:
        loop = asyncio.get_running_loop()
        while replies:
            got = await loop.sock_recv(wire, READ_BYTES)
            if not got:
                sys.exit("the server closed a connection")
            reader.feed(got)
            while replies and (reply := reader.gets()) is not False:
                self.note(reply)
                replies -= 1

    def stop(self) -> None:
        self.stopping = True

    async def run(self, wires: list[socket.socket]) -> float:
        """Seconds it took."""
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, self.stop)
        print("begun", flush=True)
        began = time.perf_counter()
        await asyncio.gather(*(self.converse(wire) for wire in wires))
        return time.perf_counter() - began

    def percentile_us(self, part: float) -> float:
        """Of the latencies, which are sorted."""
        if not self.latencies:
            return 0.0
        return round(self.latencies[int(part * (len(self.latencies) - 1))] * 1e6, 1)

    def report(self, seconds: float) -> dict[str, object]:
        self.latencies.sort()
        return {
            "calls": self.issued,
            "seconds": seconds,
            "processor_seconds": time.process_time(),
            "errors": self.errors,
            "first_error": self.first_error,
            "p50_us": self.percentile_us(0.5),
            "p99_us": self.percentile_us(0.99),
            "p999_us": self.percentile_us(0.999),
            "longest_us": self.percentile_us(1),
        }


def connect(address: str, port: int) -> socket.socket:
    wire = socket.create_connection((address, port))
    wire.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    wire.setblocking(False)
    return wire


def main() -> None:
    words = sys.argv[1:]
    driver = Driver(words, sys.stdin.buffer)
    wires = [connect(words[0], int(words[1])) for _ in range(int(words[2]))]
    seconds = asyncio.run(driver.run(wires))
    print(json.dumps(driver.report(seconds)))


if __name__ == "__main__":
    main()
