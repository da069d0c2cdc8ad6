# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""Walking keys and reading rows, compiled: the twin of row_reader.py, line for line in what it does.

What it means is told there. Here names of columns are compared where they lie in the keys, and
numbers are the processor's, so that a cell costs little more than the store takes to give it. Knows
nothing of RocksDB: a walk is over any object that has an iterator's methods.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.object cimport PyObject, PyTypeObject
from libc.stdint cimport UINT64_MAX, uint32_t, uint64_t
from libc.stdlib cimport free, realloc
from libc.string cimport memchr, memcmp, memcpy

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
    row_prefix,
    split_value,
    unescape,
)
from storage.errors import CorruptData, StorageError
from storage.model import MAX_NAME_BYTES, Packed
from storage.packed import NO_VALUE

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
cdef Py_ssize_t MOST_NAME = MAX_NAME_BYTES
cdef Py_ssize_t MOST_STEPS = STEPS_BEFORE_SEEK
cdef uint32_t WITHOUT_VALUE = NO_VALUE


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


cdef extern from "Python.h":
    ctypedef object (*PyCFunction)(object target, PyObject *nothing)
    ctypedef struct PyMethodDef:
        PyCFunction ml_meth
        int ml_flags
    ctypedef struct PyDescrObject:
        PyTypeObject *d_type
    ctypedef struct PyMethodDescrObject:
        PyDescrObject d_common
        PyMethodDef *d_method
    PyTypeObject PyMethodDescr_Type
    PyTypeObject *Py_TYPE(object value)
    int METH_NOARGS


cdef class Method:
    """A method of a type, without arguments, to be called for every key.

    Looking it up costs more than running it, if it is one of a compiled library: it is done once.
    """

    cdef object _method
    cdef PyCFunction _call
    cdef PyTypeObject *_type

    def __init__(self, kind, name):
        cdef PyMethodDescrObject *found
        self._method = getattr(kind, name)
        self._call = NULL
        if Py_TYPE(self._method) == &PyMethodDescr_Type:
            found = <PyMethodDescrObject *> self._method
            if found.d_method.ml_flags == METH_NOARGS:
                self._call = found.d_method.ml_meth
                self._type = found.d_common.d_type

    cdef inline object call(self, target):
        if self._call is not NULL and Py_TYPE(target) == self._type:
            return self._call(target, NULL)
        return self._method(target)


cdef dict methods = {}  # (next, key, value) of each type of iterator


cdef tuple methods_of(kind):
    found = methods.get(kind)
    if found is None:
        found = methods[kind] = tuple([Method(kind, name) for name in ("next", "key", "value")])
    return found


cdef class Walk:
    """Keys and values from a start on: an iterator, as the generator walk_in_python is, which stands
    in storage/rocks/families.py.

    `owner` is kept alive with it; `translation` turns an error of the store into one of ours.
    """

    cdef object _owner, _scanned, _iterator, _translation
    cdef Method _next, _key, _value
    cdef bint _begun
    cdef bytes key, value

    def __init__(self, owner, iterator, bytes start not None, translation):
        self._owner = owner
        self._scanned = iterator
        self._translation = translation
        self.begin(start)  # before its methods are looked up: what is gone says so when it is used
        self._next, self._key, self._value = methods_of(type(iterator))

    cdef int begin(self, bytes start) except -1:
        """Walk from there on; it may have walked before."""
        self._scanned.seek(start)
        self._iterator = self._scanned  # None once it has ended
        self._begun = False
        return 0

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
            self._next.call(iterator)
        self._begun = True
        self.key = self._key.call(iterator)
        if self.key is not None:
            self.value = self._value.call(iterator)
            return True
        self._iterator = None
        try:
            # An iterator that met a damaged block merely has no key; only status() tells.
            iterator.status()
        except Exception as error:
            # A traceback keeps this frame: what it holds would keep the database from closing.
            del iterator
            raise self._translation(error) from error
        return False

    def end(self):
        """Let go of the iterator: the walk is over."""
        self._iterator = self._scanned = None
        self._owner = None


cdef class Packing:
    """Columns on their way into a Packed, whose form storage/packed.py tells."""

    cdef char *_start
    cdef Py_ssize_t _used, _size, _counted  # where the number of the last column's cells stands
    cdef Py_ssize_t columns

    def __dealloc__(self):
        free(self._start)

    cdef char *_reserve(self, Py_ssize_t count) except NULL:
        """Where to write so many bytes, which count as written."""
        cdef char *start
        cdef Py_ssize_t place = self._used, size = self._size
        if place + count > size:
            size = max(2 * size, place + count, 4096)
            start = <char *> realloc(self._start, size)
            if start is NULL:
                raise MemoryError
            self._start = start
            self._size = size
        self._used += count
        return self._start + place

    cdef int add_column(self, const char *name, Py_ssize_t length) except -1:
        cdef uint32_t numbers[2]
        cdef char *at = self._reserve(sizeof(numbers) + length)
        numbers[0] = <uint32_t> length
        numbers[1] = 0
        memcpy(at, numbers, sizeof(numbers))
        memcpy(at + sizeof(numbers), name, length)
        self._counted = at + sizeof(uint32_t) - self._start
        self.columns += 1
        return 0

    cdef int add_cell(
        self, uint64_t timestamp, const char *value, Py_ssize_t length, bint with_value
    ) except -1:
        cdef uint32_t number = <uint32_t> length if with_value else WITHOUT_VALUE
        cdef char *at
        if not with_value:
            length = 0
        at = self._reserve(sizeof(timestamp) + sizeof(number) + length)
        memcpy(at, &timestamp, sizeof(timestamp))
        memcpy(at + sizeof(timestamp), &number, sizeof(number))
        memcpy(at + sizeof(timestamp) + sizeof(number), value, length)
        memcpy(&number, self._start + self._counted, sizeof(number))
        number += 1
        memcpy(self._start + self._counted, &number, sizeof(number))
        return 0

    cdef object finished(self):
        return Packed(self.columns, PyBytes_FromStringAndSize(self._start, self._used))


cdef class RowReader:
    """Reads rows of one dataset by one selection, within one budget: see row_reader.RowReader."""

    cdef object _scan, _rules, _selection, _budget
    cdef Walk _walk  # the last one over the scan
    cdef bint _values
    cdef uint64_t _now, _ttl_ms, _oldest, _newest, _first_expiry
    cdef Py_ssize_t _max_versions, _versions
    # What is left of the budget, while a row is read.
    cdef Py_ssize_t _cells_left, _bytes_left, _scan_left
    cdef bint _started
    # What is on the page: columns of cells, or the packing of them.
    cdef list _columns
    cdef Packing _packing
    # The column the walk is in.
    cdef bytes _prefix
    cdef Py_ssize_t _prefix_bytes
    cdef bytes _key  # one of its keys; b"" in no column
    cdef const char *_column  # its name as it stands in that key, with the terminator
    cdef Py_ssize_t _column_bytes
    cdef list _cells
    cdef bint _begun  # whether it is on the page
    # The cell the walk is at.
    cdef const char *_payload
    cdef Py_ssize_t _payload_bytes
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
        self._columns = []
        self._packing = None
        return self._columns, self._read(prefix, count, position)

    def read_packed(self, bytes prefix not None, Py_ssize_t count, position=START):
        """As read(), but the columns are Packed."""
        self._packing = Packing()
        cut = self._read(prefix, count, position)
        return self._packing.finished(), cut

    def read_pages(
        self,
        rows,
        Py_ssize_t count,
        *,
        bint packed,
        Py_ssize_t most_keys,
        Py_ssize_t most_bytes,
        Py_ssize_t most_expired,
    ):
        cdef list pages = []
        cdef bytes row
        limits = self._budget.limits
        cdef Py_ssize_t cells = limits.cells, in_bytes = limits.bytes, keys = limits.scan
        for row in rows:
            self._cells_left = cells
            self._bytes_left = in_bytes
            self._scan_left = keys
            self._started = False
            self._first_expiry = UINT64_MAX
            self.expired = 0
            self._columns = None if packed else []
            self._packing = Packing() if packed else None
            try:
                cut = self._read_row(prefix_of(row), count, START)
            except StorageError:
                self.expired = 0
                break
            columns = self._packing.finished() if packed else self._columns
            pages.append((row, columns, cut, self.first_expiry))
            most_keys -= keys - self._scan_left
            most_bytes -= in_bytes - self._bytes_left
            if most_keys < 0 or most_bytes < 0 or self.expired > most_expired:
                break
        return pages

    cdef _read(self, bytes prefix, Py_ssize_t count, position):
        budget = self._budget
        self._cells_left = budget.cells
        self._bytes_left = budget.bytes
        self._scan_left = budget.scan
        self._started = budget.started
        try:
            return self._read_row(prefix, count, position)
        finally:
            budget.cells = self._cells_left
            budget.bytes = self._bytes_left
            budget.scan = self._scan_left
            budget.started = self._started

    cdef _read_row(self, bytes prefix, Py_ssize_t count, position):
        """Read it within what is left; a Cut where that or `count` stops it."""
        cdef bytes start, end, resume = prefix
        if self._oldest > self._newest:
            return None
        if position is not START:
            resume = prefix + position.bound
        self._prefix = prefix
        self._prefix_bytes = PyBytes_GET_SIZE(prefix)
        for start, end in self._segments(prefix):
            if compared(end, resume) <= 0:
                continue
            self._begin()
            if position is not START and position.returned is not None:
                if compared(start, resume) <= 0:
                    # A forged cursor may hold numbers that no page could have reached.
                    self._resume(resume, min(position.returned, MOST), min(position.live, MOST))
            if compared(start, resume) < 0:
                start = resume
            cut = self._read_segment(start, end, count)
            if cut is not None:
                return cut
        return None

    def _segments(self, bytes prefix):
        """The key ranges that hold the selected columns, in order."""
        names = self._selection.columns
        if names is None:
            start, end = name_bounds(prefix, end_of(prefix), self._selection.names)
            return [(start, end)] if end is not None and start < end else []
        return [segment_of(prefix, name) for name in names]

    cdef _read_segment(self, bytes start, bytes end, Py_ssize_t count):
        """Walk the keys of [start, end), collecting columns; a Cut where a limit stops it."""
        cdef Walk walk
        cdef bytes key, value
        cdef Py_ssize_t skipped
        cdef bint walks, one_column = self._selection.columns is not None
        while not (one_column and self._skip == COLUMN):
            skipped = 0
            steps = self._walk_from(start)
            walks = type(steps) is Walk
            walk = <Walk> steps if walks else None
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
                if self._visit(key, value) and not self._take(count):
                    return Cut(self._found_position(key), found=True)
                if one_column and self._skip == COLUMN:
                    return None
            start = self._column_end() if self._skip == COLUMN else self._newest_in_range()
        return None

    cdef _walk_from(self, bytes start):
        """A walk from there on: a Walk, taken up anew where there is one, or any iterator."""
        if self._walk is not None and self._walk._scanned is not None:
            self._walk.begin(start)
            return self._walk
        walk = self._scan.walk(start)
        if type(walk) is Walk:
            self._walk = <Walk> walk
            return walk
        return iter(walk)

    cdef bint _take(self, Py_ssize_t count) except -1:
        """Put the cell on the page; False when it does not fit."""
        cdef Py_ssize_t cost = CELL_OVERHEAD
        if self._values:
            cost += self._payload_bytes
        if not self._begun:
            if self._columns_taken() >= count:
                return False
            cost += COLUMN_OVERHEAD + self._column_bytes
        if self._cells_left <= 0 or (self._bytes_left < cost and self._started):
            self._bytes_left = 0  # the reply ends here, also for the rows that were to follow
            return False
        if not self._begun:
            self._begun = True
            self._put_column()
        self._started = True
        self._cells_left -= 1
        self._bytes_left -= cost
        self._put_cell()
        self._taken += 1
        if self._taken >= self._versions:
            self._skip = COLUMN
        return True

    cdef inline Py_ssize_t _columns_taken(self) noexcept:
        return len(self._columns) if self._packing is None else self._packing.columns

    cdef int _put_column(self) except -1:
        cdef bytes name
        if self._packing is None:
            self._cells = []
            self._columns.append((self._name(), self._cells))
        elif self._is_plain():
            self._packing.add_column(self._column, self._column_bytes - TERMINATOR)
        else:
            name = self._name()
            self._packing.add_column(PyBytes_AS_STRING(name), PyBytes_GET_SIZE(name))
        return 0

    cdef int _put_cell(self) except -1:
        if self._packing is not None:
            self._packing.add_cell(
                self._timestamp, self._payload, self._payload_bytes, self._values
            )
        elif self._values:
            value = PyBytes_FromStringAndSize(self._payload, self._payload_bytes)
            self._cells.append((self._timestamp, value))
        else:
            self._cells.append(self._timestamp)
        return 0

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
        return self._begin_at(b"", 0, 0)

    cdef int _begin_at(self, bytes key, Py_ssize_t place, Py_ssize_t length) except -1:
        """In the column whose name stands there in a key."""
        self._key = key
        self._column = PyBytes_AS_STRING(key) + place
        self._column_bytes = length
        self._begun = False
        self._skip = NOTHING
        self._live = self._taken = 0
        self._resumed = False
        return 0

    cdef int _resume(self, bytes key, Py_ssize_t returned, Py_ssize_t live) except -1:
        """Take up a column in its middle: `key` is the next cell to look at."""
        cdef Py_ssize_t length = max(0, PyBytes_GET_SIZE(key) - self._prefix_bytes - SUFFIX)
        self._begin_at(key, self._prefix_bytes, length)
        self._taken = returned
        self._resumed = True
        if self._max_versions:
            self._live = self._count_unexpired(key[: len(key) - SUFFIX], key, live)
            if self._live >= self._max_versions:
                self._skip = COLUMN
        return 0

    cdef inline bint _is_of_column(self, bytes key) noexcept:
        cdef Py_ssize_t length = self._column_bytes
        return (
            PyBytes_GET_SIZE(key) == self._prefix_bytes + length + SUFFIX
            and memcmp(PyBytes_AS_STRING(key) + self._prefix_bytes, self._column, length) == 0
        )

    cdef inline bint _skips(self, bytes key) noexcept:
        """Whether nothing more is wanted of what this key belongs to."""
        if not self._is_of_column(key):
            return False
        return self._skip == COLUMN or timestamp_of(key) > self._newest

    cdef bint _visit(self, bytes key, bytes value) except -1:
        """Whether a cell is visible and in the time range; its payload lies in `value` then."""
        cdef const char *stored = PyBytes_AS_STRING(value)
        cdef Py_ssize_t header
        if not self._column_bytes or not self._is_of_column(key):
            self._enter(key)
        self._timestamp = timestamp_of(key)
        if not self._lives(key, value):
            self.expired += 1
            if self._ttl_ms and expires_by_ttl(self._timestamp, self._ttl_ms) < self._now:
                self._skip = COLUMN  # all that lies below is older, so it has expired too
            return False
        if not self._selects():
            return False
        header = 1 if stored[0] == 0 else EXPIRING_HEADER
        self._payload = stored + header
        self._payload_bytes = PyBytes_GET_SIZE(value) - header
        return True

    cdef int _enter(self, bytes key) except -1:
        """The walk has come to another column."""
        cdef Py_ssize_t length = PyBytes_GET_SIZE(key) - self._prefix_bytes - SUFFIX
        if length < TERMINATOR:
            raise CorruptData(f"a key of no known form: {key[:64].hex()}")
        return self._begin_at(key, self._prefix_bytes, length)

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

    cdef inline bint _is_plain(self) noexcept:
        """Whether the column's name stands in keys as clients know it."""
        return memchr(self._column, 0, self._column_bytes - TERMINATOR) is NULL

    cdef bytes _name(self):
        """The column's name as clients know it."""
        cdef bytes escaped = PyBytes_FromStringAndSize(
            self._column, self._column_bytes - TERMINATOR
        )
        return escaped if self._is_plain() else unescape(escaped)

    cdef bytes _escaped(self):
        """The column's name as it stands in keys, with the terminator."""
        return PyBytes_FromStringAndSize(self._column, self._column_bytes)

    cdef bytes _column_end(self):
        return end_of(self._prefix + self._escaped())

    cdef bytes _newest_in_range(self):
        return first_at(self._prefix + self._escaped(), self._newest)

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
            return Position(self._escaped())
        # The cell was counted as live when it was found, and will be again.
        return self._position_at(key, self._live - 1)

    cdef _position_at(self, bytes key, Py_ssize_t live):
        return Position(key[self._prefix_bytes :], self._taken, max(0, live))


cdef extern from *:
    Py_ssize_t PY_SSIZE_T_MAX


cdef bytes prefix_of(bytes row):
    """What every key of a row begins with."""
    cdef Py_ssize_t length
    cdef bytes prefix
    if row is None:
        raise TypeError("a row without a key")
    length = PyBytes_GET_SIZE(row)
    if length > MOST_NAME or memchr(PyBytes_AS_STRING(row), 0, length) is not NULL:
        return row_prefix(row)
    prefix = PyBytes_FromStringAndSize(NULL, length + TERMINATOR)
    memcpy(PyBytes_AS_STRING(prefix), PyBytes_AS_STRING(row), length)
    PyBytes_AS_STRING(prefix)[length] = PyBytes_AS_STRING(prefix)[length + 1] = 0
    return prefix


cdef tuple segment_of(bytes prefix, bytes name):
    """Where the keys of a column begin, and the first after them."""
    cdef Py_ssize_t before = PyBytes_GET_SIZE(prefix), length = PyBytes_GET_SIZE(name), place
    cdef bytes start, end
    if length > MOST_NAME or memchr(PyBytes_AS_STRING(name), 0, length) is not NULL:
        start = column_prefix(prefix, name)
        return start, end_of(start)
    place = before + length
    start = PyBytes_FromStringAndSize(NULL, place + TERMINATOR)
    memcpy(PyBytes_AS_STRING(start), PyBytes_AS_STRING(prefix), before)
    memcpy(PyBytes_AS_STRING(start) + before, PyBytes_AS_STRING(name), length)
    PyBytes_AS_STRING(start)[place] = PyBytes_AS_STRING(start)[place + 1] = 0
    end = PyBytes_FromStringAndSize(PyBytes_AS_STRING(start), place + TERMINATOR)
    PyBytes_AS_STRING(end)[place + 1] = 1
    return start, end


cdef inline uint64_t timestamp_of(bytes key) noexcept:
    """The key is long enough: it was compared with a column's, or measured."""
    cdef const unsigned char *end = (
        <const unsigned char *> PyBytes_AS_STRING(key) + PyBytes_GET_SIZE(key)
    )
    return UINT64_MAX - number_at(end - SUFFIX)


cdef inline uint64_t expires_by_ttl(uint64_t timestamp, uint64_t ttl_ms) noexcept:
    return timestamp + ttl_ms if timestamp <= UINT64_MAX - ttl_ms else UINT64_MAX
