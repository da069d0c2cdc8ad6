"""The configuration: which directives there are, and their values from redis.conf.

    kinds.py        how words become values     reading.py   redis.conf and the command line
    directives.py   every directive, once       sample.py    redis.conf.example
    fixed.py        those that are no choice

Nothing here knows who uses a value. What CONFIG does with them is in resp_server/configuration.py.
"""

from resp_server.settings.directives import DIRECTIVES, Change, Directive, Settings
from resp_server.settings.fixed import FIXED, Fixed
from resp_server.settings.kinds import BadSetting, Kind, OutputLimit, OutputLimits
from resp_server.settings.reading import (
    apply,
    apply_text,
    configuration_file,
    from_command_line,
    split_line,
)
from resp_server.settings.sample import example

__all__ = [
    "DIRECTIVES",
    "FIXED",
    "BadSetting",
    "Change",
    "Directive",
    "Fixed",
    "Kind",
    "OutputLimit",
    "OutputLimits",
    "Settings",
    "apply",
    "apply_text",
    "configuration_file",
    "example",
    "from_command_line",
    "split_line",
]
