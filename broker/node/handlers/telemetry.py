"""Metrics of clients, which push them (KIP-714)."""

from __future__ import annotations

from ...apis import client_telemetry
from ...network.handlers import Handlers
from .dependencies import HandlerDependencies


def register(handlers: Handlers, parts: HandlerDependencies) -> None:
    client_telemetry.register(handlers, parts.telemetry, parts.runtime.random)
