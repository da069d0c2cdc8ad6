"""CLUSTER, which is off: in Redis's words."""

from __future__ import annotations

from tests.compare.conversation import talk

CONVERSATIONS = [
    talk(
        "cluster is off",
        "CLUSTER INFO",
        "CLUSTER NODES",
        "CLUSTER SLOTS",
        "CLUSTER SHARDS",
        "CLUSTER MYID",
        "CLUSTER KEYSLOT a",
        "CLUSTER COUNTKEYSINSLOT 1",
        "CLUSTER GETKEYSINSLOT 1 1",
        "CLUSTER RESET",
        "CLUSTER HELP",
        "CLUSTER LINKS",
        "CLUSTER REPLICAS a",
        "cluster info",
    ),
    talk(
        "cluster refused",
        "CLUSTER INFO x",
        "CLUSTER KEYSLOT",
        "CLUSTER KEYSLOT a b",
        "CLUSTER FOO",
        "CLUSTER",
        "CLUSTER HELP x",
    ),
    talk("cluster within a transaction", "MULTI", "CLUSTER INFO", "CLUSTER FOO", "EXEC"),
]
