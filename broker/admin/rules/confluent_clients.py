"""What clients of Confluent's REST API expect beyond paths and bodies: a prefix of the paths, errors in plain JSON.

Confluent Platform's brokers serve the same paths below `/kafka`, its REST Proxy does not. Its errors are JSON with a
number and a sentence; clients that were generated from its document accept `application/json` alone.
"""

from __future__ import annotations

from typing import Final

from ....protocol.errors import ErrorCode, error_info
from ....protocol.rest.problem import MEDIA_TYPE, ConfluentError, Problem
from ..operation import JSON

ROOT: Final = "/v3/"
PREFIX: Final = "/kafka"

BAD_REQUEST: Final = 40002
AUTHENTICATION: Final = 40101
AUTHORIZATION: Final = 40301
UNKNOWN_TOPIC_OR_PARTITION: Final = 40403
SERVER: Final = 50002
RETRIABLE: Final = 50003
BROKER_NOT_AVAILABLE: Final = 50302

_NUMBERS: Final = {
    ErrorCode.SASL_AUTHENTICATION_FAILED: AUTHENTICATION,
    ErrorCode.TOPIC_AUTHORIZATION_FAILED: AUTHORIZATION,
    ErrorCode.GROUP_AUTHORIZATION_FAILED: AUTHORIZATION,
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED: AUTHORIZATION,
    ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: AUTHORIZATION,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.BROKER_NOT_AVAILABLE: BROKER_NOT_AVAILABLE,
}
_HTTP_STATUS_MIN: Final = 400
"""From here on an `error_code` is a status: Kafka's own numbers are below."""


def prefix_of(path: str) -> str:
    """Return what stands before `/v3` in a path of Confluent's API."""
    return PREFIX if path.startswith(PREFIX + ROOT) else ""


def reads_only_json(path: str, accept: str | None) -> bool:
    """Whether an error goes to a client of Confluent's API that would rather have JSON than a problem."""
    if not path.removeprefix(PREFIX).startswith(ROOT) or not accept:
        return False
    return _quality(accept, JSON) > _quality(accept, MEDIA_TYPE)


def confluent_error(problem: Problem) -> ConfluentError:
    """The same error with Confluent's number; where Confluent has none, the status."""
    return ConfluentError(error_code=_number(problem), message=problem.message)


def _number(problem: Problem) -> int:
    if problem.error_code >= _HTTP_STATUS_MIN:
        return problem.error_code
    error = error_info(problem.error_code)
    if error.code in _NUMBERS:
        return _NUMBERS[error.code]
    if problem.status == 400:
        return BAD_REQUEST
    if problem.status in (500, 503, 504):
        return RETRIABLE if error.is_retriable else SERVER
    return problem.status


def _quality(accept: str, media_type: str) -> float:
    """How much a client likes a media type, from 0 to 1: what the range that fits best says (RFC 9110 §12.5.1)."""
    ranges = ("*/*", media_type.partition("/")[0] + "/*", media_type)
    best, quality = -1, 0.0
    for one in accept.lower().split(","):
        name, *parameters = (part.strip() for part in one.split(";"))
        if name in ranges and ranges.index(name) > best:
            best, quality = ranges.index(name), _weight(parameters)
    return quality


def _weight(parameters: list[str]) -> float:
    for one in parameters:
        key, _, value = one.partition("=")
        if key.strip() == "q":
            try:
                return min(max(float(value), 0.0), 1.0)
            except ValueError:
                return 0.0
    return 1.0
