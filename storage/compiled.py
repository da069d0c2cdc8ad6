"""Twins: what is hot exists in Python and, if a compiler was there at install, compiled.

Both do the same; the tests run with both. COLONNADE_PURE_PYTHON=1 in the environment does without
the compiled ones. Knows none of them.
"""

from __future__ import annotations

import importlib
import os
from typing import TypeVar

PURE_VARIABLE = "COLONNADE_PURE_PYTHON"
IN_USE: set[str] = set()
"""The compiled modules that this process uses."""
Twin = TypeVar("Twin")


def twin(module: str, name: str, python: Twin) -> Twin:
    """The compiled `name` of a module if it was built and is wanted, else the one in Python."""
    if os.environ.get(PURE_VARIABLE, "0") not in ("", "0"):
        return python
    try:
        compiled: Twin = getattr(importlib.import_module(module), name)
    except ModuleNotFoundError:
        return python
    IN_USE.add(module)
    return compiled
