"""Configs of brokers, topics, groups, and of what else has some."""

from __future__ import annotations

from ....quorum.decisions.configs import ALTER_CONFIGS
from ...apis import alter_configs, config_permissions, config_results, describe_configs
from ...configuration.loggers import PROCESS_LOGGERS
from ...network.handlers import Handlers
from .decided_request import add_decided
from .dependencies import ControllerHandlerDependencies


def register(handlers: Handlers, parts: ControllerHandlerDependencies) -> None:
    add_decided(handlers, parts, ALTER_CONFIGS, config_results.legacy_error, config_permissions.alter_legacy)
    alter_configs.register_for_controllers(handlers, parts.configs, parts.local, PROCESS_LOGGERS, parts.header_tags)
    describe_configs.register(handlers, parts.metadata, parts.configs, PROCESS_LOGGERS, is_controller=True)
