# cython: language_level=3, boundscheck=False, wraparound=False
"""Calls that stand one after another, compiled: the twin of pipelined.py, where it is told what for.

Knows nothing of the store.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from cpython.list cimport PyList_GET_SIZE
from libc.string cimport memcmp

from commands.arguments import timestamp
from commands.errors import CommandError

cdef enum:
    SINGLE_CELL_WORDS = 6
    ROW = 2  # its place among the words


cdef inline bint equal(bytes one, bytes other) except -1:
    cdef Py_ssize_t length
    if one is None or other is None:
        raise TypeError("a command of nothing")
    length = PyBytes_GET_SIZE(one)
    return length == PyBytes_GET_SIZE(other) and (
        one is other or memcmp(PyBytes_AS_STRING(one), PyBytes_AS_STRING(other), length) == 0
    )


cdef inline bint is_star(bytes word) except -1:
    return word is not None and PyBytes_GET_SIZE(word) == 1 and PyBytes_AS_STRING(word)[0] == c'*'


def single_cells(list commands not None, Py_ssize_t place, Py_ssize_t most):
    cdef list found = [], words, first = commands[place], cells = None
    cdef bytes dataset = None
    cdef Py_ssize_t end = min(PyList_GET_SIZE(commands), place + most), at
    for at in range(place, end):
        words = commands[at]
        if PyList_GET_SIZE(words) != SINGLE_CELL_WORDS or not equal(words[0], first[0]):
            break
        moment = None
        if not is_star(words[3]):
            try:
                moment = timestamp(words[3])
            except CommandError:
                break
        if dataset is None or not equal(words[1], dataset):
            dataset = words[1]
            cells = []
            found.append((dataset, cells))
        cells.append((words[ROW], moment, words[4], words[5]))
    return found


def rows_asked_alike(list commands not None, Py_ssize_t place, Py_ssize_t most):
    cdef list words, first = commands[place]
    cdef Py_ssize_t end = min(PyList_GET_SIZE(commands), place + most), at, word
    cdef Py_ssize_t length = PyList_GET_SIZE(first)
    if length <= ROW:
        return
    for at in range(place, end):
        words = commands[at]
        if PyList_GET_SIZE(words) != length:
            break
        for word in range(length):
            if word != ROW and not equal(words[word], first[word]):
                return
        yield words[ROW]
