"""The port for monitoring: opened if `metrics-port` is set, closed with the server."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from http import HTTPStatus

from resp_server.information import Sources
from resp_server.listening import CannotListen, Place, bind_place
from resp_server.metrics.http import Reply, Visitors, told
from resp_server.metrics.readiness import Readiness

BACKLOG = 64
CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
"""Of the format that page.py writes."""
_LIBRARY_MISSING = (
    "metrics-port needs the library prometheus_client, which is not installed:"
    " pip install 'colonnade[metrics]'"
)


class Monitoring:
    """Answers those who watch one server."""

    def __init__(self, sources: Sources, is_stopping: Callable[[], bool]) -> None:
        """CannotListen if what it needs is not installed."""
        try:
            from resp_server.metrics.collector import Collector
            from resp_server.metrics.page import MetricsPage
        except ModuleNotFoundError as error:
            if error.name != "prometheus_client":
                raise
            raise CannotListen(_LIBRARY_MISSING) from error
        self._page = MetricsPage(Collector(sources).families)
        self._readiness = Readiness(sources.engine, is_stopping)
        self._visitors = Visitors(
            {"/metrics": self._metrics, "/healthz": self._healthz, "/readyz": self._readyz}
        )
        self._server: asyncio.Server | None = None

    async def open(self, place: Place) -> None:
        """CannotListen if that cannot be."""
        listening = bind_place(place)
        if listening is None:
            raise CannotListen(f"cannot listen on {place}: this machine has no such address")
        self._server = await asyncio.get_running_loop().create_server(
            self._visitors.visitor, sock=listening, backlog=BACKLOG
        )

    def close(self) -> None:
        if self._server is not None:
            self._server.close()
        self._visitors.close()
        self._page.close()

    async def _metrics(self) -> Reply:
        return Reply(HTTPStatus.OK, await self._page.text(), CONTENT_TYPE)

    async def _healthz(self) -> Reply:
        return told(HTTPStatus.OK, "the process serves")

    async def _readyz(self) -> Reply:
        objection = self._readiness.objection()
        if objection:
            return told(HTTPStatus.SERVICE_UNAVAILABLE, objection)
        return told(HTTPStatus.OK, "ready")


async def open_monitoring(sources: Sources, is_stopping: Callable[[], bool]) -> Monitoring | None:
    """None where `metrics-port` is 0; CannotListen when it cannot be opened."""
    settings = sources.settings
    if not settings.metrics_port:
        return None
    monitoring = Monitoring(sources, is_stopping)
    await monitoring.open(Place(settings.metrics_bind, settings.metrics_port, encrypted=False))
    return monitoring
