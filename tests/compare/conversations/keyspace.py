"""The keyspace of Redis, which is empty here until the Redis types are there."""

from __future__ import annotations

from tests.compare.conversation import talk

CONVERSATIONS = [
    talk(
        "dbsize",
        "DBSIZE",
        "DBSIZE x",
        "SELECT 3",
        "DBSIZE",
        "dbsize",
    ),
    talk(
        "flushdb",
        "FLUSHDB",
        "FLUSHDB SYNC",
        "FLUSHDB async",
        "FLUSHDB foo",
        "FLUSHDB SYNC ASYNC",
        "flushdb",
        "MULTI",
        "FLUSHDB",
        "FLUSHDB foo",
        "EXEC",
    ),
    talk(
        "flushall",
        "FLUSHALL",
        "FLUSHALL SYNC",
        "FLUSHALL ASYNC",
        "flushall async",
        "FLUSHALL foo",
        "FLUSHALL SYNC x",
        "MULTI",
        "FLUSHALL",
        "FLUSHALL foo",
        "EXEC",
        "DBSIZE",
    ),
    talk(
        "a scan of nothing",
        "SCAN 0",
        "SCAN 0 COUNT 100",
        "SCAN 0 MATCH * TYPE string",
        "SCAN x",
        "SCAN 0 FOO",
        "SCAN 0 COUNT 0",
        "SCAN 0 COUNT x",
        "SCAN",
        "TYPE nothing",
    ),
]
