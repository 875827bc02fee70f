"""Delegation tokens (KIP-48, KIP-373, KIP-900). Kafka: `DelegationTokenControlManager`.

A token is an id and the HMAC of that id under `delegation.token.secret.key`: a client that knows both authenticates as
its owner. The metadata have all but the HMAC, which each node computes. CreateDelegationToken 1-3, RenewDelegationToken
and ExpireDelegationToken 1-2: only the owner and the renewers may change a token.
"""

import hmac
from datetime import UTC, datetime, timedelta
from typing import Final, cast
from uuid import UUID

from kio.schema.create_delegation_token.v3.request import CreateDelegationTokenRequest
from kio.schema.create_delegation_token.v3.response import CreateDelegationTokenResponse
from kio.schema.expire_delegation_token.v2.request import ExpireDelegationTokenRequest
from kio.schema.expire_delegation_token.v2.response import ExpireDelegationTokenResponse
from kio.schema.renew_delegation_token.v2.request import RenewDelegationTokenRequest
from kio.schema.renew_delegation_token.v2.response import RenewDelegationTokenResponse
from kio.static.primitive import TZAware

from ...protocol.apis import ApiKey
from ...protocol.errors import ErrorCode, KafkaError
from ...protocol.messages import NO_THROTTLE
from ..metadata.features import METADATA_VERSION
from ..metadata.image import MetadataImage
from ..metadata.security_image import DelegationToken
from ..metadata.security_records import DelegationTokenRecord, RemoveDelegationTokenRecord
from ..permissions.token_settings import DelegationTokenConfig
from ..permissions.tokens import hmac_of, is_expired
from .answers import base64_id, wire_code
from .context import ControllerResult, DecisionContext
from .controller_request import ControllerRequest

USER_TYPE: Final = "User"
NO_TIME: Final = -1
"""In answers that have no timestamp, milliseconds."""
TOKENS_VERSION: Final = 14
"""The metadata.version from which on there are delegation tokens: 3.6-IV2."""
_NEVER_MS: Final = int(datetime(9999, 1, 1, tzinfo=UTC).timestamp() * 1000)
_MILLISECOND: Final = timedelta(milliseconds=1)
_EPOCH: Final = datetime.fromtimestamp(0, UTC)


def create_token(
    image: MetadataImage, request: CreateDelegationTokenRequest, context: DecisionContext
) -> ControllerResult[CreateDelegationTokenResponse]:
    """Create a token of the requester, or of the owner that the request names.

    A refusal names both principals, too. Raises KafkaError without a requester.
    """
    requester = _requester(context)
    try:
        config = _config(image, context)
        if any(renewer.principal_type != USER_TYPE for renewer in request.renewers):
            raise KafkaError(ErrorCode.INVALID_PRINCIPAL_TYPE)
    except KafkaError as error:
        return ControllerResult(records=(), response=not_created(request, requester, error.code))
    renewers = tuple(f"{renewer.principal_type}:{renewer.principal_name}" for renewer in request.renewers)
    lifetime_ms = config.max_lifetime_ms
    wanted_ms = request.max_lifetime // _MILLISECOND
    if wanted_ms > 0:
        lifetime_ms = min(lifetime_ms, wanted_ms)
    now_ms = context.wall_ms
    max_timestamp_ms = min(now_ms + lifetime_ms, _NEVER_MS)
    record = DelegationTokenRecord(
        token_id=base64_id(UUID(int=context.random.getrandbits(128), version=4)),
        owner=owner_of(request, requester),
        requester=requester,
        issue_timestamp=now_ms,
        max_timestamp=max_timestamp_ms,
        expiration_timestamp=min(max_timestamp_ms, now_ms + config.expiry_time_ms),
        renewers=renewers,
    )
    return ControllerResult(
        records=(record,), response=created(record, hmac_of(config.secret_key, record.token_id), ErrorCode.NONE)
    )


def renew_token(
    image: MetadataImage, request: RenewDelegationTokenRequest, context: DecisionContext
) -> ControllerResult[RenewDelegationTokenResponse]:
    """Put off the expiration, within the lifetime of the token. Raises KafkaError."""
    config = _config(image, context)
    token = _find(image, config, request.hmac)
    now_ms = context.wall_ms
    if is_expired(token, now_ms):
        raise KafkaError(ErrorCode.DELEGATION_TOKEN_EXPIRED)
    _check_renewer(token, _requester(context))
    period_ms = request.renew_period // _MILLISECOND
    period_ms = min(config.expiry_time_ms, period_ms) if period_ms > 0 else config.expiry_time_ms
    expiration_ms = min(token.max_timestamp_ms, now_ms + period_ms)
    return ControllerResult(
        records=(_with_expiration(token, expiration_ms),),
        response=RenewDelegationTokenResponse(
            error_code=wire_code(ErrorCode.NONE), expiry_timestamp=timestamp(expiration_ms), throttle_time=NO_THROTTLE
        ),
    )


def expire_token(
    image: MetadataImage, request: ExpireDelegationTokenRequest, context: DecisionContext
) -> ControllerResult[ExpireDelegationTokenResponse]:
    """Set the expiration, or with a negative period remove the token at once. Raises KafkaError."""
    token = _find(image, _config(image, context), request.hmac)
    _check_renewer(token, _requester(context))
    now_ms = context.wall_ms
    period_ms = request.expiry_time_period // _MILLISECOND
    record: DelegationTokenRecord | RemoveDelegationTokenRecord
    if period_ms < 0:
        expiration_ms = now_ms
        record = RemoveDelegationTokenRecord(token_id=token.token_id)
    elif is_expired(token, now_ms):
        raise KafkaError(ErrorCode.DELEGATION_TOKEN_EXPIRED)
    else:
        expiration_ms = min(token.max_timestamp_ms, now_ms + period_ms)
        record = _with_expiration(token, expiration_ms)
    return ControllerResult(
        records=(record,),
        response=ExpireDelegationTokenResponse(
            error_code=wire_code(ErrorCode.NONE), expiry_timestamp=timestamp(expiration_ms), throttle_time=NO_THROTTLE
        ),
    )


def owner_of(request: CreateDelegationTokenRequest, requester: str) -> str:
    """Return whose token a request is for, as "type:name"."""
    if not request.owner_principal_name:
        return requester
    return f"{request.owner_principal_type}:{request.owner_principal_name}"


def created(record: DelegationTokenRecord, secret: bytes, code: ErrorCode) -> CreateDelegationTokenResponse:
    owner_type, _, owner = record.owner.partition(":")
    requester_type, _, requester = record.requester.partition(":")
    return CreateDelegationTokenResponse(
        error_code=wire_code(code),
        principal_type=owner_type,
        principal_name=owner,
        token_requester_principal_type=requester_type,
        token_requester_principal_name=requester,
        issue_timestamp=timestamp(record.issue_timestamp),
        expiry_timestamp=timestamp(record.expiration_timestamp),
        max_timestamp=timestamp(record.max_timestamp),
        token_id=record.token_id,
        hmac=secret,
        throttle_time=NO_THROTTLE,
    )


def not_created(
    request: CreateDelegationTokenRequest, requester: str, code: ErrorCode
) -> CreateDelegationTokenResponse:
    """Return the refusal to create a token for a principal."""
    nothing = DelegationTokenRecord(
        token_id="",
        owner=owner_of(request, requester),
        requester=requester,
        issue_timestamp=NO_TIME,
        max_timestamp=NO_TIME,
        expiration_timestamp=NO_TIME,
    )
    return created(nothing, b"", code)


def timestamp(milliseconds: int) -> TZAware:
    """Return a time since 1970 as messages hold it; -1 stands for no time."""
    return cast(TZAware, _EPOCH + milliseconds * _MILLISECOND)


def _config(image: MetadataImage, context: DecisionContext) -> DelegationTokenConfig:
    config = context.config.delegation_tokens
    if config is None:
        raise KafkaError(ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED)
    if image.features.get(METADATA_VERSION, 0) < TOKENS_VERSION:
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION)
    return config


def _requester(context: DecisionContext) -> str:
    if context.requester is None:
        # A node has no tokens of its own.
        raise KafkaError(ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED)
    return context.requester.principal


def _find(image: MetadataImage, config: DelegationTokenConfig, secret: bytes) -> DelegationToken:
    for token_id, token in image.delegation_tokens.items():
        if hmac.compare_digest(hmac_of(config.secret_key, token_id), secret):
            return token
    raise KafkaError(ErrorCode.DELEGATION_TOKEN_NOT_FOUND)


def _check_renewer(token: DelegationToken, principal: str) -> None:
    if principal != token.owner and principal not in token.renewers:
        raise KafkaError(ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH)


def _with_expiration(token: DelegationToken, expiration_ms: int) -> DelegationTokenRecord:
    return DelegationTokenRecord(
        token_id=token.token_id,
        owner=token.owner,
        requester=token.requester,
        issue_timestamp=token.issue_timestamp_ms,
        max_timestamp=token.max_timestamp_ms,
        expiration_timestamp=expiration_ms,
        renewers=token.renewers,
    )


CREATE_TOKEN: Final = ControllerRequest(ApiKey.CREATE_DELEGATION_TOKEN, create_token)
RENEW_TOKEN: Final = ControllerRequest(ApiKey.RENEW_DELEGATION_TOKEN, renew_token)
EXPIRE_TOKEN: Final = ControllerRequest(ApiKey.EXPIRE_DELEGATION_TOKEN, expire_token)
