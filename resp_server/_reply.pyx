# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""Values -> RESP bytes, compiled: the twin of resp_server.reply.Encoder, for what is frequent.

Integers, strings, arrays, maps and nulls are written straight into the reply's own memory; every
other type is left to the encoder in Python. Knows nothing of commands or sockets.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from cpython.dict cimport PyDict_Next
from cpython.list cimport PyList_GET_ITEM, PyList_GET_SIZE
from cpython.object cimport PyObject
from cpython.tuple cimport PyTuple_GET_ITEM, PyTuple_GET_SIZE
from libc.stdint cimport uint32_t, uint64_t
from libc.string cimport memcpy

from commands.replies import Kept, Status, Written
from storage.model import Packed
from storage.packed import NO_VALUE

cdef extern from "Python.h":
    PyObject *PyBytes_FromStringAndSize(const char *text, Py_ssize_t size) except NULL
    int _PyBytes_Resize(PyObject **bytes, Py_ssize_t size) except -1
    char *_as_string "PyBytes_AS_STRING"(PyObject *bytes)
    long long PyLong_AsLongLongAndOverflow(object number, int *overflow) except? -1
    void Py_XDECREF(PyObject *held)

cdef enum:
    SMALL_BYTES = 1024  # what fits on the stack: most replies need no growing
    HEADER_BYTES = 32  # room for a type's sign, a 64-bit number and a line end

cdef struct Output:
    char *start
    Py_ssize_t used
    Py_ssize_t size
    PyObject *held  # the bytes object that `start` points into, once the stack is too small


cdef inline char *reserve(Output *output, Py_ssize_t count) except NULL:
    """Where to write up to `count` bytes; the caller adds what it wrote to `used`."""
    if output.used + count > output.size:
        grow(output, output.used + count)
    return output.start + output.used


cdef int grow(Output *output, Py_ssize_t least) except -1:
    cdef Py_ssize_t size = max(2 * output.size, least)
    if output.held is NULL:
        output.held = PyBytes_FromStringAndSize(NULL, size)
        memcpy(_as_string(output.held), output.start, output.used)
    else:
        _PyBytes_Resize(&output.held, size)
    output.start = _as_string(output.held)
    output.size = size
    return 0


cdef inline Py_ssize_t write_number(char *at, long long number) noexcept:
    """The digits of a number; how many bytes they take."""
    cdef char digits[20]
    cdef int count = 0
    cdef Py_ssize_t length = 0
    cdef unsigned long long rest
    if number < 0:
        at[0] = c'-'
        length = 1
        rest = 0 - <unsigned long long> number
    else:
        rest = <unsigned long long> number
    while True:
        digits[count] = <char> (c'0' + rest % 10)
        count += 1
        rest //= 10
        if rest == 0:
            break
    while count:
        count -= 1
        at[length] = digits[count]
        length += 1
    return length


cdef inline int write_header(Output *output, char kind, long long number) except -1:
    """A type's sign, a number and the end of the line."""
    cdef char *at = reserve(output, HEADER_BYTES)
    cdef Py_ssize_t length
    at[0] = kind
    length = 1 + write_number(at + 1, number)
    at[length] = c'\r'
    at[length + 1] = c'\n'
    output.used += length + 2
    return 0


cdef inline int write_raw(Output *output, const char *text, Py_ssize_t length) except -1:
    memcpy(reserve(output, length), text, length)
    output.used += length
    return 0


cdef uint32_t WITHOUT_VALUE = NO_VALUE


cdef inline int write_bulk_of(Output *output, const char *text, Py_ssize_t length) except -1:
    cdef char *at
    write_header(output, c'$', length)
    at = reserve(output, length + 2)
    memcpy(at, text, length)
    at[length] = c'\r'
    at[length + 1] = c'\n'
    output.used += length + 2
    return 0


cdef inline int write_bulk(Output *output, bytes value) except -1:
    return write_bulk_of(output, PyBytes_AS_STRING(value), PyBytes_GET_SIZE(value))


cdef int write_columns(Output *output, Py_ssize_t columns, bytes data) except -1:
    """Columns in the form that storage/packed.py tells, as arrays of names and cells."""
    cdef const char *at = PyBytes_AS_STRING(data)
    cdef uint32_t lengths[2]
    cdef uint32_t length
    cdef uint64_t timestamp
    write_header(output, c'*', columns)
    while columns:
        memcpy(lengths, at, sizeof(lengths))
        at += sizeof(lengths)
        write_header(output, c'*', 2)
        write_bulk_of(output, at, lengths[0])
        at += lengths[0]
        write_header(output, c'*', lengths[1])
        while lengths[1]:
            memcpy(&timestamp, at, sizeof(timestamp))
            memcpy(&length, at + sizeof(timestamp), sizeof(length))
            at += sizeof(timestamp) + sizeof(length)
            if length == WITHOUT_VALUE:
                write_header(output, c':', timestamp)
            else:
                write_header(output, c'*', 2)
                write_header(output, c':', timestamp)
                write_bulk_of(output, at, length)
                at += length
            lengths[1] -= 1
        columns -= 1
    return 0


cdef class Encoder:
    """Writes values in one version of the protocol. `rest` encodes what this does not know."""

    cdef object _rest
    cdef bint _has_maps

    def __init__(self, int protocol, rest):
        self._rest = rest
        self._has_maps = protocol == 3

    def encode(self, value):
        cdef char small[SMALL_BYTES]
        cdef Output output
        if type(value) is Written:
            return value.encoded
        if type(value) is Kept:
            return self.keep(value)
        output.start = small
        output.used = 0
        output.size = SMALL_BYTES
        output.held = NULL
        try:
            self.write(&output, value)
            if output.held is NULL:
                return small[: output.used]
            _PyBytes_Resize(&output.held, output.used)
            return <object> output.held
        finally:
            Py_XDECREF(output.held)

    cdef bytes keep(self, kept):
        """What a reply that is kept is written as."""
        encoded = self.encode(kept.value)
        kept.keep(encoded)
        return encoded

    cdef int write(self, Output *output, object value) except -1:
        cdef object kind = type(value)
        if kind is bytes:
            write_bulk(output, <bytes> value)
        elif kind is int:
            self.write_integer(output, value)
        elif kind is tuple:
            self.write_tuple(output, <tuple> value)
        elif kind is list:
            self.write_list(output, <list> value)
        elif value is None:
            if self._has_maps:
                write_raw(output, b"_\r\n", 3)
            else:
                write_raw(output, b"$-1\r\n", 5)
        elif kind is dict:
            self.write_dict(output, <dict> value)
        elif kind is Status:
            write_raw(output, b"+", 1)
            write_raw(output, PyBytes_AS_STRING(value), PyBytes_GET_SIZE(value))
            write_raw(output, b"\r\n", 2)
        elif kind is Written or kind is Kept:
            value = self.keep(value) if kind is Kept else value.encoded
            write_raw(output, PyBytes_AS_STRING(value), PyBytes_GET_SIZE(value))
        elif kind is Packed:
            write_columns(output, value.count, value.data)
        else:
            self.write_rest(output, value)
        return 0

    cdef int write_integer(self, Output *output, object value) except -1:
        cdef int overflow = 0
        cdef long long number = PyLong_AsLongLongAndOverflow(value, &overflow)
        if overflow:
            self.write_rest(output, value)
        else:
            write_header(output, c':', number)
        return 0

    cdef int write_tuple(self, Output *output, tuple values) except -1:
        cdef Py_ssize_t index, count = PyTuple_GET_SIZE(values)
        write_header(output, c'*', count)
        for index in range(count):
            self.write(output, <object> PyTuple_GET_ITEM(values, index))
        return 0

    cdef int write_list(self, Output *output, list values) except -1:
        cdef Py_ssize_t index, count = PyList_GET_SIZE(values)
        write_header(output, c'*', count)
        for index in range(count):
            self.write(output, <object> PyList_GET_ITEM(values, index))
        return 0

    cdef int write_dict(self, Output *output, dict values) except -1:
        if self._has_maps:
            write_header(output, c'%', len(values))
        else:
            write_header(output, c'*', 2 * len(values))
        for key, value in values.items():
            self.write(output, key)
            self.write(output, value)
        return 0

    cdef int write_rest(self, Output *output, object value) except -1:
        cdef bytes written = self._rest(value)
        write_raw(output, PyBytes_AS_STRING(written), PyBytes_GET_SIZE(written))
        return 0
