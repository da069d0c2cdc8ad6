"""The wide-column commands: writing, reading and deleting cells.

Handlers read their arguments, call the store once and return its answer; what a cell, a page or
a cursor is, is the store's to know.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial

from commands.arguments import (
    EXPIRY_KEYWORDS,
    Arguments,
    expiry,
    timestamp_or_clock,
)
from commands.command import Access
from commands.context import Context
from commands.errors import CommandError, SyntaxProblem, WrongArity
from commands.pipelined import rows_asked_alike, single_cells
from commands.publishing.notifications import notify
from commands.replies import AllWritten, Kept, Reply, Written
from commands.selection import column_options, deletion, row_options, row_query, scan_options
from commands.table import DATASET, MOST_AT_ONCE, MOST_BYTES_AT_ONCE, command, quickly
from storage.engine import Engine
from storage.integers import MIN_INTEGER
from storage.model import Deletion, NewCell, Page, Query

_EXPIRY = "[EX seconds | PX ms | EXAT unix-s | PXAT unix-ms]"
_COLUMNS = "[COLUMNS n column [column ...]]"
_NAMES = "[PREFIX prefix] [FROM {0}] [TO {0}]"
_CELLS = "[VERSIONS n | VERSIONS ALL] [RANGE start end]"
_ROW = f"{_COLUMNS} {_NAMES.format('column')} {_CELLS} [COUNT n]"
_WHICH = f"{_COLUMNS} [RANGE start end | TIMESTAMPS n timestamp [timestamp ...]]"
_READ_AND_WRITTEN = replace(DATASET, access=Access.READ | Access.WRITE)
"""For commands whose reply tells what was there before they wrote."""

# Writing


@command(
    "WCPUT",
    arity=-6,
    flags="write denyoom fast",
    keys=DATASET,
    group="widecolumn",
    since="0.1.0",
    complexity="O(N) for N cells",
    syntax=f"dataset row {_EXPIRY} timestamp column value [timestamp column value ...]",
)
async def wcput(context: Context, words: list[bytes]) -> Reply:
    """Writes cells into a row.

    A timestamp is in milliseconds, or `*` for the server's clock. A cell written again with the
    same explicit timestamp is replaced; cells stamped by the server never collide. Replies with
    the number of cells given.
    """
    first, expires_at = 3, None
    if len(words) % 3:
        if len(words) % 3 == 1 or words[3].upper() not in EXPIRY_KEYWORDS:
            raise WrongArity("wcput")
        expires_at = expiry(words[3].upper(), words[4], context.store.now(), "wcput")
        first = 5
    cells: list[NewCell]
    if len(words) == 6:  # one cell, the most frequent call of all: spare it the general way
        _, _, row, timestamp, column, value = words
        cells = [(row, timestamp_or_clock(timestamp), column, value)]
    else:
        row = words[2]
        fields = (words[first::3], words[first + 1 :: 3], words[first + 2 :: 3])
        cells = [
            (row, timestamp_or_clock(timestamp), column, value)
            for timestamp, column, value in zip(*fields, strict=True)
        ]
    await context.store.put(words[1], cells, expires_at, context.settings.create_with)
    if context.settings.notifications:
        _notify(context, b"wcput", words[1], (row,))
    return len(cells)


@quickly("WCPUT")
def wcput_quickly(context: Context, commands: list[list[bytes]], place: int) -> Sequence[Reply]:
    words, store, answered = commands[place], context.store, 0
    if context.settings.notifications or len(words) < 2:
        return ()
    if len(commands) > place + 1 and not store.puts_at_once(words[1]):
        return ()  # before those behind it are looked at
    for dataset, cells in single_cells(commands, place, MOST_AT_ONCE):
        if not store.put_at_once(dataset, cells):
            break
        answered += len(cells)
    return [1] * answered


@command(
    "WCMPUT",
    arity=-6,
    flags="write denyoom fast",
    keys=DATASET,
    group="widecolumn",
    since="0.1.0",
    complexity="O(N) for N cells",
    syntax=(f"dataset {_EXPIRY} row timestamp column value [row timestamp column value ...]"),
)
async def wcmput(context: Context, words: list[bytes]) -> Reply:
    """Writes cells into several rows, all or none.

    The expiry is read only when the number of words says that there is one, so that a row may be
    called EX. Replies with the number of cells given.
    """
    first, expires_at = 2, None
    if len(words) % 4 != 2:
        if len(words) % 4 or words[2].upper() not in EXPIRY_KEYWORDS:
            raise WrongArity("wcmput")
        expires_at = expiry(words[2].upper(), words[3], context.store.now(), "wcmput")
        first = 4
    fields = [words[first + place :: 4] for place in range(4)]
    cells = [
        (row, timestamp_or_clock(timestamp), column, value)
        for row, timestamp, column, value in zip(*fields, strict=True)
    ]
    await context.store.put(words[1], cells, expires_at, context.settings.create_with)
    if context.settings.notifications:
        _notify(context, b"wcput", words[1], dict.fromkeys(fields[0]))
    return len(cells)


def _notify(context: Context, event: bytes, dataset: bytes, rows: Iterable[bytes]) -> None:
    notify(context.server.broker, context.settings.notifications, event, dataset, rows)


# Reading


@command(
    "WCGET",
    arity=-3,
    flags="readonly",
    keys=DATASET,
    group="widecolumn",
    since="0.1.0",
    complexity="O(N) for N cells examined, and a seek for each named column",
    syntax=f"dataset row {_ROW} [CURSOR cursor] [NOVALUES]",
)
async def wcget(context: Context, words: list[bytes]) -> Reply:
    """Reads a page of a row: its columns in byte order, each with its newest cells.

    Replies with a cursor and the columns, each as its name and its cells of timestamp and value.
    The cursor is 0 when nothing is left; otherwise the same call with it gives the next page. A
    column that a page cuts comes again, first, on the next one with its remaining cells.
    """
    store, dataset, row = context.store, words[1], words[2]
    query = row_query(words, context.settings.limits)
    if query.number and store.remembers:
        known = store.remembered(dataset, row, query)
        if known is not None:
            return Written(known)
    page = await store.read_row(dataset, row, query.selection, query.request)
    return _answer(store, dataset, row, query, page)


@quickly("WCGET")
def wcget_quickly(context: Context, commands: list[list[bytes]], place: int) -> Sequence[Reply]:
    words = commands[place]
    try:
        query = row_query(words, context.settings.limits)
    except CommandError:
        return ()
    if not query.number or len(words) < 3:
        return ()
    store, dataset = context.store, words[1]
    if store.remembers:
        rows = rows_asked_alike(commands, place, MOST_AT_ONCE)
        known = store.remembered_first(dataset, rows, query, MOST_BYTES_AT_ONCE)
        if known:
            return AllWritten(known)
    rows = rows_asked_alike(commands, place, MOST_AT_ONCE)
    pages = store.read_first(dataset, rows, query, MOST_BYTES_AT_ONCE)
    if not store.remembers:
        return [(page.cursor, page.packed or page.columns) for _, page in pages]
    return [_answer(store, dataset, row, query, page) for row, page in pages]


def _answer(store: Engine, dataset: bytes, row: bytes, query: Query, page: Page) -> Reply:
    reply = (page.cursor, page.packed or page.columns)
    if query.number and store.remembers:
        return Kept(reply, partial(store.remember, dataset, row, query, page))
    return reply


@command(
    "WCMGET",
    arity=-5,
    flags="readonly",
    keys=DATASET,
    group="widecolumn",
    since="0.1.0",
    complexity="O(N) for N cells examined, and a seek for each row and named column",
    syntax=f"dataset ROWS n row [row ...] {_ROW} [NOVALUES]",
)
async def wcmget(context: Context, words: list[bytes]) -> Reply:
    """Reads a page of each of several rows.

    Replies with a cursor and columns for each row, in the order asked. A row goes on with WCGET,
    the same options and its cursor; one that the reply had no room for has no columns yet and a
    cursor other than 0.
    """
    arguments = Arguments(words, 2)
    rows = _take_rows(arguments)
    options = row_options(arguments)
    pages = await context.store.read_rows(
        words[1],
        rows,
        options.selection(options.names),
        options.request(context.settings.limits),
    )
    return [(page.cursor, page.columns) for page in pages]


@command(
    "WCSCAN",
    arity=-2,
    flags="readonly",
    keys=DATASET,
    group="widecolumn",
    since="0.1.0",
    complexity="O(N) for N cells examined, and a seek for each row",
    syntax=(
        f"dataset {_NAMES.format('row')} [LIMIT rows] [CURSOR cursor] {_COLUMNS} {_CELLS}"
        " [COUNT n] [NOVALUES]"
    ),
)
async def wcscan(context: Context, words: list[bytes]) -> Reply:
    """Reads rows of a dataset in byte order.

    Replies with a cursor and the rows that have a cell in the selection, each as its key, its
    columns and a cursor of its own, with which WCGET goes on in a row that is wider than COUNT.
    """
    options = scan_options(Arguments(words, 2))
    page = await context.store.scan(
        words[1],
        options.names,
        options.selection(),
        options.request(context.settings.limits),
    )
    return (page.cursor, page.rows)


@command(
    "WCCOLS",
    arity=-3,
    flags="readonly",
    keys=DATASET,
    group="widecolumn",
    since="0.1.0",
    complexity="O(N) for N columns, with a seek for each that has many versions",
    syntax=f"dataset row {_NAMES.format('column')} [COUNT n] [CURSOR cursor]",
)
async def wccols(context: Context, words: list[bytes]) -> Reply:
    """Lists the columns of a row that have a visible cell.

    Replies with a cursor and the names in byte order. It pages as WCGET does; its cursors are its
    own.
    """
    options = column_options(Arguments(words, 3))
    return await context.store.read_columns(
        words[1], words[2], options.names, options.request(context.settings.limits)
    )


@command(
    "WCEXISTS",
    arity=-3,
    flags="readonly fast",
    keys=DATASET,
    group="widecolumn",
    since="0.1.0",
    complexity="O(N) for N rows",
    syntax="dataset row [row ...]",
)
async def wcexists(context: Context, words: list[bytes]) -> Reply:
    """Counts the rows that have a visible cell, repeats counted."""
    return await context.store.count_rows(words[1], words[2:])


# Deleting


@command(
    "WCDEL",
    arity=-3,
    flags="write",
    keys=DATASET,
    group="widecolumn",
    since="0.1.0",
    complexity="O(1) for a row or a column; a seek a column and MAXVERSIONS cells by time",
    syntax=f"dataset row {_WHICH}",
)
async def wcdel(context: Context, words: list[bytes]) -> Reply:
    """Deletes a row, some of its columns, or their cells by time.

    Without COLUMNS it replies with 1 if the row had a visible cell there, else 0; with COLUMNS,
    with the number of the named columns that had one.
    """
    return sum(await _delete(context, words[1], words[2:3], deletion(Arguments(words, 3))))


@command(
    "WCMDEL",
    arity=-5,
    flags="write",
    keys=DATASET,
    group="widecolumn",
    since="0.1.0",
    complexity="O(N) for N rows, each as WCDEL",
    syntax=f"dataset ROWS n row [row ...] {_WHICH}",
)
async def wcmdel(context: Context, words: list[bytes]) -> Reply:
    """Deletes from several rows, all or none.

    Replies with the sum of what WCDEL would reply for each row in turn.
    """
    arguments = Arguments(words, 2)
    rows = _take_rows(arguments)
    return sum(await _delete(context, words[1], rows, deletion(arguments)))


async def _delete(context: Context, dataset: bytes, rows: list[bytes], what: Deletion) -> list[int]:
    """Delete and publish; the count of each row in turn."""
    counts = await context.store.delete(dataset, rows, what)
    if context.settings.notifications:
        changed = [row for row, count in zip(rows, counts, strict=True) if count]
        _notify(context, b"wcdel", dataset, changed)
    return counts


# More on a row


@command(
    "WCINCRBY",
    arity=5,
    flags="write denyoom fast",
    keys=_READ_AND_WRITTEN,
    group="widecolumn",
    since="0.1.0",
    complexity="O(1)",
    syntax="dataset row column increment",
)
async def wcincrby(context: Context, words: list[bytes]) -> Reply:
    """Adds to the newest integer of a column, as a new cell.

    An absent column counts as 0. The new cell is stamped by the server and keeps the expiry of
    the one before. Replies with the new integer.
    """
    _, dataset, row, column, word = words
    amount = Arguments([word], 0).take_integer(MIN_INTEGER)
    create_with = context.settings.create_with
    value = await context.store.increment(dataset, row, column, amount, create_with)
    if context.settings.notifications:
        _notify(context, b"wcincrby", dataset, (row,))
    return value


@command(
    "WCCAS",
    arity=-7,
    flags="write denyoom fast",
    keys=_READ_AND_WRITTEN,
    group="widecolumn",
    since="0.1.0",
    complexity="O(1)",
    syntax=f"dataset row column (IFEQ expected | IFABSENT) {_EXPIRY} timestamp value",
)
async def wccas(context: Context, words: list[bytes]) -> Reply:
    """Writes a cell if the column's newest value is as expected.

    The new cell must be the column's newest. Replies with 1 if it was written, else 0.
    """
    arguments = Arguments(words, 4)
    condition, expected = arguments.take_keyword(), None
    if condition == b"IFEQ":
        expected = arguments.take()
    elif condition != b"IFABSENT":
        raise SyntaxProblem
    expires_at = None
    if arguments.left == 4:
        keyword = arguments.take_keyword()
        if keyword not in EXPIRY_KEYWORDS:
            raise SyntaxProblem
        expires_at = expiry(keyword, arguments.take(), context.store.now(), "wccas")
    if arguments.left != 2:
        raise SyntaxProblem
    timestamp = timestamp_or_clock(arguments.take())
    cell = (words[2], timestamp, words[3], arguments.take())
    written = await context.store.compare_and_put(
        words[1], cell, expected, expires_at, context.settings.create_with
    )
    if written and context.settings.notifications:
        _notify(context, b"wcput", words[1], words[2:3])
    return int(written)


def _take_rows(arguments: Arguments) -> list[bytes]:
    if arguments.take_keyword() != b"ROWS":
        raise SyntaxProblem
    return arguments.take_counted()
