"""How connections prove who they are."""

from __future__ import annotations

from ...apis import sasl_authentication
from ...network.handlers import Handlers
from .dependencies import HandlerDependencies


def register(handlers: Handlers, parts: HandlerDependencies) -> None:
    config = parts.config
    sasl_authentication.register(
        handlers,
        sasl_authentication.SaslDependencies(
            mechanisms=parts.sasl,
            secret=config.cluster_secret,
            certificates=config.node_certificates,
            hello=parts.hello,
            failed_authentication_delay_ms=config.failed_authentication_delay_ms,
            peer_log=parts.peer_log,
            loop=parts.runtime.loop,
            wall_clock_ms=parts.runtime.wall_clock_ms,
        ),
    )
