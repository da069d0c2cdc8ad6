"""The names that rules about commands may use, and what each stands for.

    get         a command                     config        a command and its subcommands
    config|get  one subcommand                @read         every command of a category

A category stands for itself as well as for its commands: who was given `@hash` keeps it when a
later version brings commands of that category, and who was given its commands one by one is not
given those to come.
"""

from __future__ import annotations

from commands.command import CATEGORIES, Command, Table
from commands.errors import UnknownInRule

Names = frozenset[str]


class Vocabulary:
    """The names of one command table, which must be complete by now."""

    def __init__(self, table: Table) -> None:
        self._table = table
        self._members: dict[str, Names] = {}
        self._showing: Names | None = None

    def command(self, name: str) -> Command:
        """A command, or as `container|subcommand` a subcommand. UnknownInRule if there is none."""
        container, *rest = name.lower().split("|")
        found = self._table.all().get(container)
        for subcommand in rest:
            found = None if found is None else found.subcommands.get(subcommand)
        if found is None:
            raise UnknownInRule
        return found

    def category(self, name: str) -> str:
        """A category's name in its own spelling, without the @. UnknownInRule if there is none."""
        if name.lower() not in CATEGORIES:
            raise UnknownInRule
        return name.lower()

    def members(self, name: str) -> Names:
        """What a name in its own spelling stands for."""
        found = self._members.get(name)
        if found is None:
            category = name.removeprefix("@")
            found = self._of_command(name) if category == name else self._of_category(category)
            self._members[name] = found
        return found

    def everything(self) -> Names:
        """All commands and all categories."""
        if "@all" not in self._members:
            names = [*self._table.all(), *(f"@{category}" for category in CATEGORIES)]
            self._members["@all"] = Names().union(*map(self.members, names))
        return self._members["@all"]

    def showing(self) -> Names:
        """The commands that show what a dataset holds."""
        if self._showing is None:
            self._showing = Names(
                name
                for name in self.members("@widecolumn") & self.members("@read")
                if not name.startswith("@") and self.command(name).keys.first
            )
        return self._showing

    def _of_command(self, name: str) -> Names:
        command = self.command(name)
        return Names([name, *(each.name for each in command.subcommands.values())])

    def _of_category(self, category: str) -> Names:
        names = {f"@{category}"}
        for command in self._table.all().values():
            for each in (command, *command.subcommands.values()):
                if category in each.categories:
                    names |= self.members(each.name)
        return Names(names)

    def commands_of(self, category: str) -> list[str]:
        """The commands and subcommands that declare a category, as ACL CAT lists them."""
        return [
            each.name
            for command in self._table.all().values()
            for each in (command, *command.subcommands.values())
            if category in each.categories
        ]
