"""Servers to be measured: started on loopback in fresh directories, or already running as peers.

Everything is as it comes: redis-server without saving to disk, Colonnade with its defaults. What
differs is named by a Variant. Colonnade also opens its port for metrics, if it knows one: nobody
asks it anything while a load is under way. Knows nothing of loads.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import random
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from enum import Enum
from pathlib import Path
from typing import Any

import redis

from benchmarks.lag import Lag
from benchmarks.lag import read as read_lag
from benchmarks.load import Failure

START_TIMEOUT_SECONDS = 30.0
END_TIMEOUT_SECONDS = 60.0
QUIET_TIMEOUT_SECONDS = 180.0
QUIET_LOOKS, LOOK_SECONDS, QUIET_PART = 3, 0.2, 0.1
"""A server is quiet that uses less than this part of a processor, in so many looks."""
PORTS = range(15_000, 32_000)
MEGABYTE = 1024 * 1024
ROW_CACHE = "wc-row-cache-bytes"
VERSION_FIELDS = (
    "colonnade_version",
    "kvrocks_version",
    "valkey_version",
    "dragonfly_version",
    "redis_version",
)
SHOWN_FACTS = ("wc_", "compiled", "encoder")
"""How those fields of INFO server begin that a report keeps: what it is made of here."""


class Family(Enum):
    """Whose commands a server has for the work."""

    COLONNADE = "colonnade"
    REDIS = "redis"


class Variant(Enum):
    """How a server is set up. CACHED is the default of a Colonnade that has a row cache."""

    DEFAULT = "default"
    CACHED = "cached"
    UNCACHED = "uncached"
    DURABLE = "durable"


@dataclass(frozen=True, slots=True)
class Product:
    """Something to be measured, by its name in the table.

    Colonnade comes from `checkout`; a peer is at `address`, and is neither started nor ended.
    """

    name: str
    family: Family
    checkout: Path | None = None
    address: tuple[str, int] | None = None
    row_cache_bytes: int | None = None
    """None where the directive is not known."""
    block_cache_bytes: int = 0
    has_metrics: bool = False

    def offers(self, variant: Variant) -> bool:
        """Whether it can be had like that."""
        if variant is Variant.CACHED:
            return bool(self.row_cache_bytes) or self.family is Family.REDIS
        return self.address is None or variant is not Variant.DURABLE


@dataclass(frozen=True, slots=True)
class Server:
    product: Product
    variant: Variant
    host: str
    port: int
    process: subprocess.Popen[bytes] | None = None
    log_path: Path | None = None
    metrics_port: int = 0

    @property
    def name(self) -> str:
        told = self.variant in (Variant.CACHED, Variant.UNCACHED)
        return f"{self.product.name} {self.variant.value}" if told else self.product.name

    def client(self) -> redis.Redis:
        return redis.Redis(host=self.host, port=self.port, protocol=2, socket_timeout=120)

    def resident_megabytes(self) -> float | None:
        """What the kernel says the process occupies; None where there is no /proc."""
        status = self._of_process("status")
        lines = [line for line in status.splitlines() if line.startswith("VmRSS:")]
        return int(lines[0].split()[1]) / 1024 if lines else None

    def processor_seconds(self) -> float | None:
        """What the process has used on all its threads; None where there is no /proc."""
        fields = self._of_process("stat").rpartition(")")[2].split()
        if not fields:
            return None
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def _of_process(self, name: str) -> str:
        """A file of /proc about it; empty where there is none."""
        if self.process is None:
            return ""
        try:
            return Path(f"/proc/{self.process.pid}/{name}").read_text()
        except OSError:
            return ""

    def lag(self) -> Lag:
        """Of its loop so far; empty where that is not known."""
        return read_lag(self.metrics_port) if self.metrics_port else Lag()


def send(client: redis.Redis, *words: str | int | bytes) -> Any:
    return client.execute_command(*words)


def free_port() -> int:
    """One of this machine's that nobody listens on.

    Not one of those that systems give to connections: loads take many of them in between.
    """
    while True:
        port = random.choice(PORTS)
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port


# Starting and ending


@contextmanager
def running(product: Product, variant: Variant = Variant.DEFAULT) -> Iterator[Server]:
    """The server while the block runs, on data of its own; both are gone after it."""
    if product.address is not None:
        with _peer(product, variant) as server:
            yield server
        return
    with tempfile.TemporaryDirectory(prefix="colonnade-bench-") as folder:
        directory = Path(folder)
        (directory / "data").mkdir()
        with _process(product, variant, directory) as server:
            yield server


@contextmanager
def _process(product: Product, variant: Variant, directory: Path) -> Iterator[Server]:
    port, metrics_port = free_port(), free_port() if product.has_metrics else 0
    command = _command(product, variant, port, directory / "data")
    if metrics_port:
        command += ["--metrics-port", str(metrics_port)]
    log_path = directory / "output.log"
    with log_path.open("wb") as log:
        process = subprocess.Popen(
            command,
            cwd=product.checkout,
            env=environment(product),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
        )
    server = Server(product, variant, "127.0.0.1", port, process, log_path, metrics_port)
    try:
        _wait_until_it_answers(server)
        yield server
    finally:
        _end(process)


def environment(product: Product) -> dict[str, str]:
    """For programs that are to import Colonnade from the product's checkout."""
    if product.checkout is None:
        return dict(os.environ)
    return {**os.environ, "PYTHONPATH": str(product.checkout)}


def _command(product: Product, variant: Variant, port: int, directory: Path) -> list[str]:
    place = ["--port", str(port), "--dir", str(directory)]
    durable = ["--appendfsync", "always"] if variant is Variant.DURABLE else []
    if product.family is Family.REDIS:
        log = ["--appendonly", "yes" if durable else "no"]
        return ["redis-server", "--bind", "127.0.0.1", *place, "--save", "", *log, *durable]
    cache = variant is Variant.UNCACHED and product.row_cache_bytes is not None
    uncached = [f"--{ROW_CACHE}", "0"] if cache else []
    return [sys.executable, "-m", "resp_server", *place, *durable, *uncached]


def _wait_until_it_answers(server: Server) -> None:
    assert server.process is not None and server.log_path is not None
    deadline = time.monotonic() + START_TIMEOUT_SECONDS
    while server.process.poll() is None and time.monotonic() < deadline:
        try:
            with server.client() as client:
                client.ping()
            return
        except redis.ConnectionError:
            time.sleep(0.02)
    tail = "\n".join(server.log_path.read_text(errors="replace").splitlines()[-10:])
    raise Failure(f"{server.name} did not start:\n{tail}")


def _end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(timeout=END_TIMEOUT_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


@contextmanager
def _peer(product: Product, variant: Variant) -> Iterator[Server]:
    """One that is there already. It must be empty, because it is emptied afterwards."""
    assert product.address is not None
    server = Server(product, variant, *product.address)
    with server.client() as client:
        try:
            holds_something = send(client, "RANDOMKEY") is not None
        except redis.RedisError as error:
            raise Failure(f"{server.name}: {error}") from error
        if holds_something:
            raise Failure(f"{server.name} holds data: it would be lost; give an empty server")
        try:
            yield server
        finally:
            send(client, "FLUSHALL")


def wait_until_quiet(server: Server) -> None:
    """Return when it does no more work of its own, such as compactions after a load."""
    deadline, quiet = time.monotonic() + QUIET_TIMEOUT_SECONDS, 0
    before = server.processor_seconds()
    while before is not None and quiet < QUIET_LOOKS and time.monotonic() < deadline:
        time.sleep(LOOK_SECONDS)
        after = server.processor_seconds()
        if after is None:
            raise Failure(f"{server.name} has ended by itself")
        quiet = quiet + 1 if after - before < QUIET_PART * LOOK_SECONDS else 0
        before = after


# What they are


def examined(product: Product) -> tuple[Product, dict[str, Any]]:
    """The product with what it says of itself, and facts for the report."""
    with running(product) as server, server.client() as client:
        info: dict[str, Any] = client.info("server")
        facts: dict[str, Any] = {"version": _version(info)}
        if product.family is Family.COLONNADE:
            product = replace(product, **_abilities(client))
            facts |= {name: told(info[name]) for name in info if name.startswith(SHOWN_FACTS)}
            facts |= {"revision": _revision(product), ROW_CACHE: product.row_cache_bytes}
        resident = server.resident_megabytes()
        facts["memory at rest"] = None if resident is None else f"{resident:.0f} MB"
    return product, {name: value for name, value in facts.items() if value not in (None, "")}


def told(fact: Any) -> Any:
    """redis-py makes a list of what has commas."""
    return " ".join(fact) if isinstance(fact, list) else fact


def _version(info: dict[str, Any]) -> str:
    """What the server calls itself: many tell the Redis they resemble beside their own."""
    return str(next((info[name] for name in VERSION_FIELDS if name in info), "unknown"))


def _abilities(client: redis.Redis) -> dict[str, Any]:
    def sized(directive: str) -> int | None:
        found = send(client, "CONFIG", "GET", directive)
        return int(found[1]) if found else None

    has_library = importlib.util.find_spec("prometheus_client") is not None
    return {
        "row_cache_bytes": sized(ROW_CACHE),
        "block_cache_bytes": client.info().get("block_cache_size", 0),
        "has_metrics": has_library and sized("metrics-port") is not None,
    }


def _revision(product: Product) -> str:
    """Of the checkout, with + if it was changed since; empty where git does not know."""
    words = ["git", "describe", "--always", "--dirty=+", "--exclude=*"]
    try:
        found = subprocess.run(words, cwd=product.checkout, capture_output=True, text=True)
    except OSError:
        return ""
    return found.stdout.strip()
