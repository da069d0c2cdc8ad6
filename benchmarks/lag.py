"""How late a server's event loop was, from the histogram that its metrics have.

The loop is asked for its turn ten times a second, whatever else it does; a look that came late was
held up by a command, a commit or a full machine. Knows nothing else of metrics.
"""

from __future__ import annotations

import math
import re
import urllib.request
from collections import Counter

ALLOWED_SECONDS = 0.01
"""Nothing should keep the loop from its turn for longer."""
TIMEOUT_SECONDS = 30.0
_BUCKET = re.compile(r'^colonnade_event_loop_lag_seconds_bucket\{le="([^"]+)"\} (\S+)$', re.M)

Lag = Counter[float]
"""The upper bound of a bucket in seconds -> how many looks came so late."""


def parse(page: str) -> Lag:
    """From a page of metrics, whose buckets count those below them too."""
    lag, below = Lag(), 0
    for bound, total in _BUCKET.findall(page):
        lag[float(bound)] = int(float(total)) - below
        below = int(float(total))
    return lag


def read(port: int) -> Lag:
    """Since the server on this machine with this metrics-port was started."""
    address = f"http://127.0.0.1:{port}/metrics"
    with urllib.request.urlopen(address, timeout=TIMEOUT_SECONDS) as page:
        return parse(page.read().decode())


def later_than(lag: Lag, seconds: float) -> int:
    """Looks that came later than a bound of the buckets."""
    return sum([count for bound, count in lag.items() if bound > seconds])


def longest(lag: Lag) -> str:
    """In words, from the bounds of the last bucket that counted something."""
    bounds = sorted(lag)
    last = max((bound for bound in bounds if lag[bound]), default=0.0)
    below = max((bound for bound in bounds if bound < last), default=0.0)
    if math.isinf(last):
        return f"over {below * 1000:g} ms"
    return f"{below * 1000:g} to {last * 1000:g} ms"


def told(lag: Lag) -> str:
    """For people; empty where nothing was looked at."""
    looks = lag.total()
    if not looks:
        return ""
    late = later_than(lag, ALLOWED_SECONDS)
    return f"{looks:,} looks, {late:,} later than 10 ms, the latest by {longest(lag)}"
