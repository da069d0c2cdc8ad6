"""Imports point one way: resp_server -> commands -> storage, rocksdict is met in one folder.

The sources are read, not run. `imports` gives what a module imports at its top level, by full name;
`all_imports` also what its functions import.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
ROOMS = ("storage", "commands", "resp_server")
GUARD = "storage.rocks.database"
TABLES = "storage.rocks.tables"
"""Writes tables of cells, in processes that hold no database."""
REMOTE = "storage.backup.remote"
OPTIONAL = {
    REMOTE: {"fsspec"},
    "storage.transfer.destinations": {"fsspec"},
    "storage.transfer.parquet": {"pyarrow"},
}
"""Libraries that a server does without, and who imports them."""


def name_of(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {name_of(path): path for room in ROOMS for path in sorted((ROOT / room).rglob("*.py"))}


@cache
def tree(module: str) -> ast.Module:
    return ast.parse(MODULES[module].read_text(encoding="utf-8"))


def imported(nodes: Iterable[ast.AST], module: str) -> Iterator[str]:
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{module} imports relatively"
            assert node.module is not None
            for alias in node.names:
                full = f"{node.module}.{alias.name}"
                yield full if full in MODULES else node.module


def imports(module: str) -> set[str]:
    return set(imported(tree(module).body, module)) - {module}


def all_imports(module: str) -> set[str]:
    return set(imported(ast.walk(tree(module)), module)) - {module}


def rooms_of(names: Iterable[str]) -> set[str]:
    return {name.partition(".")[0] for name in names}


def test_the_sources_are_read() -> None:
    assert {"storage.encoding", "commands.table", "resp_server.server", GUARD} <= set(MODULES)
    assert "storage.cursors" in imports("storage.embedded.reader")
    assert "rocksdict" in imports(GUARD)


@pytest.mark.parametrize("module", MODULES)
def test_nothing_imports_leftwards(module: str) -> None:
    own = ROOMS.index(rooms_of([module]).pop())
    assert rooms_of(all_imports(module)).isdisjoint(ROOMS[own + 1 :])


@pytest.mark.parametrize(
    "module", [name for name in MODULES if not name.startswith("storage.rocks.")]
)
def test_only_the_guard_imports_rocksdict(module: str) -> None:
    assert "rocksdict" not in rooms_of(all_imports(module))


@pytest.mark.parametrize(
    "module", [name for name in MODULES if not name.startswith("storage.rocks")]
)
def test_only_the_opening_knows_rocksdb(module: str) -> None:
    known = {name for name in all_imports(module) if name.startswith("storage.rocks")}
    allowed = {
        "storage.transfer.bulk": {TABLES},
        "storage.transfer.copying": {TABLES},
        "storage.opening": {GUARD, "storage.rocks.options"},
        "resp_server.server": {"storage.rocks.options"},
    }
    assert known <= allowed.get(module, set())


@pytest.mark.parametrize("module", [name for name in MODULES if name.startswith("storage")])
def test_storage_knows_no_protocol(module: str) -> None:
    allowed = {"storage", "rocksdict"} | OPTIONAL.get(module, set())
    assert rooms_of(all_imports(module)) - allowed - sys.stdlib_module_names == set()
    assert all_imports(module).isdisjoint({"socket", "ssl", "hiredis", "uvloop"})


@pytest.mark.parametrize("module", [name for name in MODULES if name.startswith("commands")])
def test_commands_know_no_socket(module: str) -> None:
    foreign = rooms_of(all_imports(module)) - {"storage", "commands"} - sys.stdlib_module_names
    assert foreign == set()
    assert all_imports(module).isdisjoint({"socket", "ssl", "asyncio"})


@pytest.mark.parametrize("module", [name for name in MODULES if name.startswith("commands")])
def test_commands_reach_the_store_through_its_interface(module: str) -> None:
    inside = ("storage.embedded", "storage.rocks", "storage.memory", "storage.maintenance")
    assert [name for name in all_imports(module) if name.startswith(inside)] == []


@pytest.mark.parametrize(
    ("module", "allowed"),
    [
        ("storage.encoding", {"storage.errors", "storage.model"}),
        ("storage.model", set[str]()),
        ("storage.errors", set[str]()),
        ("storage.integers", set[str]()),
    ],
)
def test_pure_modules_import_little_but_the_standard_library(
    module: str, allowed: set[str]
) -> None:
    own = {name for name in all_imports(module) if rooms_of([name]) <= set(ROOMS)}
    assert own <= allowed
    assert rooms_of(all_imports(module) - own) <= sys.stdlib_module_names


def test_no_modules_import_each_other_in_a_circle() -> None:
    waiting = {name: {found for found in imports(name) if found in MODULES} for name in MODULES}
    while free := [name for name, needs in waiting.items() if not needs & set(waiting)]:
        for name in free:
            del waiting[name]
    assert sorted(waiting) == []
