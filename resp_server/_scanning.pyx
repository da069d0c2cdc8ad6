# cython: language_level=3, boundscheck=False, wraparound=False
"""Looking through a chunk, compiled: the twin of scanning.py, where it is told what for and why.

Knows nothing of parsers.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.list cimport PyList_GET_SIZE

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


cdef inline Py_ssize_t header_at(
    const char *text, Py_ssize_t length, Py_ssize_t place, char kind, Py_ssize_t *number
) noexcept:
    """Where the line behind a header begins; -1 unless it is one as clients send them, whole."""
    cdef Py_ssize_t value = 0, digits
    if place >= length or text[place] != kind:
        return -1
    place += 1
    digits = digits_at(text + place, length - place)
    if digits == 0 or digits == HUGE_DIGITS or (text[place] == c'0' and digits > 1):
        return -1
    while digits:
        value = 10 * value + (text[place] - c'0')
        place += 1
        digits -= 1
    if place + 2 > length or text[place] != c'\r' or text[place + 1] != c'\n':
        return -1
    number[0] = value
    return place + 2


cdef Py_ssize_t command_at(
    const char *text, Py_ssize_t length, Py_ssize_t place, Py_ssize_t most_bulk, list words
) except -2:
    """Where the command that begins here ends, with its words in `words`; -1 if it is not whole."""
    cdef Py_ssize_t count = 0, size = 0
    place = header_at(text, length, place, c'*', &count)
    if place < 0 or count == 0:
        return -1
    while count:
        place = header_at(text, length, place, c'$', &size)
        if place < 0 or size > most_bulk or place + size + 2 > length:
            return -1
        if text[place + size] != c'\r' or text[place + size + 1] != c'\n':
            return -1
        words.append(PyBytes_FromStringAndSize(text + place, size))
        place += size + 2
        count -= 1
    return place


def take_whole(bytes chunk not None, Py_ssize_t most, Py_ssize_t most_bulk):
    cdef const char *text = PyBytes_AS_STRING(chunk)
    cdef Py_ssize_t length = PyBytes_GET_SIZE(chunk), place = 0, end
    cdef list commands = [], words
    while place < length and PyList_GET_SIZE(commands) < most:
        words = []
        end = command_at(text, length, place, most_bulk, words)
        if end < 0:
            break
        commands.append(words)
        place = end
    return commands, place
