# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""Walking keys and reading rows, compiled: the twin of row_reader.py, line for line in what it does.

What it means is told there. Here names of columns are compared where they lie in the keys, and
numbers are the processor's, so that a cell costs little more than the store takes to give it. Knows
nothing of RocksDB: a walk is over any object that has an iterator's methods.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from libc.stdint cimport UINT64_MAX, uint64_t
from libc.string cimport memchr, memcmp

from storage.cursors import START, Position
from storage.embedded.rules import (
    CELL_OVERHEAD_BYTES,
    COLUMN_OVERHEAD_BYTES,
    NEVER,
    STEPS_BEFORE_SEEK,
    Cut,
)
from storage.encoding import (
    EXPIRING_HEADER_BYTES,
    SUFFIX_BYTES,
    TERMINATOR_BYTES,
    column_prefix,
    end_of,
    first_at,
    name_bounds,
    split_value,
    unescape,
)
from storage.errors import CorruptData

cdef enum Skip:
    NOTHING
    NEWER  # cells of this column above the time range
    COLUMN  # all that is left of this column

# The numbers of the modules above, as the processor's.
cdef Py_ssize_t SUFFIX = SUFFIX_BYTES
cdef Py_ssize_t TERMINATOR = TERMINATOR_BYTES
cdef Py_ssize_t EXPIRING_HEADER = EXPIRING_HEADER_BYTES
cdef Py_ssize_t CELL_OVERHEAD = CELL_OVERHEAD_BYTES
cdef Py_ssize_t COLUMN_OVERHEAD = COLUMN_OVERHEAD_BYTES
cdef Py_ssize_t MOST = 2**62
cdef Py_ssize_t MOST_STEPS = STEPS_BEFORE_SEEK


cdef inline uint64_t number_at(const unsigned char *at) noexcept:
    """Eight bytes, big-endian."""
    cdef uint64_t number = 0
    cdef int place
    for place in range(8):
        number = number << 8 | at[place]
    return number


cdef inline int compared(bytes one, bytes other) noexcept:
    """Below, at or above 0, as bytes compare."""
    cdef Py_ssize_t length = PyBytes_GET_SIZE(one), others = PyBytes_GET_SIZE(other)
    cdef int order = memcmp(
        PyBytes_AS_STRING(one), PyBytes_AS_STRING(other), min(length, others)
    )
    if order:
        return order
    return 0 if length == others else (-1 if length < others else 1)


cdef class Walk:
    """Keys and values from a start on: an iterator, as the generator walk_in_python is (storage/rocks/families.py).

    `owner` is kept alive with it; `translation` turns an error of the store into one of ours.
    """

    cdef object _owner, _iterator, _translation
    cdef bint _begun
    cdef bytes key, value

    def __init__(self, owner, iterator, bytes start not None, translation):
        iterator.seek(start)
        self._owner = owner
        self._iterator = iterator
        self._translation = translation
        self._begun = False

    def __iter__(self):
        return self

    def __next__(self):
        if not self.step():
            raise StopIteration
        return self.key, self.value

    cdef bint step(self) except -1:
        """Whether there is a further key; it and its value are the walk's then."""
        iterator = self._iterator
        if iterator is None:
            return False  # it has ended: an iterator that is not valid must not be stepped
        if self._begun:
            iterator.next()
        self._begun = True
        if iterator.valid():
            self.key = iterator.key()
            self.value = iterator.value()
            return True
        self._iterator = None
        try:
            # An iterator that met a damaged block is merely "not valid"; only status() tells.
            iterator.status()
        except Exception as error:
            # A traceback keeps this frame: what it holds would keep the database from closing.
            del iterator
            raise self._translation(error) from error
        return False

    def end(self):
        """Let go of the iterator: the walk is over."""
        self._iterator = None
        self._owner = None


cdef class RowReader:
    """Reads rows of one dataset by one selection, within one budget: see row_reader.RowReader."""

    cdef object _scan, _rules, _selection, _budget
    cdef bint _values
    cdef uint64_t _now, _ttl_ms, _oldest, _newest, _first_expiry
    cdef Py_ssize_t _max_versions, _versions
    # What is left of the budget, while a row is read.
    cdef Py_ssize_t _cells_left, _bytes_left, _scan_left
    cdef bint _started
    # The column the walk is in.
    cdef bytes _prefix
    cdef Py_ssize_t _prefix_bytes
    cdef bytes _column  # its name as it stands in keys, with the terminator
    cdef list _cells
    cdef Skip _skip
    cdef uint64_t _timestamp
    cdef Py_ssize_t _live, _taken
    cdef readonly Py_ssize_t expired
    cdef bint _resumed

    def __init__(self, scan, rules, selection, budget, *, bint values=True):
        self._scan = scan
        self._rules = rules
        self._selection = selection
        self._budget = budget
        self._values = values
        self._now = rules.now
        self._ttl_ms = rules.ttl_ms
        self._max_versions = rules.max_versions
        times = selection.times
        self._oldest = times.oldest
        self._newest = times.newest
        versions = selection.versions
        self._versions = PY_SSIZE_T_MAX if versions is None else versions
        self._first_expiry = UINT64_MAX

    @property
    def first_expiry(self):
        return NEVER if self._first_expiry == UINT64_MAX else self._first_expiry

    def read(self, bytes prefix not None, Py_ssize_t count, position=START):
        cdef list columns = []
        cdef bytes start, end, resume = prefix
        if self._oldest > self._newest:
            return columns, None
        if position is not START:
            resume = prefix + position.bound
        self._prefix = prefix
        self._prefix_bytes = PyBytes_GET_SIZE(prefix)
        budget = self._budget
        self._cells_left = budget.cells
        self._bytes_left = budget.bytes
        self._scan_left = budget.scan
        self._started = budget.started
        try:
            for start, end in self._segments(prefix):
                if compared(end, resume) <= 0:
                    continue
                self._begin()
                if position is not START and position.returned is not None:
                    if compared(start, resume) <= 0:
                        # A forged cursor may hold numbers that no page could have reached.
                        self._resume(
                            resume, min(position.returned, MOST), min(position.live, MOST)
                        )
                if compared(start, resume) < 0:
                    start = resume
                cut = self._read_segment(start, end, columns, count)
                if cut is not None:
                    return columns, cut
            return columns, None
        finally:
            budget.cells = self._cells_left
            budget.bytes = self._bytes_left
            budget.scan = self._scan_left
            budget.started = self._started

    def _segments(self, bytes prefix):
        """The key ranges that hold the selected columns, in order."""
        cdef bytes place
        names = self._selection.columns
        if names is None:
            start, end = name_bounds(prefix, end_of(prefix), self._selection.names)
            return [(start, end)] if end is not None and start < end else []
        segments = []
        for name in names:
            place = column_prefix(prefix, name)
            segments.append((place, end_of(place)))
        return segments

    cdef _read_segment(self, bytes start, bytes end, list columns, Py_ssize_t count):
        """Walk the keys of [start, end), collecting columns; a Cut where a limit stops it."""
        cdef Walk walk
        cdef bytes key, value, payload
        cdef Py_ssize_t skipped
        cdef bint walks, one_column = self._selection.columns is not None
        while not (one_column and self._skip == COLUMN):
            skipped = 0
            steps = self._scan.walk(start)
            walks = type(steps) is Walk
            walk = <Walk> steps if walks else None
            if not walks:
                steps = iter(steps)
            while True:
                if walks:
                    if not walk.step():
                        return None
                    key, value = walk.key, walk.value
                else:
                    pair = next(steps, None)
                    if pair is None:
                        return None
                    key, value = pair
                if compared(key, end) >= 0:
                    self._scan_left -= 1
                    return None
                if self._scan_left <= 0:
                    return Cut(self._position(key), found=False)
                self._scan_left -= 1
                if self._skip != NOTHING and self._skips(key):
                    skipped += 1
                    if skipped > MOST_STEPS:
                        break
                    continue
                payload = self._visit(key, value)
                if payload is not None and not self._take(payload, columns, count):
                    return Cut(self._found_position(key), found=True)
                if one_column and self._skip == COLUMN:
                    return None
            start = self._column_end() if self._skip == COLUMN else self._newest_in_range()
        return None

    cdef bint _take(self, bytes payload, list columns, Py_ssize_t count) except -1:
        """Put a cell on the page; False when it does not fit."""
        cdef Py_ssize_t cost = CELL_OVERHEAD
        if self._values:
            cost += PyBytes_GET_SIZE(payload)
        if self._cells is None:
            if len(columns) >= count:
                return False
            cost += COLUMN_OVERHEAD + PyBytes_GET_SIZE(self._column)
        if self._cells_left <= 0 or (self._bytes_left < cost and self._started):
            self._bytes_left = 0  # the reply ends here, also for the rows that were to follow
            return False
        if self._cells is None:
            self._cells = []
            columns.append((self._name(), self._cells))
        self._started = True
        self._cells_left -= 1
        self._bytes_left -= cost
        if self._values:
            self._cells.append((self._timestamp, payload))
        else:
            self._cells.append(self._timestamp)
        self._taken += 1
        if self._taken >= self._versions:
            self._skip = COLUMN
        return True

    cdef Py_ssize_t _count_unexpired(
        self, bytes start, bytes end, Py_ssize_t known
    ) except -1:
        """How many cells in [start, end) have not expired: see RowReader.count_unexpired."""
        cdef Py_ssize_t found = 0, examined = 0
        cdef Py_ssize_t most_examined = self._scan_left + self._max_versions
        cdef bytes key, value
        for key, value in self._scan.walk(start):
            if compared(key, end) >= 0 or found >= self._max_versions:
                break
            if examined >= most_examined:
                return max(found, known)
            examined += 1
            if PyBytes_GET_SIZE(key) < SUFFIX:
                raise CorruptData(f"a key of no known form: {key[:64].hex()}")
            if self._lives(key, value):
                found += 1
        return found

    # The column the walk is in

    cdef int _begin(self) except -1:
        """In no column yet."""
        self._column = b""
        self._cells = None
        self._skip = NOTHING
        self._live = self._taken = 0
        self._resumed = False
        return 0

    cdef int _resume(self, bytes key, Py_ssize_t returned, Py_ssize_t live) except -1:
        """Take up a column in its middle: `key` is the next cell to look at."""
        self._column = key[self._prefix_bytes : len(key) - SUFFIX]
        self._taken = returned
        self._resumed = True
        if self._max_versions:
            self._live = self._count_unexpired(key[: len(key) - SUFFIX], key, live)
            if self._live >= self._max_versions:
                self._skip = COLUMN
        return 0

    cdef inline bint _is_of_column(self, bytes key) noexcept:
        cdef Py_ssize_t length = PyBytes_GET_SIZE(self._column)
        return (
            PyBytes_GET_SIZE(key) == self._prefix_bytes + length + SUFFIX
            and memcmp(
                PyBytes_AS_STRING(key) + self._prefix_bytes,
                PyBytes_AS_STRING(self._column),
                length,
            )
            == 0
        )

    cdef inline bint _skips(self, bytes key) noexcept:
        """Whether nothing more is wanted of what this key belongs to."""
        if not self._is_of_column(key):
            return False
        return self._skip == COLUMN or timestamp_of(key) > self._newest

    cdef bytes _visit(self, bytes key, bytes value):
        """The payload of a cell if it is visible and in the time range, else None."""
        cdef const char *stored = PyBytes_AS_STRING(value)
        cdef Py_ssize_t length = PyBytes_GET_SIZE(value), header
        if not PyBytes_GET_SIZE(self._column) or not self._is_of_column(key):
            self._enter(key)
        self._timestamp = timestamp_of(key)
        if not self._lives(key, value):
            self.expired += 1
            if self._ttl_ms and expires_by_ttl(self._timestamp, self._ttl_ms) < self._now:
                self._skip = COLUMN  # all that lies below is older, so it has expired too
            return None
        if not self._selects():
            return None
        header = 1 if stored[0] == 0 else EXPIRING_HEADER
        return PyBytes_FromStringAndSize(stored + header, length - header)

    cdef int _enter(self, bytes key) except -1:
        """The walk has come to another column."""
        cdef Py_ssize_t length = PyBytes_GET_SIZE(key) - self._prefix_bytes - SUFFIX
        if length < TERMINATOR:
            raise CorruptData(f"a key of no known form: {key[:64].hex()}")
        self._column = PyBytes_FromStringAndSize(
            PyBytes_AS_STRING(key) + self._prefix_bytes, length
        )
        self._cells = None
        self._skip = NOTHING
        self._live = self._taken = 0
        self._resumed = False
        return 0

    cdef bint _lives(self, bytes key, bytes value) except -1:
        """Whether it has not expired; the first to expire of those that live is remembered."""
        cdef const unsigned char *stored = <const unsigned char *> PyBytes_AS_STRING(value)
        cdef Py_ssize_t length = PyBytes_GET_SIZE(value)
        cdef uint64_t expires = UINT64_MAX
        if self._ttl_ms:
            expires = expires_by_ttl(timestamp_of(key), self._ttl_ms)
            if expires < self._now:
                return False
        if length == 0 or stored[0] != 0:
            if length < EXPIRING_HEADER or stored[0] != 1:
                split_value(value)  # tells what is wrong with it
            expires = min(expires, number_at(stored + 1))
        if expires < self._now:
            return False
        if expires < self._first_expiry:
            self._first_expiry = expires
        return True

    cdef bint _selects(self) noexcept:
        """Whether an unexpired cell is visible and in the time range; sets where to go on."""
        if self._max_versions:
            if self._live >= self._max_versions:
                self._skip = COLUMN
                return False
            self._live += 1
        if self._timestamp > self._newest:
            if not self._max_versions:
                self._skip = NEWER
            return False
        if self._timestamp < self._oldest:
            self._skip = COLUMN
            return False
        return True

    cdef bytes _name(self):
        """The column's name as clients know it."""
        cdef Py_ssize_t length = PyBytes_GET_SIZE(self._column) - TERMINATOR
        cdef bytes escaped = PyBytes_FromStringAndSize(PyBytes_AS_STRING(self._column), length)
        if memchr(PyBytes_AS_STRING(escaped), 0, length) is NULL:
            return escaped
        return unescape(escaped)

    cdef bytes _column_end(self):
        return end_of(self._prefix + self._column)

    cdef bytes _newest_in_range(self):
        return first_at(self._prefix + self._column, self._newest)

    # Where a page ends

    cdef _position(self, bytes key):
        """Where to go on when `key` was not looked at any more."""
        if self._skip == COLUMN and self._is_of_column(key):
            return Position(self._column_end()[self._prefix_bytes :])
        if not self._is_of_column(key):
            return Position(key[self._prefix_bytes : len(key) - SUFFIX])
        return self._position_at(key, self._live)

    cdef _found_position(self, bytes key):
        """Where to go on when the cell at `key` did not fit on the page."""
        if self._taken == 0 and not self._resumed:
            return Position(self._column)
        # The cell was counted as live when it was found, and will be again.
        return self._position_at(key, self._live - 1)

    cdef _position_at(self, bytes key, Py_ssize_t live):
        return Position(key[self._prefix_bytes :], self._taken, max(0, live))


cdef extern from *:
    Py_ssize_t PY_SSIZE_T_MAX


cdef inline uint64_t timestamp_of(bytes key) noexcept:
    """The key is long enough: it was compared with a column's, or measured."""
    cdef const unsigned char *end = (
        <const unsigned char *> PyBytes_AS_STRING(key) + PyBytes_GET_SIZE(key)
    )
    return UINT64_MAX - number_at(end - SUFFIX)


cdef inline uint64_t expires_by_ttl(uint64_t timestamp, uint64_t ttl_ms) noexcept:
    return timestamp + ttl_ms if timestamp <= UINT64_MAX - ttl_ms else UINT64_MAX
