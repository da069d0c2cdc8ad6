# cython: language_level=3, cdivision=True
"""The server's clock, compiled: the twin of clock.HybridClock, which tells what it is."""

import time

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from libc.stdint cimport UINT64_MAX, int64_t, uint64_t

from storage import encoding
from storage.clock import RESERVE_MS as RESERVE

cdef enum:
    NS_PER_MS = 1_000_000
    TIMESTAMP_BYTES = 8
    SUFFIX_BYTES = 10

cdef int64_t RESERVE_MS = RESERVE
cdef int LAST_SEQUENCE = encoding.TOP_SEQUENCE


cdef class HybridClock:
    cdef public object _wall_ns
    cdef public int64_t last_ms, reserved_ms
    cdef public int sequence

    def __init__(self, int64_t stored_ms=0, wall_ns=None):
        # Looked up now: whoever turns time itself by hand has done so.
        self._wall_ns = time.time_ns if wall_ns is None else wall_ns
        self.last_ms = stored_ms
        # Stamps of the stored millisecond may have been given out before the restart.
        self.sequence = LAST_SEQUENCE
        self.reserved_ms = stored_ms

    def now(self):
        cdef int64_t wall_ns = self._wall_ns()
        cdef int64_t wall = wall_ns // NS_PER_MS
        if wall > self.last_ms:
            self.last_ms = wall
            self.sequence = 0
        return self.last_ms

    def stamp(self):
        cdef int64_t wall_ns = self._wall_ns()
        cdef int64_t wall = wall_ns // NS_PER_MS
        cdef uint64_t inverted
        cdef int left, place
        cdef bytes suffix = PyBytes_FromStringAndSize(NULL, SUFFIX_BYTES)
        cdef char *at = PyBytes_AS_STRING(suffix)
        if wall > self.last_ms:
            self.last_ms = wall
            self.sequence = 1
        elif self.sequence < LAST_SEQUENCE:
            self.sequence += 1
        else:
            self.last_ms += 1
            self.sequence = 1
        inverted = UINT64_MAX - <uint64_t> self.last_ms
        for place in range(TIMESTAMP_BYTES):
            at[place] = <char> (inverted >> (8 * (TIMESTAMP_BYTES - 1 - place)) & 0xFF)
        left = LAST_SEQUENCE - self.sequence
        at[TIMESTAMP_BYTES] = <char> (left >> 8)
        at[TIMESTAMP_BYTES + 1] = <char> (left & 0xFF)
        return suffix

    @property
    def needs_reservation(self):
        return self.last_ms >= self.reserved_ms

    def next_reservation(self):
        return self.last_ms + RESERVE_MS
