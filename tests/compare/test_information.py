"""INFO and CONFIG against Redis: every name, and what kind of value it has."""

from __future__ import annotations

import re

import pytest

from tests.compare.conftest import Sides
from tests.compare.servers import Side
from tests.compare.wire import Reply, Wire

SECTIONS = (
    "server", "clients", "memory", "persistence", "stats", "replication", "cpu", "modules",
    "commandstats", "latencystats", "errorstats", "cluster", "keyspace",
)  # fmt: skip
OUR_SECTIONS = {"rocksdb", "datasets"}
NAMED_DIRECTIVES = (
    "maxclients", "timeout", "tcp-keepalive", "client-query-buffer-limit", "proto-max-bulk-len",
    "client-output-buffer-limit", "slowlog-log-slower-than", "slowlog-max-len",
    "latency-monitor-threshold", "loglevel", "logfile", "databases", "port", "bind",
    "notify-keyspace-events", "requirepass", "aclfile", "tls-port", "tls-cert-file",
    "tls-key-file", "tls-ca-cert-file", "tls-auth-clients", "tls-protocols", "unixsocket",
    "unixsocketperm", "enable-debug-command", "protected-mode", "tcp-backlog", "appendonly",
    "appendfsync", "save", "dir", "acllog-max-len", "acl-pubsub-default", "maxmemory",
)  # fmt: skip
NONSENSE = ("x", "-1", "1.5", "no more")
OTHER_NONSENSE = {
    "maxmemory-clients": "takes no percentage here",
    "maxmemory-policy": "nothing is evicted, and the error says so",
    "notify-keyspace-events": "has one class more, which the error lists",
    "tls-ciphersuites": "cannot be chosen, and the error says so",
    "tls-protocols": "is looked at when it is set; Redis looks when it listens",
    "bind": "to nothing is what -1 means",
    **dict.fromkeys(("requirepass", "tls-ciphers"), "may be any text"),
}
"""Directives whose refusals are not compared, and why."""
KINDS = {
    "integer": r"-?\d+",
    "decimal": r"-?\d+\.\d+",
    "percentage": r"-?\d+\.\d+%",
    "size": r"\d+(\.\d+)?[BKMGT]",
    "answer": r"yes|no",
    "statistics": r"\w+=[^,]*(,[\w.]+=[^,]*)+",
    "nothing": r"",
}


def kind(value: str) -> str:
    """What kind of value it is, by how it is written."""
    found = [name for name, pattern in KINDS.items() if re.fullmatch(pattern, value)]
    return found[0] if found else "text"


def sections(side: Side, *words: str) -> dict[str, dict[str, str]]:
    """Section -> field -> value, as INFO prints them after a few calls."""
    with Wire(side.port, patience_seconds=10) as wire:
        wire.call("PING")
        wire.call("ECHO")
        text = wire.call("INFO", *words).text.decode()
    found: dict[str, dict[str, str]] = {}
    for part in text.split("# ")[1:]:
        title, *lines = part.rstrip("\r\n").split("\r\n")
        found[title.lower()] = dict(line.split(":", 1) for line in lines)
    return found


def directives(side: Side) -> dict[str, str]:
    with Wire(side.port, patience_seconds=10) as wire:
        pairs = wire.call("CONFIG", "GET", "*").pairs
        return {name.text.decode(): value.text.decode() for name, value in pairs}


Information = tuple[dict[str, dict[str, str]], dict[str, dict[str, str]]]


@pytest.fixture(scope="module")
def information(reference: Sides, colonnade: Sides) -> Information:
    for side in (reference(()), colonnade(())):
        side.restore()
    return sections(reference(()), "everything"), sections(colonnade(()), "everything")


@pytest.mark.parametrize("section", SECTIONS)
def test_every_field_of_redis_is_printed(information: Information, section: str) -> None:
    theirs, ours = information
    assert section in ours, "the section is missing"
    missing = set(theirs[section]) - set(ours[section])
    assert not missing, f"missing: {sorted(missing)}"


@pytest.mark.parametrize("section", SECTIONS)
def test_values_are_of_the_kind_redis_prints(information: Information, section: str) -> None:
    theirs, ours = information
    different = {
        name: (value, ours[section][name])
        for name, value in theirs[section].items()
        if name in ours.get(section, {}) and kind(value) != kind(ours[section][name])
    }
    assert not different, f"of another kind: {different}"


def test_sections_come_in_redis_order(information: Information) -> None:
    theirs, ours = information
    assert [name for name in ours if name not in OUR_SECTIONS] == list(theirs)


@pytest.mark.parametrize("words", [(), ("default",), ("all",), ("server", "stats"), ("stats",)])
def test_which_sections_are_printed(
    reference: Sides, colonnade: Sides, words: tuple[str, ...]
) -> None:
    theirs, ours = (list(sections(side(()), *words)) for side in (reference, colonnade))
    assert [name for name in ours if name not in OUR_SECTIONS] == theirs


def test_our_own_sections_and_fields(colonnade: Sides) -> None:
    ours = sections(colonnade(()), "everything")
    assert set(ours) >= OUR_SECTIONS
    assert ours["server"]["redis_version"] == "7.0.15"
    assert re.fullmatch(r"\d+\.\d+\.\d+", ours["server"]["colonnade_version"])


def test_directives_have_values_of_the_kind_redis_has(reference: Sides, colonnade: Sides) -> None:
    theirs, ours = directives(reference(())), directives(colonnade(()))
    different = {
        name: (theirs[name], value)
        for name, value in ours.items()
        if name in theirs and kind(theirs[name]) != kind(value)
    }
    assert not different, f"of another kind: {different}"


def test_directives_of_the_issue_are_there(colonnade: Sides) -> None:
    assert set(NAMED_DIRECTIVES) <= set(directives(colonnade(())))


def test_nonsense_is_refused_in_redis_words(reference: Sides, colonnade: Sides) -> None:
    """CONFIG SET of every directive that both have to values that it cannot have."""
    both = directives(reference(())).keys() & directives(colonnade(())).keys()
    assert both >= OTHER_NONSENSE.keys()
    different = {}
    for name in sorted(both - OTHER_NONSENSE.keys()):
        for value in NONSENSE:
            theirs, ours = (_config_set(side(()), name, value) for side in (reference, colonnade))
            if theirs.kind == "error" and str(ours) != str(theirs):
                different[f"{name} {value}"] = (str(theirs), str(ours))
    for side in (reference(()), colonnade(())):
        side.restore()
    assert not different, f"refused otherwise: {different}"


def _config_set(side: Side, name: str, value: str) -> Reply:
    with Wire(side.port, patience_seconds=10) as wire:
        return wire.call("CONFIG", "SET", name, value)
