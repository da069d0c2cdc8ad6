"""What the reading calls answer: pages out of one family, as a request asks for them.

Each function reads a view of a family at one moment, under the rules of that moment. Knows cursors
and budgets; knows nothing of how the family was found or of what waits to be written to it.
"""

from __future__ import annotations

from collections.abc import Sequence

from storage.cursors import START, Binding, Position
from storage.embedded.ordered import Family
from storage.embedded.reader import RowReader, read_rows
from storage.embedded.rules import NO_LIMIT, Budget, Rules
from storage.encoding import column_prefix, end_of, name_bounds, row_prefix
from storage.model import ColumnCells, NameRange, Page, PageRequest, RowsPage, Selection


def check_columns(columns: Sequence[bytes] | None) -> None:
    """ColumnNameTooLong before anything is looked up or written."""
    for column in columns or ():
        column_prefix(b"", column)


def row_binding(dataset: bytes, row: bytes, selection: Selection) -> Binding:
    """What the cursor of a page of one row belongs to."""
    return Binding(b"row", (dataset, row), selection)


def part_of_row(
    view: Family,
    rules: Rules,
    prefix: bytes,
    selection: Selection,
    request: PageRequest,
    position: Position = START,
    budget: Budget | None = None,
) -> tuple[list[ColumnCells], Position | None, RowReader]:
    """The row with this prefix from `position` on, and where to go on; None when nothing is left.

    It ends within `budget` or else the request's limits. Last comes the reader, for what it met.
    """
    reader = RowReader(
        view.scan(end_of(prefix)),
        rules,
        selection,
        budget or Budget(request.limits),
        values=request.values,
    )
    columns, cut = reader.read(prefix, _columns_a_page(selection, request), position)
    return columns, None if cut is None else cut.position, reader


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
        binding = row_binding(dataset, row, selection)
        if budget.spent():
            pages.append(Page(binding.encode(START), []))
            continue
        scan_before, prefix = budget.scan, row_prefix(row)
        columns, rest, _ = part_of_row(view, rules, prefix, selection, request, budget=budget)
        pages.append(Page(binding.encode(rest), columns))
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
