# cython: language_level=3, boundscheck=False, wraparound=False
"""Cells to write -> operations of the store, compiled: the twin of writing.py, which tells the rest."""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from libc.string cimport memchr, memcpy

from storage.embedded.ordered import Kind
from storage.encoding import SUFFIX_BYTES, TERMINATOR_BYTES, cell_suffix
from storage.errors import ColumnNameTooLong, RowKeyTooLong
from storage.model import MAX_NAME_BYTES

cdef Py_ssize_t MOST_NAME = MAX_NAME_BYTES
cdef Py_ssize_t SUFFIX = SUFFIX_BYTES
cdef Py_ssize_t TERMINATOR = TERMINATOR_BYTES
cdef object PUT = Kind.PUT


cdef inline bytes joined(bytes one, bytes other):
    cdef Py_ssize_t length = PyBytes_GET_SIZE(one)
    cdef bytes both = PyBytes_FromStringAndSize(NULL, length + PyBytes_GET_SIZE(other))
    cdef char *at = PyBytes_AS_STRING(both)
    memcpy(at, PyBytes_AS_STRING(one), length)
    memcpy(at + length, PyBytes_AS_STRING(other), PyBytes_GET_SIZE(other))
    return both


cdef inline bytes escaped(bytes name):
    if memchr(PyBytes_AS_STRING(name), 0, PyBytes_GET_SIZE(name)) is NULL:
        return name
    return name.replace(b"\x00", b"\x00\x01")


cdef inline bytes terminated(bytes name):
    """A name as it begins a key: escaped, and with the terminator."""
    cdef bytes plain = escaped(name)
    cdef Py_ssize_t length = PyBytes_GET_SIZE(plain)
    cdef bytes prefix = PyBytes_FromStringAndSize(NULL, length + TERMINATOR)
    cdef char *at = PyBytes_AS_STRING(prefix)
    memcpy(at, PyBytes_AS_STRING(plain), length)
    at[length] = 0
    at[length + 1] = 0
    return prefix


cdef inline bytes key_of(bytes prefix, bytes column, bytes suffix):
    cdef bytes plain = escaped(column)
    cdef Py_ssize_t before = PyBytes_GET_SIZE(prefix), length = PyBytes_GET_SIZE(plain)
    cdef bytes key = PyBytes_FromStringAndSize(NULL, before + length + TERMINATOR + SUFFIX)
    cdef char *at = PyBytes_AS_STRING(key)
    memcpy(at, PyBytes_AS_STRING(prefix), before)
    at += before
    memcpy(at, PyBytes_AS_STRING(plain), length)
    at[length] = 0
    at[length + 1] = 0
    memcpy(at + length + TERMINATOR, PyBytes_AS_STRING(suffix), SUFFIX)
    return key


def puts(family, cells, bytes header not None, stamp):
    cdef list operations = [], prefixes = []
    cdef bytes row, column, value, prefix, suffix
    for row, timestamp, column, value in cells:
        if row is None or column is None or value is None:
            raise TypeError("a cell without a row, a column or a value")
        if PyBytes_GET_SIZE(row) > MOST_NAME:
            raise RowKeyTooLong
        if PyBytes_GET_SIZE(column) > MOST_NAME:
            raise ColumnNameTooLong
        prefix = terminated(row)
        suffix = stamp() if timestamp is None else cell_suffix(timestamp, 0)
        operations.append((PUT, family, key_of(prefix, column, suffix), joined(header, value)))
        prefixes.append(prefix)
    return operations, prefixes
