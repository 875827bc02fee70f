"""The requests that Apache Kafka does not have. Their numbers begin at 10,000; ApiVersions does not list them.

Around them stand Kafka's flexible headers, in version 0; inside is whatever the two sides agree on, as bytes.
"""

from collections.abc import Mapping
from enum import IntEnum
from struct import Struct
from typing import Final, NamedTuple

from .apis import APIS
from .errors import CorruptData
from .primitives import GARBAGE_ERRORS, Buffer, read_tags, uvarint

OWN_VERSION: Final = 0
_REQUEST_START = Struct(">ihhih")
_RESPONSE_START = Struct(">ii")
_SIZE = Struct(">i")
_NO_TAGS: Final = b"\0"
# Of the tagged fields of a response header, of which Kafka defines none (KIP-482).
_OUTCOME_TAG: Final = 10_000
_OUTCOME = Struct(">hq")
# Of a request header, of which Kafka defines none either.
_REQUESTER_TAG: Final = 10_001


class OwnApiKey(IntEnum):
    """Where a request of Kafka has the number of its API."""

    OPERATE_QUORUM = 10_000
    """`quorum/raft/operations.py`"""
    FETCH_PRODUCERS = 10_001
    """`broker/replication/leader_producers.py`"""
    ASK_FOR_CLIENT = 10_002
    """`broker/network/rules/client_envelope.py`"""


def api_name(api_key: int) -> str:
    """The name of any API that is known here."""
    api = APIS.get(api_key)
    return OwnApiKey(api_key).name if api is None else api.name


def encode_own_request(api_key: OwnApiKey, correlation_id: int, client_id: str, body: bytes) -> bytes:
    """The whole frame with its size."""
    name = client_id.encode()
    size = _REQUEST_START.size - _SIZE.size + len(name) + len(_NO_TAGS) + len(body)
    return _REQUEST_START.pack(size, api_key, OWN_VERSION, correlation_id, len(name)) + name + _NO_TAGS + body


def encode_own_response(correlation_id: int, body: bytes) -> bytes:
    """The whole frame with its size."""
    size = _SIZE.size + len(_NO_TAGS) + len(body)
    return _RESPONSE_START.pack(size, correlation_id) + _NO_TAGS + body


def own_response_body(frame: Buffer) -> bytes:
    """What stands in a frame without its size. CorruptData when it is no response at all."""
    try:
        _, position = read_tags(frame, _SIZE.size)
    except GARBAGE_ERRORS as error:
        raise CorruptData(f"the header of a response could not be read: {error}") from None
    return bytes(frame[position:])


class ControllerOutcome(NamedTuple):
    """What the header of a controller's response adds for a node of its cluster.

    `error_code` is that of the request as a whole, 0 when the request was decided. The controller's image has all
    that the response rests on: a node whose own image has reached `image_offset` has it, too.
    """

    error_code: int
    image_offset: int


def encode_requester_tags(requester: bytes) -> bytes:
    """Return the tagged fields of a request header that name the client for whom a node asks
    (`quorum/permissions/requester.py`)."""
    return uvarint(1) + uvarint(_REQUESTER_TAG) + uvarint(len(requester)) + requester


def requester_of(tags: Mapping[int, Buffer]) -> bytes | None:
    """Return what names that client, None in the header of a node that asks for itself."""
    value = tags.get(_REQUESTER_TAG)
    return None if value is None else bytes(value)


def encode_outcome_tags(outcome: ControllerOutcome) -> bytes:
    """Return the tagged fields of a response header."""
    return uvarint(1) + uvarint(_OUTCOME_TAG) + uvarint(_OUTCOME.size) + _OUTCOME.pack(*outcome)


def read_outcome(tags: Mapping[int, Buffer]) -> ControllerOutcome:
    """Raises CorruptData when the header has none: the response is of a node that is older or not of this cluster."""
    value = tags.get(_OUTCOME_TAG)
    if value is None or len(value) != _OUTCOME.size:
        raise CorruptData("a response of a controller without the offset of its image")
    return ControllerOutcome(*_OUTCOME.unpack(value))
