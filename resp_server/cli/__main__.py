"""`python -m resp_server.cli`, as `colonnade`."""

from __future__ import annotations

import sys

from resp_server.cli import main

if __name__ == "__main__":
    sys.exit(main())
