"""Imports every family of commands, and so fills the table. A new family is one line here."""

from commands import connection, datasets, server, wide_column

__all__ = ["connection", "datasets", "server", "wide_column"]
