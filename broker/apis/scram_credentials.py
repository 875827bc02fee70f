"""DescribeUserScramCredentials 0 and AlterUserScramCredentials 0 (KIP-554): by the metadata, and forwarded.

An answer has the mechanisms and iterations of users, never what is kept of a password.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable

from kio.schema.alter_user_scram_credentials.v0.request import AlterUserScramCredentialsRequest
from kio.schema.alter_user_scram_credentials.v0.response import (
    AlterUserScramCredentialsResponse,
    AlterUserScramCredentialsResult,
)
from kio.schema.describe_user_scram_credentials.v0.request import DescribeUserScramCredentialsRequest
from kio.schema.describe_user_scram_credentials.v0.response import (
    CredentialInfo,
    DescribeUserScramCredentialsResponse,
    DescribeUserScramCredentialsResult,
)
from kio.static.primitive import i8, i32

from ...protocol.acls import CLUSTER_NAME, AclOperation, ResourceType
from ...protocol.apis import ApiKey
from ...protocol.errors import ErrorCode, KafkaError
from ...protocol.messages import NO_THROTTLE, kio_error
from ...quorum.decisions.scram_credentials import ALTER_USER_SCRAM_CREDENTIALS
from ...quorum.metadata.image import MetadataImage
from ..cluster.controller_channel import ControllerChannel
from ..cluster.metadata_cache import MetadataCache
from ..network.handlers import Handlers
from ..network.request import RequestContext
from ..security.client_changes import Guard, ask_controller, in_cluster
from .permissions import require


def register(handlers: Handlers, metadata: MetadataCache, controller: ControllerChannel) -> None:
    def alter(
        request: AlterUserScramCredentialsRequest, context: RequestContext
    ) -> Awaitable[AlterUserScramCredentialsResponse]:
        return ask_controller(controller, ALTER_USER_SCRAM_CREDENTIALS, request, context, guard)

    guard: Guard[AlterUserScramCredentialsRequest, AlterUserScramCredentialsResponse] = in_cluster(
        ApiKey.ALTER_USER_SCRAM_CREDENTIALS, AclOperation.ALTER
    )
    register_for_controllers(handlers, metadata)
    handlers.add_message(ApiKey.ALTER_USER_SCRAM_CREDENTIALS, alter, answer_error=alter_error)


def register_for_controllers(handlers: Handlers, metadata: MetadataCache) -> None:
    """Registers what is answered from the metadata; changes are the controller's own."""

    def describe(
        request: DescribeUserScramCredentialsRequest, context: RequestContext
    ) -> DescribeUserScramCredentialsResponse:
        api_key = ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS
        require(context, api_key, AclOperation.DESCRIBE, ResourceType.CLUSTER, CLUSTER_NAME)
        return describe_user_scram_credentials(metadata.image, request)

    handlers.add_message(ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS, describe, answer_error=_describe_error)


def describe_user_scram_credentials(
    image: MetadataImage, request: DescribeUserScramCredentialsRequest
) -> DescribeUserScramCredentialsResponse:
    """Of the users that are asked for; of all for none. Kafka: `ScramImage.describe`."""
    iterations: dict[str, dict[int, int]] = {}
    for user, credential in image.scram_credentials.items():
        iterations.setdefault(user.name, {})[user.mechanism] = credential.iterations
    asked = Counter(user.name for user in request.users or ())
    names = tuple(asked) or sorted(iterations)
    return DescribeUserScramCredentialsResponse(
        throttle_time=NO_THROTTLE,
        error_code=kio_error(ErrorCode.NONE),
        error_message="",
        results=tuple(_described(name, iterations.get(name, {}), is_twice=asked[name] > 1) for name in names),
    )


def _described(name: str, iterations: dict[int, int], *, is_twice: bool) -> DescribeUserScramCredentialsResult:
    code, message = ErrorCode.NONE, ""
    if is_twice:
        code = ErrorCode.DUPLICATE_RESOURCE
        message = f"Cannot describe SCRAM credentials for the same user twice in a single request: {name}"
    elif not iterations:
        code = ErrorCode.RESOURCE_NOT_FOUND
        message = f"Attempt to describe a user credential that does not exist: {name}"
    shown = {} if code else iterations
    return DescribeUserScramCredentialsResult(
        user=name,
        error_code=kio_error(code),
        error_message=message,
        credential_infos=tuple(
            CredentialInfo(mechanism=i8(mechanism), iterations=i32(count)) for mechanism, count in sorted(shown.items())
        ),
    )


def _describe_error(
    _request: DescribeUserScramCredentialsRequest, error: KafkaError
) -> DescribeUserScramCredentialsResponse:
    return DescribeUserScramCredentialsResponse(
        throttle_time=NO_THROTTLE, error_code=kio_error(error.code), error_message=error.message, results=()
    )


def alter_error(request: AlterUserScramCredentialsRequest, error: KafkaError) -> AlterUserScramCredentialsResponse:
    """For each user, as the API has no other place."""
    names = [*(deletion.name for deletion in request.deletions), *(upsertion.name for upsertion in request.upsertions)]
    return AlterUserScramCredentialsResponse(
        throttle_time=NO_THROTTLE,
        results=tuple(
            AlterUserScramCredentialsResult(user=name, error_code=kio_error(error.code), error_message=error.message)
            for name in dict.fromkeys(names)
        ),
    )
