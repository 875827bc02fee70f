"""What clients may do, and by what they prove who they are."""

from __future__ import annotations

from ....protocol.apis import ApiKey
from ....quorum.decisions.client_quotas import ALTER_CLIENT_QUOTAS
from ....quorum.decisions.delegation_tokens import CREATE_TOKEN, EXPIRE_TOKEN, RENEW_TOKEN
from ....quorum.decisions.scram_credentials import ALTER_USER_SCRAM_CREDENTIALS
from ...apis import acls, client_quotas, delegation_tokens, scram_credentials
from ...network.handlers import Handlers
from .decided_request import add_decided, altering
from .dependencies import ControllerHandlerDependencies


def register(handlers: Handlers, parts: ControllerHandlerDependencies) -> None:
    acls.register(
        handlers,
        parts.metadata,
        parts.local,
        has_authorizer=parts.config.authorizer is not None,
        header_tags=parts.header_tags,
    )
    add_decided(handlers, parts, ALTER_CLIENT_QUOTAS, client_quotas.alter_error, client_quotas.alter)
    add_decided(
        handlers,
        parts,
        ALTER_USER_SCRAM_CREDENTIALS,
        scram_credentials.alter_error,
        altering(ApiKey.ALTER_USER_SCRAM_CREDENTIALS),
    )
    scram_credentials.register_for_controllers(handlers, parts.metadata)
    add_decided(handlers, parts, CREATE_TOKEN, delegation_tokens.create_error, delegation_tokens.create_permitted)
    add_decided(handlers, parts, RENEW_TOKEN, delegation_tokens.renew_error, delegation_tokens.of_client)
    add_decided(handlers, parts, EXPIRE_TOKEN, delegation_tokens.expire_error, delegation_tokens.of_client)
