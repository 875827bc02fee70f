"""Setting and deleting SCRAM credentials. Kafka: `ScramControlManager`.

AlterUserScramCredentials, version 0 (KIP-554). One change a user and request: of a user that is named twice none is
made, whatever the mechanisms. Those that are refused do not stop the others.
"""

from typing import Final

from kio.schema.alter_user_scram_credentials.v0.request import AlterUserScramCredentialsRequest
from kio.schema.alter_user_scram_credentials.v0.response import (
    AlterUserScramCredentialsResponse,
    AlterUserScramCredentialsResult,
)

from ...protocol.apis import ApiKey
from ...protocol.errors import ErrorCode, KafkaError
from ...protocol.messages import NO_THROTTLE
from ...protocol.scram import BY_NUMBER, ITERATIONS_MAX, ITERATIONS_MIN
from ..metadata.image import MetadataImage
from ..metadata.security_image import ScramUser
from ..metadata.security_records import RemoveUserScramCredentialRecord, UserScramCredentialRecord
from ..permissions.scram_credentials import credential_record
from .answers import wire_code
from .context import ControllerResult, DecisionContext
from .controller_request import ControllerRequest


def alter_user_scram_credentials(
    image: MetadataImage, request: AlterUserScramCredentialsRequest, _context: DecisionContext
) -> ControllerResult[AlterUserScramCredentialsResponse]:
    """Makes those of the changes that can be made."""
    changes: dict[str, RemoveUserScramCredentialRecord | UserScramCredentialRecord] = {}
    errors: dict[str, KafkaError] = {}

    def begin(name: str) -> bool:
        """Whether the user is named for the first time."""
        if name in errors:
            return False
        if changes.pop(name, None) is None:
            return True
        errors[name] = KafkaError(
            ErrorCode.DUPLICATE_RESOURCE, "A user credential cannot be altered twice in the same request"
        )
        return False

    for deletion in request.deletions:
        if begin(deletion.name):
            user = ScramUser(deletion.name, int(deletion.mechanism))
            try:
                _check(user)
                if user not in image.scram_credentials:
                    raise KafkaError(
                        ErrorCode.RESOURCE_NOT_FOUND, "Attempt to delete a user credential that does not exist"
                    )
            except KafkaError as error:
                errors[user.name] = error
            else:
                changes[user.name] = RemoveUserScramCredentialRecord(name=user.name, mechanism=user.mechanism)
    for upsertion in request.upsertions:
        if begin(upsertion.name):
            user = ScramUser(upsertion.name, int(upsertion.mechanism))
            try:
                _check(user)
                _check_iterations(int(upsertion.iterations))
                if not upsertion.salted_password:
                    raise KafkaError(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Empty salted password")
            except KafkaError as error:
                errors[user.name] = error
            else:
                changes[user.name] = credential_record(
                    user,
                    salt=upsertion.salt,
                    salted_password=upsertion.salted_password,
                    iterations=upsertion.iterations,
                )
    return ControllerResult(
        records=tuple(changes.values()),
        response=AlterUserScramCredentialsResponse(
            throttle_time=NO_THROTTLE,
            results=(
                *(_result(name, ErrorCode.NONE, None) for name in changes),
                *(_result(name, error.code, error.message) for name, error in errors.items()),
            ),
        ),
    )


def _check(user: ScramUser) -> None:
    if not user.name:
        raise KafkaError(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Username must not be empty")
    if user.mechanism not in BY_NUMBER:
        raise KafkaError(ErrorCode.UNSUPPORTED_SASL_MECHANISM, "Unknown SCRAM mechanism")


def _check_iterations(iterations: int) -> None:
    if iterations < ITERATIONS_MIN:
        raise KafkaError(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too few iterations")
    if iterations > ITERATIONS_MAX:
        raise KafkaError(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too many iterations")


def _result(name: str, code: ErrorCode, message: str | None) -> AlterUserScramCredentialsResult:
    return AlterUserScramCredentialsResult(user=name, error_code=wire_code(code), error_message=message)


ALTER_USER_SCRAM_CREDENTIALS: Final = ControllerRequest(
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS, alter_user_scram_credentials
)
