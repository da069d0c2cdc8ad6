"""What the reading calls answer: pages out of one family, as a request asks for them.

Each function reads a view of a family at one moment, under the rules of that moment. Knows cursors
and budgets; knows nothing of how the family was found or of what waits to be written to it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from storage.cursors import FINISHED, START, Binding, Position
from storage.embedded.ordered import Family, Scan
from storage.embedded.reader import RowReader, read_rows
from storage.embedded.rules import NO_LIMIT, Budget, Rules
from storage.encoding import column_prefix, end_of, name_bounds, row_prefix
from storage.model import NameRange, Packed, Page, PageRequest, RowsPage, Selection


def check_columns(columns: Sequence[bytes] | None) -> None:
    """ColumnNameTooLong before anything is looked up or written."""
    for column in columns or ():
        column_prefix(b"", column)


def row_binding(dataset: bytes, row: bytes, selection: Selection) -> Binding:
    """What the cursor of a page of one row belongs to."""
    return Binding(b"row", (dataset, row), selection)


def page_of_row(
    reader: RowReader,
    dataset: bytes,
    row: bytes,
    selection: Selection,
    request: PageRequest,
    version: int = 0,
    position: Position = START,
) -> Page:
    """The row from `position` on, of a dataset that has this version."""
    count = _columns_a_page(selection, request)
    read = reader.read_packed if request.packed else reader.read
    columns, cut = read(row_prefix(row), count, position)
    cursor = FINISHED
    if cut is not None:
        cursor = row_binding(dataset, row, selection).encode(cut.position)
    if isinstance(columns, Packed):
        return Page(cursor, [], version, reader.first_expiry, columns)
    return Page(cursor, columns, version, reader.first_expiry)


def first_pages(
    reader: RowReader,
    dataset: bytes,
    rows: Iterable[bytes],
    selection: Selection,
    request: PageRequest,
    version: int,
    *,
    most_keys: int,
    most_bytes: int,
    most_expired: int,
) -> list[tuple[bytes, Page]]:
    """The first of the rows with their pages; RowReader.read_pages() says how many."""
    read = reader.read_pages(
        rows,
        _columns_a_page(selection, request),
        packed=request.packed,
        most_keys=most_keys,
        most_bytes=most_bytes,
        most_expired=most_expired,
    )
    pages = []
    for row, columns, cut, first_expiry in read:
        cursor = FINISHED
        if cut is not None:
            cursor = row_binding(dataset, row, selection).encode(cut.position)
        if isinstance(columns, Packed):
            page = Page(cursor, [], version, first_expiry, columns)
        else:
            page = Page(cursor, columns, version, first_expiry)
        pages.append((row, page))
    return pages


def names_in_row(
    scan: Scan,
    rules: Rules,
    prefix: bytes,
    selection: Selection,
    request: PageRequest,
    position: Position,
) -> tuple[list[bytes], Position | None]:
    """The names of its columns from `position` on, and where to go on."""
    reader = RowReader(scan, rules, selection, Budget(request.limits), values=request.values)
    columns, cut = reader.read(prefix, _columns_a_page(selection, request), position)
    return [name for name, _ in columns], None if cut is None else cut.position


def pages_of_rows(
    view: Family,
    rules: Rules,
    dataset: bytes,
    rows: Sequence[bytes],
    selection: Selection,
    request: PageRequest,
) -> list[Page]:
    """A page a row, in the order asked, within one budget."""
    budget = Budget(request.limits)
    pages: list[Page] = []
    for row in rows:
        if budget.spent():
            pages.append(Page(row_binding(dataset, row, selection).encode(START), []))
            continue
        scan_before, scan = budget.scan, view.scan(end_of(row_prefix(row)))
        reader = RowReader(scan, rules, selection, budget, values=request.values)
        pages.append(page_of_row(reader, dataset, row, selection, request))
        if budget.scan == scan_before:
            budget.scan -= 1  # a missing row is not free either
    return pages


def page_of_scan(
    view: Family,
    rules: Rules,
    dataset: bytes,
    rows: NameRange,
    selection: Selection,
    request: PageRequest,
    binding: Binding,
    position: Position,
) -> RowsPage:
    """The rows of a range from `position` on."""
    start, end = name_bounds(b"", None, rows)
    if end is not None and start >= end:
        return RowsPage(binding.encode(None), [])
    scan, budget = view.scan(end), Budget(request.limits)
    read, rest = read_rows(
        RowReader(scan, rules, selection, budget, values=request.values),
        scan,
        start,
        position,
        limit=request.limits.rows if request.rows is None else request.rows,
        count=_columns_a_page(selection, request),
        budget=budget,
    )
    return RowsPage(
        binding.encode(rest),
        [
            (row, columns, row_binding(dataset, row, selection).encode(goes_on))
            for row, columns, goes_on in read
        ],
    )


def _columns_a_page(selection: Selection, request: PageRequest) -> int:
    if request.columns is not None:
        return request.columns
    return request.limits.columns if selection.columns is None else NO_LIMIT
