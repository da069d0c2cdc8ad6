"""The versions the server gives: its own, and that of the Redis it behaves like."""

VERSION = "0.1.0"
REDIS_VERSION = "7.0.15"
