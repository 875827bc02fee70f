"""CreateDelegationToken 1 to 3, RenewDelegationToken, ExpireDelegationToken 1 to 2, DescribeDelegationToken 1 to 3.

KIP-48. 3: tokens for another owner (KIP-373). The controller has the rules (`quorum/decisions/delegation_tokens.py`).
Requests are taken from clients that have proved themselves, and not by a token: else tokens could make tokens without
end.
"""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TypeVar

from kio.schema.create_delegation_token.v3.request import CreateDelegationTokenRequest
from kio.schema.create_delegation_token.v3.response import CreateDelegationTokenResponse
from kio.schema.describe_delegation_token.v3.request import DescribeDelegationTokenRequest
from kio.schema.describe_delegation_token.v3.response import (
    DescribedDelegationToken,
    DescribedDelegationTokenRenewer,
    DescribeDelegationTokenResponse,
)
from kio.schema.expire_delegation_token.v2.request import ExpireDelegationTokenRequest
from kio.schema.expire_delegation_token.v2.response import ExpireDelegationTokenResponse
from kio.schema.renew_delegation_token.v2.request import RenewDelegationTokenRequest
from kio.schema.renew_delegation_token.v2.response import RenewDelegationTokenResponse
from kio.static.primitive import i64

from ...protocol.acls import AclOperation, ResourceType
from ...protocol.apis import ApiKey
from ...protocol.errors import ErrorCode, KafkaError
from ...protocol.messages import NO_THROTTLE, kio_error
from ...quorum.decisions.delegation_tokens import (
    CREATE_TOKEN,
    EXPIRE_TOKEN,
    NO_TIME,
    RENEW_TOKEN,
    not_created,
    owner_of,
    timestamp,
)
from ...quorum.metadata.security_image import DelegationToken
from ...quorum.permissions.token_settings import DelegationTokenConfig
from ...quorum.permissions.tokens import hmac_of, is_owner_or_renewer
from ..cluster.controller_channel import ControllerChannel
from ..cluster.metadata_cache import MetadataCache
from ..network.handlers import Handlers
from ..network.request import ANONYMOUS, RequestContext
from ..security.client_changes import Submit, ask_controller

RequestT = TypeVar("RequestT")
ResponseT = TypeVar("ResponseT")


def register(
    handlers: Handlers, metadata: MetadataCache, controller: ControllerChannel, config: DelegationTokenConfig | None
) -> None:
    """`config` is None where there are no tokens."""

    async def create(request: CreateDelegationTokenRequest, context: RequestContext) -> CreateDelegationTokenResponse:
        try:
            return await ask_controller(controller, CREATE_TOKEN, request, context, create_permitted)
        except KafkaError as error:
            # It names both principals whatever is wrong.
            return not_created(request, context.principal, error.code)

    async def renew(request: RenewDelegationTokenRequest, context: RequestContext) -> RenewDelegationTokenResponse:
        return await ask_controller(controller, RENEW_TOKEN, request, context, of_client)

    async def expire(request: ExpireDelegationTokenRequest, context: RequestContext) -> ExpireDelegationTokenResponse:
        return await ask_controller(controller, EXPIRE_TOKEN, request, context, of_client)

    def describe(request: DescribeDelegationTokenRequest, context: RequestContext) -> DescribeDelegationTokenResponse:
        check_client(context)
        if config is None:
            raise KafkaError(ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED)
        owners = (
            None
            if request.owners is None
            else [f"{owner.principal_type}:{owner.principal_name}" for owner in request.owners]
        )
        tokens = tuple(
            _described(token, hmac_of(config.secret_key, token_id))
            for token_id, token in sorted(metadata.image.delegation_tokens.items())
            if (owners is None or any(is_owner_or_renewer(token, owner) for owner in owners))
            and _may_describe(context, token)
        )
        return DescribeDelegationTokenResponse(
            error_code=kio_error(ErrorCode.NONE), tokens=tokens, throttle_time=NO_THROTTLE
        )

    handlers.add_message(ApiKey.CREATE_DELEGATION_TOKEN, create, answer_error=create_error)
    handlers.add_message(ApiKey.RENEW_DELEGATION_TOKEN, renew, answer_error=renew_error)
    handlers.add_message(ApiKey.EXPIRE_DELEGATION_TOKEN, expire, answer_error=expire_error)
    handlers.add_message(ApiKey.DESCRIBE_DELEGATION_TOKEN, describe, answer_error=describe_error)


def check_client(context: RequestContext) -> None:
    """Raises KafkaError(DELEGATION_TOKEN_REQUEST_NOT_ALLOWED)."""
    if context.node_id is None and (context.principal == ANONYMOUS or context.is_token_authenticated):
        raise KafkaError(ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED)


async def create_permitted(
    request: CreateDelegationTokenRequest,
    context: RequestContext,
    submit: Submit[CreateDelegationTokenRequest, CreateDelegationTokenResponse],
) -> CreateDelegationTokenResponse:
    """Each client may create tokens of its own; those of another owner by a permission. Raises KafkaError."""
    check_client(context)
    owner = owner_of(request, context.principal)
    if owner != context.principal and not context.may(
        ApiKey.CREATE_DELEGATION_TOKEN, AclOperation.CREATE_TOKENS, ResourceType.USER, owner
    ):
        raise KafkaError(ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED)
    return await submit(request)


def of_client(request: RequestT, context: RequestContext, submit: Submit[RequestT, ResponseT]) -> Awaitable[ResponseT]:
    """Lets pass what the controller refuses to all but the owner and the renewers. Raises KafkaError."""
    check_client(context)
    return submit(request)


def _may_describe(context: RequestContext, token: DelegationToken) -> bool:
    return (
        is_owner_or_renewer(token, context.principal)
        or context.may(
            ApiKey.DESCRIBE_DELEGATION_TOKEN, AclOperation.DESCRIBE, ResourceType.DELEGATION_TOKEN, token.token_id
        )
        or context.may(ApiKey.DESCRIBE_DELEGATION_TOKEN, AclOperation.DESCRIBE_TOKENS, ResourceType.USER, token.owner)
    )


def _described(token: DelegationToken, secret: bytes) -> DescribedDelegationToken:
    owner_type, _, owner = token.owner.partition(":")
    requester_type, _, requester = token.requester.partition(":")
    renewers = (renewer.partition(":") for renewer in token.renewers)
    return DescribedDelegationToken(
        principal_type=owner_type,
        principal_name=owner,
        token_requester_principal_type=requester_type,
        token_requester_principal_name=requester,
        issue_timestamp=i64(token.issue_timestamp_ms),
        expiry_timestamp=i64(token.expiration_timestamp_ms),
        max_timestamp=i64(token.max_timestamp_ms),
        token_id=token.token_id,
        hmac=secret,
        renewers=tuple(
            DescribedDelegationTokenRenewer(principal_type=kind, principal_name=name) for kind, _, name in renewers
        ),
    )


def create_error(request: CreateDelegationTokenRequest, error: KafkaError) -> CreateDelegationTokenResponse:
    return not_created(request, ANONYMOUS, error.code)


def renew_error(_request: RenewDelegationTokenRequest, error: KafkaError) -> RenewDelegationTokenResponse:
    return RenewDelegationTokenResponse(
        error_code=kio_error(error.code), expiry_timestamp=timestamp(NO_TIME), throttle_time=NO_THROTTLE
    )


def expire_error(_request: ExpireDelegationTokenRequest, error: KafkaError) -> ExpireDelegationTokenResponse:
    return ExpireDelegationTokenResponse(
        error_code=kio_error(error.code), expiry_timestamp=timestamp(NO_TIME), throttle_time=NO_THROTTLE
    )


def describe_error(_request: DescribeDelegationTokenRequest, error: KafkaError) -> DescribeDelegationTokenResponse:
    return DescribeDelegationTokenResponse(error_code=kio_error(error.code), tokens=(), throttle_time=NO_THROTTLE)
