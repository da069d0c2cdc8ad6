"""What can go wrong in the store, one class each, with the text a user reads.

Knows nothing of the protocol: `code` is the first word of the error line that a server would send,
because it is also the shortest name of the error.
"""

from __future__ import annotations


class StorageError(Exception):
    """A call the store refuses or cannot carry out. Nothing of the call was written."""

    code = "ERR"


class InvalidDatasetName(StorageError):
    def __init__(self) -> None:
        super().__init__("invalid dataset name")


class NoSuchDataset(StorageError):
    code = "NODATASET"

    def __init__(self, name: bytes) -> None:
        super().__init__(f"no such dataset '{name.decode('ascii', 'replace')}'")


class DatasetExists(StorageError):
    code = "DATASETEXISTS"

    def __init__(self, name: bytes) -> None:
        super().__init__(f"dataset '{name.decode('ascii', 'replace')}' already exists")


class RowKeyTooLong(StorageError):
    def __init__(self) -> None:
        super().__init__("row key is longer than 65535 bytes")


class ColumnNameTooLong(StorageError):
    def __init__(self) -> None:
        super().__init__("column name is longer than 65535 bytes")


class InvalidCursor(StorageError):
    def __init__(self) -> None:
        super().__init__("invalid cursor")


class NotAnInteger(StorageError):
    def __init__(self) -> None:
        super().__init__("value is not an integer or out of range")


class IncrementOverflow(StorageError):
    def __init__(self) -> None:
        super().__init__("increment or decrement would overflow")


class NewestCellInFuture(StorageError):
    def __init__(self) -> None:
        super().__init__("newest cell is in the future")


class TimestampNotNewer(StorageError):
    def __init__(self) -> None:
        super().__init__("timestamp is not newer than the newest cell")


class StoreFailure(StorageError):
    """The disk or the files beneath failed. Earlier acknowledged data is not touched by it."""

    code = "IOERR"


class WritesRefused(StoreFailure):
    """Nothing was applied, and the store is as it was: it need not be opened again."""


class CorruptData(StoreFailure):
    """Bytes on disk that no release of this program writes."""


class StoreBusy(StorageError):
    """The disk does not keep up with what is written, and enough waits for it already."""

    code = "BUSY"

    def __init__(self, waiting_bytes: int) -> None:
        megabytes = waiting_bytes // (1024 * 1024)
        super().__init__(f"{megabytes} MB of writes wait for the disk, try again in a second")


class StoreStalled(Exception):
    """RocksDB cannot take writes for the moment; nothing was applied. Try again in milliseconds."""


class CannotOpen(Exception):
    """The data directory cannot be served; the text says why and what to do."""


class NoSuchFolder(StorageError):
    """Of the folders for exports and imports."""

    def __init__(self, name: bytes) -> None:
        super().__init__(f"no such folder '{name[:64].decode('ascii', 'replace')}'")


class CannotIngest(StorageError):
    """Tables of cells that a dataset cannot take over as they are."""


class CannotTransfer(Exception):
    """An export or an import cannot be done as it was asked for; the text says why."""
