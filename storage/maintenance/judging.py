"""Which cells are dead: no read shows them, and none ever could (see storage.embedded.deleter).

One rule for all who ask it: the collector, which removes them, and the survey, which counts them.
"""

from __future__ import annotations

from typing import Final

from storage.embedded.deleter import KeptExpiries
from storage.embedded.rules import expiry_of
from storage.encoding import SUFFIX_BYTES
from storage.model import DatasetSettings

LIVE: Final = 0
EXPIRED: Final = 1
SURPLUS: Final = 2
"""Under MAXVERSIONS newer ones, none of which expires before it does."""


class Judge:
    """Looks at the cells of a dataset one after another, in the order of their keys."""

    def __init__(self, settings: DatasetSettings) -> None:
        self._max_versions = settings.max_versions
        self._ttl_ms = settings.ttl_seconds * 1000
        self.column = b""
        """The part of the last key that names row and column."""
        self._kept = KeptExpiries(self._max_versions)

    def forget(self) -> None:
        """The next cell may be of any column, or of this one from its beginning."""
        self.column = b""

    def verdict(self, key: bytes, value: bytes, now: int) -> int:
        """LIVE, EXPIRED or SURPLUS at a moment. A column must be told from its newest cell on."""
        column = key[:-SUFFIX_BYTES]
        if column != self.column:
            self.column = column
            self._kept = KeptExpiries(self._max_versions)
        expires = expiry_of(key, value, self._ttl_ms)
        if expires < now:
            return EXPIRED
        if not self._max_versions:
            return LIVE
        if not self._kept.keeps(expires):
            return SURPLUS
        self._kept.add(expires)
        return LIVE
