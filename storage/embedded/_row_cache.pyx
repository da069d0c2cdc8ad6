# cython: language_level=3, boundscheck=False, wraparound=False
"""Answers about rows, compiled: the twin of row_cache.py, which tells what they are for.

Here an answer that is found is only marked. Room is made at the end of the queue of all answers:
what is marked there loses its mark and queues anew, what is not goes. So a hit costs few looks into
memory, most of which is not in the processor's caches when there are many rows.

Answers are of a type that the collector of cycles does not visit, and so need no cycles: those in
the queue point at each other without owning each other. The rows of their dataset own them.
"""

cimport cython
from cpython.bytes cimport PyBytes_GET_SIZE
from cpython.object cimport PyObject
from libc.stdint cimport UINT64_MAX, uint64_t

from itertools import count

from storage.embedded.row_cache import LARGEST_PART, MOST_ANSWERS

cdef enum:
    MOST_SPARED = 64  # at once: nobody is served meanwhile

OVERHEAD_BYTES = 300
"""What an answer takes here beside its bytes and its row's key, measured with short ones."""
cdef Py_ssize_t OVERHEAD = OVERHEAD_BYTES
cdef Py_ssize_t LARGEST = LARGEST_PART
cdef int MOST = MOST_ANSWERS


@cython.final
@cython.no_gc
cdef class Answer:
    cdef bytes row, value
    cdef uint64_t query, right_until
    cdef Answer next  # to another query of the row
    cdef uint64_t dataset
    cdef bint used  # since it queues
    # Its neighbours in the queue.
    cdef PyObject *older
    cdef PyObject *newer

    cdef inline Py_ssize_t size(self) noexcept:
        return OVERHEAD + PyBytes_GET_SIZE(self.row) + PyBytes_GET_SIZE(self.value)


cdef class RowCache:
    """The answers of one engine, of no more than about `limit_bytes`; 0 keeps none."""

    cdef Py_ssize_t _limit
    cdef dict _datasets  # by number, the rows of each by key, which own their first answer
    cdef object _numbers
    cdef Py_ssize_t _rows
    cdef PyObject *_oldest
    cdef PyObject *_newest
    cdef readonly Py_ssize_t bytes
    cdef public Py_ssize_t hits, misses

    def __init__(self, limit_bytes=0):
        self._limit = limit_bytes
        self._numbers = count(1)
        self._reset()

    def __len__(self):
        return self._rows

    @property
    def limit_bytes(self):
        return self._limit

    @limit_bytes.setter
    def limit_bytes(self, Py_ssize_t limit):
        self._limit = limit
        self._make_room()

    def find(self, dataset, bytes row not None, query, now):
        rows = self._datasets.get(dataset.cache_number)
        cdef bytes value = None
        if rows is not None:
            value = self._known(<dict> rows, row, query, now)
        if value is None:
            self.misses += 1
        return value

    def knows(self, dataset, bytes row not None, uint64_t query, uint64_t now):
        cdef Answer answer
        rows = self._datasets.get(dataset.cache_number)
        answer = None if rows is None else <Answer> (<dict> rows).get(row)
        while answer is not None:
            if answer.query == query:
                return answer.right_until >= now
            answer = answer.next
        return False

    def find_first(self, dataset, rows, query, now, Py_ssize_t most_bytes):
        cdef list found = []
        cdef bytes row, value
        cdef uint64_t number = query, moment = now
        known = self._datasets.get(dataset.cache_number)
        if known is None:
            return found
        for row in rows:
            value = self._known(<dict> known, row, number, moment)
            if value is None:
                break
            found.append(value)
            most_bytes -= PyBytes_GET_SIZE(value)
            if most_bytes < 0:
                break
        return found

    cdef bytes _known(self, dict rows, bytes row, uint64_t query, uint64_t now):
        cdef Answer answer = <Answer> rows.get(row)
        while answer is not None:
            if answer.query == query:
                if answer.right_until < now:
                    self._forget_row(rows, row)
                    return None
                self.hits += 1
                answer.used = True
                return answer.value
            answer = answer.next
        return None

    def keep(self, dataset, bytes row not None, query, bytes value not None, right_until):
        cdef Answer answer, first, following
        cdef int answers = 0
        if PyBytes_GET_SIZE(value) * LARGEST > self._limit:
            return
        if not dataset.cache_number:
            dataset.cache_number = next(self._numbers)
        rows = self._datasets.get(dataset.cache_number)
        if rows is None:
            rows = self._datasets[dataset.cache_number] = {}
        answer = Answer.__new__(Answer)
        answer.row = row
        answer.value = value
        answer.query = query
        answer.right_until = min(right_until, UINT64_MAX)
        answer.dataset = dataset.cache_number
        first = <Answer> rows.get(row)
        following = first
        while following is not None:
            if following.query == answer.query:
                return  # whoever finds it out of date forgets the row
            answers += 1
            following = following.next
        if answers == MOST:
            self._forget_row(rows, row)
            first = None
        if first is None:
            self._rows += 1
        else:
            answer.row = first.row
            answer.next = first
        rows[answer.row] = answer
        self._append(answer)
        self.bytes += answer.size()
        self._make_room()

    def forget(self, dataset, bytes row not None):
        rows = self._datasets.get(dataset.cache_number)
        if rows is not None:
            self._forget_row(<dict> rows, row)

    def forget_cells(self, dataset, cells):
        cdef bytes row
        rows = self._datasets.get(dataset.cache_number)
        if rows is not None:
            for row, _, _, _ in cells:
                self._forget_row(<dict> rows, row)

    def forget_dataset(self, dataset):
        if not self._datasets.get(dataset.cache_number, True):
            del self._datasets[dataset.cache_number]  # nothing in it will ever be in the way
        dataset.cache_number = 0

    def clear(self):
        self._reset()

    cdef _reset(self):
        self._oldest = self._newest = NULL
        self._datasets = {}
        self._rows = 0
        self.bytes = 0

    cdef _forget_row(self, dict rows, bytes row):
        cdef Answer answer = <Answer> rows.pop(row, None)
        if answer is not None:
            self._rows -= 1
        while answer is not None:
            self._unlink(answer)
            self.bytes -= answer.size()
            answer = answer.next

    cdef _make_room(self):
        cdef Answer answer
        cdef int spared = 0
        while self.bytes > self._limit and self._oldest is not NULL:
            answer = <Answer> self._oldest
            if answer.used and spared < MOST_SPARED:
                spared += 1
                answer.used = False
                self._unlink(answer)
                self._append(answer)
            else:
                self._forget_answer(answer)

    cdef _forget_answer(self, Answer answer):
        """It alone, and not what else is known of its row."""
        cdef Answer before
        cdef dict rows = self._datasets[answer.dataset]
        before = <Answer> rows[answer.row]
        if before is answer:
            if answer.next is None:
                self._forget_row(rows, answer.row)
                if not rows:
                    del self._datasets[answer.dataset]
                return
            rows[answer.row] = answer.next
        else:
            while before.next is not answer:
                before = before.next
            before.next = answer.next
        self._unlink(answer)
        self.bytes -= answer.size()

    # The queue

    cdef void _append(self, Answer answer) noexcept:
        answer.older = self._newest
        answer.newer = NULL
        if self._newest is NULL:
            self._oldest = <PyObject *> answer
        else:
            (<Answer> self._newest).newer = <PyObject *> answer
        self._newest = <PyObject *> answer

    cdef void _unlink(self, Answer answer) noexcept:
        if answer.older is NULL:
            self._oldest = answer.newer
        else:
            (<Answer> answer.older).newer = answer.newer
        if answer.newer is NULL:
            self._newest = answer.older
        else:
            (<Answer> answer.newer).older = answer.older
