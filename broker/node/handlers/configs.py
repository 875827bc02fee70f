"""Configs of topics, brokers, groups and loggers."""

from __future__ import annotations

from ...apis import alter_configs, describe_configs
from ...configuration.loggers import PROCESS_LOGGERS
from ...network.handlers import Handlers
from .dependencies import HandlerDependencies


def register(handlers: Handlers, parts: HandlerDependencies) -> None:
    describe_configs.register(handlers, parts.metadata, parts.configs, PROCESS_LOGGERS)
    alter_configs.register(
        handlers, parts.metadata, parts.configs, parts.controller, PROCESS_LOGGERS, check_tls=parts.tls.check
    )
