"""A request that a node passes on to a broker in the name of a client, as a CBOR array. Kafka: `EnvelopeRequest`.

Only nodes send it (`OwnApiKey.ASK_FOR_CLIENT`). The broker answers the client by its own rules and ACLs: what the
client may not have is not told to the node that asks for it. Changes of the metadata are permitted once more where
they are decided (decision 26).
"""

from __future__ import annotations

from typing import NamedTuple

import cbor2

from ....protocol.errors import CorruptData, ErrorCode, KafkaError
from ....protocol.primitives import Buffer
from ....quorum.raft.cbor_errors import CBOR_ERRORS


class ClientEnvelope(NamedTuple):
    """`frame` is the request as the client would have sent it, without its size."""

    principal: str
    host: str
    is_token_authenticated: bool
    frame: bytes


def encode_envelope(envelope: ClientEnvelope) -> bytes:
    return cbor2.dumps(list(envelope))


def decode_envelope(data: Buffer) -> ClientEnvelope:
    """Raises CorruptData."""
    try:
        principal, host, is_token_authenticated, frame = cbor2.loads(bytes(data))
    except CBOR_ERRORS as error:
        raise CorruptData(f"expected a request in the name of a client: {error}") from error
    if not (isinstance(principal, str) and isinstance(host, str) and isinstance(frame, bytes)):
        raise CorruptData("expected a principal, a host and a request in the name of a client")
    return ClientEnvelope(principal, host, is_token_authenticated is True, frame)


def encode_answer(frame: bytes) -> bytes:
    """Return the answer in a frame without its size."""
    return cbor2.dumps([int(ErrorCode.NONE), "", frame])


def encode_refusal(error: KafkaError) -> bytes:
    """Return that the request has no answer, as an error."""
    return cbor2.dumps([int(error.code), error.message or "", b""])


def decode_answer(data: Buffer) -> bytes:
    """The frame without its size. Raises KafkaError where the request has no answer, CorruptData."""
    try:
        code, sentence, frame = cbor2.loads(bytes(data))
        error = ErrorCode(code)
    except CBOR_ERRORS as error_of_cbor:
        raise CorruptData(f"expected an answer to a client: {error_of_cbor}") from error_of_cbor
    if not (isinstance(sentence, str) and isinstance(frame, bytes)):
        raise CorruptData("expected a code, a sentence and an answer to a client")
    if error is not ErrorCode.NONE:
        raise KafkaError(error, sentence or None)
    return frame
