"""What all answers have in common."""

from base64 import urlsafe_b64encode
from typing import NamedTuple
from uuid import UUID

from kio.schema.errors import ErrorCode as WireErrorCode

from ...protocol.errors import ErrorCode, KafkaError, error_info

ZERO_ID = UUID(int=0)


class Refusal(NamedTuple):
    """Why one item of a request is refused, as the answer says it."""

    code: ErrorCode
    message: str | None


def refusal(error: KafkaError) -> Refusal:
    return Refusal(error.code, error.message)


def plain_refusal(code: ErrorCode) -> Refusal:
    """Return a refusal that says no more than the code's own sentence."""
    return Refusal(code, error_info(code).sentence)


def base64_id(value: UUID) -> str:
    """Return an id as Kafka prints it."""
    return urlsafe_b64encode(value.bytes).rstrip(b"=").decode()


def wire_code(code: ErrorCode) -> WireErrorCode:
    """Return the code as messages hold it."""
    return WireErrorCode(int(code))
