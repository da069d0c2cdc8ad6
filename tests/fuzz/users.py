"""Fresh Users for each input, who share what is worked out of the command table: it takes longer
than most inputs do.
"""

from __future__ import annotations

import copy
from functools import cache

import commands.families  # noqa: F401 - fills the command table
from commands.access.users import DenialLog, Users
from commands.table import TABLE


@cache
def _first() -> Users:
    return Users(TABLE)


def new_users() -> Users:
    users = copy.copy(_first())
    users.default = _first().default.copy()
    users._by_name = {b"default": users.default}
    users.denials = DenialLog()
    return users
