"""The tables: what is said to both servers, a module a family. `ALL` has every conversation."""

from __future__ import annotations

from tests.compare.conversation import Conversation
from tests.compare.conversations import (
    acl,
    client,
    cluster,
    command,
    config,
    connection,
    keyspace,
    login,
    monitoring,
    protocol,
    pubsub,
    server,
    states,
    statistics,
    transactions,
)

ALL: list[Conversation] = [
    conversation
    for family in (
        connection,
        login,
        protocol,
        client,
        server,
        config,
        command,
        statistics,
        monitoring,
        transactions,
        pubsub,
        acl,
        cluster,
        keyspace,
        states,
    )
    for conversation in family.CONVERSATIONS
]
