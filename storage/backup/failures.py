"""What can go wrong with a backup, one class each, with the text a user reads."""

from __future__ import annotations

from storage.errors import StoreFailure


class BackupFailure(StoreFailure):
    """A backup cannot be made, read, restored or removed; the store itself is as it was."""


class DamagedBackup(BackupFailure):
    """Something of a backup is missing, or is not what was written."""


class NoSuchBackup(BackupFailure):
    """There is no whole backup of that name, or none at all."""
