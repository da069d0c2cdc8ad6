"""Settings at work: how directives reach the parts of the server, at its start and by CONFIG SET.

`Live.apply(names)` is a listener of the configuration; with all names it sets a new server up. Each
step takes what it needs from the settings; those that can refuse come first, so that a refusal
leaves everything as it was. Knows no client.
"""

from __future__ import annotations

import logging

from commands.context import CommandSettings
from resp_server.descriptors import allow_clients
from resp_server.listening import Listeners
from resp_server.services import Services
from resp_server.settings import DIRECTIVES, Settings
from storage.embedded.engine import EmbeddedEngine
from storage.model import DatasetSettings, PageLimits

LOG_LEVELS = {
    "debug": logging.DEBUG,
    "verbose": logging.DEBUG,
    "notice": logging.INFO,
    "warning": logging.WARNING,
}
ALL_NAMES = frozenset(DIRECTIVES)


class Live:
    """Carries settings to where they act."""

    def __init__(
        self,
        settings: Settings,
        command_settings: CommandSettings,
        services: Services,
        engine: EmbeddedEngine,
        listeners: Listeners,
    ) -> None:
        self._settings = settings
        self._command_settings = command_settings
        self._services = services
        self._engine = engine
        self._listeners = listeners

    def apply(self, names: frozenset[str]) -> None:
        """These directives have new values. BadSetting: one cannot be used, and none is."""
        if "maxclients" in names:
            allow_clients(self._settings.maxclients)
        self._listeners.changed(names)
        settings, services = self._settings, self._services
        if "requirepass" in names:
            services.users.set_default_password(_encoded(settings.requirepass))
        services.users.denials.most = settings.acllog_max_len
        services.users.all_channels_at_first = settings.acl_pubsub_default == "allchannels"
        services.slow_log.slower_than_us = settings.slowlog_log_slower_than
        services.slow_log.most = settings.slowlog_max_len
        services.latency.threshold_ms = settings.latency_monitor_threshold
        services.calls.tracking = settings.latency_tracking
        services.calls.percentiles = settings.latency_tracking_info_percentiles
        services.execution.update()
        services.saving.schedule.changed()
        services.compactions.changed()
        self._engine.most_waiting_bytes = settings.wc_write_queue_limit
        self._engine.rows.limit_bytes = settings.wc_row_cache_bytes
        logging.getLogger().setLevel(LOG_LEVELS[settings.loglevel])
        self._apply_to_commands()

    def _apply_to_commands(self) -> None:
        settings, commands = self._settings, self._command_settings
        commands.databases = settings.databases
        commands.limits = PageLimits(
            settings.wc_page_columns,
            settings.wc_page_rows,
            settings.wc_page_cells,
            settings.wc_page_bytes,
            settings.wc_page_scan,
        )
        commands.new_dataset = DatasetSettings(
            settings.wc_default_maxversions, settings.wc_default_ttl
        )
        commands.create_with = commands.new_dataset if settings.wc_auto_create else None
        commands.notifications = settings.notify_keyspace_events


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")
