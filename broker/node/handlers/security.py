"""Who may do what, and how much of it."""

from __future__ import annotations

from ...apis import acls, client_quotas, delegation_tokens, scram_credentials
from ...network.handlers import Handlers
from .dependencies import HandlerDependencies


def register(handlers: Handlers, parts: HandlerDependencies) -> None:
    metadata, controller, config = parts.metadata, parts.controller, parts.config
    acls.register(handlers, metadata, controller, has_authorizer=config.authorizer is not None)
    client_quotas.register(handlers, metadata, controller)
    delegation_tokens.register(handlers, metadata, controller, config.delegation_tokens)
    scram_credentials.register(handlers, metadata, controller)
