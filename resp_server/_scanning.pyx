# cython: language_level=3, boundscheck=False, wraparound=False
"""Looking through a chunk for what hiredis must not get, compiled: the twin of scanning.py.

What is looked for, and why, is told there. Knows nothing of parsers.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE

cdef enum:
    HUGE_DIGITS = 7


cdef inline bint is_digit(char byte) noexcept:
    return c'0' <= byte <= c'9'


cdef inline Py_ssize_t digits_at(const char *at, Py_ssize_t left) noexcept:
    """How many digits stand here, up to HUGE_DIGITS."""
    cdef Py_ssize_t count = 0
    while count < left and count < HUGE_DIGITS and is_digit(at[count]):
        count += 1
    return count


cdef inline bint is_aggregate(char byte) noexcept:
    return byte in (c'*', c'%', c'~', c'>', c'|')


cdef bint is_odd_line(const char *at, Py_ssize_t left) noexcept:
    """Whether a line that begins here is not `*n` with `$` below it, or `$n`."""
    cdef char kind = at[0]
    cdef Py_ssize_t end
    if kind != c'*' and kind != c'$':
        return kind in (
            c'-', c'+', c':', c'_', c',', c'#', c'!', c'=', c'(', c'%', c'~', c'>', c'|'
        )
    end = 1 + digits_at(at + 1, left - 1)
    if end > HUGE_DIGITS:
        return True
    if end >= left:
        return False  # the chunk ends within the number
    if end == 1 or at[end] != c'\r':
        return True
    if end + 1 >= left:
        return False
    if at[end + 1] != c'\n':
        return True
    return kind == c'*' and end + 2 < left and at[end + 2] != c'$'


def find_suspicious(bytes chunk not None, Py_ssize_t start=0):
    cdef const char *text = PyBytes_AS_STRING(chunk)
    cdef Py_ssize_t length = PyBytes_GET_SIZE(chunk), place
    cdef char byte
    for place in range(start, length):
        byte = text[place]
        if (place == 0 or text[place - 1] == c'\n') and is_odd_line(text + place, length - place):
            return place
        if byte == c'$' or is_aggregate(byte):
            if digits_at(text + place + 1, length - place - 1) == HUGE_DIGITS:
                return place
    return -1


def holds_huge_collection(bytes chunk not None):
    cdef const char *text = PyBytes_AS_STRING(chunk)
    cdef Py_ssize_t length = PyBytes_GET_SIZE(chunk), place
    cdef char byte
    for place in range(length):
        byte = text[place]
        if byte == c'\n':
            if place + 1 < length and text[place + 1] in (c'|', c'~', c'_'):
                return True
        elif is_aggregate(byte):
            if digits_at(text + place + 1, length - place - 1) == HUGE_DIGITS:
                return True
    return False
