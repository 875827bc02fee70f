"""What HTTP answers when it cannot do what it was asked: a problem (RFC 9457), or Confluent's error."""

from typing import Final

from msgspec import Struct

from ..errors import ErrorCode, error_info

MEDIA_TYPE: Final = "application/problem+json"

HTTP_STATUS: Final = {
    ErrorCode.UNKNOWN_SERVER_ERROR: 500,
    ErrorCode.KAFKA_STORAGE_ERROR: 500,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: 404,
    ErrorCode.UNKNOWN_TOPIC_ID: 404,
    ErrorCode.GROUP_ID_NOT_FOUND: 404,
    ErrorCode.RESOURCE_NOT_FOUND: 404,
    ErrorCode.BROKER_ID_NOT_REGISTERED: 404,
    ErrorCode.TRANSACTIONAL_ID_NOT_FOUND: 404,
    ErrorCode.NO_REASSIGNMENT_IN_PROGRESS: 404,
    ErrorCode.TOPIC_AUTHORIZATION_FAILED: 403,
    ErrorCode.GROUP_AUTHORIZATION_FAILED: 403,
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED: 403,
    ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: 403,
    ErrorCode.SASL_AUTHENTICATION_FAILED: 401,
    ErrorCode.SECURITY_DISABLED: 501,
    ErrorCode.UNSUPPORTED_VERSION: 501,
    ErrorCode.MESSAGE_TOO_LARGE: 413,
    ErrorCode.RECORD_LIST_TOO_LARGE: 413,
    ErrorCode.THROTTLING_QUOTA_EXCEEDED: 429,
    ErrorCode.NON_EMPTY_GROUP: 409,
    ErrorCode.REASSIGNMENT_IN_PROGRESS: 409,
    ErrorCode.CONCURRENT_TRANSACTIONS: 409,
    ErrorCode.REQUEST_TIMED_OUT: 504,
    ErrorCode.BROKER_NOT_AVAILABLE: 503,
    ErrorCode.NOT_CONTROLLER: 503,
    ErrorCode.NOT_COORDINATOR: 503,
    ErrorCode.COORDINATOR_NOT_AVAILABLE: 503,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS: 503,
    ErrorCode.LEADER_NOT_AVAILABLE: 503,
    ErrorCode.NOT_LEADER_OR_FOLLOWER: 503,
    ErrorCode.NOT_ENOUGH_REPLICAS: 503,
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND: 503,
    ErrorCode.NETWORK_EXCEPTION: 503,
    ErrorCode.REPLICA_NOT_AVAILABLE: 503,
}
"""Of Kafka's errors; any other says that the request was wrong: 400."""


class Problem(Struct, kw_only=True, omit_defaults=True):
    """A problem in the form of RFC 9457, with the members of Confluent's REST API beside its own.

    `title` is the name of Kafka's error, `error_code` its number, or the HTTP status for what Kafka has no error for;
    `message` says the same as `detail`, to clients that look there.
    """

    type: str = "about:blank"
    title: str
    status: int
    detail: str
    error_code: int
    message: str


class ConfluentError(Struct, kw_only=True):
    """Confluent's `Error`. The first three digits of `error_code` are a status of HTTP, the rest is its number."""

    error_code: int
    message: str


def problem_of(code: int, message: str | None = None) -> Problem:
    """Of one of Kafka's errors, with the sentence of its table where there is no message."""
    info = error_info(code)
    sentence = message or info.sentence
    return Problem(
        title=info.name,
        status=HTTP_STATUS.get(info.code, 400),
        detail=sentence,
        error_code=int(info.code),
        message=sentence,
    )


def http_problem(status: int, title: str, sentence: str) -> Problem:
    """Of a request that HTTP itself refuses."""
    return Problem(title=title, status=status, detail=sentence, error_code=status, message=sentence)
